//! The examples of the manual: each block of configuration in a chapter (`manual.md` beside a
//! module's code) passes `tamarack -t` without a warning. All of them are one configuration. A
//! block stands in a virtual host, or where the word after `apache` says: in the `server`, or in an
//! `htaccess`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tamarack");
/// The beginning of a block.
const FENCE: &str = "```";
/// The chapters lie below.
const MODULES: &str = "../modules/src";
/// Folders of documents that examples name. `/srv/` in an example is one below the server's root.
const FOLDERS: [&str; 3] = ["srv/www", "srv/sites/www.example.org", "srv/sites/shop.example.org"];
/// What examples name: empty files below the server's root.
const FILES: [&str; 4] = ["conf/magic", "conf/mime.types", "conf/proxies.txt", "maps/moved.txt"];

/// A block.
struct Example {
    /// File and line.
    origin: String,
    /// The word after `apache`.
    place: String,
    text: String,
}

impl Example {
    /// The block where it may stand; line 1 is its fence.
    fn placed(&self, number: usize) -> String {
        let text = &self.text;
        match self.place.as_str() {
            "" => format!("<VirtualHost 127.0.0.1:{}>\n{text}</VirtualHost>\n", 1000 + number),
            "server" => format!("\n{text}"),
            "htaccess" => format!("<Directory /srv/examples/{number}>\n{text}</Directory>\n"),
            other => panic!("{}: unknown word `{other}`", self.origin),
        }
    }
}

#[test]
fn examples_of_the_manual_are_correct() {
    let root = std::env::temp_dir().join(format!("tamarack-examples-{}", std::process::id()));
    let examples = examples();
    assert!(!examples.is_empty());
    let mut main = format!("ServerRoot {}\nServerName localhost\n", root.display());
    main.push_str("Listen 127.0.0.1:1\nDocumentRoot htdocs\n");
    main.push_str(&modules());
    for folder in FOLDERS.iter().chain(&["htdocs", "logs"]) {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in FILES.map(|name| root.join(name)) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    for (number, example) in examples.iter().enumerate() {
        let file = root.join(&example.origin);
        let text = example.placed(number).replace("/srv/", &format!("{}/srv/", root.display()));
        fs::write(&file, text).unwrap();
        main.push_str(&format!("Include \"{}\"\n", file.display()));
    }
    let configuration = root.join("httpd.conf");
    fs::write(&configuration, main).unwrap();
    let output = Command::new(PROGRAM).arg("-t").arg("-f").arg(&configuration).output().unwrap();
    fs::remove_dir_all(&root).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_clean = output.status.success() && errors.trim() == "Syntax OK";
    assert!(is_clean, "each file is the chapter and line of a block:\n{errors}");
}

/// The lines that load all modules, by the names in the program's list.
fn modules() -> String {
    let output = Command::new(PROGRAM).args(["manual", "--json"]).output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let files = list.lines().filter_map(|line| line.strip_prefix("{\"here\":\"mod_"));
    let names = files.filter_map(|rest| rest.strip_suffix("\"}")).filter(|name| *name != "so");
    names.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n")).collect()
}

/// The blocks of all chapters, in the order of their files.
fn examples() -> Vec<Example> {
    let mut files = Vec::new();
    find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(MODULES), &mut files);
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|word| word == "md") {
            files.push(path);
        }
    }
}

fn read(file: &Path) -> Vec<Example> {
    let parts: Vec<_> = file.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    let name = format!("{}_{}", parts[1], parts[0]);
    let mut examples: Vec<Example> = Vec::new();
    let mut is_example = false;
    for (number, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
        if let Some(word) = line.strip_prefix(FENCE) {
            is_example = !is_example && word.starts_with("apache");
            if is_example {
                let origin = format!("{name}-line-{}", number + 1);
                let place = word.trim_start_matches("apache").trim().to_owned();
                examples.push(Example { origin, place, text: String::new() });
            }
        } else if is_example && let Some(example) = examples.last_mut() {
            example.text.push_str(line);
            example.text.push('\n');
        }
    }
    examples
}

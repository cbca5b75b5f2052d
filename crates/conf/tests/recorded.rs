//! Compares the reader with Apache: each case of `recorded.txt` holds the output of `apache2 -t`.
//!
//! With `CONF_RECORD=1` in the environment, and apache2 installed, the file is written again.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conf::diag::SYNTAX_ERROR;
use conf::expr::{Expr, Flags, NoNames};
use conf::values::{ListenAddress, VirtualHostAddress, flag};
use conf::{BStr, BString, Diagnostic, Host, Node, Options, Severity, read_config};

/// The modules of the cases, besides Debian's static ones.
const MODULES: [&str; 5] = ["mpm_event", "authz_core", "macro", "alias", "env"];
const STATIC_MODULES: [&str; 8] =
    ["core", "http", "so", "watchdog", "log_config", "logio", "version", "unixd"];
const DIRECTIVES: [&str; 27] = [
    "ServerAdmin",
    "KeepAlive",
    "Listen",
    "ServerName",
    "SetEnv",
    "Alias",
    "Define",
    "UnDefine",
    "Include",
    "IncludeOptional",
    "LoadModule",
    "LoadFile",
    "ServerRoot",
    "Error",
    "Use",
    "UndefMacro",
    "<Macro",
    "<IfVersion",
    "<IfModule",
    "<IfDefine",
    "<Directory",
    "<VirtualHost",
    "<If",
    "<Files",
    "ErrorLog",
    "PidFile",
    "<Location",
];

struct Server;

impl Host for Server {
    fn module_active(&self, name: &BStr) -> bool {
        MODULES.iter().chain(&STATIC_MODULES).any(|module| {
            let file = if *module == "core" || *module == "http_core" {
                format!("{module}.c")
            } else {
                format!("mod_{module}.c")
            };
            *name == format!("{module}_module").as_str() || *name == file.as_str()
        })
    }

    fn directive_known(&self, name: &BStr) -> bool {
        DIRECTIVES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    }

    fn load_module(&mut self, name: &conf::Arg, file: &Path) -> Result<(), Box<Diagnostic>> {
        if file.exists() {
            return Ok(());
        }
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        Err(Box::new(name.error(format!(
            "Cannot load {file} into server: {file}: cannot open shared object file: \
             No such file or directory"
        ))))
    }
}

/// A block of the file.
#[derive(Default)]
struct Case {
    /// Comment lines and the configuration.
    config: String,
    /// Apache's output.
    expected: String,
    /// Our output if it differs, after a line with the reason.
    ours: Option<String>,
}

#[test]
fn the_reader_says_what_apache_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded.txt");
    let mut cases = parse(&fs::read_to_string(&file).unwrap());
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    let root = support_files();
    if std::env::var_os("CONF_RECORD").is_some() {
        for case in &mut cases {
            case.expected = apache(&root, &case.config);
        }
        fs::write(&file, print(&cases)).unwrap();
    }
    let mut failures = String::new();
    for case in &cases {
        let said = ours(&root, &case.config);
        let wanted = case.ours.as_ref().map_or(case.expected.as_str(), |ours| {
            ours.split_once('\n').map_or("", |(_, said)| said)
        });
        if said.trim_end() != wanted.trim_end() {
            let config = &case.config;
            writeln!(failures, "{config}\n--- wanted\n{wanted}\n--- said\n{said}\n").unwrap();
        }
    }
    fs::remove_dir_all(&root).unwrap();
    assert!(failures.is_empty(), "{failures}");
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for block in text.split("\n=====\n").filter(|block| !block.trim().is_empty()) {
        let (config, rest) = block.split_once("\n--- apache\n").unwrap_or((block, ""));
        let (expected, ours) = match rest.split_once("\n--- differs: ") {
            Some((expected, ours)) => (expected, Some(ours.trim_end().to_owned())),
            None => (rest, None),
        };
        let expected = expected.trim_end().to_owned();
        cases.push(Case { config: config.trim_start_matches('\n').to_owned(), expected, ours });
    }
    cases
}

fn print(cases: &[Case]) -> String {
    let mut out = String::new();
    for case in cases {
        write!(out, "{}\n--- apache\n{}\n", case.config, case.expected).unwrap();
        if let Some(ours) = &case.ours {
            writeln!(out, "--- differs: {ours}").unwrap();
        }
        out.push_str("=====\n");
    }
    out
}

/// Creates a server root with the files that the cases include.
fn support_files() -> PathBuf {
    let root = std::env::temp_dir().join(format!("conf-recorded-{}", std::process::id()));
    for directory in ["inc/a1", "inc/b2", "inc/sub/d", "inc/empty"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let files = [
        ("inc/a1/x1.conf", "Error one\n"),
        ("inc/b2/x2.conf", "# nothing\n"),
        ("inc/a1/bad.conf", "Bogus\n<Foo>\n"),
        ("inc/sub/.hidden.conf", "ServerAdmin a\n"),
        ("inc/sub/d/z", "Error deep\n"),
    ];
    for (name, text) in files {
        fs::write(root.join(name), text).unwrap();
    }
    let mut base = format!("ServerRoot {0}\nPidFile {0}/pid\nErrorLog {0}/log\n", root.display());
    base.push_str("ServerName localhost\nListen 127.0.0.1:48123\n");
    for module in MODULES {
        let file = format!("/usr/lib/apache2/modules/mod_{module}.so");
        writeln!(base, "LoadModule {module}_module {file}").unwrap();
    }
    fs::write(root.join("base.conf"), base).unwrap();
    root
}

fn write_config(root: &Path, config: &str) -> PathBuf {
    let path = root.join("t.conf");
    let config = config.replace("@ROOT@", &root.to_string_lossy());
    fs::write(&path, format!("Include {}/base.conf\n{config}\n", root.display())).unwrap();
    path
}

/// Apache's output, without times, and with the root as `@ROOT@`.
fn apache(root: &Path, config: &str) -> String {
    let path = write_config(root, config);
    let output = Command::new("apache2").arg("-t").arg("-f").arg(&path).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).replace(&*root.to_string_lossy(), "@ROOT@");
    let lines: Vec<&str> = said
        .lines()
        .map(|line| match line.starts_with('[') {
            true => line.rsplit_once("] ").map_or(line, |_| line.splitn(4, "] ").last().unwrap()),
            false => line.strip_prefix("apache2: ").unwrap_or(line),
        })
        .collect();
    lines.join("\n")
}

/// Our output in the same form: warnings, then the error that Apache would meet first.
fn ours(root: &Path, config: &str) -> String {
    let path = write_config(root, config);
    // The base file's modules are Debian's; if they are not installed they count as loaded.
    let base = fs::read_to_string(root.join("base.conf")).unwrap();
    let base: Vec<&str> = base.lines().filter(|line| !line.contains("/usr/lib")).collect();
    let shown = fs::read(root.join("base.conf")).unwrap();
    fs::write(root.join("base.conf"), base.join("\n")).unwrap();
    let (tree, found) = read_config(&path, &Options::default(), &mut Server);
    fs::write(root.join("base.conf"), shown).unwrap();
    let is_reading_error =
        |found: &&Diagnostic| found.severity == Severity::Error && found.code != SYNTAX_ERROR;
    let mut said: Vec<String> = Vec::new();
    let walked = walk(&tree.nodes, false);
    let reading = found.iter().find(is_reading_error);
    let error = reading.or_else(|| {
        let errors = found.iter().filter(|found| found.severity == Severity::Error);
        errors.chain(&walked).min_by_key(|found| found.span.map(|span| (span.file, span.line)))
    });
    for diagnostic in &found {
        if diagnostic.severity == Severity::Warning && !diagnostic.code.is_empty() {
            said.push(diagnostic.render_plain(&tree.sources));
        }
        if reading == Some(diagnostic) {
            break;
        }
    }
    said.push(match error {
        Some(error) => error.render_plain(&tree.sources),
        None => "Syntax OK".to_owned(),
    });
    said.join("\n").replace(&*root.to_string_lossy(), "@ROOT@")
}

/// A server with a few directives, which suffices to check words, locations and values.
fn walk(nodes: &[Node], inside: bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for node in nodes {
        let mut name = BString::from(if node.is_section() { "<" } else { "" });
        name.extend_from_slice(&node.name);
        if !Server.directive_known(name.as_ref()) {
            found.push(node.error(format!(
                "Invalid command '{name}', perhaps misspelled or defined by a module not \
                 included in the server configuration"
            )));
            continue;
        }
        found.extend(check(node, inside).err());
        found.extend(walk(node.children.as_deref().unwrap_or(&[]), true));
    }
    found
}

fn check(node: &Node, inside: bool) -> Result<(), Diagnostic> {
    let words = node.words()?;
    let name = node.name.to_string();
    match name.as_str() {
        "ServerAdmin" if words.len() != 1 => Err(node.error(
            "ServerAdmin takes one argument, The email address of the server \
                            administrator",
        )),
        "KeepAlive" if inside => Err(node.error("KeepAlive not allowed in <Directory> context")),
        "KeepAlive" => flag(node, &words[0]).map(|_| ()),
        "Listen" => match ListenAddress::parse(&words[0].text) {
            Ok(_) => Ok(()),
            Err(message) => Err(words[0].error(message)),
        },
        "SetEnv" if !(1..=2).contains(&words.len()) => Err(node.error(
            "SetEnv takes 1-2 arguments, an environment variable name and \
                            optional value to pass to CGI.",
        )),
        _ if node.is_section() && words.is_empty() => {
            Err(node.error(format!("<{name}> directive requires additional arguments")))
        }
        "VirtualHost" => {
            for word in &words {
                VirtualHostAddress::parse(&word.text).map_err(|message| word.error(message))?;
            }
            Ok(())
        }
        "If" => match Expr::parse_bool(&words[0].text, Flags::default(), &NoNames) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(words[0].error(format!("Cannot parse condition clause: {}", error.message)))
            }
        },
        _ => Ok(()),
    }
}

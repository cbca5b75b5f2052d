//! Transcripts of `tamarack explain` and `tamarack lint`: each file beside this one is a site in
//! the format of tests/README.md, with commands and their recorded output. `RECORD=1` records them
//! again. No command writes a file, but with `--record`: the site is the same afterwards.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

mod picture;
mod unasked;

use blackbox::compare::{Rule, difference};
use blackbox::place::Place;
use blackbox::render::Renderer;
use blackbox::testfile::{self, Item, TestFile};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// What differs from run to run.
const MASKS: [(&str, &str); 8] = [
    ("Date: .* GMT", "Date: *"),
    ("Server: Tamarack[^ ]*( \\([A-Za-z]+\\))?", "Server: *"),
    ("[0-9.]+ (ms|\\\\xc2\\\\xb5s)", "TIME"),
    ("median of [0-9]+ runs", "median of N runs"),
    ("\"(response_)?ns\": [0-9]+", "\"${1}ns\": *"),
    ("\"runs\": [0-9]+", "\"runs\": *"),
    ("[0-9]+ (stat|open|allocation)s?", "N ${1}s"),
    ("\"(stats|opens|allocations)\": [0-9]+", "\"${1}\": *"),
];

/// Tests that count the CPU time of all child processes run alone.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn transcripts_are_as_recorded() {
    let _alone = ALONE.lock();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut failures = String::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "transcript"))
    {
        let mut file = testfile::load(path, &folder).unwrap();
        if file.missing().is_some() {
            continue;
        }
        let place = Place::build(&file, &tests.join("tls")).unwrap();
        let is_recording = std::env::var_os("RECORD").is_some();
        failures.push_str(&compare(&mut file, &place, is_recording));
        if is_recording {
            std::fs::write(path, file.to_text()).unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn compare(file: &mut TestFile, place: &Place, is_recording: bool) -> String {
    let mut failures = String::new();
    let common = MASKS.map(|(pattern, with)| (pattern.to_owned(), with.to_owned()));
    let masks = [file.masks.clone(), common.to_vec()].concat();
    let renderer = Renderer::new(place, &masks).unwrap();
    for item in &mut file.items {
        let Item::Command(block) = item else { panic!("only commands") };
        let words = place.fill_text(&block.argument);
        let (program, root) = (env!("CARGO_BIN_EXE_tamarack"), &place.root);
        let mut command = Command::new(program);
        command.args(words.split(' ')).arg("-d").arg(root).args(["-f", "conf/httpd.conf"]);
        let before = snapshot(root);
        let output = command.current_dir(root).output().unwrap();
        if !words.contains("--record") {
            assert_eq!(before, snapshot(root), "{}: {words}: files were written", file.name);
        }
        let lines = renderer.output(&output, program);
        if is_recording {
            block.recorded = lines;
        } else if let Some(found) = difference(&block.recorded, &lines, Rule::Exact) {
            let _ = writeln!(failures, "{}: {}\n{found}", file.name, block.argument);
        }
    }
    failures
}

/// The files below a folder, with their sizes and times of change.
fn snapshot(folder: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let (mut waiting, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            if about.is_dir() {
                waiting.push(path.clone());
            }
            found.push((path, about.size(), about.ctime(), about.ctime_nsec()));
        }
    }
    found.sort();
    found
}

/// The CPU time of a command about a configuration of so many rules and redirects, in an
/// unoptimised build. A report that compares each line with each other takes half a minute.
#[test]
fn two_thousand_rules_are_read_once() {
    const LIMIT: Duration = Duration::from_secs(4);
    let _alone = ALONE.lock();
    let mut text =
        "# Many rules.\nmodules dir mime authz_core alias rewrite\n\nconfig\n".to_owned();
    text.push_str("    RewriteEngine On\n");
    for number in 0..2000 {
        let _ = writeln!(text, "    RewriteCond %{{HTTP_HOST}} =host{number}");
        let _ = writeln!(text, "    RewriteRule ^/page{number}/(.*)$ /new{number}/$1 [R=301,L]");
        let _ = writeln!(text, "    Redirect /old{number}/x /target{number}");
    }
    text.push_str("\ntree\n    htdocs/index.html\n    | start\n\ncommand lint\n");
    let file = blackbox::parse::parse(&text).unwrap();
    let place = Place::build(&file, Path::new("")).unwrap();
    for words in [&["lint"][..], &["explain", "http://localhost/old1999/x"]] {
        let before = children_cpu_time();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamarack"));
        command.args(words).arg("-d").arg(&place.root).args(["-f", "conf/httpd.conf"]);
        let output = command.current_dir(&place.root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let took = children_cpu_time() - before;
        assert!(took < LIMIT, "{words:?} took {took:?}");
    }
}

/// Rules in a loop, which a server ends with an error after 32,000 rounds: what a recording keeps
/// of them has a limit, and `lint` does not wait for a longer loop. The limit of CPU time is that
/// of an unoptimised build; without the others, a loop takes hours and gigabytes.
#[test]
fn loops_take_little_memory_and_time() {
    let _alone = ALONE.lock();
    let rules = |count: usize, start: &str| -> String {
        (0..count).map(|number| format!("    {start}rule{number}/x /y\n")).collect()
    };
    let mut of_host = "    LogLevel rewrite:trace3\n    RewriteEngine On\n".to_owned();
    of_host.push_str(&rules(2000, "RewriteRule ^/"));
    of_host.push_str("    RewriteRule ^/loop(.*)$ /loop$1 [N]\n");
    let of_folder = |flag: &str| {
        let rules = rules(200, "| RewriteRule ^");
        format!("    | RewriteEngine On\n{rules}    | RewriteRule . - [{flag}]\n")
    };
    let allowed = "    <Directory @ROOT@/htdocs>\n        AllowOverride All\n    </Directory>\n";
    let url = "http://localhost/loop";
    let unbounded = of_folder("N=2000000000");
    for (config, file, words) in [
        (&*of_host, "", &["explain", url][..]),
        (&*of_host, "", &["explain", "--json", url]),
        (allowed, &*of_folder("N"), &["explain", "-q", url]),
        (allowed, &*of_folder("N"), &["lint"]),
        (allowed, &*unbounded, &["lint"]),
    ] {
        let text = format!(
            "# A loop.\nmodules dir mime authz_core rewrite\n\nconfig\n{config}\ntree\n    \
             htdocs/.htaccess\n{file}    htdocs/index.html\n    | start\n\ncommand lint\n"
        );
        let file = blackbox::parse::parse(&text).unwrap();
        let place = Place::build(&file, Path::new("")).unwrap();
        let before = children_cpu_time();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamarack"));
        command.args(words).arg("-d").arg(&place.root).args(["-f", "conf/httpd.conf"]);
        let output = command.current_dir(&place.root).output().unwrap();
        let took = children_cpu_time() - before;
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert!(took < Duration::from_secs(40), "{words:?} took {took:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        if words[0] == "explain" {
            assert!(said.contains("500"), "{said}");
        }
        if words.len() == 2 {
            assert!(said.contains("31990 rounds are not shown"), "{said}");
            assert!(said.contains("AH02596: "), "{said}");
        }
        let memory = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
        assert!(memory < 300 * 1024, "{words:?} took {memory} KiB");
    }
}

/// A response asks the file system for its file and for each `.htaccess`.
#[test]
fn looks_at_the_file_system_are_counted() {
    let of = |override_: &str| {
        let text = format!(
            "# One file.\nmodules dir mime authz_core\n\nconfig\n    <Directory \
             @ROOT@/htdocs>\n        AllowOverride {override_}\n    </Directory>\n\ntree\n    \
             htdocs/.htaccess\n    | Options None\n    htdocs/index.html\n    | start\n\n\
             command explain\n"
        );
        let file = blackbox::parse::parse(&text).unwrap();
        let place = Place::build(&file, Path::new("")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamarack"));
        command.args(["explain", "--json", "http://localhost/index.html", "-d"]).arg(&place.root);
        command.args(["-f", "conf/httpd.conf"]).current_dir(&place.root);
        let said = command.output().unwrap().stdout;
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
        ["file_system/stats", "file_system/opens", "allocations"]
            .map(|name| said.pointer(&format!("/cost/{name}")).unwrap().as_u64().unwrap())
    };
    let ([stats, opens, allocations], [fewer_stats, fewer_opens, _]) = (of("All"), of("None"));
    assert_eq!((opens, fewer_opens), (2, 1));
    assert!(fewer_stats > 0 && stats > fewer_stats, "{stats} {fewer_stats}");
    assert!(allocations > 0);
}

fn children_cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds());
    Duration::from_micros(micros.iter().sum::<i64>().try_into().unwrap())
}

/// README's picture shows the first command of `picture.transcript`.
#[test]
fn the_picture_is_true() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = testfile::load(&folder.join("tests/explain/picture.transcript"), folder).unwrap();
    let Some(Item::Command(block)) = file.items.first() else { panic!("no command") };
    let shown = picture::of(&block.argument, &block.recorded);
    let path = folder.join("../../docs/images/explain.svg");
    if std::env::var_os("RECORD").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, shown, "RECORD=1 draws it again");
}

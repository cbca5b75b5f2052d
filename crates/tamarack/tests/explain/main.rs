//! Transcripts of `tamarack explain` and `tamarack lint`: each file beside this one is a site in
//! the format of tests/README.md, with commands and their recorded output. `RECORD=1` records them
//! again.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use blackbox::compare::{Rule, difference};
use blackbox::place::Place;
use blackbox::render::Renderer;
use blackbox::testfile::{self, Item, TestFile};

#[test]
fn transcripts_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explain");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut failures = String::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "transcript"))
    {
        let mut file = testfile::load(path, &folder).unwrap();
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
    let renderer = Renderer::new(place, &file.masks.clone()).unwrap();
    for item in &mut file.items {
        let Item::Command(block) = item else { panic!("only commands") };
        let words = place.fill_text(&block.argument);
        let (program, root) = (env!("CARGO_BIN_EXE_tamarack"), &place.root);
        let mut command = Command::new(program);
        command.args(words.split(' ')).arg("-d").arg(root).args(["-f", "conf/httpd.conf"]);
        let output = command.current_dir(root).output().unwrap();
        let lines = renderer.output(&output, program);
        if is_recording {
            block.recorded = lines;
        } else if let Some(found) = difference(&block.recorded, &lines, Rule::Exact) {
            let _ = writeln!(failures, "{}: {}\n{found}", file.name, block.argument);
        }
    }
    failures
}

//! Decodes the stories of hpack-test-case: what 14 encoders have made of the same fields, with
//! tables of several sizes. The crate httlib-hpack carries them.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wire::h2::hpack::Decoder;

/// The folder with the stories, in cargo's copy of the crate.
fn fixtures() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        // Crates of other platforms may be missing.
        .args(["--filter-platform", &host(), "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "httlib-hpack").unwrap();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().join("fixtures")
}

/// The name of this platform.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

/// Decodes all blocks of a story; returns how many they are.
fn tell(path: &Path) -> usize {
    let story: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = story["cases"].as_array().unwrap();
    let sizes = cases.iter().filter_map(|case| case["header_table_size"].as_u64());
    let mut decoder = Decoder::with_limit(sizes.max().unwrap_or(4096) as usize);
    for case in cases {
        let mut fields = Vec::new();
        let outcome = decoder.decode(&bytes(case["wire"].as_str().unwrap()), |name, value| {
            fields.push((name.to_vec(), value.to_vec()));
            true
        });
        assert_eq!(outcome, Ok(()), "{}", path.display());
        let expected: Vec<_> = case["headers"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|field| field.as_object().unwrap())
            .map(|(name, value)| (name.clone().into_bytes(), value.as_str().unwrap().into()))
            .collect();
        assert_eq!(fields, expected, "{}", path.display());
    }
    cases.len()
}

#[test]
fn all_stories_are_decoded() {
    let (mut stories, mut blocks) = (0, 0);
    for encoder in std::fs::read_dir(fixtures()).unwrap() {
        let encoder = encoder.unwrap().path();
        if !encoder.is_dir() {
            continue;
        }
        for story in std::fs::read_dir(encoder).unwrap() {
            let decoded = tell(&story.unwrap().path());
            stories += usize::from(decoded > 0);
            blocks += decoded;
        }
    }
    assert!(stories > 400 && blocks > 5000, "{stories} stories, {blocks} blocks");
    println!("{stories} stories, {blocks} blocks");
}

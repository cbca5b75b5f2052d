//! Build information for `-V`: the compiler and its flags.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(compiler).arg("--version").output().ok();
    let compiler = said.and_then(|said| String::from_utf8(said.stdout).ok()).unwrap_or_default();
    let word = |name: &str| env::var(name).unwrap_or_default();
    // A control character separates the flags in it.
    let flags = word("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    let profile = format!("{}, opt-level {} {flags}", word("PROFILE"), word("OPT_LEVEL"));
    println!("cargo:rustc-env=TAMARACK_COMPILER={}, {}", compiler.trim(), word("TARGET"));
    println!("cargo:rustc-env=TAMARACK_PROFILE={}", profile.trim_end());
}

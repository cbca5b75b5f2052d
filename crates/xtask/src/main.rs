//! Project tasks: `cargo xtask tidy` checks the style, `cargo xtask manual` generates the manual.

mod manual;
mod tidy;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy [--ratchet]                 check the tree against the rules of CONTRIBUTING.md;
                                   --ratchet lowers crates/xtask/tidy.baseline to what is left
  manual [--check] [--rows FILE]   write docs/directives/ and docs/compat.md from the program's
                                   directive rows; --check only says whether they are current;
                                   --rows reads the rows from a file instead of the program";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy", rest @ ..] => tidy::run(rest),
        ["manual", rest @ ..] => manual::run(rest),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(report) => {
            eprintln!("{report}");
            ExitCode::FAILURE
        }
    }
}

//! `compare`: sends random requests for random sites to the installed apache2 and to Tamarack.
//!
//! ```text
//! compare [--seed N] [--seconds N | --rounds N] [--report]
//! ```
//!
//! Differences are shrunk and printed as a test file. `--report` always exits with 0. The same seed
//! gives the same sites; only the number of rounds depends on the machine.

mod choice;
mod expression;
mod generate;
mod kept;
mod pair;
mod random;
mod requests;
mod rows;
mod run;
mod sample;
mod shrink;
mod simplify;
mod site;
mod talk;
mod tree;
mod wanted;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blackbox::watcher;

use run::{Limit, Run};

/// The default time limit.
const SECONDS: u64 = 60;

fn main() -> ExitCode {
    match start() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("compare: {message}");
            ExitCode::from(2)
        }
    }
}

fn start() -> Result<bool, String> {
    let Some(_watcher) = watcher::start()? else {
        return Ok(true);
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut seed = since;
    let mut limit = Limit::Time(Duration::from_secs(SECONDS));
    let mut is_report = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let value = arguments.next().unwrap_or_default();
            value.parse().map_err(|_| format!("{argument} requires a number"))
        };
        match argument.as_str() {
            "--seed" => seed = number()?,
            "--seconds" => limit = Limit::Time(Duration::from_secs(number()?)),
            "--rounds" => limit = Limit::Rounds(number()?),
            "--report" => is_report = true,
            _ => return Err("[--seed N] [--seconds N | --rounds N] [--report]".to_owned()),
        }
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no tests folder")?;
    let run = Run::new(seed, limit, tests)?;
    let found = run.go()?;
    Ok(found == 0 || is_report)
}

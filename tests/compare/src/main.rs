//! `compare`: sends random requests for random sites to the installed apache2 and to Tamarack.
//!
//! ```text
//! compare [--seed N] [--seconds N | --rounds N] [--from N] [--report] [--kinds | --first]
//!         [--scripts | --pages | --proxies | --logins] [--http2]
//! ```
//!
//! `--scripts` makes sites of CGI programs instead of files, `--pages` those of pages with
//! includes, `--proxies` those of a proxy with servers behind it, `--logins` those that ask for
//! logins. `--http2` asks over HTTP/2. `--from` begins with a later round.
//! What differs is shrunk and printed as a test file; with `--kinds` only the first difference of
//! each kind is printed, as it was seen; with `--first` the first of all ends the run. `--report`
//! ends in success in any case. The same seed makes the same sites; how many rounds there is time
//! for depends on the machine.

mod answers;
mod backends;
mod changes;
mod choice;
mod contents;
mod costly;
mod expression;
mod features;
mod fields;
mod folders;
mod fresh;
mod generate;
mod identities;
mod includes;
mod kept;
mod neighbours;
mod pages;
mod pair;
mod proxied;
mod proxies;
mod random;
mod requests;
mod rows;
mod run;
mod sample;
mod scripts;
mod shrink;
mod simplify;
mod site;
mod skipped;
mod special;
mod streams;
mod talk;
mod tree;
mod usual;
mod verdict;
mod wanted;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blackbox::{http2, watcher};

use run::{FILES, LOGINS, Limit, Manner, PAGES, PROXIES, Run, SCRIPTS};

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
    let mut from = 0;
    let mut is_report = false;
    let mut manner = Manner::Shrink;
    let mut sites = FILES;
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
            "--from" => from = number()?,
            "--report" => is_report = true,
            "--kinds" => manner = Manner::Kinds,
            "--first" => manner = Manner::First,
            "--scripts" => sites = SCRIPTS,
            "--pages" => sites = PAGES,
            "--proxies" => sites = PROXIES,
            "--logins" => sites = LOGINS,
            "--http2" => http2::ON.store(true, Ordering::Relaxed),
            _ => {
                return Err("[--seed N] [--seconds N | --rounds N] [--from N] [--report] \
                     [--kinds|--first] [--scripts|--pages|--proxies|--logins] [--http2]"
                    .to_owned());
            }
        }
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no tests folder")?;
    let run = Run::new(seed, from, limit, manner, sites, tests)?;
    let found = run.go()?;
    Ok(found == 0 || is_report)
}

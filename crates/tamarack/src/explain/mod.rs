//! `tamarack explain URL`: what the server would answer, and why.

mod apache;
mod cost;
mod diff;
mod effective;
mod expect;
mod headers;
mod json;
mod markdown;
mod options;
pub mod places;
pub mod report;
mod rows;
mod session;
mod target;
pub mod text;
mod why;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use server::host::Server;

use crate::load::{self, Loaded};
use crate::{dump, settings};
use expect::{Expectation, Tap};
use options::Options;
use report::Report;

pub use session::{Answer, Session, within};
pub use target::{Target, target_of};

/// The program's name in messages.
const NAME: &str = "tamarack explain";

/// The longest file of expectations, in bytes.
const EXPECTED_BYTES: u64 = 16 * 1024 * 1024;

/// The longest request body, in bytes.
const BODY_BYTES: u64 = 256 * 1024 * 1024;

/// The exit status for a wrong command line.
const WRONG_USE: i32 = 2;

/// Explains, and returns the exit status.
pub fn run(words: &[OsString]) -> i32 {
    let name = std::iter::once(OsString::from(NAME));
    let options = match Options::try_parse_from(name.chain(words.iter().cloned())) {
        Ok(options) => options,
        Err(wrong) => {
            let _ = wrong.print();
            return if wrong.use_stderr() { WRONG_USE } else { 0 };
        }
    };
    pcre::interpret();
    match work(&options) {
        Ok((text, is_good)) => {
            dump::print(&text);
            i32::from(!is_good)
        }
        Err(Failure::Configuration) => 1,
        Err(Failure::Use(why)) => {
            eprintln!("{NAME}: {why}");
            WRONG_USE
        }
    }
}

/// Why there is no answer.
enum Failure {
    /// The configuration has errors, which have been reported.
    Configuration,
    /// The command line asks for something impossible.
    Use(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure::Use(why)
    }
}

/// The text to print, and whether all expectations are fulfilled.
fn work(options: &Options) -> Result<(String, bool), Failure> {
    let of_file = |file: &Path, error: io::Error| format!("{}: {error}", file.display());
    let read = |file: &PathBuf| {
        let text = regular::read(file, EXPECTED_BYTES).map_err(|error| of_file(file, error))?;
        Ok::<_, String>(String::from_utf8_lossy(&text).into_owned())
    };
    let expected = options.expect.as_ref().map(read).transpose()?;
    let expected = expected.as_deref().map(|text| expect::parse(text, options)).transpose();
    let expected = expected.map_err(|why| match &options.expect {
        Some(file) => format!("{}, {why}", file.display()),
        None => why,
    })?;
    // Open the caller's files before giving up the caller's rights.
    let open = |file: &PathBuf| append_to(file).map_err(|error| of_file(file, error));
    let record = options.record.as_ref().map(open).transpose()?;
    let read_body =
        |file: &PathBuf| regular::read(file, BODY_BYTES).map_err(|error| of_file(file, error));
    let body = options.body.as_ref().map(read_body).transpose()?;
    let (loaded, server) = configuration(options, options.config.clone())?;
    let before = options.diff.clone().map(|old| configuration(options, Some(old))).transpose()?;
    become_child(&server)?;
    if let Some(expected) = expected {
        return Ok(compare(&loaded, server, &expected)?);
    }
    let text = match before {
        Some((old, old_server)) => {
            let lines = |loaded: &Loaded, server: Arc<Server>| {
                ask(options, body.as_deref(), loaded, server, async |_, session, report| {
                    text::lines(report, &session.places)
                })
            };
            let again = lines(&old, old_server.clone())?;
            let old = lines(&old, old_server)?;
            let new = lines(&loaded, server)?;
            let fresh = diff::Fresh::of(&again, &old);
            text::write_differences(&diff::between(&old, &new, &fresh), style(options).colour)
        }
        None => {
            ask(options, body.as_deref(), &loaded, server, async |options, session, report| {
                if let Some(mut file) = record {
                    let line = expect::line(report, options);
                    writeln!(file, "{line}").map_err(|error| error.to_string())?;
                }
                Ok::<_, String>(match &options.why {
                    Some(name) => {
                        let registry = &session.server.registry;
                        why::write(report, &session.places, registry, name)?
                    }
                    None if options.json => json::write(report, &session.places),
                    None if options.md => markdown::write(report, &session.places, style(options)),
                    None => text::write(report, &session.places, style(options)),
                })
            })??
        }
    };
    Ok((text, true))
}

/// Opens one of the caller's files to append a line.
fn append_to(file: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(file)
}

fn configuration(
    options: &Options,
    file: Option<PathBuf>,
) -> Result<(Loaded, Arc<Server>), Failure> {
    let arguments = options.arguments(file);
    let loaded = load::load(NAME, &arguments);
    match loaded.server.clone() {
        Some(server) => Ok((loaded, server)),
        None => {
            dump::report(NAME, arguments.least_level(), &loaded);
            let variables = arguments.server_root().join("envvars");
            if variables.exists() && std::env::var_os("APACHE_RUN_USER").is_none() {
                let file = variables.display();
                eprintln!("{NAME}: the variables of {file} are not set: run '. {file}' first");
            }
            Err(Failure::Configuration)
        }
    }
}

/// Gives up the rights that a child of the server gives up, so that access to files is checked as
/// `User` and `Group`.
///
/// # Errors
/// The rights that could not be given up.
pub fn become_child(server: &Arc<Server>) -> Result<(), String> {
    if !mpm::privileges::is_root() {
        return Ok(());
    }
    let settings = settings::of(server)?;
    mpm::privileges::drop_privileges(&settings).map_err(|failure| failure.to_string())
}

/// Makes the report on the command line's request, and passes it to `show`.
fn ask<T>(
    options: &Options,
    body: Option<&[u8]>,
    loaded: &Loaded,
    server: Arc<Server>,
    show: impl AsyncFnOnce(&Options, &Session, &Report) -> T,
) -> Result<T, String> {
    let url = options.url.as_deref().unwrap_or_default();
    let target = Target::new(url, options.method(), options, &server)?;
    let target = match body {
        Some(body) => target.with_body(body),
        None => target,
    };
    let user = options.user.clone().map(String::into_bytes);
    let shown = Session::run(loaded, server, user, async |mut session| {
        let answer = session.explain(&target).await?;
        let mut report = Report::new(&session, &target, options.method(), answer);
        // Times would differ from run to run.
        if options.why.is_none() && options.diff.is_none() && !options.quiet {
            report.cost = session.measure(&target).await;
        }
        Ok(show(options, &session, &report).await)
    });
    shown.map_err(|error| error.to_string())?
}

/// Explains the requests of expectations; the results as TAP.
fn compare(
    loaded: &Loaded,
    server: Arc<Server>,
    expected: &[Expectation],
) -> Result<(String, bool), String> {
    let done = Session::run(loaded, server.clone(), None, async |mut session| {
        let mut tap = Tap::default();
        for wanted in expected {
            let options = &wanted.options;
            session.set_user(options.user.clone().map(String::into_bytes));
            let target = match Target::new(&wanted.url, &wanted.method, options, &server) {
                Ok(target) => match &wanted.body {
                    Some(body) => target.with_body(body),
                    None => target,
                },
                Err(why) => {
                    tap.add(wanted, Err(&why));
                    continue;
                }
            };
            match session.explain(&target).await {
                Ok(answer) => {
                    let report = Report::new(&session, &target, &wanted.method, answer);
                    tap.add(wanted, Ok(&report));
                }
                Err(why) => tap.add(wanted, Err(&why)),
            }
        }
        tap.finish()
    });
    done.map_err(|error| error.to_string())
}

fn style(options: &Options) -> text::Style {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = !is_plain && std::io::stdout().is_terminal();
    text::Style {
        colour,
        verbose: options.verbose,
        quiet: options.quiet,
        all: options.all,
        as_apache: options.as_server.is_some(),
    }
}

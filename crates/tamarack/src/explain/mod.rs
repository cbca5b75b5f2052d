//! `tamarack explain URL`: what the server would answer, and why.

mod effective;
mod headers;
mod json;
mod options;
mod places;
mod report;
mod rows;
mod session;
mod target;
mod text;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;

use clap::Parser;
use server::host::Server;

use crate::load::{self, Loaded};
use crate::{dump, settings};
use options::Options;
use report::Report;

pub use session::Session;
pub use target::Target;

/// The program's name in messages.
const NAME: &str = "tamarack explain";

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
    let arguments = options.arguments();
    let loaded = load::load(NAME, &arguments);
    let Some(server) = loaded.server.clone() else {
        dump::report(NAME, arguments.least_level(), &loaded);
        return 1;
    };
    if let Err(why) = become_child(&server) {
        eprintln!("{NAME}: {why}");
        return 1;
    }
    match explain(&options, &loaded, server) {
        Ok(text) => {
            dump::print(&text);
            0
        }
        Err(why) => {
            eprintln!("{NAME}: {why}");
            WRONG_USE
        }
    }
}

/// Gives up what a child of the server gives up, so that files are judged as `User` and `Group`.
fn become_child(server: &Arc<Server>) -> Result<(), String> {
    if !mpm::privileges::is_root() {
        return Ok(());
    }
    let settings = settings::of(server)?;
    mpm::privileges::drop_privileges(&settings).map_err(|failure| failure.to_string())
}

fn explain(options: &Options, loaded: &Loaded, server: Arc<Server>) -> Result<String, String> {
    let url = options.url.as_deref().unwrap_or_default();
    let target = Target::new(url, &options.method, options, &server)?;
    let user = options.user.clone().map(String::into_bytes);
    let explained = Session::run(loaded, server, user, async |mut session| {
        let answer = session.explain(&target).await?;
        let report = Report::new(&session, &target, &options.method, answer);
        Ok(match options.json {
            true => json::write(&report, &session.places),
            false => text::write(&report, &session.places, style(options)),
        })
    });
    explained.map_err(|error| error.to_string())?
}

fn style(options: &Options) -> text::Style {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = !is_plain && std::io::stdout().is_terminal();
    text::Style { colour, verbose: options.verbose, quiet: options.quiet }
}

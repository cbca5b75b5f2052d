//! `tamarack lint`: lines of a configuration that do not do what they seem to do.
//!
//! The directives are those that the server reads, `.htaccess` files below the document roots
//! included; what only a response shows (source code that is sent as text) is found by requests to
//! the server's own code, as in `tamarack explain`.

mod engine;
mod files;
mod finding;
mod order;
mod paths;
mod patterns;
mod php;
mod proxy;
mod redirects;
mod request;
mod rewriting;
mod sections;
mod source;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use crate::cli::Arguments;
use crate::dump;
use crate::explain;
use crate::explain::places::{Directive, Places};
use crate::load;

pub use finding::{Finding, Severity};
pub use request::{Subject, of_request};

/// The program's name in messages.
const NAME: &str = "tamarack lint";

/// The exit status for a wrong command line.
const WRONG_USE: i32 = 2;

/// Shows lines that do not do what they seem to do, each with a remedy.
///
/// Nothing is written, connected to or started.
#[derive(Clone, Debug, Parser)]
#[command(name = "tamarack lint", version, after_help = STATUS)]
struct Options {
    /// The configuration file, instead of the installed one.
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// The initial ServerRoot.
    #[arg(short = 'd', long, value_name = "FOLDER")]
    server_root: Option<PathBuf>,
    /// Define a name for <IfDefine>.
    #[arg(short = 'D', long = "define", value_name = "NAME")]
    defines: Vec<OsString>,
}

const STATUS: &str = "\
Exit status: 0 if there is no severe finding, 1 if there is one or the configuration has errors, 2
if the command line is wrong. Severe findings: source code that is sent as text, ProxyRequests
without a Require, and a section or rule that denies access and can't match or never runs.";

/// Checks a configuration, and returns the exit status.
pub fn run(words: &[OsString]) -> i32 {
    use std::os::unix::ffi::OsStringExt;
    let name = std::iter::once(OsString::from(NAME));
    let options = match Options::try_parse_from(name.chain(words.iter().cloned())) {
        Ok(options) => options,
        Err(wrong) => {
            let _ = wrong.print();
            return if wrong.use_stderr() { WRONG_USE } else { 0 };
        }
    };
    let config = options.config.map(|file| std::path::absolute(&file).unwrap_or(file));
    let arguments = Arguments {
        server_root: options.server_root,
        file: config,
        defines: options.defines.into_iter().map(OsString::into_vec).collect(),
        skip_document_root: true,
        ..Arguments::default()
    };
    pcre::interpret();
    let loaded = load::load(NAME, &arguments);
    dump::report(NAME, arguments.least_level(), &loaded);
    let mut places = Places::new(&loaded);
    // These checks need no server, so they also run on a configuration with errors.
    let mut found = of_configuration(&places.top);
    php::check(&loaded.sources, &mut found);
    match &loaded.server {
        Some(server) => match explain::become_child(server) {
            Ok(()) => {
                files::check(server, &mut places, &mut found);
                source::check(&loaded, server, &mut found);
            }
            Err(why) => eprintln!("{NAME}: {why}"),
        },
        None => {
            eprintln!("{NAME}: the configuration has errors: no .htaccess and no file is checked")
        }
    }
    found.sort_by_key(|one: &Finding| (one.severity, one.span, one.message.clone()));
    found.dedup();
    dump::print(&finding::write(&found, &places));
    let is_severe = found.iter().any(|one| one.severity == Severity::Severe);
    i32::from(is_severe || loaded.server.is_none())
}

/// Checks the directives of a configuration, without its files.
pub fn of_configuration(top: &[Directive]) -> Vec<Finding> {
    let mut found = Vec::new();
    sections::check(top, &mut found);
    patterns::check(top, &mut found);
    engine::check(top, &mut found);
    order::check(top, &mut found);
    proxy::check(top, &mut found);
    redirects::check(top, &mut found);
    rewriting::check(top, rewriting::Scope::Server, &mut found);
    found
}

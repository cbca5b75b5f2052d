//! mod_cgi and mod_cgid: programs that make responses (RFC 3875).
//!
//! Both are the same here: a companion process starts the programs, whichever MPM serves, and each
//! has its own numbers of messages. A request has three pipes to its program, which its loop reads
//! and writes as it does sockets.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_cgi.html>,
//! <https://httpd.apache.org/docs/2.4/mod/mod_cgid.html>

pub(crate) mod command;
mod conversation;
mod order;
mod output;
mod respond;
mod rows;
mod script_log;

use std::time::Duration;

use server::directive::Row;
use server::hooks::{Bound, Hooks, Step};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use script_log::ScriptLog;

/// `mod_cgi.c`
pub struct Cgi;

/// `mod_cgid.c`
pub struct Cgid;

server::config! {
    /// The configuration per virtual host.
    pub struct Settings {
        /// `ScriptLog`, with its length and buffer.
        pub log: ScriptLog,
    }
}

server::config! {
    /// The configuration per directory.
    pub struct Directory {
        /// `CGIScriptTimeout`, `CGIDScriptTimeout`
        pub timeout: Setting<Duration>,
    }
}

/// What the two modules do not have in common.
trait Kind: Module<Server = Settings, Dir = Directory> {
    /// The messages for a request that may not run a program: ExecCGI is off; nph- in a page; no
    /// such file; a directory; a path behind the program.
    const REFUSED: [u32; 5];
    /// The message for a program that can't be started.
    const NOT_STARTED: u32;
    /// The message for a body that can't be read.
    const UNREAD: u32;
    /// The most arguments that a query makes (`APACHE_ARG_MAX`, without the words that each module
    /// keeps for itself).
    const ARGUMENTS_MAX: usize;
    /// Whether the response waits for the end of standard error, and `ScriptLog` has its lines,
    /// too: mod_cgid's daemon keeps them.
    const LOGS_ERRORS: bool;
}

impl Kind for Cgi {
    const REFUSED: [u32; 5] = [2809, 2810, 2811, 2812, 2813];
    const NOT_STARTED: u32 = 1223;
    const UNREAD: u32 = 1225;
    const ARGUMENTS_MAX: usize = 4094;
    const LOGS_ERRORS: bool = true;
}

impl Kind for Cgid {
    const REFUSED: [u32; 5] = [1262, 1263, 1264, 1265, 1266];
    const NOT_STARTED: u32 = 1252;
    const UNREAD: u32 = 1270;
    const ARGUMENTS_MAX: usize = 4091;
    const LOGS_ERRORS: bool = false;
}

impl Module for Cgi {
    const NAME: &'static str = "cgi_module";
    const FILE: &'static str = "mod_cgi.c";
    type Server = Settings;
    type Dir = Directory;
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<Cgi>] = rows::CGI;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        register(hooks);
    }
}

impl Module for Cgid {
    const NAME: &'static str = "cgid_module";
    const FILE: &'static str = "mod_cgid.c";
    type Server = Settings;
    type Dir = Directory;
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<Cgid>] = rows::CGID;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        register(hooks);
    }
}

fn register<M: Kind>(hooks: &mut Hooks<'_, M>) {
    for name in ["cgi-script", "application/x-httpd-cgi"] {
        hooks.handler(name, handle);
    }
}

/// Source: `cgi_handler`, `cgid_handler`
fn handle<'r, M: Kind>(bound: Bound<'r, M>, request: &'r mut Request) -> Step<'r> {
    match respond::may_run::<M>(request) {
        Ok(()) => Step::Pending(Box::pin(respond::respond(bound, request))),
        Err((status, number, text)) => {
            Step::Pending(Box::pin(respond::deny(bound, request, status, number, text)))
        }
    }
}

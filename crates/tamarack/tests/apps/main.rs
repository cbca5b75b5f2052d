//! Applications from Debian's packages, on Debian's configuration of Apache, PHP-FPM and mod_cgid:
//! the real Apache and Tamarack send the same pages.
//!
//! Each test copies an application's files twice, starts the services that it needs (PHP-FPM,
//! mariadbd) and a server in either folder, and runs the same script in both: install, log in,
//! write, upload, download, clone, push. Without a package that it needs a test is skipped, and
//! says which one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod browser;
#[path = "../serving/client.rs"]
#[allow(dead_code)]
mod client;
mod compared;
#[path = "../../../mpm/tests/support/free_port.rs"]
mod free_port;
mod packages;
mod services;
#[path = "../serving/site.rs"]
#[allow(dead_code)]
mod site;
mod stack;

mod adminer;
mod awstats;
mod dokuwiki;
mod git;
mod gitweb;
mod includes;
mod wordpress;

use std::io::{self, Write};
use std::process::Command;
use std::thread;

use browser::Browser;
use compared::{Mask, differences};
use site::PROGRAM;
use stack::{Application, Stack};

/// The real Apache.
const APACHE: &str = "/usr/sbin/apache2";

/// Runs the script on both servers, and asserts that it sees the same.
fn compare(application: &Application, script: fn(&mut Browser), masks: &[Mask]) {
    if let Some(missing) = packages::missing(application.needs) {
        // Not by a macro: the output of a test that succeeds is not shown.
        let text = format!("skipped: {}: {missing} can't be found\n", application.name);
        return io::stderr().write_all(text.as_bytes()).unwrap();
    }
    let run = |program: &'static str| {
        let stack = Stack::start(application, program);
        let mut browser = Browser::new(stack.ports(), stack.client_folder());
        script(&mut browser);
        (stack.names(), browser.seen)
    };
    let (expected, found) = thread::scope(|scope| {
        let apache = scope.spawn(|| run(APACHE));
        let own = run(PROGRAM);
        (apache.join().unwrap(), own)
    });
    let differences = differences(&expected, &found, masks);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn skipped_tests_say_what_is_missing() {
    for (test, name) in [
        ("adminer", "Adminer"),
        ("awstats", "AWStats"),
        ("dokuwiki", "DokuWiki"),
        ("git", "git"),
        ("gitweb", "gitweb"),
        ("wordpress", "WordPress"),
    ] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("{test}::{test}")]).env(packages::FOLDER, "/none");
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{text}");
        assert!(text.contains(&format!("skipped: {name}: {APACHE} can't be found\n")), "{text}");
    }
}

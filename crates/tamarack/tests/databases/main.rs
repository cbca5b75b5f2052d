//! Identities in databases and caches: how often a database is asked, and what happens when
//! PostgreSQL, memcached or Redis is killed, stopped or full while requests go on.
//!
//! Each test starts its own services, in its own folder and on its own port or socket. Without a
//! package that it needs a test is skipped, and says which one.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../serving/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../../../mpm/tests/support/free_port.rs"]
mod free_port;
mod services;
#[path = "../serving/site.rs"]
#[allow(dead_code)]
mod site;

mod asked;
mod caches;
mod postgres;
mod postgres_tls;
mod trouble;

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use client::Client;
use site::Site;

/// `alice` with the password `test`, in base 64.
const ALICE: &str = "YWxpY2U6dGVzdA==";
/// The same with a wrong password.
const WRONG: &str = "YWxpY2U6d3Jvbmc=";
/// The hash of `test`.
const HASH: &str = "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=";

/// Whether a program of a package is missing; reports that the test is skipped.
fn is_missing(test: &str, program: &str) -> bool {
    let is_there = Path::new(program).exists();
    if !is_there {
        // Not by a macro: the output of a test that succeeds is not shown.
        let text = format!("skipped: {test}: {program} can't be found\n");
        io::stderr().write_all(text.as_bytes()).unwrap();
    }
    !is_there
}

/// The status of a request with a login, on a connection of its own.
fn log_in(site: &Site, path: &str, login: &str) -> u16 {
    let mut client = site.client();
    status(&mut client, path, login)
}

fn status(client: &mut Client, path: &str, login: &str) -> u16 {
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    client.answer().unwrap().status
}

/// Asserts that requests that need no database are served at once.
fn assert_not_delayed(site: &Site) {
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(site.get("/index.html").status, 200);
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?} for 20 requests");
}

/// The lines that load modules, and the limits of a shape.
fn shape(mpm: &str, modules: &[&str]) -> String {
    let limits = match mpm {
        "prefork" => "StartServers 3\nServerLimit 3\nMaxRequestWorkers 3\n",
        "worker" => "StartServers 2\nServerLimit 2\nThreadsPerChild 4\nMaxRequestWorkers 8\n",
        "event" => "StartServers 2\nServerLimit 2\nMaxRequestWorkers 128\n",
        _ => "",
    };
    let always = ["dir", "authz_core", "authn_core", "authz_user", "auth_basic"];
    let lines = always.iter().chain(modules);
    let lines = lines.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"));
    let lines: String = lines.collect();
    format!("LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n{lines}{limits}")
}

//! Users in PostgreSQL, which is killed and locked while requests go on.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::services::{Cluster, POSTGRES};
use crate::site::Site;
use crate::{ALICE, HASH, WRONG, assert_not_delayed, is_missing, log_in, shape};

/// `o'hara` and an injection, each with the password `test`, in base 64.
const QUOTED: &str = "bydoYXJhOnRlc3Q=";
const INJECTED: &str = "eCcgT1IgJzEnPScxOnRlc3Q=";

pub const SECRET: &str = "a secret";

pub fn site(mpm: &str, parameters: &str) -> Site {
    let mut site = Site::new(&format!("pgsql-{mpm}"));
    let modules = shape(mpm, &["dbd", "authn_dbd", "authn_file", "authz_dbd", "rewrite"]);
    site.configure(&format!(
        "{modules}DBDriver pgsql\nDBDParams \"{parameters}\"\nDBDMax 4\n\
         RewriteEngine On\nRewriteMap crews \"dbd:SELECT crew FROM users WHERE name = %s\"\n\
         RewriteRule ^/crew/(.*) /${{crews:$1|none}} [R,L]\n\
         <Location /in.html>\nAuthType Basic\nAuthName x\nAuthBasicProvider dbd file\n\
         AuthUserFile users\n\
         AuthDBDUserPWQuery \"SELECT hash, crew FROM users WHERE name = %s\"\n\
         AuthzDBDQuery \"SELECT crew FROM users WHERE name = %s\"\n\
         Require dbd-group crew\n</Location>\n"
    ));
    site.write("htdocs/in.html", "in\n");
    site.write("users", &format!("eve:{HASH}\n"));
    site.start();
    site
}

pub fn make_users(cluster: &Cluster) {
    let made = cluster.sql(&format!(
        "SET password_encryption = 'scram-sha-256'; CREATE USER www PASSWORD '{SECRET}'; \
         CREATE TABLE users (name text PRIMARY KEY, hash text, crew text); \
         INSERT INTO users VALUES ('alice', '{HASH}', 'crew'), ('o''hara', '{HASH}', 'crew'), \
         ('bob', '{HASH}', NULL), ('eve', NULL, 'crew'); GRANT ALL ON users TO www"
    ));
    made.unwrap();
}

fn logins_are_right(site: &Site) {
    for (login, expected) in [(ALICE, 200), (WRONG, 401), (QUOTED, 200), (INJECTED, 401)] {
        assert_eq!(log_in(site, "/in.html", login), expected, "{login}\n{}", site.error_log());
    }
    // A NULL password is a wrong one: the file is not asked.
    assert_eq!(log_in(site, "/in.html", "ZXZlOnRlc3Q="), 401);
    assert!(found(site, "/crew/bob").ends_with('/'), "a NULL value is an empty one");
    // In no group.
    assert_eq!(log_in(site, "/in.html", "Ym9iOnRlc3Q="), 401);
    assert!(found(site, "/crew/alice").ends_with("/crew"));
    assert!(found(site, "/crew/x'%20OR%20'1'='1").ends_with("/none"));
}

fn found(site: &Site, path: &str) -> String {
    site.get(path).field("Location").unwrap_or_default().to_owned()
}

fn the_server_may_be_killed(mpm: &str) {
    if is_missing("postgresql", POSTGRES) {
        return;
    }
    let cluster = Cluster::new(mpm, "scram-sha-256");
    let service = cluster.start();
    make_users(&cluster);
    let (folder, port) = (cluster.folder().display(), cluster.port);
    let site = site(mpm, &format!("host={folder} port={port} user=www dbname=postgres"));
    logins_are_right(&site);
    // At once, as by `pg_ctl stop -m immediate`.
    service.signal(Signal::SIGQUIT);
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(log_in(&site, "/in.html", ALICE), 500);
        assert_eq!(site.get("/index.html").status, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let log = site.error_log();
    assert!(log.contains("AH00629: Can't connect to pgsql"), "{log}");
    assert!(log.contains("AH01653: Failed to acquire database connection"), "{log}");
    drop(service);
    let _service = cluster.start();
    logins_are_right(&site);
    assert!(!site.error_log().contains(HASH));
}

#[test]
fn the_server_may_be_killed_under_event() {
    the_server_may_be_killed("event");
}

#[test]
fn the_server_may_be_killed_under_worker() {
    the_server_may_be_killed("worker");
}

#[test]
fn the_server_may_be_killed_under_prefork() {
    the_server_may_be_killed("prefork");
}

#[test]
fn a_password_is_sent_by_scram_and_md5() {
    if is_missing("postgresql", POSTGRES) {
        return;
    }
    for way in ["scram-sha-256", "password"] {
        let cluster = Cluster::new(&format!("way-{way}"), way);
        let _service = cluster.start();
        make_users(&cluster);
        let port = cluster.port;
        let parameters =
            format!("host=127.0.0.1 port={port} user=www dbname=postgres password='{SECRET}'");
        let site_of = |parameters: &str| site("loop", parameters);
        logins_are_right(&site_of(&parameters));
        let wrong = site_of(&parameters.replace(SECRET, "wrong secret"));
        assert_eq!(log_in(&wrong, "/in.html", ALICE), 500);
        let log = wrong.error_log();
        assert!(log.contains("AH00629: Can't connect to pgsql: FATAL:"), "{log}");
        assert!(!log.contains("wrong secret"), "{log}");
    }
}

/// A table that is locked delays the requests that need it, and no others.
#[test]
fn a_server_that_stands_still_delays_no_others() {
    if is_missing("postgresql", POSTGRES) {
        return;
    }
    let cluster = Cluster::new("still", "trust");
    let service = cluster.start();
    make_users(&cluster);
    let port = cluster.port;
    let site = site("event", &format!("host=127.0.0.1 port={port} user=www dbname=postgres"));
    logins_are_right(&site);
    let lock = "BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4)";
    std::thread::scope(|scope| {
        let begun = Instant::now();
        scope.spawn(|| cluster.sql(lock).unwrap());
        std::thread::sleep(Duration::from_secs(1));
        // More than there are connections.
        let logins: Vec<_> =
            (0..6).map(|_| scope.spawn(|| log_in(&site, "/in.html", ALICE))).collect();
        std::thread::sleep(Duration::from_millis(200));
        assert_not_delayed(&site);
        for login in logins {
            assert_eq!(login.join().unwrap(), 200);
        }
        assert!(begun.elapsed() > Duration::from_secs(3), "the table was locked");
    });
    drop(service);
}

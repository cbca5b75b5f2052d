//! Users in memcached and Redis, which are killed, stopped and full, and in a file.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::free_port::free_port;
use crate::services::{MEMCACHED, REDIS, Service, memcached, redis};
use crate::site::Site;
use crate::{ALICE, HASH, WRONG, assert_not_delayed, is_missing, log_in, shape};

/// A site for the test `name` whose users are kept by `provider`.
pub fn site(name: &str, provider: &str, servers: &str, more: &str) -> Site {
    let mut site = Site::new(&format!("{name}-{provider}"));
    let socache = format!("socache_{provider}");
    let modules = shape("event", &["authn_file", "authn_socache", &socache]);
    let root = site.root.display().to_string();
    site.configure(&format!(
        "{modules}{more}AuthnCacheSOCache {provider}:{servers}\n\
         <Location /kept.html>\nAuthType Basic\nAuthName x\nAuthBasicProvider socache file\n\
         AuthUserFile {root}/users\nAuthnCacheProvideFor file\nAuthnCacheContext {}\n\
         Require valid-user\n</Location>\n",
        site.root.file_name().unwrap().to_string_lossy()
    ));
    site.write("htdocs/kept.html", "kept\n");
    add_user(&site);
    site.start();
    site
}

pub fn add_user(site: &Site) {
    site.write("users", &format!("alice:{HASH}\n"));
}

pub fn remove_user(site: &Site) {
    site.write("users", "bob:x\n");
}

pub fn users_are_kept(site: &Site) {
    assert_eq!(log_in(site, "/kept.html", ALICE), 200);
    remove_user(site);
    for _ in 0..10 {
        assert_eq!(log_in(site, "/kept.html", ALICE), 200);
        assert_eq!(log_in(site, "/kept.html", WRONG), 401);
    }
}

/// Whatever becomes of the service, requests get their response in time.
fn users_survive_trouble(site: &Site, mut service: Service, start: impl Fn(u16) -> Service) {
    let port = service.port;
    users_are_kept(site);
    add_user(site);
    drop(service);
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(log_in(site, "/kept.html", ALICE), 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "killed: {:?}", begun.elapsed());
    assert!(site.error_log().contains("AH01686: Error accessing authentication cache"));
    remove_user(site);
    assert_eq!(log_in(site, "/kept.html", ALICE), 401);
    add_user(site);
    service = start(port);
    // The server is asked again after five seconds.
    std::thread::sleep(Duration::from_secs(6));
    users_are_kept(site);
    add_user(site);
    service.signal(Signal::SIGSTOP);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let logins: Vec<_> =
            (0..8).map(|_| scope.spawn(|| log_in(site, "/kept.html", ALICE))).collect();
        assert_not_delayed(site);
        for login in logins {
            assert_eq!(login.join().unwrap(), 200);
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(10), "slow: {:?}", begun.elapsed());
    service.signal(Signal::SIGCONT);
    assert!(!site.error_log().contains(HASH));
}

#[test]
fn users_in_memcached_survive_trouble() {
    if is_missing("memcached", MEMCACHED) {
        return;
    }
    let service = memcached(free_port(), 64);
    let site =
        site("kept", "memcache", &format!("127.0.0.1:{}", service.port), "MemcacheConnTTL 2s\n");
    users_survive_trouble(&site, service, |port| memcached(port, 64));
}

#[test]
fn users_in_redis_survive_trouble() {
    if is_missing("redis", REDIS) {
        return;
    }
    let service = redis(free_port(), "64mb");
    let site = site("kept", "redis", &format!("127.0.0.1:{}", service.port), "RedisTimeout 1s\n");
    users_survive_trouble(&site, service, |port| redis(port, "64mb"));
}

#[test]
fn a_full_redis_costs_nothing_but_a_line() {
    if is_missing("redis", REDIS) {
        return;
    }
    let service = redis(free_port(), "1");
    let site = site("full", "redis", &format!("127.0.0.1:{}", service.port), "");
    for _ in 0..5 {
        assert_eq!(log_in(&site, "/kept.html", ALICE), 200);
    }
    remove_user(&site);
    assert_eq!(log_in(&site, "/kept.html", ALICE), 401);
    let log = site.error_log();
    assert!(log.contains("AH03478: scache_rd: error setting key"), "{log}");
    assert!(log.contains("AH01682: Failed to cache authn credentials"), "{log}");
    assert!(!log.contains(HASH), "{log}");
}

/// A file that all processes write, and that outlives a restart.
#[test]
fn users_are_kept_in_a_file() {
    let mut site = Site::new("kept-dbm");
    let modules = shape("prefork", &["authn_file", "authn_socache", "socache_dbm"]);
    fs::create_dir(site.path("db")).unwrap();
    let root = site.root.display().to_string();
    site.configure(&format!(
        "{modules}AuthnCacheSOCache dbm:{root}/db/cache\n\
         <Location />\nAuthType Basic\nAuthName x\nAuthBasicProvider socache file\n\
         AuthUserFile {root}/users\nAuthnCacheProvideFor file\nRequire valid-user\n</Location>\n"
    ));
    add_user(&site);
    site.start();
    users_are_kept_at(&site, "/index.html");
    site.restart_gracefully();
    assert_eq!(log_in(&site, "/index.html", ALICE), 200);
    assert_eq!(fs::metadata(site.path("db/cache.pag")).unwrap().len(), 1024);
}

fn users_are_kept_at(site: &Site, path: &str) {
    assert_eq!(log_in(site, path, ALICE), 200);
    remove_user(site);
    for _ in 0..10 {
        assert_eq!(log_in(site, path, ALICE), 200);
    }
}

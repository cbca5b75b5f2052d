//! How often a database is asked: a statement that notes each question is the query.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rusqlite::Connection;

use crate::site::Site;
use crate::{ALICE, HASH, WRONG, log_in, shape, status};

/// A database in which questions are noted.
fn make(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.execute_batch("CREATE TABLE asked (name TEXT)").unwrap();
    let folder = path.parent().unwrap();
    for (path, mode) in [(folder, 0o777), (path, 0o666)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    database
}

fn asked(database: &Connection) -> i64 {
    database.query_row("SELECT count(*) FROM asked", [], |row| row.get(0)).unwrap()
}

fn one_login_asks_once(mpm: &str) {
    let mut site = Site::new(&format!("asked-{mpm}"));
    fs::create_dir(site.path("db")).unwrap();
    let database = make(&site.path("db/users.db"));
    let modules = ["dbd", "authn_dbd", "authn_socache", "socache_shmcb"];
    let (modules, root) = (shape(mpm, &modules), site.root.display().to_string());
    site.configure(&format!(
        "{modules}DBDriver sqlite3\nDBDParams {root}/db/users.db\n\
         <Location /index.html>\nAuthType Basic\nAuthName x\nAuthBasicProvider socache dbd\n\
         AuthDBDUserPWQuery \"INSERT INTO asked VALUES (%s) RETURNING '{HASH}'\"\n\
         AuthnCacheProvideFor dbd\nAuthnCacheTimeout 4\nRequire valid-user\n</Location>\n"
    ));
    site.start();
    assert_eq!(log_in(&site, "/index.html", ALICE), 200);
    assert_eq!(asked(&database), 1);
    // Of all processes: a connection each, and many requests of one.
    let mut client = site.client();
    for _ in 0..30 {
        assert_eq!(log_in(&site, "/index.html", ALICE), 200);
        assert_eq!(status(&mut client, "/index.html", ALICE), 200);
    }
    // A wrong password is compared with what is kept, too.
    assert_eq!(status(&mut client, "/index.html", WRONG), 401);
    assert_eq!(asked(&database), 1, "{mpm}");
    drop(client);
    sleep(Duration::from_secs(5));
    assert_eq!(log_in(&site, "/index.html", ALICE), 200);
    assert_eq!(asked(&database), 2, "{mpm}: its time is over");
    // A restart empties the cache.
    let old = site.children();
    site.restart_gracefully();
    // The old processes may still accept connections, and have their cache.
    site.wait_until("the end of old processes", || {
        !site.children().iter().any(|child| old.contains(child))
    });
    assert_eq!(log_in(&site, "/index.html", ALICE), 200);
    assert_eq!(asked(&database), 3, "{mpm}: after a restart");
    assert!(!site.error_log().contains(HASH));
}

#[test]
fn one_login_asks_once_in_event() {
    one_login_asks_once("event");
}

#[test]
fn one_login_asks_once_in_worker() {
    one_login_asks_once("worker");
}

#[test]
fn one_login_asks_once_in_prefork() {
    one_login_asks_once("prefork");
}

#[test]
fn one_login_asks_once_in_loop() {
    one_login_asks_once("loop");
}

/// Connections never exceed DBDMax, and all requests are served.
#[test]
fn many_logins_share_a_few_connections() {
    let mut site = Site::new("shared-dbd");
    fs::create_dir(site.path("db")).unwrap();
    let database = make(&site.path("db/users.db"));
    let (modules, root) = (shape("event", &["dbd", "authn_dbd"]), site.root.display().to_string());
    site.configure(&format!(
        "{modules}DBDriver sqlite3\nDBDParams {root}/db/users.db\nDBDMax 2\nDBDKeep 1\n\
         <Location /index.html>\nAuthType Basic\nAuthName x\nAuthBasicProvider dbd\n\
         AuthDBDUserPWQuery \"INSERT INTO asked VALUES (%s) RETURNING '{HASH}'\"\n\
         Require valid-user\n</Location>\n"
    ));
    site.start();
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let mut client = site.client();
                for _ in 0..10 {
                    assert_eq!(status(&mut client, "/index.html", ALICE), 200);
                }
            });
        }
    });
    assert_eq!(asked(&database), 120);
    let open = |pid: &nix::unistd::Pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .filter(|to| to.ends_with("users.db"))
            .count()
    };
    for child in site.children() {
        assert!(open(&child) <= 2, "{} files", open(&child));
    }
}

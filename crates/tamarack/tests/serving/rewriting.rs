//! mod_rewrite: results that grow, and map files that change, vanish or are no files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::load::SetWhenDropped;
use crate::memory::Memory;
use crate::site::{Site, is_root};

/// The memory that a request may take, with room for the limit of 16 MiB, kB.
const PEAK_KB: u64 = 200_000;

#[test]
fn results_that_double_end_with_an_error() {
    let mut site = Site::new("grows");
    site.configure(
        "RewriteEngine On\n\
         RewriteRule ^/query$ /query?%{QUERY_STRING}%{QUERY_STRING}a [N=1000]\n\
         RewriteRule ^/env$ /env [E=V:%{ENV:V}%{ENV:V}a,N=1000]\n\
         RewriteRule ^/append$ /append?a=1 [QSA,N=2000]",
    );
    site.write(
        "htdocs/.htaccess",
        "RewriteEngine On\nRewriteRule ^twice$ twice?%{QUERY_STRING}%{QUERY_STRING}a [N=1000]\n",
    );
    site.start();
    let memory = Memory::of(&site);
    for path in ["/query", "/env", "/twice", "/append"] {
        let begun = Instant::now();
        assert_eq!(site.get(path).status, 500, "{path}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{path}: {:?}", begun.elapsed());
    }
    assert_eq!(site.count_lines("AH20202"), 3, "{}", site.error_log());
    memory.assert_peak_below(&site, PEAK_KB);
    site.assert_serves();
}

/// The value that the map gives for `key`.
fn value(site: &Site) -> String {
    let answer = site.get("/m/key");
    let place = answer.field("Location").unwrap_or_default();
    place.trim_start_matches("http://x/").to_owned()
}

fn site_with_map(name: &str, kind: &str) -> Site {
    let site = Site::new(name);
    site.write("map.txt", "key first\n");
    site.configure(&format!(
        "RewriteEngine On\nRewriteMap m {kind}:map.txt\n\
         RewriteRule ^/m/(.*)$ http://x/${{m:$1|none}} [R]"
    ));
    site
}

#[test]
fn a_map_that_changes_while_it_is_asked_has_one_value_or_the_other() {
    let mut site = site_with_map("map-changes", "txt");
    site.start();
    let stop = AtomicBool::new(false);
    let filler = "filler value\n".repeat(20_000);
    std::thread::scope(|scope| {
        let _stops = SetWhenDropped(&stop);
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let found = value(&site);
                    assert!(found.starts_with("value") || found == "first", "{found}");
                }
            });
        }
        for number in 0..20 {
            site.write("map.new", &format!("{filler}key value{number}\n"));
            fs::rename(site.path("map.new"), site.path("map.txt")).unwrap();
            assert_eq!(value(&site), format!("value{number}"));
        }
    });
}

#[test]
fn a_map_that_is_no_readable_file_has_no_keys() {
    let mut site = site_with_map("map-odd", "txt");
    site.start();
    assert_eq!(value(&site), "first");
    let map = site.path("map.txt");
    let steps: [(&str, &dyn Fn()); 5] = [
        ("missing", &|| fs::remove_file(&map).unwrap()),
        ("a folder", &|| fs::create_dir(&map).unwrap()),
        ("a pipe", &|| {
            fs::remove_dir(&map).unwrap();
            assert!(Command::new("mkfifo").arg(&map).status().unwrap().success());
        }),
        ("a line without an end", &|| {
            fs::remove_file(&map).unwrap();
            fs::write(&map, "x".repeat(8 << 20)).unwrap();
        }),
        ("too large", &|| {
            let file = fs::File::create(&map).unwrap();
            file.set_len(300 << 20).unwrap();
        }),
    ];
    for (what, make) in steps {
        make();
        assert_eq!(value(&site), "none", "{what}");
        site.assert_serves();
    }
    site.write("map.txt", "key again\n");
    assert_eq!(value(&site), "again");
    if !is_root() {
        fs::set_permissions(&map, fs::Permissions::from_mode(0o0)).unwrap();
        assert_eq!(value(&site), "none");
    }
}

#[test]
fn a_database_that_is_damaged_has_no_keys() {
    let mut site = Site::new("map-damaged");
    site.write("map.pag", "");
    site.write("map.dir", "");
    site.configure(
        "RewriteEngine On\nRewriteMap m dbm=sdbm:map\n\
         RewriteRule ^/m/(.*)$ http://x/${m:$1|none} [R]",
    );
    site.start();
    assert_eq!(value(&site), "none");
    for bytes in [&b"\xff"[..], &[0xff; 4096], &[0x7f; 1024], &[1; 1025], b"\x02\x00\x00\x04"] {
        fs::write(site.path("map.pag"), bytes).unwrap();
        assert_eq!(value(&site), "none", "{bytes:?}");
    }
    site.assert_serves();
}

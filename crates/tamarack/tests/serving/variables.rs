//! Folders whose `.htaccess` uses names that no configuration has used before.

use std::fmt::Write;
use std::fs;

use crate::memory::Memory;
use crate::others::assert_serves_others;
use crate::site::Site;

/// More folders and names than a 16-bit number counts.
const FOLDERS: usize = 70;
const NAMES: usize = 1000;
/// Most additional memory of each loop: its caches of parsed files and merged configurations (32 MB
/// and 64 MB), and a file that is being parsed.
const MEMORY_MAX_KB: u64 = 128 << 10;

/// Creates a folder whose pages have a field for the last of its own names.
fn make_folder(site: &Site, folder: usize) {
    fs::create_dir(site.path(&format!("htdocs/{folder}"))).unwrap();
    site.write(&format!("htdocs/{folder}/page"), "page\n");
    let mut text = String::new();
    for name in 0..NAMES {
        writeln!(text, "Header set X-Last \"expr=[%{{SSL_N{folder}_{name}}}]\"").unwrap();
    }
    site.write(&format!("htdocs/{folder}/.htaccess"), &text);
}

#[test]
fn variable_names_of_htaccess_files_hold_up_no_others() {
    let mut site = Site::new("variables");
    site.configure(
        "LoadModule mpm_event_module x\nStartServers 1\nServerLimit 1\nLoadModule ssl_module x\n\
         LoadModule headers_module x\nLoadModule authz_core_module x\nLoadModule dir_module x\n",
    );
    (0..FOLDERS).for_each(|folder| make_folder(&site, folder));
    site.start();
    let memory = Memory::of(&site);
    let mut next = 0;
    let ask = |folder: usize| {
        let response = site.get(&format!("/{folder}/page"));
        assert_eq!(response.status, 200, "{}", site.error_log());
        assert_eq!(response.field("X-Last"), Some("[]"));
    };
    assert_serves_others(&site, || {
        ask(next % FOLDERS);
        next += 1;
    });
    (0..FOLDERS).for_each(ask);
    let loops = std::thread::available_parallelism().unwrap().get() as u64;
    memory.assert_peak_below(&site, loops * MEMORY_MAX_KB);
    site.assert_serves();
}

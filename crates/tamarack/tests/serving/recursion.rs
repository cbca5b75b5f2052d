//! Folders that cause endless work: subrequests that cause subrequests in turn, and listings.

use std::fs;

use crate::memory::Memory;
use crate::others::assert_serves_others;
use crate::site::Site;

/// Conditions in each of the folders.
const TERMS: usize = 8;
/// The most bytes that one request may write to the error log: a few lines, not one per look-up.
const LOG_BYTES_MAX: usize = 4096;
/// Most additional memory of the process: a part of the limit of its caches, however deep the
/// folders are.
const MEMORY_MAX_KB: u64 = 128 << 10;

fn start(name: &str) -> Site {
    let mut site = Site::new(name);
    site.configure(
        "LoadModule mpm_event_module x\nStartServers 1\nServerLimit 1\nLoadModule dir_module x\n\
         LoadModule authz_core_module x\nLoadModule headers_module x\n",
    );
    site.start();
    site
}

/// Folders `a` and `b`: every file in each of them looks up files of the other.
fn ask_each_other(site: &Site, ask: impl Fn(&str, usize) -> String) {
    for (own, other) in [("a", "b"), ("b", "a")] {
        fs::create_dir_all(site.path(&format!("htdocs/{own}"))).unwrap();
        let conditions: String = (0..TERMS)
            .map(|term| format!("<If \"{}\">\nHeader set X-{term} y\n</If>\n", ask(other, term)))
            .collect();
        site.write(&format!("htdocs/{own}/.htaccess"), &conditions);
        (0..TERMS).for_each(|term| site.write(&format!("htdocs/{own}/{term}"), "file\n"));
    }
}

fn holds_up_no_others(site: &mut Site) {
    let memory = Memory::of(site);
    let before = site.error_log().len();
    assert_eq!(site.get("/a/0").status, 200);
    let written = site.error_log().len() - before;
    assert!(written < LOG_BYTES_MAX, "{written} bytes: {}", site.error_log());
    assert_serves_others(site, || assert_eq!(site.get("/a/0").status, 200));
    memory.assert_peak_below(site, MEMORY_MAX_KB);
    site.assert_serves();
}

#[test]
fn urls_that_ask_for_each_other_hold_up_no_others() {
    let mut site = start("urls");
    ask_each_other(&site, |other, term| format!("-U '/{other}/{term}'"));
    holds_up_no_others(&mut site);
}

#[test]
fn files_that_ask_for_each_other_hold_up_no_others() {
    let mut site = start("files");
    let folder = site.path("htdocs").display().to_string();
    ask_each_other(&site, |other, term| format!("-F '{folder}/{other}/{term}'"));
    holds_up_no_others(&mut site);
}

#[test]
fn a_folder_whose_index_is_a_folder_holds_up_no_others() {
    let mut site = start("index");
    fs::create_dir(site.path("htdocs/a")).unwrap();
    let names: Vec<String> = (0..TERMS).map(|name| format!("{name}/")).collect();
    for name in &names {
        let link = site.path("htdocs/a").join(name.trim_end_matches('/'));
        std::os::unix::fs::symlink(".", link).unwrap();
    }
    site.write("htdocs/a/.htaccess", &format!("DirectoryIndex {}\n", names.join(" ")));
    let memory = Memory::of(&site);
    let before = site.error_log().len();
    assert_eq!(site.get("/a/").status, 500);
    let written = site.error_log().len() - before;
    assert!(written < LOG_BYTES_MAX, "{written} bytes");
    assert_serves_others(&site, || assert_eq!(site.get("/a/").status, 500));
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    site.assert_serves();
}

#[test]
fn a_listing_of_many_names_and_patterns_holds_up_no_others() {
    const NAMES: usize = 1500;
    const PATTERNS: usize = 1000;
    let mut site = Site::new("listing");
    site.configure(&format!(
        "LoadModule mpm_event_module x\nStartServers 1\nServerLimit 1\nLoadModule dir_module x\n\
         LoadModule authz_core_module x\nLoadModule autoindex_module x\n\
         <Directory {}/htdocs>\nOptions +Indexes\n</Directory>\n",
        site.root.display()
    ));
    fs::create_dir(site.path("htdocs/many")).unwrap();
    (0..NAMES).for_each(|name| site.write(&format!("htdocs/many/{name}.txt"), ""));
    let patterns = (0..PATTERNS).map(|number| format!("AddDescription \"text\" *x{number}*y\n"));
    let text = format!("IndexOptions FancyIndexing\n{}", patterns.collect::<String>());
    site.write("htdocs/many/.htaccess", &text);
    site.start();
    let memory = Memory::of(&site);
    let list = || {
        let mut client = site.client();
        client.ask("/many/?C=S;O=D").unwrap();
        client.wait_for_bytes(NAMES * 20).unwrap();
    };
    assert_serves_others(&site, list);
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    site.assert_serves();
}

//! DokuWiki: its own installer, a page, a file, pretty links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::browser::{Browser, File, hidden, large_file};
use crate::compared::Mask;
use crate::services::{FPM, folder};
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const DOKUWIKI: Application = Application {
    name: "DokuWiki",
    needs: &[APACHE, FPM, "/usr/share/dokuwiki/install.php", "/etc/dokuwiki/apache.conf"],
    folders: &["/usr/share/dokuwiki", "/var/lib/dokuwiki/lib", "/etc/dokuwiki"],
    naming: (
        &[
            "/etc/dokuwiki/apache.conf",
            "/etc/dokuwiki/dokuwiki.php",
            "/usr/share/dokuwiki/inc/preload.php",
        ],
        &["/usr/share/dokuwiki", "/var/lib/dokuwiki", "/etc/dokuwiki"],
    ),
    writable: &["/etc/dokuwiki", "/var/lib/dokuwiki"],
    has_database: false,
    runs: Runs::Php("php_value[upload_max_filesize] = 64M\nphp_value[post_max_size] = 64M\n"),
    configuration: "DocumentRoot @ROOT@/htdocs\nInclude @ROOT@/etc/dokuwiki/apache.conf\n",
    prepare,
};

/// Takes back what Debian's installer has configured, so that DokuWiki's own can, and enables the
/// rules for pretty links that are in the .htaccess.
fn prepare(root: &Path) {
    for name in ["local.php", "acl.auth.php", "users.auth.php"] {
        fs::remove_file(root.join("etc/dokuwiki").join(name)).unwrap();
    }
    let program = root.join("usr/share/dokuwiki");
    symlink(root.join("etc/dokuwiki"), program.join("conf")).unwrap();
    symlink(root.join("var/lib/dokuwiki/data"), program.join("data")).unwrap();
    let folders = "attic cache index locks log media media_attic media_meta meta pages tmp";
    for name in folders.split(' ') {
        folder(&root.join("var/lib/dokuwiki/data"), name, 0o755);
    }
    let setting = "<?php\n$conf['userewrite'] = 1;\n";
    fs::write(root.join("etc/dokuwiki/local.protected.php"), setting).unwrap();
    let file = root.join("etc/dokuwiki/htaccess");
    let text = fs::read_to_string(&file).unwrap();
    let (begin, end) = ("#RewriteEngine on", "#RewriteBase /dokuwiki");
    let (before, rest) = text.split_once(begin).unwrap();
    let (rules, after) = rest.split_once(end).unwrap();
    let rules = rules.replace("\n#Rewrite", "\nRewrite");
    let [begin, end] = [begin, end].map(|line| line.trim_start_matches('#'));
    fs::write(file, format!("{before}{begin}{rules}{end}{after}")).unwrap();
}

const MASKS: &[Mask] = &[
    ("[0-9a-f]{32}", "HASH"),
    ("DWHASH=[A-Za-z0-9%]+", "DWHASH=LOGIN"),
    ("tok=[0-9a-f]{6}", "tok=TOKEN"),
    ("[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} 20[0-9]{2} [0-9:]{8} GMT", "DATE"),
    ("[0-9a-z]{26}", "SESSION"),
    ("1[0-9]{9}", "SECONDS"),
    // In scripts the slashes are escaped.
    (r"20[0-9]{2}\\?[-/][0-9]{2}\\?[-/][0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?", "TIME"),
];

#[test]
fn dokuwiki() {
    compare(&DOKUWIKI, script, MASKS);
}

fn script(browser: &mut Browser) {
    install(browser);
    log_in(browser);
    write_a_page(browser);
    upload(browser);
    // Within the second of its last change, a page that is cached may lack the file.
    browser.get("/dokuwiki/playground:test?purge=true");
    let start = browser.get("/dokuwiki/start").text();
    let left = browser.get(&format!("/dokuwiki/start?do=logout&sectok={}", token(&start)));
    browser.follow(&left);
    browser.get("/dokuwiki/playground:test?do=edit");
    look_around(browser);
    browser.use_fedora();
    look_around(browser);
}

fn install(browser: &mut Browser) {
    browser.get("/dokuwiki");
    browser.get("/dokuwiki/");
    browser.get("/dokuwiki/install.php");
    browser.post("/dokuwiki/install.php", &[("l", "en"), ("d[title]", ""), ("submit", "")]);
    let form = [
        ("l", "en"),
        ("d[title]", "A wiki & more"),
        ("d[acl]", "on"),
        ("d[superuser]", "admin"),
        ("d[fullname]", "A. Dministrator"),
        ("d[email]", "admin@apps.test"),
        ("d[password]", "pass word"),
        ("d[confirm]", "pass word"),
        ("d[policy]", "1"),
        ("d[license]", "cc-by"),
        ("submit", ""),
    ];
    let done = browser.post("/dokuwiki/install.php", &form).text();
    assert!(done.contains("The configuration was finished successfully"), "{done}");
    browser.get("/dokuwiki/install.php");
}

fn log_in(browser: &mut Browser) {
    let page = browser.get("/dokuwiki/doku.php?id=start&do=login").text();
    for password in ["wrong", "pass word"] {
        let mut form = hidden(&page, "dw__login");
        form.extend([("u", "admin"), ("p", password)]);
        browser.post("/dokuwiki/doku.php?id=start", &form);
    }
    let page = browser.get("/dokuwiki/doku.php?id=start").text();
    assert!(page.contains("A. Dministrator"), "{page}");
}

fn write_a_page(browser: &mut Browser) {
    let text = "====== Größe ======\r\n\r\nText with [[start|a link]] & {{playground:large.zip}}";
    for summary in ["first", "second"] {
        let page = browser.get("/dokuwiki/playground:test?do=edit").text();
        let mut form = hidden(&page, "dw__editform");
        form.extend([("wikitext", text), ("summary", summary), ("do[save]", "Save")]);
        let saved = browser.post("/dokuwiki/playground:test?do=edit", &form);
        browser.follow(&saved);
    }
}

fn upload(browser: &mut Browser) {
    let page = browser.get("/dokuwiki/lib/exe/mediamanager.php?ns=playground").text();
    let mut form = hidden(&page, "dw__upload");
    form.push(("mediaid", ""));
    let content = large_file();
    let file = File { field: "upload", name: "Large.zip", content: &content };
    let done = browser.upload("/dokuwiki/lib/exe/mediamanager.php?ns=playground", &form, &file);
    assert!(done.text().contains("Upload successful"), "{}", done.text());
    let path = "/dokuwiki/_media/playground:large.zip";
    let whole = browser.get(path);
    assert!(whole.body == content, "{}", whole.head);
    let tag = whole.field("ETag").unwrap();
    browser.get_with(path, &format!("If-None-Match: {tag}\r\n"));
    browser.get_with(path, "Range: bytes=1000000-1000999\r\n");
    browser.get_with(path, "Range: bytes=5-9,20971500-\r\n");
    browser.get_with(path, "Range: bytes=30000000-\r\n");
    browser.send("HEAD", path, "", b"");
}

fn look_around(browser: &mut Browser) {
    for path in [
        "start",
        "",
        "playground:test",
        "playground/test",
        "playground:test?do=revisions",
        "playground:test?do=diff",
        "playground:test?do=media&ns=playground",
        "start?do=index",
        "start?do=recent",
        "start?do=search&id=start&q=link",
        "start?do=admin",
        "_export/raw/playground:test",
        "_export/xhtml/playground:test",
        "_detail/playground:large.zip?id=playground:test",
        "_media/playground:none.zip",
        "_media/wiki:dokuwiki-128.png",
        "none:page",
        "none.php",
        "lib/none.png",
        "lib/exe/none.php",
        "gr%C3%B6%C3%9Fe",
        "a%20b%2520c",
        "doku.php/with/path",
        "doku.php?id=playground:test&do=edit",
        "index.php",
        "feed.php",
        "feed.php?mode=list&ns=playground",
        "VERSION",
        ".htaccess",
        ".git/config",
        "bin/",
        "bin/wantedpages.php",
        "conf/local.php",
        "inc/lang/en/lang.php",
        "vendor/autoload.php",
        "lib/",
        "lib/tpl/dokuwiki",
        "lib/tpl/dokuwiki/",
        "lib/tpl/dokuwiki/images/logo.png",
        "lib/exe/css.php?t=dokuwiki&s=screen",
        "lib/exe/js.php?t=dokuwiki",
        "lib/exe/xmlrpc.php",
        "lib/exe/ajax.php?call=none",
    ] {
        browser.get(&format!("/dokuwiki/{path}"));
    }
    for path in ["lib/tpl/dokuwiki/images/logo.png", "lib/scripts/page.js", "lib/exe/css.php"] {
        let path = format!("/dokuwiki/{path}");
        let whole = browser.get_with(&path, "Accept-Encoding: gzip\r\n");
        for (field, condition) in
            [("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")]
        {
            let value = whole.field(field).unwrap_or_default();
            browser.get_with(&path, &format!("{condition}: {value}\r\n"));
        }
        browser.get_with(&path, "Range: bytes=0-9\r\n");
        browser.send("HEAD", &path, "", b"");
    }
    browser.post("/dokuwiki/lib/exe/ajax.php", &[("call", "suggestions"), ("q", "test")]);
    browser.post("/dokuwiki/none:page", &[("do", "check")]);
}

/// DokuWiki's guard against forged requests.
fn token(page: &str) -> String {
    let at = page.find("name=\"sectok\" value=\"").map(|at| at + 21);
    let at = at.or_else(|| page.find("sectok=").map(|at| at + 7));
    page.get(at.unwrap()..).unwrap().chars().take(32).collect()
}

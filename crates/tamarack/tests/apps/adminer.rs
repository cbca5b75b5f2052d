//! Adminer: a table, a row with a large file, its download, an export.

use std::path::Path;

use crate::browser::{Browser, File, hidden, large_file};
use crate::compared::Mask;
use crate::services::{
    DATABASE, DATABASE_PASSWORD, FPM, MARIADB, MARIADB_INSTALL, MYSQLI, PRINT_DEFAULTS,
};
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const ADMINER: Application = Application {
    name: "Adminer",
    needs: &[
        APACHE,
        FPM,
        MARIADB,
        MARIADB_INSTALL,
        PRINT_DEFAULTS,
        MYSQLI,
        "/etc/adminer/conf.php",
    ],
    folders: &["/usr/share/adminer", "/etc/adminer"],
    naming: (
        &["/etc/adminer/conf.php", "/etc/apache2/conf-available/adminer.conf"],
        &["/usr/share/adminer", "/etc/adminer"],
    ),
    writable: &["/etc/adminer"],
    has_database: true,
    runs: Runs::Php(
        "php_value[upload_max_filesize] = 64M\nphp_value[post_max_size] = 64M\n\
           php_value[memory_limit] = 512M\n",
    ),
    configuration: "DocumentRoot @ROOT@/htdocs\nInclude conf-available/adminer.conf\n",
    prepare: |_: &Path| (),
};

/// The page of the database.
const HOME: &str = "/adminer/?username=shop&db=shop";

const MASKS: &[Mask] = &[
    ("nonce[-=]['\"]?[A-Za-z0-9+/=]{40,}", "NONCE"),
    ("adminer_key=[0-9a-f]{32}", "KEY"),
    ("adminer_sid=[0-9a-z]{26}", "SESSION"),
    ("['\"][0-9]{1,7}:[0-9]{1,7}['\"]", "TOKEN"),
    ("[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} 20[0-9]{2} TIME GMT", "DATE"),
    ("[0-9]{2}:[0-9]{2}:[0-9]{2}", "TIME"),
    ("[0-9]+\\.[0-9]{3} s", "SECONDS"),
];

#[test]
fn adminer() {
    compare(&ADMINER, script, MASKS);
}

fn script(browser: &mut Browser) {
    log_in(browser);
    create_a_table(browser);
    upload(browser);
    look_around(browser);
    export(browser);
    browser.use_fedora();
    look_around(browser);
    export(browser);
    let page = browser.get(HOME).text();
    let left = browser.post(HOME, &[("logout", "Logout"), ("token", token(&page))]);
    browser.follow(&left);
    browser.get(HOME);
}

fn log_in(browser: &mut Browser) {
    browser.get("/adminer");
    browser.get("/adminer/");
    for password in ["wrong", DATABASE_PASSWORD] {
        let form = [
            ("auth[driver]", "server"),
            ("auth[server]", ""),
            ("auth[username]", DATABASE),
            ("auth[password]", password),
            ("auth[db]", DATABASE),
        ];
        let answer = browser.post("/adminer/", &form);
        browser.follow(&answer);
    }
}

fn create_a_table(browser: &mut Browser) {
    let path = format!("{HOME}&sql=");
    for query in [
        "CREATE TABLE files (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT, content LONGBLOB)",
        "INSERT INTO files (name) VALUES ('first'), ('größer & <i>')",
        "SELECT id, name FROM files; SELECT nothing FROM nowhere; SELECT 1",
    ] {
        let page = browser.get(&path).text();
        browser.post(&path, &[("query", query), ("limit", ""), ("token", token(&page))]);
    }
}

fn upload(browser: &mut Browser) {
    let path = format!("{HOME}&edit=files");
    let page = browser.get(&path).text();
    let form = [
        ("function[name]", ""),
        ("fields[name]", "large"),
        ("insert", "1"),
        ("token", token(&page)),
    ];
    let content = large_file();
    let file = File { field: "fields-content", name: "large.bin", content: &content };
    let saved = browser.upload(&path, &form, &file);
    browser.follow(&saved);
    let path = format!("{HOME}&download=files&field=content&where%5Bid%5D=3");
    let whole = browser.get(&path);
    assert!(whole.body == content, "{}", whole.head);
    // PHP's script sends the whole of it.
    browser.get_with(&path, "Range: bytes=1000000-1000999\r\n");
    browser.send("HEAD", &path, "", b"");
}

fn look_around(browser: &mut Browser) {
    for query in [
        "",
        "&select=files",
        "&select=files&columns%5B0%5D%5Bcol%5D=name&order%5B0%5D=id&desc%5B0%5D=1",
        "&table=files",
        "&create=files",
        "&indexes=files",
        "&edit=files&where%5Bid%5D=2",
        "&edit=files&where%5Bid%5D=99",
        "&schema=",
        "&privileges=",
        "&table=none",
        "&select=none",
        "&database=",
        "&dump=files",
    ] {
        browser.get(&format!("{HOME}{query}"));
    }
    for path in [
        "/adminer/none.php",
        "/adminer/none.css",
        "/adminer/conf.php?file=default.css&version=4.8.1",
        "/adminer/?file=functions.js&version=4.8.1",
        "/adminer/?file=favicon.ico&version=4.8.1",
        "/adminer/conf.php/path?username=shop&db=shop",
        "/adminer/.user.ini",
        "/none",
    ] {
        browser.get(path);
    }
    let style = "/adminer/?file=default.css&version=4.8.1";
    let condition = "If-Modified-Since: Wed, 01 Jan 2020 00:00:00 GMT\r\n";
    browser.get_with(style, condition);
    browser.get_with(style, "Accept-Encoding: gzip\r\n");
}

fn export(browser: &mut Browser) {
    let path = format!("{HOME}&dump=");
    let page = browser.get(&path).text();
    for (output, format) in [("text", "sql"), ("file", "csv")] {
        let mut form = hidden(&page, "name='output'");
        form.extend([
            ("output", output),
            ("format", format),
            ("db_style", ""),
            ("auto_increment", "1"),
        ]);
        form.extend([
            ("table_style", "DROP+CREATE"),
            ("data_style", "INSERT"),
            ("tables[]", "files"),
        ]);
        form.push(("token", token(&page)));
        browser.post(&path, &form);
    }
}

fn token(page: &str) -> &str {
    crate::browser::between(page, "name='token' value='", "'")
}

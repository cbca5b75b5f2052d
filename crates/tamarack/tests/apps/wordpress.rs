//! WordPress: its own installer, a post, a large file, permalinks by the `.htaccess` that it writes
//! itself once it finds Apache in `SERVER_SOFTWARE`.

use std::fs;
use std::path::Path;

use crate::browser::{Browser, File, between, hidden, large_file};
use crate::compared::Mask;
use crate::services::{
    DATABASE, DATABASE_PASSWORD, FPM, MARIADB, MARIADB_INSTALL, MYSQLI, PRINT_DEFAULTS, folder,
};
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const WORDPRESS: Application = Application {
    name: "WordPress",
    needs: &[
        APACHE,
        FPM,
        MARIADB,
        MARIADB_INSTALL,
        PRINT_DEFAULTS,
        MYSQLI,
        "/usr/share/wordpress/wp-config.php",
        "/usr/share/wordpress/wp-content/themes/twentytwentyone/style.css",
    ],
    folders: &["/usr/share/wordpress", "/var/lib/wordpress", "/etc/wordpress"],
    naming: (
        &["/usr/share/wordpress/wp-config.php"],
        &["/usr/share/wordpress", "/var/lib/wordpress", "/etc/wordpress"],
    ),
    writable: &["/var/lib/wordpress", "/etc/wordpress"],
    has_database: true,
    runs: Runs::Php(""),
    // The virtual host of the package's own example.
    configuration: "DocumentRoot @ROOT@/usr/share/wordpress\n\
                    Alias /wp-content @ROOT@/var/lib/wordpress/wp-content\n\
                    <Directory @ROOT@/usr/share/wordpress>\n    Options FollowSymLinks\n    \
                    AllowOverride All\n    Require all granted\n</Directory>\n\
                    <Directory @ROOT@/var/lib/wordpress/wp-content>\n    \
                    Options FollowSymLinks\n    Require all granted\n</Directory>\n",
    prepare,
};

/// Configures the host, allows large files, and keeps WordPress from asking other servers and
/// itself.
fn prepare(root: &Path) {
    let settings = format!(
        "<?php\ndefine('DB_NAME', '{DATABASE}');\ndefine('DB_USER', '{DATABASE}');\n\
         define('DB_PASSWORD', '{DATABASE_PASSWORD}');\ndefine('DB_HOST', 'localhost');\n\
         define('WP_HTTP_BLOCK_EXTERNAL', true);\ndefine('DISABLE_WP_CRON', true);\n"
    );
    fs::write(root.join("etc/wordpress/config-apps.test.php"), settings).unwrap();
    let limits = "upload_max_filesize = 64M\npost_max_size = 64M\n";
    fs::write(root.join("usr/share/wordpress/.user.ini"), limits).unwrap();
    let content = root.join("var/lib/wordpress/wp-content");
    folder(&content, "mu-plugins", 0o755);
    let plugin = "<?php\nadd_filter('block_local_requests', '__return_true');\n";
    fs::write(content.join("mu-plugins/alone.php"), plugin).unwrap();
}

const MASKS: &[Mask] = &[
    ("admin%7C[0-9A-Za-z%]+", "LOGIN"),
    ("\\b[0-9a-f]{10}\\b", "NONCE"),
    ("data-pw=\"[^\"]*\"", "PASSWORD"),
    ("_(key|salt)\" value=\"[^\"]*\"", "KEY"),
    ("[0-9]\\.gravatar\\.com", "GRAVATAR"),
    ("mailto:[^\"]*\">[^<]*", "ADDRESS"),
    // New files, which may be too new for a strong tag.
    ("(W/)?\"(1400000|2e)-[0-9a-f]{13}", "TAG"),
    // Hashes of the times of posts and comments.
    ("\"[0-9a-f]{32}(-gzip)?\"", "HASH"),
    ("[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} 20[0-9]{2} [0-9:]{8} (GMT|\\+0000)", "DATE"),
    // A file of this second has a day, an older one an age.
    ("data-colname=\"Date\">[^<]*", "data-colname=\"Date\">WHEN"),
    ("20[0-9]{2}[-/][0-9]{2}[-/][0-9]{2}", "DAY"),
    ("[A-Z][a-z]{2,8} [0-9]{1,2}, 20[0-9]{2}", "DAY"),
    ("\\b[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?\\b( [apAP][mM])?", "TIME"),
    ("<div class=\"(aa|mm|jj|hh|mn|ss)\">[0-9]+", "TIME"),
    ("name=\"(aa|jj|hh|mn|hidden_..|cur_..|ss)\" value=\"[0-9]+\"", "TIME"),
    ("overdue by [0-9]+ (second|minute)s?", "LATE"),
    ("[0-9]+ (second|min)s? ago", "AGO"),
];

#[test]
fn wordpress() {
    compare(&WORDPRESS, script, MASKS);
}

fn script(browser: &mut Browser) {
    install(browser);
    log_in(browser);
    write(browser);
    upload(browser);
    set_permalinks(browser);
    administer(browser);
    look_around(browser);
    browser.use_fedora();
    administer(browser);
    look_around(browser);
    log_out(browser);
    look_around(browser);
}

fn install(browser: &mut Browser) {
    let path = "/wp-admin/install.php";
    let away = browser.get("/");
    browser.follow(&away);
    for email in ["", "admin@apps.test"] {
        let form = [
            ("weblog_title", "A log & more"),
            ("user_name", "admin"),
            ("admin_password", "pass word"),
            ("admin_password2", "pass word"),
            ("pw_weak", "on"),
            ("admin_email", email),
            ("blog_public", "1"),
            ("Submit", "Install WordPress"),
            ("language", ""),
        ];
        let done = browser.post(&format!("{path}?step=2"), &form).text();
        assert_eq!(done.contains("Success!"), !email.is_empty(), "{done}");
    }
    browser.get(path);
    browser.get("/");
}

fn log_in(browser: &mut Browser) {
    browser.get("/wp-admin/");
    browser.get("/wp-login.php");
    for password in ["wrong", "pass word"] {
        let form = [
            ("log", "admin"),
            ("pwd", password),
            ("wp-submit", "Log In"),
            ("redirect_to", "http://apps.test/wp-admin/"),
            ("testcookie", "1"),
        ];
        let answer = browser.post("/wp-login.php", &form);
        if password != "wrong" {
            browser.follow(&answer);
        }
    }
}

/// Creates a draft by the dashboard's form, a post as the editor does it, and a comment.
fn write(browser: &mut Browser) {
    let page = browser.get("/wp-admin/").text();
    let mut form = hidden(&page, "quickpost-action");
    form.extend([("post_title", "A draft"), ("content", "Größe"), ("save", "Save Draft")]);
    browser.post("/wp-admin/post.php", &form);
    let page = browser.get("/wp-admin/post-new.php").text();
    let nonce = between(&page, "createNonceMiddleware( \"", "\"");
    let fields = format!("Content-Type: application/json\r\nX-WP-Nonce: {nonce}\r\n");
    // Lists of posts are by date: this one has another second than the first.
    let post = r#"{"title": "Größe & more", "content": "<p>A post</p>", "status": "publish",
        "date": "2020-02-03T04:05:06"}"#;
    let path = "/index.php?rest_route=%2Fwp%2Fv2%2Fposts&_locale=user";
    for (fields, post) in [(&*fields, post), (&*fields, "{"), ("", post)] {
        browser.send("POST", path, fields, post.as_bytes());
    }
    // The installer's comment may be of the same second as the next one.
    let path = "/index.php?rest_route=%2Fwp%2Fv2%2Fcomments%2F1&force=true";
    browser.send("DELETE", path, &fields, b"");
    let page = browser.get("/?p=1").text();
    let mut form = hidden(&page, "comment_post_ID");
    form.extend([("comment", "Größer & <b>larger</b>"), ("submit", "Post Comment")]);
    let answer = browser.post("/wp-comments-post.php", &form);
    browser.follow(&answer);
}

fn upload(browser: &mut Browser) {
    let page = browser.get("/wp-admin/options-media.php").text();
    // Folders by month would change their names.
    let mut form = hidden(&page, "uploads_use_yearmonth_folders");
    form.extend([("thumbnail_size_w", "150"), ("submit", "Save Changes")]);
    browser.post("/wp-admin/options.php", &form);
    let page = browser.get("/wp-admin/media-new.php").text();
    let mut form = hidden(&page, "async-upload");
    form.push(("html-upload", "Upload"));
    let content = large_file();
    let file = File { field: "async-upload", name: "Large.zip", content: &content };
    let done = browser.upload("/wp-admin/media-new.php", &form, &file);
    browser.follow(&done);
    let path = "/wp-content/uploads/Large.zip";
    let whole = browser.get(path);
    assert!(whole.body == content, "{}", whole.head);
    browser.get_with(path, "Range: bytes=1000000-1000999\r\n");
    browser.get_with(path, "Range: bytes=30000000-\r\n");
    browser.send("HEAD", path, "", b"");
}

fn set_permalinks(browser: &mut Browser) {
    let before = browser.get("/hello-world/");
    assert_eq!(before.status, 404);
    let path = "/wp-admin/options-permalink.php";
    let page = browser.get(path).text();
    let mut form = hidden(&page, "permalink_structure");
    form.extend([("selection", "/%postname%/"), ("permalink_structure", "/%postname%/")]);
    form.extend([("category_base", ""), ("tag_base", ""), ("submit", "Save Changes")]);
    let done = browser.post(path, &form);
    browser.follow(&done);
    // The rules in the .htaccess lead it to WordPress.
    let after = browser.get("/hello-world/");
    assert_eq!(after.status, 200);
}

fn administer(browser: &mut Browser) {
    for page in [
        "index.php",
        "edit.php?orderby=title&order=asc",
        "post.php?post=1&action=edit",
        "post.php?post=99&action=edit",
        "upload.php?mode=list",
        "edit-comments.php",
        "themes.php",
        "plugins.php",
        "users.php",
        "profile.php",
        "tools.php",
        "options-general.php",
        "options.php",
        "export.php?download=true&content=all&cat=0&post_author=0&page_author=0&submit=Download",
        "admin-ajax.php",
        "none.php",
        "css/none.css",
        "load-styles.php?c=0&dir=ltr&load%5B%5D=dashicons,admin-bar",
        "load-scripts.php?c=0&load%5B%5D=hoverIntent",
    ] {
        browser.get(&format!("/wp-admin/{page}"));
    }
}

fn look_around(browser: &mut Browser) {
    for path in [
        "",
        "hello-world/",
        "hello-world",
        "hello-world?a=b",
        "hello-world/none",
        "Hello-World/",
        "sample-page/",
        "?p=1",
        "?p=99",
        "index.php",
        "index.php/hello-world/",
        "grose-more/",
        "gr%C3%B6%C3%9Fe",
        "a%20b%2520c",
        "none",
        "none/",
        "none.php",
        "none.png",
        "category/uncategorized/",
        "author/admin/",
        "page/2/",
        "?s=hello",
        "feed/",
        "comments/feed/",
        "wp-sitemap.xml",
        "robots.txt",
        "favicon.ico",
        "wp-json/",
        "wp-json/wp/v2/posts",
        "wp-json/wp/v2/none",
        "wp-login.php?action=lostpassword",
        "xmlrpc.php",
        "xmlrpc.php?rsd",
        "wp-cron.php",
        "wp-trackback.php",
        "wp-config.php",
        "wp-admin",
        "wp-includes",
        "wp-includes/",
        "wp-content/",
        "wp-content/uploads/",
        "wp-content/none.png",
        "wp-content/themes/twentytwentyone/index.php",
        "readme.html",
        ".htaccess",
        ".user.ini",
    ] {
        browser.get(&format!("/{path}"));
    }
    let call = "<?xml version=\"1.0\"?><methodCall><methodName>demo.sayHello</methodName>\
                <params></params></methodCall>";
    browser.send("POST", "/xmlrpc.php", "Content-Type: text/xml\r\n", call.as_bytes());
    browser.send("HEAD", "/hello-world/", "", b"");
    browser.send("OPTIONS", "/wp-json/", "", b"");
    conditions(browser);
}

fn conditions(browser: &mut Browser) {
    for path in [
        "wp-content/themes/twentytwentyone/style.css",
        "wp-includes/js/jquery/jquery.min.js",
        "wp-admin/images/wordpress-logo.svg",
        "feed/",
    ] {
        let path = format!("/{path}");
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
}

fn log_out(browser: &mut Browser) {
    let page = browser.get("/wp-admin/").text();
    let link = page.split_once("action=logout&#038;_wpnonce=").unwrap().1;
    let nonce: String = link.chars().take_while(char::is_ascii_hexdigit).collect();
    let left = browser.get(&format!("/wp-login.php?action=logout&_wpnonce={nonce}"));
    browser.follow(&left);
    browser.get("/wp-admin/");
}

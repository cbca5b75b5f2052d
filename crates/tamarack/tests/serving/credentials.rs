//! Logins by digests and forms, over several processes: what one has given, all accept; a replay is
//! refused by all.

use std::time::Duration;

use md5::{Digest, Md5};

use crate::client::Answer;
use crate::site::Site;

const PROCESSES: &str = "LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\n\
    StartServers 3\nServerLimit 3\nMaxRequestWorkers 3\n";

/// A user whose password is `test`.
const HASHED: &str = "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n";

/// `@USERS@` in the configuration is the file with these users.
fn site(name: &str, modules: &[&str], users: &str, config: &str) -> Site {
    let site = Site::new(name);
    site.write("users", users);
    let config = config.replace("@USERS@", &site.path("users").display().to_string());
    let common = ["authz_core", "authn_core", "authn_file", "authz_user"];
    let modules: String = common
        .iter()
        .chain(modules)
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .collect();
    site.configure(&format!("{PROCESSES}{modules}{config}"));
    site
}

/// Asks on a connection of its own, which any process may accept.
fn ask(site: &Site, request: &str) -> Answer {
    let mut client = site.client();
    client.send(request.as_bytes()).unwrap();
    client.answer().unwrap()
}

fn get(site: &Site, path: &str, field: &str) -> Answer {
    ask(site, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{field}\r\n"))
}

fn md5(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The quoted value of a parameter.
fn parameter<'f>(field: &'f str, name: &str) -> &'f str {
    let (_, rest) = field.split_once(&format!("{name}=\"")).unwrap();
    rest.split('"').next().unwrap()
}

/// Credentials of a GET for a challenge, or for the nonce that followed it.
fn credentials(challenge: &str, nonce: &str, path: &str, count: u32) -> String {
    credentials_of("GET", challenge, nonce, path, count)
}

fn credentials_of(method: &str, challenge: &str, nonce: &str, path: &str, count: u32) -> String {
    let hash = md5("alice:Realm:test");
    let of = md5(&format!("{method}:{path}"));
    let response = md5(&format!("{hash}:{nonce}:{count:08x}:abc:auth:{of}"));
    let opaque = match challenge.contains("opaque=") {
        true => format!(", opaque=\"{}\"", parameter(challenge, "opaque")),
        false => String::new(),
    };
    format!(
        "Authorization: Digest username=\"alice\", realm=\"Realm\", nonce=\"{nonce}\", \
         uri=\"{path}\", response=\"{response}\", qop=auth, nc={count:08x}, cnonce=\"abc\"\
         {opaque}\r\n"
    )
}

#[test]
fn digests_of_subrequests_are_for_the_clients_request_and_counted() {
    let users = format!("alice:Realm:{}\n", md5("alice:Realm:test"));
    let digest = "AuthType Digest\nAuthName Realm\nAuthUserFile @USERS@\nRequire valid-user\n";
    let config = format!(
        "<Location /index>\nAuthDigestNcCheck On\nAuthDigestNonceLifetime 0\n</Location>\n\
         <Files index.html>\n{digest}</Files>\n<Files inner.html>\n{digest}</Files>\n\
         <Files page.shtml>\nOptions +Includes\nSetOutputFilter INCLUDES\n</Files>\n\
         <Location /error>\n{digest}ErrorDocument 404 /document/inner.html\n</Location>\n"
    );
    let mut site =
        site("credentials-inner", &["auth_digest", "dir", "include", "mime"], &users, &config);
    for folder in ["htdocs/index", "htdocs/document"] {
        std::fs::create_dir(site.path(folder)).unwrap();
    }
    site.write("htdocs/index/index.html", "index");
    site.write("htdocs/document/inner.html", "inner");
    site.write("htdocs/page.shtml", "[<!--#include virtual=\"/document/inner.html\" -->]");
    site.start();
    let challenge = |path: &str| {
        let refused = get(&site, path, "");
        assert_eq!(refused.status, 401, "{path}");
        refused.field("WWW-Authenticate").unwrap().to_owned()
    };
    // What an index file has accepted is used, as if it had been asked for.
    let asked = challenge("/index/");
    let login = credentials(&asked, parameter(&asked, "nonce"), "/index/", 1);
    assert_eq!(get(&site, "/index/", &login).status, 200);
    assert_eq!(get(&site, "/index/", &login).status, 401);
    let asked = challenge("/index/");
    let other = credentials(&asked, parameter(&asked, "nonce"), "/other", 1);
    assert_eq!(get(&site, "/index/", &other).status, 400);

    // Credentials for the included file are none for the page.
    let asked = challenge("/document/inner.html");
    let nonce = parameter(&asked, "nonce");
    let login = credentials(&asked, nonce, "/document/inner.html", 1);
    assert_eq!(get(&site, "/document/inner.html", &login).body, b"inner");
    let page = get(&site, "/page.shtml", &login);
    assert!(!page.text().contains("inner"), "{}", page.text());
    let login = credentials(&asked, nonce, "/page.shtml", 1);
    assert_eq!(get(&site, "/page.shtml", &login).text(), "[inner]");

    // The method is the client's, of an error document as well.
    let login = credentials_of("POST", &asked, nonce, "/error/none", 1);
    let head = "POST /error/none HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0";
    let answer = ask(&site, &format!("{head}\r\n{login}\r\n"));
    assert_eq!((answer.status, answer.text()), (404, "inner".to_owned()));
}

#[test]
fn digests_are_for_the_servers_address_and_written_as_the_server_writes_them() {
    let users = format!("alice:Realm:{}\n", md5("alice:Realm:test"));
    let config = "<Location />\nAuthType Digest\nAuthName Realm\nAuthUserFile @USERS@\n\
                  Require valid-user\n</Location>\n";
    let mut site = site("credentials-address", &["auth_digest"], &users, config);
    site.write("htdocs/a.txt", "a");
    site.start();
    let asked = get(&site, "/a.txt", "").field("WWW-Authenticate").unwrap().to_owned();
    let nonce = parameter(&asked, "nonce");
    let port = site.port;
    let status = |field: &str| {
        let head = format!("GET /a.txt HTTP/1.1\r\nHost: x:{port}\r\nConnection: close");
        ask(&site, &format!("{head}\r\n{field}\r\n")).status
    };
    for (uri, expected) in [
        ("/a.txt".to_owned(), 200),
        (format!("http://x:{port}/a.txt"), 200),
        (format!("http://y:{port}/a.txt"), 400),
        ("http://x:1/a.txt".to_owned(), 400),
        ("http://x/a.txt".to_owned(), 400),
    ] {
        assert_eq!(status(&credentials(&asked, nonce, &uri, 1)), expected, "{uri}");
    }
    let login = credentials(&asked, nonce, "/a.txt", 1);
    let response = parameter(&login, "response").to_owned();
    assert_eq!(status(&login.replace(&response, &response.to_uppercase())), 401);
    // A nonce of another length is malformed, which no new one mends.
    let short = credentials(&asked, &nonce[1..], "/a.txt", 1);
    let refused = get(&site, "/a.txt", &short);
    let challenge = refused.field("WWW-Authenticate").unwrap();
    assert!(!challenge.contains("stale"), "{challenge}");
    assert_eq!(site.count_lines("AH01782"), 1, "{}", site.error_log());
}

#[test]
fn digests_are_accepted_by_all_processes_and_counted_by_all() {
    let users = format!("alice:Realm:{}\n", md5("alice:Realm:test"));
    let config = "<Location />\nAuthType Digest\nAuthName Realm\nAuthUserFile @USERS@\n\
                  Require valid-user\n</Location>\n\
                  <Location /counted>\nAuthDigestNcCheck On\n</Location>\n\
                  <Location /once>\nAuthDigestNonceLifetime 0\n</Location>\n\
                  <Location /short>\nAuthDigestNonceLifetime 1\n</Location>\n";
    let mut site = site("credentials-digest", &["auth_digest"], &users, config);
    for page in ["plain", "counted", "once", "short"] {
        site.write(&format!("htdocs/{page}"), page);
    }
    site.start();
    let challenge = |path| {
        let refused = get(&site, path, "");
        assert_eq!(refused.status, 401);
        refused.field("WWW-Authenticate").unwrap().to_owned()
    };
    let status = |path, credentials: &str| get(&site, path, credentials).status;

    let plain = challenge("/plain");
    let right = credentials(&plain, parameter(&plain, "nonce"), "/plain", 1);
    for _ in 0..6 {
        let accepted = get(&site, "/plain", &right);
        assert_eq!((accepted.status, accepted.body.as_slice()), (200, &b"plain"[..]));
        assert!(accepted.field("Authentication-Info").unwrap().contains("rspauth="));
    }
    assert_eq!(status("/plain", &right.replace("response=\"", "response=\"0")), 401);

    let counted = challenge("/counted");
    let count = |count| credentials(&counted, parameter(&counted, "nonce"), "/counted", count);
    assert_eq!(status("/counted", &count(1)), 200);
    for _ in 0..6 {
        assert_eq!(status("/counted", &count(1)), 401);
    }
    assert_eq!(status("/counted", &count(3)), 200);
    assert_eq!(status("/counted", &count(2)), 401);

    let once = challenge("/once");
    let first = credentials(&once, parameter(&once, "nonce"), "/once", 1);
    let accepted = get(&site, "/once", &first);
    assert_eq!(accepted.status, 200);
    let next = parameter(accepted.field("Authentication-Info").unwrap(), "nextnonce").to_owned();
    let second = credentials(&once, &next, "/once", 1);
    assert_eq!(status("/once", &second), 200);
    assert_eq!((status("/once", &second), status("/once", &first)), (401, 401));

    let short = challenge("/short");
    let right = credentials(&short, parameter(&short, "nonce"), "/short", 1);
    assert_eq!(status("/short", &right), 200);
    std::thread::sleep(Duration::from_millis(1100));
    let stale = get(&site, "/short", &right);
    assert_eq!(stale.status, 401);
    assert!(stale.field("WWW-Authenticate").unwrap().contains("stale=true"));
}

#[test]
fn a_login_by_form_lasts_as_long_as_its_session() {
    let modules = ["auth_form", "session", "session_cookie", "session_crypto", "request"];
    let config = "<Location />\nAuthType form\nAuthName realm\nAuthUserFile @USERS@\nSession On\n\
                  SessionMaxAge 2\nSessionCookieName session path=/\n\
                  SessionCryptoPassphrase secret\nRequire valid-user\n</Location>\n";
    let mut site = site("credentials-form", &modules, HASHED, config);
    site.write("htdocs/page", "page");
    site.start();
    let form = "httpd_username=alice&httpd_password=test";
    let post = format!(
        "POST /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
        form.len()
    );
    assert_eq!(get(&site, "/page", "").status, 401);
    let accepted = ask(&site, &post);
    assert_eq!((accepted.status, accepted.body.as_slice()), (200, &b"page"[..]));
    let cookie = accepted.field("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    assert!(!cookie.contains("alice") && !cookie.contains("test"));
    for _ in 0..6 {
        assert_eq!(get(&site, "/page", &format!("Cookie: {cookie}\r\n")).status, 200);
    }
    let start = "session=".len();
    for at in (start..cookie.len()).step_by(7) {
        let mut changed = cookie.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(get(&site, "/page", &format!("Cookie: {changed}\r\n")).status, 401, "{at}");
    }
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(get(&site, "/page", &format!("Cookie: {cookie}\r\n")).status, 401);
}

/// Logs in by a form with these fields besides.
fn log_in(site: &Site, path: &str, fields: &str) -> Answer {
    let form = format!("httpd_username=alice&httpd_password=test&{fields}");
    let length = form.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    let of_form = "Content-Type: application/x-www-form-urlencoded\r\n";
    ask(site, &format!("{head}{of_form}Content-Length: {length}\r\n\r\n{form}"))
}

#[test]
fn a_form_changes_the_method_but_not_who_may_use_it() {
    const CONFIG: &str = "<Location />\nAuthType form\nAuthName r\nAuthUserFile @USERS@\n\
        Session On\nSessionCookieName s\nRequire valid-user\n</Location>\n\
        <Location /limited.txt>\n<Limit GET>\nRequire user bob\n</Limit>\n\
        <LimitExcept GET>\nRequire valid-user\n</LimitExcept>\n</Location>\n\
        CustomLog logs/access.log \"%r %>s\"\n";
    let modules = ["auth_form", "session", "session_cookie", "request", "log_config"];
    let mut site = site("form-method", &modules, HASHED, CONFIG);
    site.write("htdocs/limited.txt", "limited\n");
    site.write("htdocs/a%2fb.txt", "escaped\n");
    site.start();
    let get = "httpd_method=GET&httpd_mimetype=a/b&httpd_body=";
    assert_eq!(log_in(&site, "/limited.txt", "").status, 200);
    assert_eq!(log_in(&site, "/limited.txt", get).status, 401);
    let escaped = log_in(&site, "/a%252fb.txt", get);
    assert_eq!((escaped.status, escaped.text().as_str()), (200, "escaped\n"));
    let log = || std::fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    site.wait_until("the lines of the log", || log().lines().count() == 3);
    assert!(log().contains("POST /a%252fb.txt HTTP/1.1 200\n"), "{}", log());
}

#[test]
fn a_form_has_no_control_character_in_its_media_type() {
    const CONFIG: &str = "<Location />\nAuthType form\nAuthName r\nAuthUserFile @USERS@\n\
        Session On\nSessionCookieName s\nRequire valid-user\n</Location>\n";
    let modules = ["auth_form", "session", "session_cookie", "request"];
    let mut site = site("form-type", &modules, HASHED, CONFIG);
    site.start();
    for (media_type, status) in
        [("a/b", 200), ("a/%09b", 200), ("a/%ffb", 200), ("a/b%0d%0aX:%20y", 400)]
            .into_iter()
            .chain([("%01", 400), ("a%0ab", 400), ("a%0db", 400), ("%7f", 400), ("a%00%0a", 200)])
    {
        let fields = format!("httpd_mimetype={media_type}&httpd_body=x");
        let answer = log_in(&site, "/index.html", &fields);
        assert_eq!(answer.status, status, "{media_type}");
        assert_eq!(answer.field("Set-Cookie").is_some(), status == 200, "{media_type}");
        // Without a body it is not used.
        let fields = format!("httpd_mimetype={media_type}");
        assert_eq!(log_in(&site, "/index.html", &fields).status, 200, "{media_type}");
    }
    assert_eq!(site.count_lines("AH20211"), 5, "{}", site.error_log());
}

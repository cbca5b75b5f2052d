//! PHP by PHP-FPM: the configurations of Debian, of Fedora, and with ProxyPassMatch lead to the
//! responses of the real Apache.
//!
//! The test starts PHP-FPM, apache2 and Tamarack; without the first two it is skipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Answer, Client};
use crate::free_port::free_port;
use crate::site::{PROGRAM, Site, is_root};

const SITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serving/php");
const APACHE: &str = "/usr/sbin/apache2";
/// Debian's file, and the socket in it.
const DEBIAN: &str = "/etc/apache2/conf-available/php8.2-fpm.conf";
const DEBIAN_SOCKET: &str = "/run/php/php8.2-fpm.sock";
const FPM: [&str; 2] = ["/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm"];

/// How Fedora's php.conf does it.
const FEDORA: &str = r#"
<Files ".user.ini">
    Require all denied
</Files>
AddType text/html .php
DirectoryIndex index.php
SetEnvIfNoCase ^Authorization$ "(.+)" HTTP_AUTHORIZATION=$1
<FilesMatch \.(php|phar)$>
    SetHandler "proxy:unix:@SOCKET@|fcgi://localhost"
</FilesMatch>
"#;

/// Bytes of the large upload.
const UPLOAD_BYTES: usize = 20 << 20;

/// PHP-FPM with the scripts, in a folder of its own.
pub struct Php {
    pub root: PathBuf,
    pub port: u16,
    child: Child,
}

impl Php {
    fn start() -> Option<Php> {
        Php::start_with("php", 3, "")
    }

    /// PHP-FPM with two pools of `children` each, and more lines for them; `None` without it.
    pub fn start_with(name: &str, children: usize, more: &str) -> Option<Php> {
        let program = FPM.iter().find(|path| Path::new(path).exists())?;
        let root = std::env::temp_dir();
        let root = root.join(format!("tamarack-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        copy(Path::new(SITE), &root.join("htdocs"));
        fs::create_dir_all(root.join("sessions")).unwrap();
        for (path, mode) in [("", 0o755), ("sessions", 0o777)] {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let (port, at) = (free_port(), root.display().to_string());
        let user = if is_root() { "user = www-data\ngroup = www-data\n" } else { "" };
        let pool = |name: &str, listen: &str| {
            format!(
                "[{name}]\n{user}listen = {listen}\nlisten.mode = 0666\npm = static\n\
                 pm.max_children = {children}\n{more}\
                 php_admin_value[session.save_path] = {at}/sessions\n\
                 php_admin_value[upload_tmp_dir] = {at}/sessions\n\
                 php_admin_flag[log_errors] = on\nphp_admin_value[error_log] =\n\
                 php_flag[display_errors] = off\n"
            )
        };
        let unix = pool("unix", &format!("{at}/php.sock"));
        let tcp = pool("tcp", &format!("127.0.0.1:{port}"));
        let text = format!("[global]\ndaemonize = no\nerror_log = {at}/fpm.log\n{unix}{tcp}");
        fs::write(root.join("fpm.conf"), text).unwrap();
        let mut command = Command::new(program);
        command.arg("-y").arg(root.join("fpm.conf")).args(["-F", "-O"]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Some(Php { root, port, child })
    }

    /// The configuration of both servers, on `port`.
    fn configuration(&self, site: &Site) -> String {
        let socket = self.root.join("php.sock").display().to_string();
        let debian = fs::read_to_string(DEBIAN).unwrap().replace(DEBIAN_SOCKET, &socket);
        let fedora = FEDORA.replace("@SOCKET@", &socket);
        let (root, htdocs) = (site.root.display(), self.root.join("htdocs"));
        let (port, htdocs) = (site.port, htdocs.display());
        let mut text = format!(
            "ServerRoot {root}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile run.pid\n\
             ErrorLog logs/error.log\nDocumentRoot {htdocs}\nTimeout 60\nTypesConfig /dev/null\n"
        );
        let names = [
            "mpm_event",
            "authz_core",
            "authz_host",
            "mime",
            "dir",
            "env",
            "setenvif",
            "alias",
            "proxy",
            "proxy_fcgi",
            "deflate",
            "filter",
        ];
        for name in names {
            let file = format!("/usr/lib/apache2/modules/mod_{name}.so");
            text.push_str(&format!("LoadModule {name}_module {file}\n"));
        }
        if is_root() {
            text.push_str("User www-data\nGroup www-data\n");
        }
        text.push_str("AddType text/css .css\n");
        let tcp = self.port;
        let by_match = format!("ProxyPassMatch ^/(.*\\.php)$ fcgi://127.0.0.1:{tcp}{htdocs}/$1\n");
        let own = format!("<Directory {htdocs}>\n  Require all granted\n</Directory>\n");
        for (name, how) in [("debian", debian), ("fedora", fedora), ("match", by_match)] {
            text.push_str(&format!(
                "<VirtualHost *:{port}>\n  ServerName {name}.test\n  DocumentRoot {htdocs}\n\
                 {own}{how}\n</VirtualHost>\n"
            ));
        }
        text
    }
}

impl Drop for Php {
    /// A killed PHP-FPM would leave its children behind; asked to end, it ends them.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}

/// The part of a response that has to be the same.
fn compared(answer: &Answer, port: u16) -> String {
    let mut fields: Vec<&str> = answer.head.lines().skip(1).collect();
    fields.retain(|line| !line.starts_with("Date:") && !line.starts_with("Server:"));
    fields.sort_unstable();
    let status = answer.head.lines().next().unwrap_or_default();
    let mut body = answer.text();
    // The wording of the server's own pages differs.
    if body.starts_with("<!DOCTYPE") && body.contains("</title>\n</head><body>\n<h1>") {
        body = "a page of the server's own".to_owned();
        fields.retain(|line| !line.starts_with("Content-Length:"));
    }
    let text = format!("{status}\n{}\n\n{body}", fields.join("\n"));
    let text = text.replace(&format!(":{port}"), ":PORT");
    masked(&text, "PHPSESSID=", 26)
}

/// Replaces what follows a mark.
fn masked(text: &str, mark: &str, length: usize) -> String {
    let mut parts = text.split(mark);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + mark + "*" + part.get(length..).unwrap_or_default())
}

/// A request by name of host, path and the rest.
struct Case {
    host: &'static str,
    line: String,
    fields: String,
    body: Vec<u8>,
}

fn case(host: &'static str, line: &str, fields: &str, body: &[u8]) -> Case {
    Case { host, line: line.to_owned(), fields: fields.to_owned(), body: body.to_vec() }
}

impl Case {
    fn ask(&self, port: u16) -> Answer {
        let mut client = Client::connect(port).unwrap();
        let length = match self.body.len() {
            0 => String::new(),
            _ if self.fields.contains("chunked") => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let head = format!(
            "{} HTTP/1.1\r\nHost: {}.test\r\n{}{length}\r\n",
            self.line, self.host, self.fields
        );
        // At once: Apache tells PHP the length of a chunked body that has arrived with the head.
        client.send(&[head.as_bytes(), &self.body].concat()).unwrap();
        let is_head = self.line.starts_with("HEAD");
        let answer = if is_head { client.head() } else { client.answer() };
        answer.unwrap_or_else(|error| panic!("{} {}: {error}", self.host, self.line))
    }
}

fn multipart(bytes: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
    let mut body =
        b"--cut\r\nContent-Disposition: form-data; name=\"word\"\r\n\r\nvalue\r\n--cut\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a b.bin\"\r\n\
        Content-Type: application/octet-stream\r\n\r\n"
            .to_vec();
    body.extend_from_slice(&content);
    body.extend_from_slice(b"\r\n--cut--\r\n");
    body
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const MULTIPART: &str = "Content-Type: multipart/form-data; boundary=cut\r\n";

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for host in ["debian", "fedora", "match"] {
        let mut get = |path: &str| cases.push(case(host, &format!("GET {path}"), "", b""));
        for path in [
            "/hello.php",
            "/variables.php",
            "/variables.php?a=1&b=%20c",
            "/none.php",
            "/hello.php/path/info",
            "/variables.php/a%20b/c?q",
            "/redirect.php",
            "/status.php",
            "/cookies.php",
            "/fatal.php",
            "/logs.php",
            "/etag.php",
            "/folder/",
            "/folder",
            "/large.php",
            "/empty.php",
            "/sp%20ace/a%20b.php?x",
            "/hello.phps",
            "/.php",
            "/plain.txt",
            "/%68ello.php",
            "/hello.php%2f",
            "/HELLO.PHP",
            "//hello.php",
            "/settings/index.php",
            "/.user.ini",
            "/settings/",
        ] {
            get(path);
        }
        cases.push(case(host, "HEAD /hello.php", "", b""));
        let cookies = "Cookie: a=b; c=d\r\nAuthorization: Basic eDp5\r\nAccept-Language: de\r\n";
        cases.push(case(host, "GET /variables.php", cookies, b""));
        cases.push(case(host, "GET /hello.php", "Accept-Encoding: gzip\r\nProxy: x\r\n", b""));
        cases.push(case(host, "GET /etag.php", "If-None-Match: \"tag\"\r\n", b""));
        cases.push(case(host, "POST /form.php?q=1", FORM, b"a=b&c%5b%5d=1&c[]=2"));
        cases.push(case(host, "PUT /form.php", "Content-Type: text/plain\r\n", b"some bytes"));
        let chunks = "Transfer-Encoding: chunked\r\nContent-Type: text/plain\r\n";
        cases.push(case(host, "POST /form.php", chunks, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
        cases.push(case(host, "POST /upload.php", MULTIPART, &multipart(100)));
        cases.push(case(host, "POST /hello.php", FORM, &[b'x'; 300_000]));
        cases.push(case(host, "DELETE /form.php", "", b""));
    }
    cases.push(case("debian", "POST /upload.php", MULTIPART, &multipart(UPLOAD_BYTES)));
    cases
}

#[test]
fn php_by_fpm_is_apaches() {
    if !Path::new(APACHE).exists() || !Path::new(DEBIAN).exists() {
        return eprintln!("skipped: no apache2, or no php-fpm");
    }
    let Some(php) = Php::start() else { return eprintln!("skipped: no php-fpm") };
    let (mut apache, mut own) = (Site::new("php-apache"), Site::new("php-own"));
    for (site, program) in [(&mut apache, APACHE), (&mut own, PROGRAM)] {
        site.write("httpd.conf", &php.configuration(site));
        let command = site.as_program(program);
        site.start_by(command);
    }
    own.wait_until("PHP-FPM", || php.root.join("php.sock").exists());
    let mut differences = Vec::new();
    for case in cases() {
        let expected = compared(&case.ask(apache.port), apache.port);
        let found = compared(&case.ask(own.port), own.port);
        let is_source = found.contains("<?php") && !expected.contains("<?php");
        assert!(!is_source, "{}: source is sent as text", case.line);
        if found != expected {
            let (host, line) = (case.host, &case.line);
            differences.push(format!("{host} {line}\n--- {expected}\n+++ {found}\n"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!([session(&apache), session(&own)], [["1", "2"], ["1", "2"]]);
    for text in ["AH01071: Got error 'Primary script unknown", "PHP message: PHP Warning:  noted"] {
        let counts = [apache.count_lines(text), own.count_lines(text)];
        assert!(counts[0] > 0 && counts[0] == counts[1], "{text}: {counts:?}");
    }
}

/// What a script counts in two requests of a session.
fn session(site: &Site) -> [String; 2] {
    let first = case("debian", "GET /session.php", "", b"").ask(site.port);
    let cookie = first.field("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    let fields = format!("Cookie: {cookie}\r\n");
    let second = case("debian", "GET /session.php", &fields, b"").ask(site.port);
    [first.text(), second.text()]
}

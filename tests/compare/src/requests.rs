//! Generates random requests to a site: mostly valid, and with every kind of escaping.

use crate::choice::Choice;
use crate::costly;
use crate::features;
use crate::fields::{add, condition, field};
use crate::site::Request;

/// The login that succeeds.
const ALICE: &str = "Basic YWxpY2U6dGVzdA==";

const METHODS: [&str; 16] = [
    "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "HEAD", "POST",
    "OPTIONS", "PUT", "DELETE", "TRACE",
];

/// Requests to one site, on connections that last.
pub fn requests(choice: &mut Choice, count: usize, has_login: bool) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::with_capacity(count);
    let mut via = String::new();
    for at in 0..count {
        if choice.is_tls && (at == 0 || choice.random.percent(10)) {
            via = way(choice);
        }
        let mut request = match requests.last() {
            // What was answered once may be kept.
            Some(last) if choice.random.percent(12) => last.clone(),
            _ => request(choice),
        };
        if has_login && choice.random.percent(40) {
            request.fields.retain(|(name, _)| name != "Authorization");
            add(&mut request, "Authorization", ALICE.to_owned());
        }
        let is_same_way = requests.last().is_some_and(|last| last.via == via);
        request.is_pipelined = is_same_way && choice.random.percent(8);
        request.via.clone_from(&via);
        requests.push(request);
    }
    requests
}

/// How a connection to a site of TLS is made.
fn way(choice: &mut Choice) -> String {
    let tls = match choice.random.below(12) {
        0 => "tls sni=none ",
        1 | 2 => "tls sni=@HOST@ cert=alice ",
        3 => "tls sni=@HOST@ only=1.2 ",
        // HTTP to a port of TLS.
        4..=6 => "",
        _ => "tls sni=@HOST@ ",
    };
    format!("{tls}to=127.0.0.1:@PORT2@")
}

/// A request.
pub fn request(choice: &mut Choice) -> Request {
    let mut request = Request {
        method: method(choice),
        target: target(choice),
        version: version(choice),
        ..Request::default()
    };
    host(choice, &mut request);
    for _ in 0..choice.random.below(4) {
        field(choice, &mut request);
    }
    if request.fields.iter().any(|(name, _)| name.starts_with("If-")) && choice.random.percent(30) {
        condition(choice, &mut request);
    }
    if matches!(request.method.as_str(), "POST" | "PUT") || choice.random.percent(3) {
        body(choice, &mut request);
    }
    request
}

fn method(choice: &mut Choice) -> String {
    match choice.random.below(40) {
        0 => choice.word(&["PROPFIND", "PATCH", "FOO", "get", "CONNECT", "MKCOL", "BREW"]),
        _ => choice.word(&METHODS),
    }
}

fn version(choice: &mut Choice) -> String {
    match choice.random.below(60) {
        0..=3 => "HTTP/1.0".to_owned(),
        4 => choice.word(&["HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.10"]),
        5 if choice.random.percent(20) => String::new(),
        _ => "HTTP/1.1".to_owned(),
    }
}

fn host(choice: &mut Choice, request: &mut Request) {
    let host = match choice.random.below(50) {
        0 => "@HOST@:80",
        1 => "@HOST@.",
        2 => "@HOST@:@PORT@",
        3 if request.version != "HTTP/1.1" || choice.random.percent(20) => return,
        4 if choice.random.percent(30) => {
            choice.one(&["a b", "", "[::1]", "@HOST@:x", "a_b", "@HOST@:"])
        }
        _ => "@HOST@",
    };
    request.fields.push(("Host".to_owned(), host.as_bytes().to_vec()));
}

/// A path of the site, with escapes, a change, or a suffix.
pub fn target(choice: &mut Choice) -> Vec<u8> {
    let mut path = choice.path();
    match choice.random.below(25) {
        0 => path.push_str(choice.one(&["/", "/x", "/a/b", "/%61", "//x", "/..", "/../a.txt"])),
        1 => path.push('/'),
        2 => path = path.trim_end_matches('/').to_owned(),
        3 => path = path.to_uppercase(),
        4 => path.push_str(choice.one(&["~", ".bak", "%", "x", ".en", ".html", ".", "\\"])),
        5 => {
            let folder = choice.random.pick(&choice.folders.clone());
            path = folder + choice.one(&["nope", "index", "page", "doc", "a", "c", ".htaccess"]);
        }
        6 => {
            if let Some((stem, _)) = path.rsplit_once('.') {
                path = stem.to_owned();
            }
        }
        7 => path = features::misspelt(choice, &path),
        _ => {}
    }
    let mut target = escaped(choice, &path);
    if choice.random.percent(12) {
        mangle(choice, &mut target);
    }
    if path.ends_with(".map") && choice.random.percent(80) {
        let point = choice.one(&[
            "?10,10", "?100,110", "?15,5", "?25,5", "?90,90", "?0,0", "?210,201", "?x", "?5",
            "?500,500", "?65,3", "?100,121",
        ]);
        target.extend_from_slice(point.as_bytes());
        return target;
    }
    match choice.random.below(20) {
        0 | 1 => target.extend_from_slice(
            choice
                .one(&["?", "?a=1", "?a", "?C=N;O=D", "?C=S;O=A", "?C=M", "?evil", "?%41&<b>"])
                .as_bytes(),
        ),
        2 if choice.random.percent(20) => target.extend_from_slice(costly::any(choice).as_bytes()),
        3 if choice.random.percent(15) => {
            let mut absolute = b"http://@HOST@".to_vec();
            absolute.extend_from_slice(&target);
            target = absolute;
        }
        4 if choice.random.percent(10) => {
            target =
                choice.one(&["*", "", "a.txt", "?x", "//", "/#x", "/a.txt#f"]).as_bytes().to_vec();
        }
        _ => {}
    }
    target
}

/// Percent-escapes necessary bytes, and sometimes others.
fn escaped(choice: &mut Choice, path: &str) -> Vec<u8> {
    let eager = if choice.random.percent(8) { 30 } else { 0 };
    let mut out = Vec::new();
    for byte in path.bytes() {
        let safe = byte.is_ascii_alphanumeric() || b"/.-_~;+&!$'()*,=:@".contains(&byte);
        if (safe && !choice.random.percent(eager))
            || (!safe && choice.random.percent(4) && byte > 32)
        {
            out.push(byte);
        } else if choice.random.percent(50) {
            out.extend_from_slice(format!("%{byte:02x}").as_bytes());
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

/// Inserts something odd into the path.
fn mangle(choice: &mut Choice, target: &mut Vec<u8>) {
    let odd = choice.one(&[
        "/", "//", "/./", "/../", "/%2e%2e/", "/%2e/", "%2F", "%2f", "%00", "%", "%zz", "%5c",
        "\\", "%20", ";a=b", "%3f", "%23", "%25", "%0a", "%c3%bc", "/.", "/..", "%7e", "%252e",
        "...",
    ]);
    let mut at = choice.random.below(target.len() + 1);
    // Most of these matter between two segments.
    if odd.starts_with('/') || choice.random.percent(50) {
        let slashes: Vec<usize> =
            (0..target.len()).filter(|&at| target.get(at) == Some(&b'/')).collect();
        at = choice.random.pick(&slashes);
    }
    let end = if odd.starts_with('/') && at < target.len() { at + 1 } else { at };
    target.splice(at..end, odd.bytes());
}

fn body(choice: &mut Choice, request: &mut Request) {
    let text = choice.one(&["", "abc", "0123456789", "a=1&b=2", "hello, this is a body"]);
    if request.version.is_empty() {
        return;
    }
    let expects = request.fields.iter().any(|(name, _)| name == "Expect");
    if !expects && choice.random.percent(20) {
        request.fields.push(("Expect".to_owned(), b"100-continue".to_vec()));
        if choice.random.percent(30) {
            request.version = "HTTP/1.0".to_owned();
        }
    }
    if choice.random.percent(25) && request.version == "HTTP/1.1" {
        request.fields.push(("Transfer-Encoding".to_owned(), b"chunked".to_vec()));
        if !text.is_empty() {
            request.body = format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
        }
        request.body.extend_from_slice(b"0\r\n\r\n");
        return;
    }
    request.fields.push(("Content-Length".to_owned(), text.len().to_string().into_bytes()));
    request.body = text.as_bytes().to_vec();
}

//! Generates sites of CGI programs: what they write is sometimes valid, and what is asked of them.
//!
//! A program reads all of the request's body, since Apache's mod_cgid may lose the output of one
//! that does not. All requests are HTTP/1.1, and none is HEAD or of a range: whether the end of the
//! output is there in time decides how a response is framed, and whether its length is known.

use crate::random::Random;
use crate::site::{Case, Content, File, Node, Request, Site};
use crate::tree::made;

/// The modules of these sites.
pub const MODULES: [&str; 12] = [
    "alias",
    "authz_core",
    "authz_host",
    "cgid",
    "deflate",
    "dir",
    "env",
    "expires",
    "filter",
    "headers",
    "mime",
    "setenvif",
];

/// Sites that are served at once.
const SITES: u64 = 4;
/// Programs of each, and requests to it.
const PROGRAMS: usize = 6;
const REQUESTS: usize = 20;

/// Lines of a head; `\` is that of printf(1).
const LINES: [&str; 62] = [
    "Content-Type: text/plain",
    "Content-Type: text/html; charset=utf-8",
    "content-type:TEXT/HTML",
    "Content-Type:  text/plain ;charset=ISO-8859-1  ",
    "Content-Type:",
    "Content-Type: x",
    "Status: 200",
    "Status: 200 Fine",
    "Status: 404",
    "Status: 404 Gone Away",
    "Status: 404 Not Found",
    "status:503 Busy",
    "Status: 299 Odd",
    "Status: 304 x",
    "Status: 204",
    "Status: 206",
    "Status: 302",
    "Status: 401",
    "Status: 99",
    "Status: 1000",
    "Status: abc",
    "Status:",
    "Status: 500 own",
    "Status: 416",
    "Location: /a.txt",
    "Location: /cgi-bin/p0?from=redirect",
    "Location: /none",
    "Location: http://other.test/x",
    "Location: a.txt",
    "Location: //other.test/x",
    "Location:",
    "location: /a%%20b.txt?q#f",
    "Content-Length: 3",
    "Content-Length: 100000",
    "Content-Length: abc",
    "Transfer-Encoding: chunked",
    "Connection: close",
    "Keep-Alive: timeout=1",
    "Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT",
    "Last-Modified: yesterday",
    "ETag: \"tag\"",
    "Etag: tag",
    "Set-Cookie: a=1",
    "Set-Cookie: b=2; path=/",
    "Cache-Control: no-cache",
    "Expires: 0",
    "Date: today",
    "Server: own",
    "WWW-Authenticate: Basic realm=\"own\"",
    "Vary: Cookie",
    "Content-Language: de",
    "Content-Encoding: x",
    "Content-Range: bytes 0-1/2",
    "Allow: GET",
    "X-A: 1",
    "X-A: 2",
    "x-a:  spaces \\t ",
    "X-Empty:",
    "X_under: score",
    "X-High: \\303\\244",
    "X-Control: \\001",
    "Warning: 199 x \"y\"",
];

/// Lines that are none of a head.
const BAD: [&str; 7] =
    ["no field", ": no name", "two words: x", "<html>", "\\t", "X\\001: y", "HTTP/1.1 200 OK"];

/// What may follow a program's first line: the environment that a client decides about, and the
/// arguments.
const TELL: &str = "printf 'Content-Type: text/plain\\nX-Told: 1\\n\\n'\n\
    env | LC_ALL=C grep -E '^(HTTP_|REDIRECT_(STATUS|URL|QUERY)|REQUEST_|QUERY_|PATH_INFO|\
    SCRIPT_NAME|CONTENT_|AUTH_TYPE|REMOTE_USER|SERVER_PROTOCOL|GATEWAY|OWN)' | LC_ALL=C sort\n\
    for word; do echo \"<$word>\"; done\ncat\n";

/// All cases of one start of the servers. A seed and a number determine them.
pub fn batch(seed: u64, number: u64) -> Vec<Case> {
    (0..SITES).map(|site| case(Random::part(seed, (number << 8) + site + (1 << 50)))).collect()
}

fn case(mut random: Random) -> Case {
    let random = &mut random;
    let mut files = vec![
        made("htdocs/a.txt".to_owned(), Content::Text("a\n".to_owned())),
        made("htdocs/a b.txt".to_owned(), Content::Text("a b\n".to_owned())),
        program("p0", format!("#!/bin/sh\n{TELL}")),
    ];
    let mut names = vec!["p0".to_owned()];
    for number in 1..PROGRAMS {
        let is_raw = random.percent(8);
        let name = format!("{}p{number}", if is_raw { "nph-" } else { "" });
        let text = if is_raw { raw(random) } else { cooked(random) };
        files.push(program(&name, text));
        names.push(name);
    }
    let site = Site { config: config(random), files, ..Site::default() };
    let requests = (0..REQUESTS).map(|_| request(random, &names)).collect();
    Case { site, requests }
}

fn program(name: &str, text: String) -> File {
    let mut file = made(format!("cgi-bin/{name}"), Content::Text(text));
    file.options.push(("mode".to_owned(), "0755".to_owned()));
    file
}

fn config(random: &mut Random) -> Vec<Node> {
    let mut nodes = vec![Node::directive("ScriptAlias", "/cgi-bin/ \"@SITE@/cgi-bin/\"")];
    let inner = vec![Node::directive("Require", "all granted")];
    nodes.push(Node::section("Directory", "\"@SITE@\"", inner));
    for (name, words) in [
        ("ErrorDocument", "404 \"own page\""),
        ("ErrorDocument", "500 /cgi-bin/p0/error"),
        ("ErrorDocument", "401 /a.txt"),
        ("Header", "set X-Set \"%{OWN}e\""),
        ("Header", "unset X-A"),
        ("Header", "merge Vary Own"),
        ("SetEnv", "OWN \"value of own\""),
        ("CGIPassAuth", "On"),
        ("AcceptPathInfo", "Off"),
        ("AddDefaultCharset", "utf-8"),
        ("ExpiresActive", "On"),
        ("CGIVar", "REQUEST_URI current-uri"),
    ] {
        if random.percent(15) {
            let node = Node::directive(name, words);
            nodes.push(match name {
                "CGIPassAuth" | "CGIVar" | "AcceptPathInfo" => {
                    Node::section("Directory", "\"@SITE@/cgi-bin\"", vec![node])
                }
                _ => node,
            });
        }
    }
    nodes
}

/// A program that writes a head and a body.
fn cooked(random: &mut Random) -> String {
    let mut text = "#!/bin/sh\ncat >/dev/null\n".to_owned();
    if random.percent(10) {
        text.push_str("echo complaint >&2\n");
    }
    let end = if random.percent(30) { "\\r\\n" } else { "\\n" };
    let mut head = String::new();
    for _ in 0..random.below(5) {
        if random.percent(4) {
            head.push_str(random.pick(&BAD));
        } else if random.percent(3) {
            head.push_str(&format!("X-Long: {}", "l".repeat(8150 + random.below(80))));
        } else {
            head.push_str(random.pick(&LINES));
        }
        head.push_str(end);
    }
    if random.percent(75) {
        head.push_str("Content-Type: text/plain");
        head.push_str(end);
    }
    if random.percent(94) {
        head.push_str(end);
    }
    text.push_str(&print(&head));
    match random.below(8) {
        0 => {}
        1 => text.push_str("head -c 100000 /dev/zero\n"),
        2 => text.push_str("printf 'bin\\000ary'\n"),
        3 => text.push_str("echo \"$QUERY_STRING $PATH_INFO\"\n"),
        _ => text.push_str("echo body\n"),
    }
    if random.percent(10) {
        text.push_str("exit 3\n");
    }
    text
}

/// A program that writes the whole response.
fn raw(random: &mut Random) -> String {
    let response: &str = random.pick(&[
        "HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\nX-A: own\\r\\n\\r\\nown\\n",
        "HTTP/1.0 404 Own\\n\\nnot here",
        "HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nown\\r\\n0\\r\\n\\r\\n",
    ]);
    format!("#!/bin/sh\ncat >/dev/null\n{}", print(response))
}

/// The command that writes a text with printf(1)'s escapes.
fn print(text: &str) -> String {
    let text = text.replace('\'', "'\\''");
    format!("printf '{text}'\n")
}

fn request(random: &mut Random, names: &[String]) -> Request {
    let method: &str = random.pick(&["GET", "GET", "GET", "GET", "POST", "PUT", "OPTIONS", "FOO"]);
    let mut name = random.pick(names);
    if random.percent(3) {
        "none".clone_into(&mut name);
    }
    let info: &str = random.pick(&["", "", "", "", "/info", "/a.txt", "/%41%20b", "//x/../y", "/"]);
    let query: &str =
        random.pick(&["", "", "?q=1", "?a+b%20c+%3B", "?", "?%zz+x", "?a&b;c=%41", "?'\"`$x"]);
    let mut request = Request {
        method: method.to_owned(),
        target: format!("/cgi-bin/{name}{info}{query}").into_bytes(),
        version: "HTTP/1.1".to_owned(),
        fields: vec![("Host".to_owned(), b"@HOST@".to_vec())],
        ..Request::default()
    };
    for _ in 0..random.below(3) {
        let (name, value): (&str, &str) = random.pick(&[
            ("If-None-Match", "\"tag\""),
            ("If-None-Match", "*"),
            ("If-Modified-Since", "Sat, 01 Jan 2022 00:00:00 GMT"),
            ("If-Match", "\"other\""),
            ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
            ("Cookie", "a=1; b=2"),
            ("Authorization", "Basic YWxpY2U6dGVzdA=="),
            ("Proxy", "http://evil.test/"),
            ("Content-Type", "text/x-own"),
            ("X-Own", "1"),
            ("X_Own", "2"),
            ("X.Own", "3"),
            ("X-Own", "4"),
            ("1-Own", "5"),
            ("Accept-Encoding", "gzip"),
            ("Referer", "http://@HOST@/a.txt"),
        ]);
        request.fields.push((name.to_owned(), value.as_bytes().to_vec()));
    }
    if matches!(method, "POST" | "PUT") {
        body(random, &mut request);
    }
    request
}

fn body(random: &mut Random, request: &mut Request) {
    let content = "x=1&y=2".repeat(random.below(4) * random.below(1000));
    if random.percent(50) {
        request.fields.push(("Content-Length".to_owned(), content.len().to_string().into_bytes()));
        request.body = content.into_bytes();
        return;
    }
    request.fields.push(("Transfer-Encoding".to_owned(), b"chunked".to_vec()));
    for piece in content.as_bytes().chunks(1 + random.below(3000)) {
        request.body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        request.body.extend_from_slice(piece);
        request.body.extend_from_slice(b"\r\n");
    }
    request.body.extend_from_slice(b"0\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::batch;

    #[test]
    fn a_seed_and_a_number_fix_a_batch() {
        assert_eq!(batch(3, 4), batch(3, 4));
        assert_ne!(batch(3, 4), batch(3, 5));
    }
}

//! What the servers behind a proxy answer, as lines of a test file: heads with every field that a
//! proxy changes, and all ways to end a body.

use crate::random::Random;

/// The servers that get scripts; the others answer what they received.
const SCRIPTED: [&str; 6] = ["one", "one", "one", "one", "two", "sock"];

const STATUSES: [&str; 36] = [
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "200",
    "200 Fine",
    "201 Created",
    "204 No Content",
    "206 Partial Content",
    "299 Odd",
    "300 Multiple Choices",
    "301 Moved Permanently",
    "302 Found",
    "302 Found",
    "303 See Other",
    "304 Not Modified",
    "307 Temporary Redirect",
    "308 Permanent Redirect",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "404 Gone Away",
    "405 Method Not Allowed",
    "407 Proxy Authentication Required",
    "409 Conflict",
    "410 Gone",
    "412 Precondition Failed",
    "416 Range Not Satisfiable",
    "426 Upgrade Required",
    "500 Internal Server Error",
    "501 Not Implemented",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway Timeout",
];

const FIELDS: [&str; 83] = [
    "Content-Type: text/plain",
    "Content-Type: text/html; charset=utf-8",
    "Content-Type: text/HTML",
    "Location: http://@one@/x",
    "Location: http://@one@/base/x?q#f",
    "Location: http://@one@/base",
    "Location: http://@one@",
    "Location: http://@two@/x",
    "Location: http://inner.test/base/x",
    "Location: http://other.test/x",
    "Location: /base/x",
    "Location: /x",
    "Location: x",
    "Location: //@one@/x",
    "Location: HTTP://@one@/base/x",
    "Location: http://@HOST@/p/x",
    "Location:",
    "location: /a b",
    "Content-Location: http://@one@/base/x",
    "Content-Location: /x",
    "URI: http://@one@/x",
    "Destination: http://@one@/base/x",
    "Refresh: 1; url=http://@one@/x",
    "Set-Cookie: a=1",
    "Set-Cookie: a=1; Path=/base/; Domain=inner.test",
    "Set-Cookie: b=2; path=/base/x; HttpOnly",
    "Set-Cookie: c=3;domain=INNER.test;path=/",
    "Set-Cookie: d=4; Domain=.inner.test; Path=/other",
    "Set-Cookie: e=5; Path=/base/; Path=/; Expires=Sat, 01 Jan 2050 00:00:00 GMT",
    "Set-Cookie: f=\"a;path=/base/\"; Path=/base/",
    "Set-Cookie: SID=x.b; path=/",
    "Set-Cookie2: g=1; Path=/base/",
    "Connection: close",
    "Connection: close",
    "Connection: keep-alive",
    "Connection: X-Hop",
    "Connection: X-Hop, close",
    "Connection: Set-Cookie, Content-Type",
    "Connection: Upgrade",
    "Connection:",
    "X-Hop: 1",
    "Keep-Alive: timeout=5, max=3",
    "Proxy-Connection: keep-alive",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "TE: trailers",
    "Trailer: X-Sum",
    "Proxy-Authenticate: Basic realm=\"p\"",
    "Proxy-Authentication-Info: x",
    "WWW-Authenticate: Basic realm=\"inner\"",
    "Date: Sat, 01 Jan 2022 00:00:00 GMT",
    "Date: Saturday, 01-Jan-22 00:00:00 GMT",
    "Date: yesterday",
    "Expires: Sat Jan  1 00:00:00 2022",
    "Expires: 0",
    "Expires: -1",
    "Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT",
    "Last-Modified: Saturday, 01-Jan-22 00:00:00 GMT",
    "Last-Modified: never",
    "ETag: \"tag\"",
    "ETag: W/\"tag\"",
    "Etag: tag",
    "Server: inner",
    "Via: 1.0 inner",
    "Via: 1.1 inner, 1.0 more",
    "Warning: 199 x \"y\"",
    "Warning: 199 x \"y\" \"Sat, 01 Jan 2022 00:00:00 GMT\"",
    "Vary: Accept-Encoding",
    "Vary: *",
    "Cache-Control: no-cache, max-age=5",
    "Pragma: no-cache",
    "Content-Encoding: x",
    "Content-Language: de",
    "Content-Range: bytes 0-1/2",
    "Accept-Ranges: bytes",
    "Allow: GET, FOO",
    "X-A: 1",
    "X-A: 2",
    "x-a:   blanks \\t ",
    "X-Empty:",
    "X_under.score: 1",
    "X-High: \\xc3\\xa4",
    "X-Quoted: \"a, b\"",
];

/// Lines that are no field, or that only some servers accept.
const BAD: [&str; 8] = [
    "no field",
    ": no name",
    "two words: x",
    "X-Blank : x",
    " folded: x",
    "X-Control: \\x01",
    "X-Return: a\\rb",
    "X-\\x01: y",
];

const BODIES: [&str; 7] =
    ["body", "body", "line\\n", "<p>text</p>", "", "bin\\x00ary", "\\{x*9000}"];

/// A script for a request of this method.
pub fn script(random: &mut Random, method: &str) -> Vec<String> {
    let name: &str = random.pick(&SCRIPTED);
    let status: &str = random.pick(&STATUSES);
    let version = if random.percent(8) { "HTTP/1.0" } else { "HTTP/1.1" };
    let mut lines = Vec::new();
    let mut send = |line: &str| lines.push(format!("{name}< {line}").trim_end().to_owned());
    if random.percent(5) {
        send(random.pick(&["HTTP/1.1 103 Early Hints", "HTTP/1.1 102 Processing"]));
        send("X-Interim: 1");
        send("");
    }
    send(&format!("{version} {status}"));
    for _ in 0..random.below(6) {
        send(random.pick(&FIELDS));
    }
    if status.starts_with('3') && random.percent(80) {
        let at = 3 + random.below(14);
        send(FIELDS.get(at).copied().unwrap_or_default());
    }
    if random.percent(4) {
        send(random.pick(&BAD));
    }
    let has_no_body = method == "HEAD" || matches!(status.get(..3), Some("204" | "304"));
    let ending = ending(random, version);
    for field in ending.fields() {
        send(field);
    }
    let body: &str = random.pick(&BODIES);
    let length = blackbox::escape::unescape(body).map_or(0, |body| body.len());
    if matches!(ending, Ending::Length) {
        send(&format!("Content-Length: {length}"));
    }
    send("");
    if has_no_body {
        return lines;
    }
    let text = match ending {
        Ending::Chunks { has_trailer, .. } => chunks(body, length, has_trailer),
        _ => body.to_owned(),
    };
    if !text.is_empty() {
        lines.push(format!("{name}<- {text}"));
    }
    if matches!(ending, Ending::Close) {
        lines.push(format!("{name}: close"));
    }
    lines
}

/// What tells where a body ends.
enum Ending {
    Length,
    Close,
    Chunks { has_length: bool, has_trailer: bool },
}

fn ending(random: &mut Random, version: &str) -> Ending {
    match random.below(10) {
        0 => Ending::Close,
        _ if version == "HTTP/1.0" => Ending::Length,
        1..=3 => Ending::Chunks { has_length: random.percent(8), has_trailer: random.percent(20) },
        _ => Ending::Length,
    }
}

impl Ending {
    fn fields(&self) -> &'static [&'static str] {
        match self {
            Ending::Length => &[],
            // Without the field, the next request may come before the end of the connection.
            Ending::Close => &["Connection: close"],
            Ending::Chunks { has_length: true, .. } => {
                &["Transfer-Encoding: chunked", "Content-Length: 3"]
            }
            Ending::Chunks { .. } => &["Transfer-Encoding: chunked"],
        }
    }
}

fn chunks(body: &str, length: usize, has_trailer: bool) -> String {
    let trailer = if has_trailer { "X-Sum: 1\\r\\n" } else { "" };
    match length {
        0 => format!("0\\r\\n{trailer}\\r\\n"),
        _ => format!("{length:x}\\r\\n{body}\\r\\n0\\r\\n{trailer}\\r\\n"),
    }
}

/// Whether an answer can be read without this line of its script.
pub fn is_field(line: &str) -> bool {
    let Some((name, value)) = line.split_once("< ").and_then(|(_, field)| field.split_once(':'))
    else {
        return false;
    };
    !value.is_empty()
        && !name.contains("HTTP/")
        && !["Content-Length", "Transfer-Encoding"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{is_field, script};
    use crate::random::Random;

    #[test]
    fn a_length_is_that_of_the_body() {
        let mut random = Random::new(1);
        let scripts: Vec<_> = (0..300).map(|_| script(&mut random, "GET")).collect();
        let has = |word: &str| scripts.iter().flatten().any(|line| line.contains(word));
        for word in ["<- 4\\r\\nbody\\r\\n0\\r\\n", ": close", "Content-Length: 9000", "103 Early"]
        {
            assert!(has(word), "{word}");
        }
        assert!(is_field("one< Location: /x") && !is_field("one< Content-Length: 4"));
        assert!(!is_field("one< HTTP/1.1 200 OK") && !is_field("one<- body: x"));
    }

    #[test]
    fn head_gets_no_body() {
        let mut random = Random::new(2);
        let lines = (0..300).flat_map(|_| script(&mut random, "HEAD"));
        assert!(lines.into_iter().all(|line| line.contains("< ") || line.ends_with('<')));
    }
}

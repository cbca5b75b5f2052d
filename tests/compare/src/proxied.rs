//! Requests to a proxy: below the mapped paths and beside them, with all that a proxy passes on,
//! keeps to itself or adds to.

use crate::answers;
use crate::proxies::Maker;
use crate::site::Request;

/// Requests to each site.
const REQUESTS: usize = 24;

impl Maker<'_> {
    /// Requests in order.
    pub fn requests(&mut self) -> Vec<Request> {
        let mut requests: Vec<Request> = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let mut request = match requests.last() {
                Some(last) if self.random.percent(8) => last.clone(),
                _ => self.request(),
            };
            if !requests.is_empty() && request.script.is_empty() {
                request.is_pipelined = self.random.percent(6);
            }
            requests.push(request);
        }
        requests
    }

    fn request(&mut self) -> Request {
        let method = self.one(&METHODS);
        let version = if self.random.percent(6) { "HTTP/1.0" } else { "HTTP/1.1" };
        let mut request = Request {
            method: method.to_owned(),
            target: self.target().into_bytes(),
            version: version.to_owned(),
            fields: vec![("Host".to_owned(), b"@HOST@".to_vec())],
            ..Request::default()
        };
        for _ in 0..self.random.below(4) {
            let (name, value): (&str, &str) = self.random.pick(&FIELDS);
            request.fields.push((name.to_owned(), value.as_bytes().to_vec()));
        }
        if matches!(method, "POST" | "PUT" | "PATCH" | "FOO") || self.random.percent(3) {
            self.body(&mut request);
        }
        if self.random.percent(50) {
            request.script = answers::script(self.random, method);
        }
        request
    }

    fn target(&mut self) -> String {
        let other = self.one(&["/", "/a.txt", "/d/a.txt", "/p/x"]).to_owned();
        let prefix = match self.random.below(12) {
            0 => other,
            _ => self.random.pick(&self.prefixes.clone()).replace(' ', "%20"),
        };
        let rest = if self.random.percent(50) { "x" } else { self.one(&RESTS) };
        let query =
            self.one(&["", "", "", "", "?q=1", "?a+b%20c+%3B", "?", "?%zz", "?sid=y.a", "?x?y#"]);
        let path = format!("{prefix}{rest}{query}");
        if self.is_forward && self.random.percent(50) {
            let host = self.one(&["@one@", "@one@", "@two@", "@gone@", "@ONE@", "@HOST@"]);
            return match host {
                "@ONE@" => format!("HTTP://user:secret@@one@{path}"),
                _ => format!("http://{host}{path}"),
            };
        }
        path
    }

    fn body(&mut self, request: &mut Request) {
        let content: &str = self.random.pick(&["", "abc", "x=1&y=2", "line\r\n"]);
        let content =
            content.repeat([1, 1, 1, 9000].get(self.random.below(4)).copied().unwrap_or(1));
        if request.version == "HTTP/1.0" || self.random.percent(60) {
            let length = content.len().to_string();
            request.fields.push(("Content-Length".to_owned(), length.into_bytes()));
            request.body = content.into_bytes();
            return;
        }
        request.fields.push(("Transfer-Encoding".to_owned(), b"chunked".to_vec()));
        for piece in content.as_bytes().chunks(1 + self.random.below(20_000)) {
            request.body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            request.body.extend_from_slice(piece);
            request.body.extend_from_slice(b"\r\n");
        }
        request
            .body
            .extend_from_slice(self.one(&["0\r\n\r\n", "0\r\nX-Sum: 1\r\n\r\n"]).as_bytes());
    }
}

const METHODS: [&str; 20] = [
    "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "POST",
    "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "FOO", "PROPFIND",
];

/// What follows a mapped path.
const RESTS: [&str; 30] = [
    "",
    "x",
    "x",
    "x",
    "x",
    "/x",
    "x/y",
    "a.txt",
    "deep/x",
    "x%20y",
    "x%2Fy",
    "x%2fy",
    "%41",
    "x;p=1",
    ";p=1/x",
    "x;sid=y.b",
    "../x",
    "./x",
    "%2e%2e/x",
    "//x",
    "x%3Fy",
    "x%23y",
    "x%25y",
    "x%00y",
    "x%0ay",
    "x%c3%a4",
    "x+y",
    "x&y='\"",
    "x%5cy",
    "x%7Ey:@!$*(),=",
];

/// Fields of requests.
const FIELDS: [(&str, &str); 61] = [
    ("Connection", "close"),
    ("Connection", "keep-alive"),
    ("Connection", "X-A"),
    ("Connection", "X-A, close"),
    ("Connection", "Upgrade"),
    ("Connection", "Host, Cookie"),
    ("Connection", "X-Forwarded-For"),
    ("Keep-Alive", "timeout=5"),
    ("Proxy-Connection", "keep-alive"),
    ("Upgrade", "h2c"),
    ("Upgrade", "WebSocket"),
    ("TE", "trailers"),
    ("Trailer", "X-Sum"),
    ("Max-Forwards", "0"),
    ("Max-Forwards", "1"),
    ("Max-Forwards", "7"),
    ("Max-Forwards", "x"),
    ("Via", "1.0 before"),
    ("X-Forwarded-For", "8.8.8.8"),
    ("X-Forwarded-For", ""),
    ("X-Forwarded-Host", "evil.test"),
    ("X-Forwarded-Server", "evil.test"),
    ("X-Forwarded-Proto", "https"),
    ("Forwarded", "for=8.8.8.8"),
    ("Cookie", "a=1; b=2"),
    ("Cookie", "SID=x.b"),
    ("Cookie", "SID=x.a; c=1"),
    ("Cookie", "SID=x-b"),
    ("Cookie", "xSID=x.b; SID=.b"),
    ("Authorization", "Basic YWxpY2U6dGVzdA=="),
    ("Proxy-Authorization", "Basic YWxpY2U6dGVzdA=="),
    ("Proxy", "http://evil.test/"),
    ("Accept", "text/html"),
    ("Accept-Encoding", "gzip"),
    ("Accept-Encoding", "identity"),
    ("If-None-Match", "\"tag\""),
    ("If-None-Match", "*"),
    ("If-Modified-Since", "Sat, 01 Jan 2022 00:00:00 GMT"),
    ("If-Match", "\"other\""),
    ("If-Range", "\"tag\""),
    ("Range", "bytes=0-1"),
    ("Range", "bytes=1-2,3-3"),
    ("Range", "bytes=9999-"),
    ("Referer", "http://@HOST@/a.txt"),
    ("User-Agent", "agent"),
    ("Content-Type", "text/x-own"),
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Content-Encoding", "x"),
    ("X-A", "1"),
    ("X-A", "p"),
    ("X-A", ""),
    ("X-A", "  blanks \t "),
    ("X_A", "2"),
    ("X.A", "3"),
    ("x-a", "4"),
    ("Cache-Control", "no-cache"),
    ("Pragma", "no-cache"),
    ("Date", "Sat, 01 Jan 2022 00:00:00 GMT"),
    ("From", "a@example.test"),
    ("Warning", "199 x \"y\""),
    ("Content-Length", "0"),
];

//! Random expressions (ap_expr).

use crate::choice::{Choice, PATTERNS};

const VARIABLES: &[&str] = &[
    "REQUEST_URI",
    "QUERY_STRING",
    "HTTP_HOST",
    "HTTP_USER_AGENT",
    "REQUEST_METHOD",
    "PATH_INFO",
    "REQUEST_FILENAME",
    "SCRIPT_FILENAME",
    "REMOTE_ADDR",
    "REMOTE_USER",
    "THE_REQUEST",
    "HTTPS",
    "IS_SUBREQ",
    "DOCUMENT_ROOT",
    "CONTEXT_PREFIX",
    "CONTEXT_DOCUMENT_ROOT",
    "SERVER_NAME",
    "HANDLER",
    "CONTENT_TYPE",
    "REQUEST_STATUS",
    "SERVER_PROTOCOL",
    "HTTP:X-Test",
    "ENV:V",
    "ENV:bad",
    "req:User-Agent",
    "resp:Content-Type",
    "AUTH_TYPE",
    "REQUEST_SCHEME",
    "HTTP_REFERER",
    "HTTP_ACCEPT",
    "HTTP_COOKIE",
    "DOCUMENT_URI",
];

const FUNCTIONS: &[&str] = &[
    "tolower",
    "toupper",
    "escape",
    "unescape",
    "base64",
    "unbase64",
    "md5",
    "sha1",
    "reqenv",
    "http",
    "req_novary",
    "note",
    "ldap",
];

const LITERALS: [&str; 16] = [
    "",
    "a",
    "GET",
    "/a.txt",
    "/d/",
    "x",
    "evil",
    "200",
    "0",
    "7",
    "@SITE@/htdocs/a.txt",
    "@SITE@/htdocs/d",
    "127.0.0.1",
    "text/plain",
    "%41",
    "*.txt",
];

impl Choice {
    /// A whole boolean expression, without quotes around it.
    pub fn expression(&mut self, depth: usize) -> String {
        let inner = depth.saturating_sub(1);
        match self.random.below(if depth == 0 { 9 } else { 14 }) {
            0 => self.word(&["true", "true", "true", "false"]),
            1 => self.likely(),
            2 => {
                let sign = self.one(&["==", "!=", "<", ">=", "-eq", "-lt", "-ge", "-ne"]);
                format!("{} {sign} {}", self.operand(1), self.operand(1))
            }
            3 | 4 => {
                let sign = self.one(&["=~", "=~", "=~", "!~"]);
                let pattern = self.one(&PATTERNS);
                let flags = self.one(&["", "", "i"]);
                let mark = if pattern.contains('/') { "#" } else { "/" };
                let open = if mark == "#" { "m#" } else { "/" };
                format!("{} {sign} {open}{pattern}{mark}{flags}", self.operand(1))
            }
            5 => {
                let test = self.one(&["-n", "-z", "-T"]);
                format!("{test} {}", self.operand(1))
            }
            6 => self.file_test(),
            7 => {
                let sign = self.one(&["-strmatch", "-strcmatch", "-fnmatch"]);
                let glob = self.one(&["*", "/d*", "*.txt", "/*/*", "?", "[a-z]*", "/*"]);
                format!("{} {sign} '{glob}'", self.operand(1))
            }
            8 => {
                let test = self.one(&["-R '127.0.0.1'", "-R '127.0.0.0/8'", "-R '10.0.0.0/8'"]);
                if self.random.percent(50) {
                    return test.to_owned();
                }
                let words = self.one(&["{'GET', 'HEAD'}", "{'a', 'b', '/a.txt'}", "{'POST'}"]);
                format!("{} in {words}", self.operand(1))
            }
            9 => format!("! {}", self.expression(inner)),
            10 => format!("!({})", self.expression(inner)),
            11 => format!("{} && {}", self.expression(inner), self.expression(inner)),
            12 => format!("({}) || {}", self.expression(inner), self.expression(inner)),
            _ => format!("({})", self.expression(inner)),
        }
    }

    /// A condition that is true for some requests and false for others.
    fn likely(&mut self) -> String {
        self.word(&[
            "%{REQUEST_METHOD} == 'GET'",
            "%{REQUEST_METHOD} in {'GET', 'POST'}",
            r"%{REQUEST_URI} =~ m#\.(txt|html)$#",
            "%{REQUEST_URI} -strmatch '*/'",
            "%{REQUEST_FILENAME} -strmatch '*.*'",
            "-n %{QUERY_STRING}",
            "-z %{QUERY_STRING}",
            "-n %{HTTP_ACCEPT}",
            "-f %{REQUEST_FILENAME}",
            "-d %{REQUEST_FILENAME}",
            "%{REQUEST_STATUS} -eq 200",
            "%{HTTP_HOST} =~ /test/",
            "-T reqenv('V')",
        ])
    }

    fn file_test(&mut self) -> String {
        // A recursive look-up crashes Apache where it has no guard: few of these.
        let test = match self.random.below(20) {
            0 => self.one(&["-F", "-U", "-A"]),
            _ => self.one(&["-f", "-d", "-e", "-s", "-L", "-h", "-x"]),
        };
        let of = match self.random.below(6) {
            0 => "%{REQUEST_FILENAME}".to_owned(),
            1 => "%{REQUEST_URI}".to_owned(),
            2 => "%{DOCUMENT_ROOT}%{REQUEST_URI}".to_owned(),
            3 => self.path(),
            _ => format!("@SITE@/htdocs{}", self.path()),
        };
        let of = of.replace(['\\', '"', '\''], "");
        format!("{test} '{of}'")
    }

    /// A word of an expression: a variable, a function, a literal, or several of them.
    fn operand(&mut self, depth: usize) -> String {
        match self.random.below(if depth == 0 { 8 } else { 11 }) {
            0..=4 => format!("%{{{}}}", self.one(VARIABLES)),
            5..=7 => format!("'{}'", self.one(&LITERALS)),
            8 => format!("{}({})", self.one(FUNCTIONS), self.operand(depth - 1)),
            9 => format!("'{}%{{{}}}'", self.one(&["a", "/", "-"]), self.one(VARIABLES)),
            _ => format!("{} . {}", self.operand(depth - 1), self.operand(depth - 1)),
        }
    }

    /// A text with variables, for `expr=` values.
    pub fn template(&mut self) -> String {
        let mut text = self.word(&["", "v", "a b", "-"]);
        for _ in 0..1 + self.random.below(2) {
            let variable = self.one(VARIABLES);
            let inner = match self.random.below(5) {
                0 => format!("%{{tolower:%{{{variable}}}}}"),
                1 => format!("%{{{}:x}}", self.one(&["toupper", "base64", "sha1", "escape"])),
                _ => format!("%{{{variable}}}"),
            };
            text.push_str(&inner);
            text.push_str(self.one(&["", "-", " "]));
        }
        text
    }
}

//! Formats a response as lines of a test file, with varying parts replaced.
//!
//! The following is replaced, and nothing else: `Date` and `Server` (`*`), unless a backend has
//! sent them; the length of compressed bodies and of the server's own error pages (`*`); the folder
//! and the ports of the run; the boundary of multipart bodies; the order inside `Allow`; dates in
//! log lines; and the file's own masks.

use std::io::Read;
use std::time::SystemTime;

use regex::Regex;

use crate::answer::{Answer, Head};
use crate::escape::escape;
use crate::place::Place;

/// Longer bodies are shown as a hash.
const BODY_SHOWN_BYTES: usize = 6 * 1024;
/// The beginning of Apache's own pages; such error pages are not compared.
const CANNED: &[u8] = b"<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
    \"http://www.w3.org/TR/html4/strict.dtd\">\n<html><head>\n<title>";
/// A mask with this result deletes the whole line of a body or a log.
const DELETED: &str = "<deleted>";
const BOUNDARY: &str = "BOUNDARY";

/// Times in access logs; times, processes and client ports in error logs.
const BUILT_IN_MASKS: [(&str, &str); 3] = [
    (r"\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}(:[0-9]{2}){3} [+-][0-9]{4}\]", "[TIME]"),
    (
        concat!(
            r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9 ]{2} [0-9:.]+ [0-9]{4}\] ",
            r"(\[[a-z0-9_.]*:[a-z0-9]+\]) \[pid [0-9]+(:tid [0-9]+)?\]"
        ),
        "[TIME] $1",
    ),
    (r"\[client ([0-9a-f.:\[\]]+):[0-9]+\]", "[client $1:PORT]"),
];

/// Formats responses, outputs and logs as lines.
pub struct Renderer<'a> {
    place: &'a Place,
    masks: Vec<(Regex, String)>,
}

impl<'a> Renderer<'a> {
    /// Returns a renderer with the masks of a test file.
    pub fn new(place: &'a Place, masks: &[(String, String)]) -> Result<Self, String> {
        let compile = |(pattern, with): &(String, String)| -> Result<_, String> {
            Ok((Regex::new(pattern).map_err(|e| e.to_string())?, with.clone()))
        };
        let mut compiled = Vec::new();
        for (pattern, with) in BUILT_IN_MASKS {
            compiled.push(compile(&(pattern.to_string(), with.to_string()))?);
        }
        for mask in masks {
            compiled.push(compile(mask)?);
        }
        Ok(Renderer { place, masks: compiled })
    }

    /// Formats heads, body and trailers of a response.
    pub fn answer(&self, answer: &Answer) -> Vec<String> {
        let mut lines = Vec::new();
        for head in &answer.interim {
            self.head(head, &[], &mut lines);
        }
        let mut body = answer.body.clone();
        let mut mark = None;
        if let Some(head) = &answer.head {
            let mut replaced = self.own_fields(head);
            let canned = is_canned(head, &body);
            if canned {
                replaced.push(("content-length", "*"));
                mark = (!body.is_empty()).then(|| "body canned".to_owned());
                body.clear();
            }
            let coding = head.field("Content-Encoding").unwrap_or_default();
            let coding = ["gzip", "br"].into_iter().find(|name| coding.ends_with(name.as_bytes()));
            if let Some(coding) = coding
                && let Some(text) = uncoded(coding, &body)
            {
                replaced.push(("content-length", "*"));
                mark = Some(format!("body {coding}"));
                body = text;
            }
            if coding.is_some() && body.is_empty() {
                replaced.push(("content-length", "*"));
            }
            let boundary = boundary(head);
            let mut head = head.clone();
            if let Some(boundary) = &boundary {
                body = replace(&body, boundary, BOUNDARY.as_bytes());
                // Apache's boundary is a number without leading zeros, so lengths vary.
                if head.field("Content-Length") == Some(answer.body.len().to_string().as_bytes()) {
                    head.set("Content-Length", body.len().to_string().into_bytes());
                }
                for (_, value) in &mut head.fields {
                    *value = replace(value, boundary, BOUNDARY.as_bytes());
                }
            }
            self.head(&head, &replaced, &mut lines);
        }
        if answer.head.is_none() && body.starts_with(CANNED) {
            mark = Some("body canned".to_owned());
            body.clear();
        }
        lines.extend(mark);
        self.body(&body, &mut lines);
        for (name, value) in &answer.trailers {
            lines.push(self.mask(&format!("= trailer {name}: {}", escape(value))));
        }
        if let Some(what) = &answer.broken {
            lines.push(format!("= broken: {what}"));
        }
        lines
    }

    /// The fields of every response that are not compared, unless a backend has sent them.
    fn own_fields(&self, head: &Head) -> Vec<(&'static str, &'static str)> {
        let passed_on = |name: &str| {
            let value = head.field(name).map(String::from_utf8_lossy).unwrap_or_default();
            !self.place.backends.is_empty()
                && match name {
                    "date" => !value.contains(&this_year()),
                    _ => !["Apache", "Tamarack"].iter().any(|own| value.starts_with(own)),
                }
        };
        [("date", "*"), ("server", "*")].into_iter().filter(|(name, _)| !passed_on(name)).collect()
    }

    fn head(&self, head: &Head, replaced: &[(&str, &str)], lines: &mut Vec<String>) {
        lines.push(self.mask(&format!("< {}", escape(&head.status_line))));
        for (name, value) in &head.fields {
            let with = replaced.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            lines.push(match with {
                Some((_, with)) => format!("< {name}: {with}"),
                None if name.eq_ignore_ascii_case("allow") => {
                    self.mask(&format!("< {name}: {}", sorted(value)))
                }
                None if value.is_empty() => format!("< {name}:"),
                None => self.mask(&format!("< {name}: {}", escape(value))),
            });
        }
        lines.push("<".to_owned());
    }

    /// Formats a body: as text, or as its length and hash.
    pub fn body(&self, body: &[u8], lines: &mut Vec<String>) {
        let odd = body.iter().filter(|&&byte| !(9..127).contains(&byte)).count();
        if body.len() > BODY_SHOWN_BYTES || odd * 4 > body.len() {
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body);
            let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            lines.push(format!("body length={} sha256={hex}", body.len()));
            return;
        }
        self.text(body, lines);
    }

    /// Formats text as `| ` lines.
    pub fn text(&self, text: &[u8], lines: &mut Vec<String>) {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let shown = match line.strip_suffix(b"\n") {
                Some(b"") => "|".to_owned(),
                Some(line) => format!("| {}", escape(line)),
                None => format!("|- {}", escape(line)),
            };
            let shown = self.mask(&shown);
            if !shown.contains(DELETED) {
                lines.push(shown);
            }
        }
    }

    /// Formats a command's output and exit status; its name before a message is removed.
    pub fn output(&self, output: &std::process::Output, path: &str) -> Vec<String> {
        let program = path.rsplit('/').next().unwrap_or(path);
        let code = output.status.code().map_or("signal".to_owned(), |code| code.to_string());
        let mut lines = vec![format!("exit {code}")];
        for (word, bytes) in [("out", &output.stdout), ("err", &output.stderr)] {
            if !bytes.is_empty() {
                lines.push(word.to_owned());
                let text = String::from_utf8_lossy(bytes);
                let mut shown = Vec::new();
                self.text(text.as_bytes(), &mut shown);
                let names = [format!("| {program}: "), format!(": {program}: ")];
                lines.extend(shown.into_iter().map(|line| {
                    let line = line.replace(path, "PROGRAM");
                    let line = line.replacen(&names[0], "| ", 1);
                    line.replacen(&names[1], ": ", 1)
                }));
            }
        }
        lines
    }

    /// Replaces what differs from run to run.
    pub fn mask(&self, line: &str) -> String {
        let mut line = self.place.unfill(line);
        for (pattern, with) in &self.masks {
            line = pattern.replace_all(&line, with.as_str()).into_owned();
        }
        line
    }
}

/// Whether this is one of the server's own pages, or its head: their wording and length may differ.
fn is_canned(head: &Head, body: &[u8]) -> bool {
    let html = head.field("Content-Type").is_some_and(|kind| kind.starts_with(b"text/html"));
    let unchanged = head.status() < 300 || head.field("Last-Modified").is_some();
    html && !unchanged && body.is_empty() || body.starts_with(CANNED) && head.status() >= 300
}

/// The year as in dates of HTTP; for some hours at its ends that of the year beside it.
fn this_year() -> String {
    const YEAR_S: f64 = 365.2425 * 86_400.0;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!(" {} ", 1970 + (now.as_secs_f64() / YEAR_S) as u64)
}

/// Sorts the methods of `Allow`: Apache's order is that of a hash table with a random seed.
fn sorted(value: &[u8]) -> String {
    let text = escape(value);
    let mut methods: Vec<&str> = text.split(',').map(str::trim).collect();
    methods.sort_unstable();
    methods.join(",")
}

fn uncoded(coding: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let read = match coding {
        "br" => brotli::Decompressor::new(body, 4096).read_to_end(&mut text),
        _ => flate2::read::MultiGzDecoder::new(body).read_to_end(&mut text),
    };
    (read.is_ok() && !body.is_empty()).then_some(text)
}

fn boundary(head: &Head) -> Option<Vec<u8>> {
    let kind = head.field("Content-Type").filter(|kind| kind.starts_with(b"multipart/"))?;
    let at = kind.windows(9).position(|window| window == b"boundary=")?;
    kind.get(at + 9..).map(<[u8]>::to_vec)
}

fn replace(bytes: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !what.is_empty()
        && let Some(at) = rest.windows(what.len()).position(|window| window == what)
    {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        out.extend_from_slice(with);
        rest = rest.get(at + what.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

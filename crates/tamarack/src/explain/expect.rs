//! `--expect` and `--record`: files of expectations, one per line.
//!
//! A line such as `GET http://example.org/x → 301 /y` has the method, the URL or path, the status,
//! and optionally the target: the `Location`, or the file. Options that change the request may
//! follow the URL: `POST http://example.org/x --from 192.0.2.1 -H 'Accept: text/html' → 403`. `->`
//! may replace the arrow. Empty lines and those that begin with `#` are comments.

use std::fmt::Write as _;
use std::path::{Path, absolute};

use clap::Parser;

use super::BODY_BYTES;
use super::options::Options;
use super::report::Report;

/// An expectation.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The line in the file, from 1.
    pub line: usize,
    /// The method.
    pub method: String,
    /// The URL, or a path of the main server.
    pub url: String,
    /// The options of the request: those of the command line, and its own.
    pub options: Options,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The status.
    pub status: u16,
    /// The `Location` or the file.
    pub target: Option<String>,
}

/// Reads a file's text, and the bodies that it names. `common` are the options of the command line.
///
/// # Errors
/// The first line that is not an expectation.
pub fn parse(text: &str, common: &Options) -> Result<Vec<Expectation>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(at, line): (usize, &str)| {
        read(at, line, common).map_err(|why| format!("line {at}: '{line}': {why}"))
    };
    lines.map(read).collect()
}

const FORM: &str = "expected METHOD URL [OPTIONS] → STATUS [TARGET]";

fn read(line: usize, text: &str, common: &Options) -> Result<Expectation, String> {
    let (words, answer) = request(text).ok_or(FORM)?;
    let [method, url, own @ ..] = words.as_slice() else { return Err(FORM.to_owned()) };
    let answer = answer.trim();
    let (status, target) = answer.split_once(' ').unwrap_or((answer, ""));
    let status = status.parse().ok().filter(|status| (100..=999).contains(status)).ok_or(FORM)?;
    let target = Some(target.trim().to_owned()).filter(|target| !target.is_empty());
    let options = merged(common, url, own)?;
    let read_body = |file: &Path| {
        regular::read(file, BODY_BYTES).map_err(|error| format!("{}: {error}", file.display()))
    };
    let body = options.body.as_deref().map(read_body).transpose()?;
    let (method, url) = (method.clone(), url.clone());
    Ok(Expectation { line, method, url, options, body, status, target })
}

/// The options of a line, over those of the command line.
fn merged(common: &Options, url: &str, own: &[String]) -> Result<Options, String> {
    let words = ["explain", url].into_iter().chain(own.iter().map(String::as_str));
    let read = Options::try_parse_from(words).map_err(|wrong| {
        let text = wrong.to_string();
        text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })?;
    refuse_others(&read)?;
    let has = |name: &str| own.iter().any(|word| word.split('=').next() == Some(name));
    Ok(Options {
        headers: [common.headers.as_slice(), &read.headers].concat(),
        from: if has("--from") { read.from } else { common.from },
        http: if has("--http") { read.http } else { common.http.clone() },
        to: read.to.or(common.to),
        tls: read.tls.or_else(|| common.tls.clone()),
        user: read.user.or_else(|| common.user.clone()),
        body: read.body,
        ..common.clone()
    })
}

/// Refuses options of a line that do not change its request: they would be without effect.
fn refuse_others(line: &Options) -> Result<(), String> {
    // All fields are named, so that a new option has to be decided about.
    #[rustfmt::skip]
    let Options {
        url: _, headers: _, from: _, to: _, tls: _, http: _, user: _, body: _,
        method, config, server_root, defines, why, diff, expect, record, json, md, all, as_server,
        quiet, verbose,
    } = line;
    if method.is_some() {
        return Err("the method is the first word of the line, without -X".to_owned());
    }
    let others = [
        ("--config", config.is_some()),
        ("--server-root", server_root.is_some()),
        ("--define", !defines.is_empty()),
        ("--why", why.is_some()),
        ("--diff", diff.is_some()),
        ("--expect", expect.is_some()),
        ("--record", record.is_some()),
        ("--json", *json),
        ("--md", *md),
        ("--all", *all),
        ("--as", as_server.is_some()),
        ("--quiet", *quiet),
        ("--verbose", *verbose),
    ];
    match others.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(format!("{name} is for the command line, not for one request")),
        None => Ok(()),
    }
}

/// The words before the arrow, and the text behind it. Single quotes and backslashes quote as in a
/// shell.
fn request(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    loop {
        let arrow = ["→ ", "-> "].into_iter().find_map(|arrow| rest.strip_prefix(arrow));
        if let Some(answer) = arrow {
            return Some((words, answer));
        }
        let (mut word, mut is_quoted) = (String::new(), false);
        let mut letters = rest.char_indices();
        let end = loop {
            match letters.next() {
                Some((_, '\'')) => is_quoted = !is_quoted,
                Some((_, '\\')) if !is_quoted => word.push(letters.next()?.1),
                Some((at, ' ')) if !is_quoted => break at,
                Some((_, letter)) => word.push(letter),
                None => return None,
            }
        };
        words.push(word);
        rest = rest.get(end..)?.trim_start();
    }
}

/// A word in quotes, if it needs them.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/=,@+[]".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The options of a command line that change the request.
fn own_options(options: &Options) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), quoted(&value)]));
    };
    options.headers.iter().for_each(|field| add("-H", Some(field.clone())));
    add("--from", Some(options.from.to_string()).filter(|from| from != "127.0.0.1"));
    add("--to", options.to.map(|to| to.to_string()));
    add("--http", Some(options.http.clone()).filter(|version| version != "1.1"));
    add("--user", options.user.clone());
    let body = options.body.as_ref().map(|file| absolute(file).unwrap_or_else(|_| file.clone()));
    add("--body", body.map(|file| file.to_string_lossy().into_owned()));
    words.extend(options.tls.as_ref().map(|version| format!("--tls={version}")));
    words
}

/// The target of an answer: where it redirects to, or the file that it sends.
fn target(report: &Report) -> Option<&str> {
    let file = report.file.as_deref().filter(|_| report.status < 300);
    report.location.as_deref().or(file)
}

impl Expectation {
    /// Whether an answer is as expected. An expected path also fits a URL of that path.
    pub fn fits(&self, report: &Report) -> bool {
        let Some(expected) = self.target.as_deref() else { return report.status == self.status };
        let path_of = |url: &str| -> Option<String> {
            let rest = url.split_once("://")?.1;
            Some(rest.get(rest.find('/')?..)?.to_owned())
        };
        let fits = |got: &str| got == expected || path_of(got).as_deref() == Some(expected);
        report.status == self.status && target(report).is_some_and(fits)
    }
}

/// The line that an answer fulfils, to a request with these options.
pub fn line(report: &Report, options: &Options) -> String {
    let mut out = format!("{} {}", report.method, quoted_url(&report.url));
    for word in own_options(options) {
        let _ = write!(out, " {word}");
    }
    out.push_str(" → ");
    out.push_str(&answer(report));
    out
}

/// A URL keeps its letters: it has no blank, but may have quotes.
fn quoted_url(url: &str) -> String {
    url.replace('\\', r"\\").replace('\'', r"\'")
}

/// The status and target of an answer.
fn answer(report: &Report) -> String {
    let mut out = report.status.to_string();
    if let Some(target) = target(report) {
        let _ = write!(out, " {target}");
    }
    out
}

/// The results in the Test Anything Protocol (TAP 13).
#[derive(Default)]
pub struct Tap {
    out: String,
    count: usize,
    failed: usize,
}

impl Tap {
    /// Adds the result of an expectation: the line of the answer, or why there is none.
    pub fn add(&mut self, wanted: &Expectation, got: Result<&Report, &str>) {
        self.count += 1;
        let target =
            wanted.target.as_deref().map(|target| format!(" {target}")).unwrap_or_default();
        let title = format!("{} {} → {}{target}", wanted.method, wanted.url, wanted.status);
        let (number, is_good) = (self.count, got.is_ok_and(|report| wanted.fits(report)));
        if is_good {
            let _ = writeln!(self.out, "ok {number} - {title}");
            return;
        }
        self.failed += 1;
        let got = match got {
            Ok(report) => format!("{} {} → {}", report.method, report.url, answer(report)),
            Err(why) => why.to_owned(),
        };
        let _ = writeln!(
            self.out,
            "not ok {number} - {title}\n  ---\n  line: {}\n  got: '{}'\n  ...",
            wanted.line,
            got.replace('\'', "''")
        );
    }

    /// The whole output, and whether all expectations were fulfilled.
    pub fn finish(self) -> (String, bool) {
        (format!("TAP version 13\n1..{}\n{}", self.count, self.out), self.failed == 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Result<Vec<Expectation>, String> {
        parse(text, &Options::try_parse_from(["explain", "/", "--user", "joe"]).unwrap())
    }

    #[test]
    fn lines_have_a_request_and_an_answer() {
        let text = "# moved\n\nGET /x → 301 /y\nHEAD http://a/ -> 200\n";
        let read = read_all(text).unwrap();
        assert_eq!((read[0].line, read[0].status), (3, 301));
        assert_eq!(read[0].target.as_deref(), Some("/y"));
        assert_eq!((read[1].url.as_str(), read[1].target.clone()), ("http://a/", None));
    }

    #[test]
    fn other_lines_are_refused_by_number() {
        for line in [
            "GET /x",
            "GET /x → soon",
            "→ 200",
            "GET /x → 99",
            "GET /x --from a → 200",
            "a 'b → 200",
        ] {
            assert!(read_all(&format!("\n{line}")).unwrap_err().starts_with("line 2"), "{line}");
        }
    }

    #[test]
    fn options_that_change_no_request_are_refused() {
        for (option, said) in [
            ("--json", "--json is for the command line"),
            ("-q", "--quiet is"),
            ("-v", "--verbose is"),
            ("--config /x", "--config is"),
            ("-f /x", "--config is"),
            ("-D X", "--define is"),
            ("--diff /x", "--diff is"),
            ("--as apache", "--as is"),
            ("-X POST", "the method is the first word"),
        ] {
            let why = read_all(&format!("GET /x {option} → 200")).unwrap_err();
            assert!(why.starts_with("line 1: ") && why.contains(said), "{option}: {why}");
        }
    }

    #[test]
    fn options_are_read_as_they_are_written() {
        let words =
            ["explain", "/", "-H", "X: it's → y", "--from", "10.0.0.1", "--tls", "--http", "1.0"];
        let options = Options::try_parse_from(words).unwrap();
        let text = format!("GET /a\\'b {} → 200 /x", own_options(&options).join(" "));
        let read = read_all(&text).unwrap();
        assert_eq!((read[0].url.as_str(), read[0].target.as_deref()), ("/a'b", Some("/x")));
        let own = &read[0].options;
        assert_eq!((&own.headers, own.from), (&options.headers, options.from));
        assert_eq!((own.tls.as_deref(), own.http.as_str()), (Some("1.3"), "1.0"));
        assert_eq!(own.user.as_deref(), Some("joe"));
    }
}

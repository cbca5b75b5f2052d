//! `--expect` and `--record`: files of expectations, one per line.
//!
//! A line such as `GET http://example.org/x → 301 /y` has the method, the URL or path, the status,
//! and optionally the target: the `Location`, or the file. `->` may replace the arrow. Empty lines
//! and those that begin with `#` are comments.

use std::fmt::Write as _;

use super::report::Report;

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The line in the file, from 1.
    pub line: usize,
    /// The method.
    pub method: String,
    /// The URL, or a path of the main server.
    pub url: String,
    /// The status.
    pub status: u16,
    /// The `Location` or the file.
    pub target: Option<String>,
}

/// Reads a file's text.
///
/// # Errors
/// The first line that is not an expectation.
pub fn parse(text: &str) -> Result<Vec<Expectation>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| read(at, line).ok_or_else(|| wrong(at, line))).collect()
}

fn wrong(at: usize, line: &str) -> String {
    format!("line {at}: '{line}': expected METHOD URL → STATUS [TARGET]")
}

fn read(line: usize, text: &str) -> Option<Expectation> {
    let (request, answer) = text.split_once(" → ").or_else(|| text.split_once(" -> "))?;
    let (method, url) = request.trim().split_once(' ')?;
    let answer = answer.trim();
    let (status, target) = answer.split_once(' ').unwrap_or((answer, ""));
    let status = status.parse().ok().filter(|status| (100..=999).contains(status))?;
    let target = Some(target.trim().to_owned()).filter(|target| !target.is_empty());
    Some(Expectation {
        line,
        method: method.to_owned(),
        url: url.trim().to_owned(),
        status,
        target,
    })
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

/// The line that an answer fulfils.
pub fn line(report: &Report) -> String {
    let mut out = format!("{} {} → {}", report.method, report.url, report.status);
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
            Ok(report) => line(report),
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

    #[test]
    fn lines_have_a_request_and_an_answer() {
        let text = "# moved\n\nGET /x → 301 /y\nHEAD http://a/ -> 200\n";
        let read = parse(text).unwrap();
        assert_eq!((read[0].line, read[0].status), (3, 301));
        assert_eq!(read[0].target.as_deref(), Some("/y"));
        assert_eq!((read[1].url.as_str(), read[1].target.clone()), ("http://a/", None));
    }

    #[test]
    fn other_lines_are_refused_by_number() {
        for line in ["GET /x", "GET /x → soon", "→ 200", "GET /x → 99"] {
            assert!(parse(&format!("\n{line}")).unwrap_err().starts_with("line 2"), "{line}");
        }
    }
}

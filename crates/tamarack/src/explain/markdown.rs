//! A report as Markdown, for tickets and reviews.

use std::fmt::Write as _;

use super::places::Places;
use super::report::Report;
use super::text::{self, Style};

/// Writes a report: the verdict as a list, and the rest as a block of code.
pub fn write(report: &Report, places: &Places, style: Style) -> String {
    let whole = text::write(report, places, Style { colour: false, quiet: false, ..style });
    let mut out = format!("### {} {}\n\n", report.method, code(&report.url));
    let mut lines = whole.lines().peekable();
    let verdict = lines.next().unwrap_or_default();
    let (status, target) = verdict.split_once("  ").unwrap_or((verdict, ""));
    let target = if target.is_empty() { String::new() } else { format!(" {}", code(target)) };
    let _ = writeln!(out, "**{status}**{target}\n");
    let is_of_verdict = |line: &&str| !line.starts_with(['├', '└']);
    let mut items: Vec<(String, String)> = Vec::new();
    while let Some(line) = lines.next_if(is_of_verdict) {
        let (label, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (label, items.last_mut()) {
            ("", Some((_, text))) => {
                text.push(' ');
                text.push_str(rest.trim());
            }
            _ => items.push((label.to_owned(), rest.trim().to_owned())),
        }
    }
    for (label, rest) in items {
        let _ = writeln!(out, "- {label}: {}", code(&words(&rest)));
    }
    let rest: Vec<&str> = lines.collect();
    let rest = rest.join("\n");
    let fence = "`".repeat(longest_run(&rest).max(2) + 1);
    let _ = writeln!(out, "\n{fence}text\n{rest}\n{fence}");
    out
}

/// A text with single blanks.
fn words(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as code in a line, whatever it contains.
fn code(text: &str) -> String {
    match longest_run(text) {
        0 => format!("`{text}`"),
        run => {
            let fence = "`".repeat(run + 1);
            format!("{fence} {text} {fence}")
        }
    }
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn backticks_do_not_end_code() {
        assert_eq!(code("/a"), "`/a`");
        assert_eq!(code("/a`b"), "`` /a`b ``");
    }
}

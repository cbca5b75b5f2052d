//! Expressions for URL paths that no path matches: paths begin with a slash.

use std::path::Path;

use super::Finding;
use super::sections::{bare, each};
use crate::explain::places::Directive;

/// With these begin the URLs that clients ask a proxy for, and `OPTIONS *`.
const OTHER_STARTS: [&str; 3] = ["http", "ftp", "*"];

/// The text with which all matches of an expression begin, and the rest of the expression. `None`
/// if a match may begin anywhere, or with different texts.
pub fn literal(pattern: &str) -> Option<(String, &str)> {
    let mut rest = pattern.strip_prefix('^').filter(|rest| !rest.contains('|'))?;
    let mut literal = String::new();
    while let Some(first) = rest.chars().next() {
        let (letter, after) = match first {
            '\\' => {
                let letter = rest.chars().nth(1).filter(char::is_ascii_punctuation);
                let Some(letter) = letter else { break };
                (letter, rest.get(2..).unwrap_or_default())
            }
            '.' | '[' | '(' | '^' | '$' | '*' | '+' | '?' | '{' => break,
            letter => (letter, rest.get(letter.len_utf8()..).unwrap_or_default()),
        };
        if after.starts_with(['?', '*', '{', '+']) {
            break;
        }
        literal.push(letter);
        rest = after;
    }
    (!literal.is_empty()).then_some((literal, rest))
}

/// Whether an expression matches no URL path, because its matches do not begin with a slash.
pub fn lacks_slash(pattern: &str) -> bool {
    let found = literal(pattern).map(|(text, _)| text.to_ascii_lowercase());
    found.is_some_and(|text| {
        !text.starts_with('/') && !OTHER_STARTS.iter().any(|start| text.starts_with(start))
    })
}

/// The expression of a section: `<LocationMatch "^/a">`, `<Location ~ "^/a">`.
pub fn of_section(one: &Directive) -> Option<&str> {
    let args = one.args.trim();
    let is_match = one.name.to_ascii_lowercase().ends_with("match");
    let pattern = if is_match { Some(args) } else { args.strip_prefix('~') };
    pattern.map(bare)
}

/// The folder in which everything lies that an expression for file system paths, or a path with
/// wildcards, matches.
pub fn folder(one: &Directive) -> Option<String> {
    let start = match of_section(one) {
        Some(pattern) => literal(pattern)?.0,
        None => {
            let path = bare(&one.args);
            let end = path.find(['*', '?', '[', '\\']).unwrap_or(path.len());
            path.get(..end)?.to_owned()
        }
    };
    let end = start.rfind('/').filter(|_| start.starts_with('/'))?;
    start.get(..=end).map(str::to_owned)
}

/// Whether there is certainly no such file or folder.
pub fn is_missing(path: &str) -> bool {
    matches!(Path::new(path).try_exists(), Ok(false))
}

/// Checks the redirects by expressions.
pub fn check(all: &[Directive], found: &mut Vec<Finding>) {
    each(all, &mut |one| {
        if one.name.eq_ignore_ascii_case("RedirectMatch") {
            found.extend(redirect(one));
        }
    });
}

fn redirect(one: &Directive) -> Option<Finding> {
    let words: Vec<&str> = one.args.split_ascii_whitespace().map(bare).collect();
    let (status, pattern) = match words.as_slice() {
        [status, pattern] if is_status(status) => (*status, *pattern),
        [status, pattern, _] => (*status, *pattern),
        [pattern, ..] => ("", *pattern),
        [] => return None,
    };
    let denies = status.eq_ignore_ascii_case("gone") || status.starts_with(['4', '5']);
    lacks_slash(pattern).then(|| {
        let message =
            format!("RedirectMatch '{pattern}' can't match: a URL path begins with a slash");
        Finding::hint(one.span, message, "begin the expression with ^/").severe_if(denies)
    })
}

fn is_status(word: &str) -> bool {
    word.eq_ignore_ascii_case("gone") || word.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive(name: &str, args: &str) -> Directive {
        let (name, args) = (name.to_owned(), args.to_owned());
        Directive { name, args, span: conf::Span::default(), inside: None }
    }

    #[test]
    fn paths_begin_with_a_slash() {
        for pattern in ["^admin", r"^\.git", "^a$", "^admin(/.*)?"] {
            assert!(lacks_slash(pattern), "{pattern}");
        }
        for pattern in ["admin", "^/admin", "^/?admin", "^.*a", "^a|/b", "^(a)", "^a?/b", "^http:"]
        {
            assert!(!lacks_slash(pattern), "{pattern}");
        }
    }

    #[test]
    fn redirects_that_deny_are_severe() {
        let severity = |args: &str| Some(redirect(&directive("RedirectMatch", args))?.severity);
        use super::super::Severity::{Hint, Severe};
        for (args, expected) in [
            ("403 ^secret", Some(Severe)),
            ("gone \"^secret\"", Some(Severe)),
            ("^old /new", Some(Hint)),
            ("301 ^old /new", Some(Hint)),
            ("403 ^/secret", None),
        ] {
            assert_eq!(severity(args), expected, "{args}");
        }
    }

    #[test]
    fn folders_are_the_beginnings_of_expressions() {
        for (name, args, expected) in [
            ("DirectoryMatch", "^/srv/a.*b", Some("/srv/")),
            ("DirectoryMatch", "\"^/srv/a/\"", Some("/srv/a/")),
            ("Directory", "~ ^/srv/x", Some("/srv/")),
            ("Directory", "/srv/*/x", Some("/srv/")),
            ("DirectoryMatch", "/srv/", None),
            ("DirectoryMatch", "^/a|^/b", None),
        ] {
            assert_eq!(folder(&directive(name, args)).as_deref(), expected, "{name} {args}");
        }
        assert!(is_missing("/no/such/folder/") && !is_missing("/"));
    }
}

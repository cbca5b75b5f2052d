//! The rules of `ProxyHTMLURLMap`, and what they make of links, scripts and text.

use std::sync::Arc;

use bstr::ByteSlice;
use conf::expr::Expr;
use pcre::{Captures, Regex};
use server::request::Request;

/// Most bytes that one match is replaced by.
const REPLACEMENT_BYTES: usize = 1 << 20;

/// Most variables that are replaced in a text.
const VARIABLES: usize = 100;

/// A rule.
#[derive(Clone)]
pub struct Rule {
    /// What it replaces.
    pub pattern: Pattern,
    /// What it puts there.
    pub to: Vec<u8>,
    /// Its flags.
    pub flags: Flags,
    /// When it applies (`ProxyHTMLInterp`).
    pub condition: Option<Condition>,
}

/// What a rule replaces.
#[derive(Clone)]
pub enum Pattern {
    /// A text.
    Text(Vec<u8>),
    /// A regular expression.
    Regex(Regex),
    /// A regular expression with variables of the request.
    Later(Vec<u8>, pcre::Flags),
}

/// A condition.
#[derive(Clone)]
pub struct Condition(pub Arc<Expr>);

impl Condition {
    /// The expression for a condition of the old form: `var`, `!var`, `var=value`, `!var=value`.
    pub fn of_old_form(text: &[u8]) -> Option<Vec<u8>> {
        let (negates, rest) = match text.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest.iter().take_while(|byte| is_word(byte)).count();
        let (name, value) = rest.split_at(length);
        if name.is_empty() {
            return None;
        }
        let variable = [b"reqenv('", name, b"')"].concat();
        match value {
            // Apache's transformation of a name alone has never resulted in an expression.
            [] if negates => Some([b"!", variable.as_slice(), b"!'"].concat()),
            [] => Some([variable.as_slice(), b"''"].concat()),
            [b'=', value @ ..] if !value.is_empty() => {
                let compared: &[u8] = if negates { b"!='" } else { b"='" };
                Some([variable.as_slice(), compared, value, b"'"].concat())
            }
            _ => None,
        }
    }
}

/// The flags of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It applies to links (unless `h`).
    pub of_links: bool,
    /// It applies to scripts in attributes (unless `e`).
    pub of_events: bool,
    /// It applies to text of scripts and style sheets (unless `c`).
    pub of_text: bool,
    /// The pattern is a regular expression (`R`).
    pub is_regex: bool,
    /// It matches only at the beginning (`^`).
    pub at_start: bool,
    /// It matches only at the end (`$`).
    pub at_end: bool,
    /// It is the last one if it matches (`L`).
    pub is_last: bool,
    /// It is not the last one if it matches (`l`).
    pub is_not_last: bool,
    /// The target has variables (`V`).
    pub interpolates_to: bool,
    /// The pattern has variables (`v`).
    pub interpolates_from: bool,
    extended: bool,
    ignores_case: bool,
    no_groups: bool,
    multi_line: bool,
}

impl Flags {
    /// The flags of a word; other letters have no meaning.
    pub fn of(word: &[u8]) -> Flags {
        let has = |letter| word.contains(&letter);
        Flags {
            of_links: !has(b'h'),
            of_events: !has(b'e'),
            of_text: !has(b'c'),
            is_regex: has(b'R'),
            at_start: has(b'^'),
            at_end: has(b'$'),
            is_last: has(b'L'),
            is_not_last: has(b'l'),
            interpolates_to: has(b'V'),
            interpolates_from: has(b'v'),
            extended: has(b'x'),
            ignores_case: has(b'i'),
            no_groups: has(b'n'),
            multi_line: has(b's'),
        }
    }

    /// The options of the regular expression.
    pub fn pcre(self, defaults: pcre::Flags) -> pcre::Flags {
        pcre::Flags {
            caseless: defaults.caseless || self.ignores_case,
            extended: defaults.extended || self.extended,
            no_sub: defaults.no_sub || self.no_groups,
            multi_line: defaults.multi_line || self.multi_line,
            ..defaults
        }
    }
}

impl Rule {
    /// The rule with the variables of a request; `None` if nothing is left to look for. Source:
    /// `fixup_rules`.
    pub fn interpolated(&self, request: &Request) -> Option<Rule> {
        let mut rule = self.clone();
        if self.flags.interpolates_from {
            rule.pattern = match &self.pattern {
                Pattern::Later(from, flags) => {
                    let from = interpolate(request, from);
                    // As a pattern that comes with a request, it is not compiled to machine code.
                    let flags = pcre::Flags { interpreted: true, ..*flags };
                    Pattern::Regex(Regex::new(&from, flags).ok().filter(|_| !from.is_empty())?)
                }
                Pattern::Text(from) => {
                    let from = interpolate(request, from);
                    Pattern::Text(Some(from).filter(|from| !from.is_empty())?)
                }
                Pattern::Regex(regex) => Pattern::Regex(regex.clone()),
            };
        }
        if self.flags.interpolates_to {
            rule.to = interpolate(request, &self.to);
        }
        Some(rule)
    }
}

/// Replaces `${name}` and `${name|default}` by environment variables. Source: `interpolate_vars`.
fn interpolate(request: &Request, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..VARIABLES {
        let Some(start) = text.find(b"${") else { break };
        let inner = text.get(start + 2..).unwrap_or_default();
        let Some(length) = inner.find_byte(b'}') else { break };
        let inner = inner.get(..length).unwrap_or_default();
        let (name, default) = inner.split_once_str(b"|").unwrap_or((inner, b""));
        let value = request.env.get(name).unwrap_or(default).to_vec();
        text.splice(start..start + 2 + length + 1, value);
    }
    text
}

/// Rewrites a link. Source: `pstartElement`.
pub fn rewrite_link(rules: &[Rule], value: &mut Vec<u8>) {
    for rule in rules.iter().filter(|rule| rule.flags.of_links) {
        let matches = match &rule.pattern {
            Pattern::Regex(regex) => replace_first(regex, &rule.to, value),
            Pattern::Text(from) => {
                let start = value.get(..from.len());
                if start.is_some_and(|start| start.eq_ignore_ascii_case(from)) {
                    value.splice(..from.len(), rule.to.iter().copied());
                    // Here `l` has no effect.
                    return;
                }
                false
            }
            Pattern::Later(..) => false,
        };
        if matches && !rule.flags.is_not_last {
            return;
        }
    }
}

/// Rewrites a script in an attribute.
pub fn rewrite_event(rules: &[Rule], value: &mut Vec<u8>) {
    for rule in rules.iter().filter(|rule| rule.flags.of_events) {
        let matches = match &rule.pattern {
            Pattern::Regex(regex) => replace_each(regex, &rule.to, value),
            // Here `^` asks where the first match is, and all are replaced.
            Pattern::Text(from) if rule.flags.at_start && !value.starts_with(from) => false,
            Pattern::Text(from) => replace_text(rule, from, value, false),
            Pattern::Later(..) => false,
        };
        if matches && rule.flags.is_last {
            return;
        }
    }
}

/// Rewrites the text of a script or a style sheet. Source: `dump_content`.
pub fn rewrite_text(rules: &[Rule], text: &mut Vec<u8>) {
    for rule in rules.iter().filter(|rule| rule.flags.of_text) {
        match &rule.pattern {
            Pattern::Regex(regex) => replace_each(regex, &rule.to, text),
            Pattern::Text(from) => replace_text(rule, from, text, rule.flags.at_start),
            Pattern::Later(..) => false,
        };
    }
}

/// Replaces all matches, or one `at_start`; returns whether there was one.
fn replace_text(rule: &Rule, from: &[u8], text: &mut Vec<u8>, at_start: bool) -> bool {
    if from.is_empty() {
        return false;
    }
    let at_end = rule.flags.at_end;
    let mut out = Vec::new();
    let mut rest = text.as_slice();
    let mut matches = false;
    while let Some(at) = rest.find(from) {
        let (before, tail) = rest.split_at(at);
        let after = tail.get(from.len()..).unwrap_or_default();
        out.extend_from_slice(before);
        let is_first = rest.len() == text.len() && at == 0;
        if (at_start && !is_first) || (at_end && !after.is_empty()) {
            out.extend_from_slice(from);
        } else {
            out.extend_from_slice(&rule.to);
            matches = true;
        }
        rest = after;
    }
    if matches {
        out.extend_from_slice(rest);
        *text = out;
    }
    matches
}

/// Replaces the first match; returns whether there was one.
fn replace_first(regex: &Regex, to: &[u8], text: &mut Vec<u8>) -> bool {
    let mut captures = Captures::new();
    if regex.glance(text, Some(&mut captures)) != Ok(true) {
        return false;
    }
    let Some(range) = captures.range(0) else { return false };
    let mut new = Vec::new();
    if pcre::substitute(to, text, &captures, REPLACEMENT_BYTES, &mut new).is_err() {
        return false;
    }
    text.splice(range, new);
    true
}

/// Replaces each match, and looks for the next behind it as in a text of its own.
fn replace_each(regex: &Regex, to: &[u8], text: &mut Vec<u8>) -> bool {
    let mut captures = Captures::new();
    let mut out = Vec::new();
    let mut rest = text.as_slice();
    while regex.glance(rest, Some(&mut captures)) == Ok(true) {
        let Some(range) = captures.range(0) else { break };
        let before = out.len();
        out.extend_from_slice(rest.get(..range.start).unwrap_or_default());
        if pcre::substitute(to, rest, &captures, REPLACEMENT_BYTES, &mut out).is_err() {
            out.truncate(before);
            break;
        }
        rest = rest.get(range.end..).unwrap_or_default();
        if range.is_empty() {
            // Apache would stay here forever.
            let Some((first, tail)) = rest.split_first() else { break };
            out.push(*first);
            rest = tail;
        }
    }
    let matches = rest.len() != text.len() || !out.is_empty();
    out.extend_from_slice(rest);
    *text = out;
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(from: &str, to: &str, flags: &str) -> Rule {
        let flags = Flags::of(flags.as_bytes());
        let pattern = match flags.is_regex {
            true => {
                let pcre = flags.pcre(pcre::Flags::default());
                Pattern::Regex(Regex::new(from.as_bytes(), pcre).unwrap())
            }
            false => Pattern::Text(from.into()),
        };
        Rule { pattern, to: to.into(), flags, condition: None }
    }

    fn link(rules: &[Rule], value: &str) -> String {
        let mut value = value.as_bytes().to_vec();
        rewrite_link(rules, &mut value);
        String::from_utf8(value).unwrap()
    }

    fn event(rules: &[Rule], value: &str) -> String {
        let mut value = value.as_bytes().to_vec();
        rewrite_event(rules, &mut value);
        String::from_utf8(value).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_rewrites_a_link() {
        let rules = [rule("http://a/", "/x/", ""), rule("/", "/y/", "")];
        assert_eq!(link(&rules, "HTTP://A/b"), "/x/b");
        assert_eq!(link(&rules, "/b"), "/y/b");
        assert_eq!(link(&rules, "b/"), "b/");
        let more = [rule("a(.)", "$1$1", "Rl"), rule("b", "c", "R")];
        assert_eq!(link(&more, "abab"), "cbab");
        assert_eq!(link(&[rule("a", "b", "h")], "a"), "a");
    }

    #[test]
    fn all_matches_in_scripts_are_rewritten() {
        assert_eq!(event(&[rule("ab", "x", "")], "abcab"), "xcx");
        assert_eq!(event(&[rule("ab", "x", "^")], "abcab"), "xcx");
        assert_eq!(event(&[rule("ab", "x", "^")], "cab"), "cab");
        let mut text = b"abcab".to_vec();
        rewrite_text(&[rule("ab", "x", "^")], &mut text);
        assert_eq!(text, b"xcab");
        assert_eq!(event(&[rule("ab", "x", "$")], "abcab"), "abcx");
        assert_eq!(event(&[rule("a*", "-", "R")], "baac"), "-b--c-");
        assert_eq!(event(&[rule("a", "b", "L"), rule("b", "c", "")], "a"), "b");
    }

    #[test]
    fn old_conditions_are_expressions() {
        let form = |text: &str| Condition::of_old_form(text.as_bytes());
        assert_eq!(form("x"), Some(b"reqenv('x')''".to_vec()));
        assert_eq!(form("!x"), Some(b"!reqenv('x')!'".to_vec()));
        assert_eq!(form("x=y"), Some(b"reqenv('x')='y'".to_vec()));
        assert_eq!(form("!x=y"), Some(b"reqenv('x')!='y'".to_vec()));
        assert_eq!(form("%{ENV:x} == 'y'"), None);
    }
}

//! `<IfVersion operator version>`: mod_version.

use bstr::ByteSlice;
use pcre::{Flags, Regex};

use super::{Reader, Statement};
use crate::word;

const BAD_FORMAT: &str = "Version appears to be invalid. It must have the format \
                          major[.minor[.patch]] where major, minor and patch are numbers.";

impl Reader<'_> {
    /// Evaluates the condition. An invalid one is reported and false.
    pub(super) fn version_condition(&mut self, statement: &Statement) -> bool {
        let args = statement.args.bytes();
        let parsed = match args.rfind_byte(b'>') {
            Some(end) => parse(args.get(..end).unwrap_or(&[])),
            None if args.is_empty() => parse(args),
            None => Err("<IfVersion> directive missing closing '>'".to_owned()),
        };
        match parsed {
            Ok(condition) => condition.holds(self.version),
            Err(message) => {
                self.error(statement.args.whole_span(), message);
                false
            }
        }
    }
}

struct VersionCondition {
    negated: bool,
    wanted: Wanted,
}

enum Wanted {
    Order { less: bool, equal: bool, greater: bool, version: [u32; 3] },
    Pattern(Regex),
}

impl VersionCondition {
    fn holds(&self, version: [u32; 3]) -> bool {
        let holds = match &self.wanted {
            Wanted::Order { less, equal, greater, version: wanted } => {
                let order = version.cmp(wanted);
                (order.is_lt() && *less) || (order.is_eq() && *equal) || (order.is_gt() && *greater)
            }
            Wanted::Pattern(regex) => {
                let [major, minor, patch] = version;
                let version = format!("{major}.{minor}.{patch}");
                regex.matches(version.as_bytes(), None).surely()
            }
        };
        holds != self.negated
    }
}

/// Parses the text between the name and the closing `>`. Source: `start_ifversion`.
fn parse(args: &[u8]) -> Result<VersionCondition, String> {
    let (first, rest) = split_word(args);
    let (second, trailing) = split_word(rest);
    let (operator, version) = match second {
        // A single word is a version to be equal to.
        None => (&b"="[..], first.unwrap_or_default()),
        Some(second) => (first.as_deref().unwrap_or(b"="), second.to_vec()),
    };
    if !trailing.trim_ascii().is_empty() {
        return Err("<IfVersion> directive missing closing '>'".to_owned());
    }
    let (negated, operator) = match operator.strip_prefix(b"!") {
        Some(operator) => (true, operator),
        None => (false, operator),
    };
    let wanted = match operator {
        b"=" | b"==" if version.starts_with(b"/") => {
            let inner = version.strip_prefix(b"/").and_then(|rest| rest.strip_suffix(b"/"));
            let pattern = inner.filter(|_| version.len() > 1);
            Wanted::Pattern(compile(pattern.ok_or("Missing delimiting / of regular expression.")?)?)
        }
        b"~" => Wanted::Pattern(compile(&version)?),
        b"=" | b"==" => ordered(false, true, false, &version)?,
        b"<" => ordered(true, false, false, &version)?,
        b"<=" => ordered(true, true, false, &version)?,
        b">" => ordered(false, false, true, &version)?,
        b">=" => ordered(false, true, true, &version)?,
        _ => {
            let mark = if negated { "!" } else { "" };
            return Err(format!("unrecognized operator '{mark}{}'", operator.as_bstr()));
        }
    };
    Ok(VersionCondition { negated, wanted })
}

fn ordered(less: bool, equal: bool, greater: bool, version: &[u8]) -> Result<Wanted, String> {
    let version = numbers(version).ok_or(BAD_FORMAT)?;
    Ok(Wanted::Order { less, equal, greater, version })
}

fn compile(pattern: &[u8]) -> Result<Regex, String> {
    Regex::new(pattern, Flags::default())
        .map_err(|_| "Unable to compile regular expression".to_owned())
}

/// Parses one to three numbers; missing ones are 0. As in Apache, the text may end with a dot.
fn numbers(version: &[u8]) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    let version = version.strip_suffix(b".").unwrap_or(version);
    let parts: Vec<&[u8]> = version.split(|byte| *byte == b'.').collect();
    if parts.len() > numbers.len() {
        return None;
    }
    for (number, part) in numbers.iter_mut().zip(parts) {
        let digits = !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        *number = part.to_str().ok().filter(|_| digits)?.parse().ok()?;
    }
    Some(numbers)
}

fn split_word(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let text = text.get(word::blanks(text)..).unwrap_or(&[]);
    match word::first_word(text) {
        Some((first, length)) => (Some(first.into()), text.get(length..).unwrap_or(&[])),
        None => (None, &[]),
    }
}

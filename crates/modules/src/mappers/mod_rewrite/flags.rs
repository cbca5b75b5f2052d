//! The flags of a rule.
//!
//! Source: `cmd_rewriterule_setflag`.

use super::line;
use super::template::{Template, TooDeep};
use crate::atoi::atoi;

/// The default limit of rounds for `[N]` (`REWRITE_MAX_ROUNDS`).
const ROUNDS_DEFAULT: i32 = 32_000;

/// The flags of a rule.
#[derive(Clone, Debug)]
pub(super) struct Flags {
    /// `R`: a redirect to the client.
    pub redirect: bool,
    /// The status of `R`; 0 for an unknown word.
    pub status: u16,
    /// `F`, `G`, or `R` with a status other than a redirect: the request ends with it.
    pub ends: bool,
    /// `L`
    pub last: bool,
    /// `END`
    pub end: bool,
    /// `N`
    pub next_round: bool,
    /// The limit of rounds for `N`.
    pub rounds: i32,
    /// `C`
    pub chain: bool,
    /// `NS`
    pub not_in_subrequests: bool,
    /// `P`
    pub proxy: bool,
    /// `PT`
    pub pass_through: bool,
    /// `NC`
    pub ignores_case: bool,
    /// `NE`
    pub unescaped: bool,
    /// `DPI`
    pub drops_path_info: bool,
    /// `QSA`
    pub appends_query: bool,
    /// `QSD`
    pub drops_query: bool,
    /// `QSL`
    pub splits_at_last: bool,
    /// `B` and similar; `None` if references are not escaped.
    pub escape: Option<Escape>,
    /// `UNC`
    pub keeps_slashes: bool,
    /// `UnsafeAllow3F`
    pub allows_question_mark: bool,
    /// `UnsafePrefixStat`
    pub trusts_prefix: bool,
    /// `S`
    pub skip: usize,
    /// `E`
    pub env: Vec<Template>,
    /// `CO`
    pub cookies: Vec<Template>,
    /// `T`
    pub media_type: Option<Template>,
    /// `H`
    pub handler: Option<Template>,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            redirect: false,
            status: 302,
            ends: false,
            last: false,
            end: false,
            next_round: false,
            rounds: ROUNDS_DEFAULT,
            chain: false,
            not_in_subrequests: false,
            proxy: false,
            pass_through: false,
            ignores_case: false,
            unescaped: false,
            drops_path_info: false,
            appends_query: false,
            drops_query: false,
            splits_at_last: false,
            escape: None,
            keeps_slashes: false,
            allows_question_mark: false,
            trusts_prefix: false,
            skip: 0,
            env: Vec::new(),
            cookies: Vec::new(),
            media_type: None,
            handler: None,
        }
    }
}

/// How a reference is escaped (`escape_backref`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Escape {
    /// `B=…`: the bytes to escape.
    listed: Option<Vec<u8>>,
    /// `BCTLS`: escape control characters and blanks.
    controls: bool,
    /// `BNE=…`: the bytes that are never escaped.
    exempt: Vec<u8>,
    /// `BNP`: escape a blank as `%20`.
    no_plus: bool,
}

impl Escape {
    /// Appends `text`, escaped.
    pub fn append(&self, out: &mut Vec<u8>, text: &[u8]) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or(b'0');
        for byte in text {
            if !self.names(*byte) || byte.is_ascii_alphanumeric() || *byte == b'_' {
                out.push(*byte);
            } else if *byte == b' ' && !self.no_plus {
                out.push(b'+');
            } else {
                out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }

    fn names(&self, byte: u8) -> bool {
        let is_listed = self.listed.as_ref().is_some_and(|all| all.contains(&byte));
        let by_class = match self.controls {
            true => byte <= b' ' || byte == 0x7f,
            false => self.listed.is_none(),
        };
        (is_listed || by_class) && !self.exempt.contains(&byte)
    }
}

/// Flags that are being parsed: `BNE` and `BNP` apply only if something is escaped.
#[derive(Default)]
struct Reading {
    flags: Flags,
    escape: Escape,
    escapes: bool,
}

/// Parses a flags field.
///
/// # Errors
/// Apache's message, without the directive's name.
pub(super) fn parse(field: &[u8]) -> Result<Flags, String> {
    let mut reading = Reading::default();
    for (name, value) in line::flags(field).ok_or("bad flag delimiters")? {
        reading.take(name, value)?;
    }
    let Reading { mut flags, escape, escapes } = reading;
    flags.escape = escapes.then_some(escape);
    Ok(flags)
}

impl Reading {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        let upper = name.to_ascii_uppercase();
        if self.take_escape(&upper, value)? || self.take_switch(&upper) {
            return Ok(());
        }
        let flags = &mut self.flags;
        match upper.as_slice() {
            b"N" | b"NEXT" => {
                flags.next_round = true;
                if !value.is_empty() {
                    flags.rounds = atoi(value);
                }
            }
            b"S" | b"SKIP" => flags.skip = usize::try_from(atoi(value)).unwrap_or(0),
            b"F" | b"FORBIDDEN" => (flags.ends, flags.status) = (true, 403),
            b"G" | b"GONE" => (flags.ends, flags.status) = (true, 410),
            b"R" | b"REDIRECT" => redirect(flags, value)?,
            b"E" | b"ENV" => flags.env.push(template(value)?),
            b"CO" | b"COOKIE" => flags.cookies.push(template(value)?),
            b"T" | b"TYPE" => flags.media_type = Some(template(value)?),
            b"H" | b"HANDLER" => flags.handler = Some(template(value)?),
            // Apache accepts any flag that begins with D.
            [b'D', ..] => {}
            _ => return Err(format!("unknown flag '{}'", bstr::BStr::new(name))),
        }
        Ok(())
    }

    /// Parses flags without a value.
    fn take_switch(&mut self, name: &[u8]) -> bool {
        let flags = &mut self.flags;
        let switch = match name {
            b"C" | b"CHAIN" => &mut flags.chain,
            b"D" | b"DPI" | b"DISCARDPATH" => &mut flags.drops_path_info,
            b"END" => &mut flags.end,
            b"L" | b"LAST" => &mut flags.last,
            b"NE" | b"NOESCAPE" => &mut flags.unescaped,
            b"NS" | b"NOSUBREQ" => &mut flags.not_in_subrequests,
            b"NC" | b"NOCASE" => &mut flags.ignores_case,
            b"P" | b"PROXY" => &mut flags.proxy,
            b"PT" | b"PASSTHROUGH" => &mut flags.pass_through,
            b"QSA" | b"QSAPPEND" => &mut flags.appends_query,
            b"QSD" | b"QSDISCARD" => &mut flags.drops_query,
            b"QSL" | b"QSLAST" => &mut flags.splits_at_last,
            b"UNC" => &mut flags.keeps_slashes,
            b"UNSAFEALLOW3F" => &mut flags.allows_question_mark,
            b"UNSAFEPREFIXSTAT" => &mut flags.trusts_prefix,
            _ => return false,
        };
        *switch = true;
        true
    }

    /// Parses the flags that begin with B.
    fn take_escape(&mut self, name: &[u8], value: &[u8]) -> Result<bool, String> {
        match name {
            b"B" | b"BACKREFESCAPING" => {
                self.escapes = true;
                if !value.is_empty() {
                    self.escape.listed = Some(value.to_vec());
                }
            }
            b"BNE" if value.is_empty() => {
                let why = "flag 'BNE' wants a list of characters (i.e. [BNE=...])";
                return Err(why.to_owned());
            }
            b"BNE" => self.escape.exempt = value.to_vec(),
            b"BNP" | b"BACKREFERNOPLUS" => self.escape.no_plus = true,
            b"BCTLS" => (self.escapes, self.escape.controls) = (true, true),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `R`: an unknown word is a redirect as well; a number must be known to Apache, and ends the
/// request outside of 3xx.
fn redirect(flags: &mut Flags, value: &[u8]) -> Result<(), String> {
    flags.redirect = true;
    if value.is_empty() {
        return Ok(());
    }
    flags.status = match value.to_ascii_lowercase().as_slice() {
        b"permanent" => 301,
        b"temp" => 302,
        b"seeother" => 303,
        [b'0'..=b'9', ..] => {
            let status = u16::try_from(atoi(value)).unwrap_or(0);
            if wire::status::known_line(status).is_none() {
                let value = bstr::BStr::new(value);
                return Err(format!("invalid HTTP response code '{value}' for flag 'R'"));
            }
            flags.ends |= !wire::status::is_redirect(status);
            status
        }
        _ => 0,
    };
    Ok(())
}

fn template(value: &[u8]) -> Result<Template, String> {
    Template::parse(value).map_err(|TooDeep| TooDeep.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_long_forms_and_no_case() {
        let flags = parse(b"[nc,LAST,qsappend,Redirect=permanent]").unwrap();
        assert!(flags.ignores_case && flags.last && flags.appends_query && flags.redirect);
        assert_eq!(flags.status, 301);
    }

    #[test]
    fn unknown_flags_are_refused_but_those_with_d() {
        assert_eq!(parse(b"[X]").unwrap_err(), "unknown flag 'X'");
        assert_eq!(parse(b"[]").unwrap_err(), "unknown flag ''");
        assert!(!parse(b"[Dfoo]").unwrap().drops_path_info);
        assert!(parse(b"[dpi]").unwrap().drops_path_info);
    }

    #[test]
    fn a_status_must_be_known() {
        assert!(parse(b"[R=999]").unwrap_err().contains("'999'"));
        assert!(parse(b"[R=404]").unwrap().ends);
        assert_eq!(parse(b"[R=foo]").unwrap().status, 0);
        assert_eq!(parse(b"[R]").unwrap().status, 302);
    }

    #[test]
    fn references_are_escaped_as_asked() {
        let escaped = |field: &[u8], text: &[u8]| {
            let mut out = Vec::new();
            match parse(field).unwrap().escape {
                Some(escape) => escape.append(&mut out, text),
                None => out.extend_from_slice(text),
            }
            String::from_utf8(out).unwrap()
        };
        assert_eq!(escaped(b"[B]", b"a b/_.-"), "a+b%2f_%2e%2d");
        assert_eq!(escaped(b"[B,BNP]", b"a b"), "a%20b");
        assert_eq!(escaped(b"[BNP]", b"a b"), "a b");
        assert_eq!(escaped(b"[BNE=/]", b"a/b c"), "a/b c");
        assert_eq!(escaped(b"[B,BNE=/]", b"a/b c"), "a/b+c");
        assert_eq!(escaped(b"[B=?/a]", b"a b/c?"), "a b%2fc%3f");
        assert_eq!(escaped(b"[BCTLS]", b"a b/c\x01\x7f"), "a+b/c%01%7f");
        assert_eq!(escaped(b"[BCTLS,B=?/,BNE=/]", b"a b/c?+"), "a+b/c%3f+");
    }
}

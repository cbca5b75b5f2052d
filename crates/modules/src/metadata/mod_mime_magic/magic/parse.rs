//! Parses a magic file: offset, type, value and description, a rule in each line.
//!
//! Source: `apprentice`, `parse`, `getstr` (modules/metadata/mod_mime_magic.c).

use bstr::BStr;

use super::rule::{Indirect, Kind, Rule, VALUE_BYTES, Value, Width};
use super::{Fault, Magic, c_string, is_space, number};

/// Most bytes of a line; the rest is the next line (`BUFSIZ`).
const LINE_BYTES_MAX: usize = 8191;

/// Most bytes of a description (`MAXDESC`).
const DESCRIPTION_BYTES_MAX: usize = 49;

const KINDS: [(&[u8], Kind); 11] = [
    (b"byte", Kind::Byte),
    (b"short", Kind::Short),
    (b"long", Kind::Long),
    (b"string", Kind::Text),
    (b"date", Kind::Date),
    (b"beshort", Kind::BigShort),
    (b"belong", Kind::BigLong),
    (b"bedate", Kind::BigDate),
    (b"leshort", Kind::LittleShort),
    (b"lelong", Kind::LittleLong),
    (b"ledate", Kind::LittleDate),
];

pub(super) fn parse(mut text: &[u8]) -> (Magic, Vec<Fault>) {
    let (mut magic, mut faults, mut line) = (Magic::default(), Vec::new(), 0);
    while !text.is_empty() {
        let most = text.get(..LINE_BYTES_MAX).unwrap_or(text);
        let length = most.iter().position(|byte| *byte == b'\n').map_or(most.len(), |at| at + 1);
        let (whole, rest) = text.split_at(length);
        (text, line) = (rest, line + 1);
        let bare = trim(c_string(whole));
        if !bare.is_empty() && bare.first() != Some(&b'#') {
            let mut parser = Parser { rest: bare, line, faults: &mut faults };
            magic.rules.push(parser.rule());
        }
    }
    (magic, faults)
}

fn trim(text: &[u8]) -> &[u8] {
    let text = skip(text, is_space);
    let blanks = text.iter().rev().take_while(|byte| is_space(**byte)).count();
    text.get(..text.len() - blanks).unwrap_or_default()
}

fn skip(text: &[u8], what: impl Fn(u8) -> bool) -> &[u8] {
    let count = text.iter().take_while(|byte| what(**byte)).count();
    text.get(count..).unwrap_or_default()
}

/// A line that is being parsed.
struct Parser<'t> {
    rest: &'t [u8],
    line: u32,
    faults: &'t mut Vec<Fault>,
}

impl Parser<'_> {
    fn rule(&mut self) -> Rule {
        let mut rule = Rule {
            level: 0,
            offset: 0,
            indirect: None,
            kind: None,
            is_unsigned: false,
            mask: u64::MAX,
            relation: b'=',
            value: Value::ZERO,
            length: 0,
            joins: false,
            description: Vec::new(),
        };
        self.place(&mut rule);
        if self.kind(&mut rule).is_some() {
            self.comparison(&mut rule);
            self.description(&mut rule);
        }
        rule
    }

    fn fault(&mut self, number: u32, text: String, is_fatal: bool) {
        let line = self.line;
        self.faults.push(Fault { line, number, text, is_fatal });
    }

    /// Whether the next byte is this one, which is then taken.
    fn takes(&mut self, wanted: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn blanks(&mut self) {
        self.rest = skip(self.rest, is_space);
    }

    /// `>>(0x10.s+4)` or `16`.
    fn place(&mut self, rule: &mut Rule) {
        while self.takes(b'>') {
            rule.level += 1;
        }
        let is_indirect = rule.level > 0 && self.takes(b'(');
        match number::take(&mut self.rest) {
            // Apache keeps an int of it.
            Some(offset) => rule.offset = i64::from(offset as i32),
            None => {
                let shown = BStr::new(self.rest);
                self.fault(1521, format!("offset {shown} invalid"), false);
            }
        }
        if is_indirect {
            rule.indirect = Some(self.indirect());
        }
        self.rest = skip(self.rest, |byte| byte.is_ascii_digit());
        self.blanks();
    }

    /// `.s+4)`
    fn indirect(&mut self) -> Indirect {
        let mut width = Width::Long;
        if self.takes(b'.') {
            let letter = self.rest.first().copied();
            match letter {
                Some(b'l') => {}
                Some(b's') => width = Width::Short,
                Some(b'b') => width = Width::Byte,
                _ => {
                    let shown = BStr::new(self.rest.get(..1).unwrap_or_default());
                    let text = format!("indirect offset type {shown} invalid");
                    self.fault(1522, text, false);
                }
            }
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        let is_negative = self.rest.first() == Some(&b'-');
        if !self.takes(b'+') {
            self.takes(b'-');
        }
        let mut added = 0;
        if self.rest.first().is_some_and(u8::is_ascii_digit) {
            added = number::take(&mut self.rest).unwrap_or(0);
            if is_negative {
                added = -added;
            }
        }
        if !self.takes(b')') {
            self.fault(1523, "missing ')' in indirect offset".to_owned(), false);
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        Indirect { width, added }
    }

    /// `ubelong&0xffff`
    fn kind(&mut self, rule: &mut Rule) -> Option<()> {
        rule.is_unsigned = self.takes(b'u');
        let found = KINDS.iter().find(|(name, _)| self.rest.starts_with(name));
        let Some((name, kind)) = found else {
            let shown = BStr::new(self.rest);
            self.fault(1524, format!("type {shown} invalid"), true);
            return None;
        };
        rule.kind = Some(*kind);
        self.rest = self.rest.get(name.len()..).unwrap_or_default();
        if self.takes(b'&') {
            let mask = number::take(&mut self.rest).unwrap_or(0);
            rule.mask = kind.extend(mask as u64, rule.is_unsigned);
        }
        self.blanks();
        Some(())
    }

    /// `>0x10`, `text`, or `x`.
    fn comparison(&mut self, rule: &mut Rule) {
        let Some(kind) = rule.kind else { return };
        match self.rest {
            [relation @ (b'>' | b'<' | b'&' | b'^' | b'='), rest @ ..] => {
                (rule.relation, self.rest) = (*relation, rest);
            }
            [b'!', rest @ ..] if kind != Kind::Text => (rule.relation, self.rest) = (b'!', rest),
            [b'x', blank, ..] if is_space(*blank) => {
                rule.relation = b'x';
                self.rest = self.rest.get(1..).unwrap_or_default();
                return;
            }
            _ => {}
        }
        self.blanks();
        if kind == Kind::Text {
            rule.length = self.text(&mut rule.value);
        } else {
            let value = number::take(&mut self.rest).unwrap_or(0);
            rule.value.set_long(kind.extend(value as u64, rule.is_unsigned));
        }
    }

    /// Takes a text with escapes of C up to a blank; returns its length.
    fn text(&mut self, value: &mut Value) -> usize {
        let (whole, mut length) = (self.rest, 0);
        while let Some((first, rest)) = self.rest.split_first() {
            self.rest = rest;
            if is_space(*first) {
                break;
            }
            if length >= VALUE_BYTES - 1 {
                self.fault(1526, format!("string too long: {}", BStr::new(whole)), false);
                break;
            }
            let byte = match first {
                b'\\' if self.rest.is_empty() => break,
                b'\\' => self.escaped(),
                byte => *byte,
            };
            if let Some(place) = value.0.get_mut(length) {
                *place = byte;
            }
            length += 1;
        }
        length
    }

    /// The byte behind a backslash.
    fn escaped(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        let digits = |rest: &[u8], radix, most| {
            let digits = rest.iter().take(most).map_while(|b| char::from(*b).to_digit(radix));
            digits.fold((0u32, 0), |(value, count), digit| (value * radix + digit, count + 1))
        };
        self.rest = rest;
        match first {
            b'n' => b'\n',
            b'r' => b'\r',
            b'b' => 8,
            b't' => b'\t',
            b'f' => 0x0c,
            b'v' => 0x0b,
            b'0'..=b'7' => {
                let (value, more) = digits(rest, 8, 2);
                self.rest = rest.get(more..).unwrap_or_default();
                let places = u32::try_from(more).unwrap_or(0);
                (u32::from(first - b'0') * 8u32.pow(places) + value) as u8
            }
            b'x' => match digits(rest, 16, 3) {
                (_, 0) => b'x',
                (value, count) => {
                    self.rest = rest.get(count..).unwrap_or_default();
                    value as u8
                }
            },
            byte => *byte,
        }
    }

    fn description(&mut self, rule: &mut Rule) {
        self.blanks();
        match self.rest {
            [8, rest @ ..] | [b'\\', b'b', rest @ ..] => (rule.joins, self.rest) = (true, rest),
            _ => {}
        }
        let most = self.rest.get(..DESCRIPTION_BYTES_MAX).unwrap_or(self.rest);
        rule.description = most.to_vec();
    }
}

//! `$name`, `${name}` and `\$` in the values of arguments.
//!
//! Source: `ap_ssi_parse_string`

use bstr::ByteSlice;
use server::errorlog::Verbatim;
use server::log::Level;

use super::page::Page;

/// What becomes of a variable without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unset {
    /// Nothing.
    Dropped,
    /// Its name stays, for a shell.
    Left,
}

impl Page<'_> {
    /// `text` with its variables replaced; those without a value vanish.
    pub fn substituted(&mut self, text: &[u8]) -> Vec<u8> {
        self.substitute(text, Unset::Dropped)
    }

    /// `text` with its variables replaced.
    pub fn substitute(&mut self, text: &[u8], unset: Unset) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        for part in Parts(text) {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Variable(reference) => {
                    if let Some(value) = self.variable(reference.name) {
                        out.extend_from_slice(&value);
                    } else if unset == Unset::Left {
                        out.extend_from_slice(reference.left);
                    }
                }
                Part::Unclosed(name) => {
                    let (name, file) = (Verbatim::new(name), self.file());
                    let text = format_args!("Missing '}}' on variable \"{name}\" in {file}");
                    self.log(Level::Error, 1331, text);
                    return out;
                }
            }
        }
        out
    }
}

/// What `text` is replaced with in every page; `None` if it has variables.
pub fn literal(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    for part in Parts(text) {
        let Part::Text(text) = part else { return None };
        out.extend_from_slice(text);
    }
    Some(out)
}

/// The parts of a text.
struct Parts<'t>(&'t [u8]);

/// A part of a text.
enum Part<'t> {
    /// Text that stays.
    Text(&'t [u8]),
    /// A variable.
    Variable(Reference<'t>),
    /// A variable whose brace is not closed, which is the last part.
    Unclosed(&'t [u8]),
}

impl<'t> Parts<'t> {
    fn take(&mut self, length: usize) -> &'t [u8] {
        let (taken, rest) = self.0.split_at_checked(length).unwrap_or((self.0, b""));
        self.0 = rest;
        taken
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        match self.0.find_byteset(b"\\$") {
            Some(0) => {}
            at => {
                let text = self.take(at.unwrap_or(self.0.len()));
                return (!text.is_empty()).then_some(Part::Text(text));
            }
        }
        if self.0.starts_with(b"\\") {
            if self.0.get(1) == Some(&b'$') {
                self.take(1);
            }
            return Some(Part::Text(self.take(1)));
        }
        let Some(reference) = Reference::at(self.0) else {
            let all = self.take(self.0.len());
            return Some(Part::Unclosed(all.get(2..).unwrap_or_default()));
        };
        let text = self.take(reference.length);
        Some(match reference.name {
            b"" => Part::Text(text),
            _ => Part::Variable(reference),
        })
    }
}

/// A reference to a variable.
struct Reference<'t> {
    /// The variable's name; empty for a dollar sign that is one.
    name: &'t [u8],
    /// What stays of the reference. As in Apache this has no closing brace.
    left: &'t [u8],
    /// The length of the reference.
    length: usize,
}

impl<'t> Reference<'t> {
    /// The reference at the beginning of `text`; `None` if its brace is not closed.
    fn at(text: &'t [u8]) -> Option<Reference<'t>> {
        let dollar = text.get(..1).unwrap_or_default();
        let none = Reference { name: b"", left: dollar, length: 1 };
        let after = text.get(1..).unwrap_or_default();
        if let Some(braced) = after.strip_prefix(b"{") {
            let end = braced.find_byte(b'}')?;
            let name = braced.get(..end).unwrap_or_default();
            if name.is_empty() {
                return Some(none);
            }
            let left = text.get(..end + 2).unwrap_or_default();
            return Some(Reference { name, left, length: end + 3 });
        }
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = after.iter().take_while(|byte| is_name(byte)).count();
        if length == 0 {
            return Some(none);
        }
        let name = after.get(..length).unwrap_or_default();
        let left = text.get(..length + 1).unwrap_or_default();
        Some(Reference { name, left, length: length + 1 })
    }
}

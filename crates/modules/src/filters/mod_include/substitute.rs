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
        let mut rest = text;
        while let Some(at) = rest.find_byteset(b"\\$") {
            let (before, special) = rest.split_at(at);
            out.extend_from_slice(before);
            if special.starts_with(b"\\") {
                let is_dollar = special.get(1) == Some(&b'$');
                out.push(if is_dollar { b'$' } else { b'\\' });
                rest = special.get(1 + usize::from(is_dollar)..).unwrap_or_default();
                continue;
            }
            let Some(reference) = Reference::at(special) else {
                let (name, file) =
                    (Verbatim::new(special.get(2..).unwrap_or_default()), self.file());
                let text = format_args!("Missing '}}' on variable \"{name}\" in {file}");
                self.log(Level::Error, 1331, text);
                return out;
            };
            rest = special.get(reference.length..).unwrap_or_default();
            if reference.name.is_empty() {
                out.push(b'$');
            } else if let Some(value) = self.variable(reference.name) {
                out.extend_from_slice(&value);
            } else if unset == Unset::Left {
                out.extend_from_slice(reference.left);
            }
        }
        out.extend_from_slice(rest);
        out
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

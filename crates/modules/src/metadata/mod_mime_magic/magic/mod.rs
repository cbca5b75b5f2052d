//! The language of magic files (file(1)): tests of a file's first bytes, and what they print.
//!
//! Source: mod_mime_magic.c. It knows neither the server nor the file system.

mod number;
mod outcome;
mod parse;
mod print;
mod rule;
mod run;
mod text;

pub use outcome::Outcome;
pub use run::Remark;

use rule::Rule;

/// Most bytes of a file that are tested (`HOWMANY`).
pub const SAMPLE_BYTES: usize = 4096;

/// A magic file.
#[derive(Clone, Debug, Default)]
pub struct Magic {
    rules: Vec<Rule>,
}

impl Magic {
    /// Parses a magic file. As in Apache, a line with an error counts as far as it is understood,
    /// and a faulty type makes a rule that never holds.
    pub fn parse(text: &[u8]) -> (Magic, Vec<Fault>) {
        parse::parse(text)
    }

    /// Whether it has no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Identifies a sample; what it prints is in pieces. `None` if nothing is known of it.
    pub fn identify(&self, sample: &Sample, remarks: &mut Vec<Remark>) -> Option<Vec<Vec<u8>>> {
        let printed = run::run(&self.rules, sample, remarks);
        printed.or_else(|| text::identify(sample).map(|pieces| vec![pieces]))
    }
}

/// An error in a magic file: its line, Apache's number, and Apache's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: u32,
    /// Apache's number of the message.
    pub number: u32,
    /// The message.
    pub text: String,
    /// Whether it ends the search for further magic files.
    pub is_fatal: bool,
}

/// The beginning of a file, followed by a zero byte.
pub struct Sample(Vec<u8>);

impl Sample {
    /// The beginning of a file.
    pub fn of_file(content: &[u8]) -> Sample {
        let mut bytes = content.get(..SAMPLE_BYTES).unwrap_or(content).to_vec();
        bytes.push(0);
        Sample(bytes)
    }

    /// The beginning of decompressed content. As in Apache, the zero takes the place of the last
    /// byte.
    pub fn of_unpacked(content: &[u8]) -> Sample {
        let mut bytes = content.get(..SAMPLE_BYTES).unwrap_or(content).to_vec();
        if let Some(last) = bytes.last_mut() {
            *last = 0;
        }
        Sample(bytes)
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// `isspace` in the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The text up to the first zero.
fn c_string(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;

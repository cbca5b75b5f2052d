//! The line that is edited, and the input behind it.

use super::machine::{SPACE_BYTES, Wrong};

/// The lines of a text.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    /// What was not read yet, from `at` on.
    input: Vec<u8>,
    at: usize,
    /// Whether the input is complete.
    is_complete: bool,
    /// Whether the end of the line has been read. Before the line is edited it must be known
    /// whether another one follows.
    is_ended: bool,
    /// Whether the line is the last one.
    is_last: bool,
}

impl Lines {
    /// Adds input.
    pub fn push(&mut self, piece: &[u8]) {
        if self.at > 0 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        self.input.extend_from_slice(piece);
    }

    /// No more input follows.
    pub fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Appends the next line to what is there; returns whether it can be edited.
    pub fn take(&mut self) -> Result<bool, Wrong> {
        if self.is_last {
            // What `N` has left is lost.
            return Ok(false);
        }
        let rest = self.input.get(self.at..).unwrap_or_default();
        if !self.is_ended {
            let end = bstr::ByteSlice::find_byte(rest, b'\n');
            self.is_ended = end.is_some();
            let taken = end.unwrap_or(rest.len());
            append(&mut self.line, rest.get(..taken).unwrap_or_default())?;
            self.at += taken + usize::from(self.is_ended);
        }
        let is_more = self.at < self.input.len();
        let is_line = match self.is_ended {
            true => is_more || self.is_complete,
            // Without a newline, the last line has to have a byte.
            false => self.is_complete && !self.line.is_empty(),
        };
        if is_line {
            self.is_ended = false;
            self.is_last = self.is_complete && !is_more;
        }
        Ok(is_line)
    }

    /// Whether no more lines come.
    pub fn is_over(&self) -> bool {
        self.is_complete
    }

    /// Whether the line is the last one.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The line as it is printed.
    pub fn whole(&self) -> &[u8] {
        &self.line
    }

    /// The line up to its first zero byte.
    pub fn text(&self) -> &[u8] {
        let end = bstr::ByteSlice::find_byte(self.line.as_slice(), 0);
        end.and_then(|end| self.line.get(..end)).unwrap_or(&self.line)
    }

    /// What is before the first newline.
    pub fn first(&self) -> &[u8] {
        let text = self.text();
        text.split(|byte| *byte == b'\n').next().unwrap_or_default()
    }

    /// Replaces the line.
    pub fn set(&mut self, line: Vec<u8>) {
        self.line = line;
    }

    /// Appends to the line.
    pub fn append(&mut self, text: &[u8]) -> Result<(), Wrong> {
        append(&mut self.line, text)
    }

    /// Empties the line.
    pub fn clear(&mut self) {
        self.line.clear();
    }

    /// Deletes up to the first newline; returns false if there is none.
    pub fn delete_first(&mut self) -> bool {
        let text = self.text();
        let Some(end) = bstr::ByteSlice::find_byte(text, b'\n') else { return false };
        self.line = text.get(end + 1..).unwrap_or_default().to_vec();
        true
    }

    /// Replaces bytes by others (`y`).
    pub fn transliterate(&mut self, table: &[u8; 256]) {
        for byte in self.line.iter_mut().take_while(|byte| **byte != 0) {
            *byte = table.get(usize::from(*byte)).copied().unwrap_or(*byte);
        }
    }
}

fn append(line: &mut Vec<u8>, text: &[u8]) -> Result<(), Wrong> {
    if line.len() + text.len() > SPACE_BYTES {
        return Err(Wrong::TooLong);
    }
    line.extend_from_slice(text);
    Ok(())
}

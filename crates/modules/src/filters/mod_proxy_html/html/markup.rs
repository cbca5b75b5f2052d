//! Markup that is neither a tag nor text: comments, document types, processing instructions.

use super::cursor::{Cursor, Starved};
use super::{Parser, Sink, State, put_chars, reference};

impl Parser {
    pub(super) fn declaration(
        &mut self,
        available: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Starved> {
        let cursor = self.cursor();
        if cursor.begins(b"<!DOCTYPE")? {
            return self.document_type(State::Content);
        }
        if cursor.begins(b"<!--")? {
            return self.comment(sink);
        }
        if available < 4 {
            return self.break_off();
        }
        sink.text(b"<");
        self.input.consume(1);
        Ok(())
    }

    /// Skips a document type. Source: `htmlParseDocTypeDecl`.
    pub(super) fn document_type(&mut self, then: State) -> Result<(), Starved> {
        let mut cursor = self.cursor();
        cursor.skip(b"<!DOCTYPE".len());
        cursor.skip_blanks()?;
        reference::name(&mut cursor)?;
        cursor.skip_blanks()?;
        if cursor.begins(b"SYSTEM")? {
            cursor.skip(6);
            cursor.skip_blanks()?;
            skip_literal(&mut cursor)?;
        } else if cursor.begins(b"PUBLIC")? {
            cursor.skip(6);
            for _ in 0..2 {
                cursor.skip_blanks()?;
                skip_literal(&mut cursor)?;
            }
        }
        cursor.skip_until(|byte| byte == b'>')?;
        if cursor.here()? == b'>' {
            cursor.skip(1);
        }
        let length = cursor.at;
        self.input.consume(length);
        self.state = then;
        Ok(())
    }

    /// Skips a processing instruction; without a name only its first two bytes. Source:
    /// `htmlParsePI`.
    pub(super) fn instruction(&mut self) -> Result<(), Starved> {
        let mut cursor = self.cursor();
        cursor.skip(2);
        if reference::name(&mut cursor)?.is_some() {
            while !cursor.is_at_end() && cursor.here()? != b'>' {
                cursor.skip(1);
            }
            if !cursor.is_at_end() {
                cursor.skip(1);
            }
        }
        let length = cursor.at;
        self.input.consume(length);
        Ok(())
    }

    /// Reports a comment; one that never ends is left out. Source: `htmlParseComment`.
    pub(super) fn comment(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        const OPENING: usize = b"<!--".len();
        let rest = self.input.rest();
        let body = rest.get(OPENING..).unwrap_or_default();
        let Some((length, closing)) = comment_end(body) else {
            if !self.input.is_last() {
                return Err(Starved);
            }
            self.input.consume(rest.len());
            return Ok(());
        };
        let mut text = Vec::with_capacity(length);
        put_chars(body.get(..length).unwrap_or_default(), &mut text);
        sink.comment(&text);
        self.input.consume(OPENING + length + closing);
        Ok(())
    }
}

/// Skips a quoted text, if one is here.
fn skip_literal(cursor: &mut Cursor<'_>) -> Result<(), Starved> {
    let quote = cursor.here()?;
    if matches!(quote, b'"' | b'\'') {
        cursor.skip(1);
        cursor.skip_until(|byte| byte == quote)?;
        if cursor.here()? == quote {
            cursor.skip(1);
        }
    }
    Ok(())
}

/// Where a comment ends, and the length of what ends it.
fn comment_end(body: &[u8]) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let at = from + body.get(from..)?.windows(2).position(|pair| pair == b"--")?;
        match body.get(at + 2..)? {
            [b'>', ..] => return Some((at, 3)),
            [b'!', b'>', ..] => return Some((at, 4)),
            _ => from = at + 1,
        }
    }
}

//! The text of scripts and style sheets.

use super::cursor::Starved;
use super::{Parser, Sink, put_chars};

impl Parser {
    /// Reports the text up to the end tag, as far as it is there. Source: `htmlParseScript`.
    pub(super) fn script(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let is_last = self.input.is_last();
        let rest = self.input.rest();
        let name = self.open.script().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        let (length, ends) = match end_tag(rest, &name, is_last) {
            End::At(at) => (at, true),
            End::Perhaps(at) => (at, false),
        };
        if length == 0 {
            return if ends { self.end_tag(sink) } else { Err(Starved) };
        }
        let mut text = Vec::with_capacity(length);
        put_chars(rest.get(..length).unwrap_or_default(), &mut text);
        if !text.is_empty() {
            sink.cdata(&text);
        }
        self.input.consume(length);
        self.in_script = true;
        Ok(())
    }
}

/// Where the end tag is.
enum End {
    /// Here.
    At(usize),
    /// Not before this place.
    Perhaps(usize),
}

/// Finds `</` and `name` in any case; what follows the name does not matter.
fn end_tag(text: &[u8], name: &[u8], is_last: bool) -> End {
    let mut from = 0;
    while let Some(found) =
        text.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == b'<'))
    {
        let at = from + found;
        let tail = text.get(at..).unwrap_or_default();
        let mut wanted = [b"</", name].concat();
        let is_whole = tail.len() >= wanted.len();
        wanted.truncate(tail.len());
        let matches =
            tail.get(..wanted.len()).is_some_and(|tail| tail.eq_ignore_ascii_case(&wanted));
        if matches && is_whole {
            return End::At(at);
        }
        if matches && !is_last {
            return End::Perhaps(at);
        }
        from = at + 1;
    }
    End::Perhaps(text.len())
}

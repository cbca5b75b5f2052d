//! `LogFormat`: parses a text into a list of items.
//!
//! Source: `parse_log_string`, `process_item` (modules/loggers/mod_log_config.c).

use server::registry::Registry;
use server::request::Request;

use super::item::{Item, Value};
use super::json;

/// A parsed format.
pub struct Format {
    parts: Vec<Part>,
    /// Whether it contains `%h`, so that the client's name may have to be looked up first.
    pub names_client: bool,
    /// The same for `%{c}h` and the name of the connection's peer.
    pub names_peer: bool,
    /// The same for `%l` and the user of the connection.
    pub names_user_of_host: bool,
}

enum Part {
    /// Literal text.
    Literal(Vec<u8>),
    /// An item.
    Item(Directive),
    /// An item as a JSON string or `null`.
    Json(Directive),
}

/// `%` with its modifiers and item.
struct Directive {
    item: Item,
    /// The statuses for which it is written, or not written if negated.
    statuses: Vec<u16>,
    negated: bool,
    /// The request before internal redirects (`<`) instead of the final one (`>`).
    original: bool,
}

impl Format {
    /// Parses a format. Errors are Apache's messages.
    pub fn parse(text: &[u8], registry: &Registry) -> Result<Format, String> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let [byte, after @ ..] = rest {
            rest = after;
            match byte {
                b'\\' => {
                    let [escaped, after @ ..] = rest else {
                        literal.push(b'\\');
                        break;
                    };
                    rest = after;
                    match escaped {
                        b'n' => literal.push(b'\n'),
                        b'r' => literal.push(b'\r'),
                        b't' => literal.push(b'\t'),
                        b'\\' | b'"' => literal.push(*escaped),
                        other => literal.extend([b'\\', *other]),
                    }
                }
                b'%' if rest.first() == Some(&b'%') => {
                    literal.push(b'%');
                    rest = &rest[1..];
                }
                b'%' => {
                    let (part, after) = part(rest, registry)?;
                    rest = after;
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(part);
                }
                other => literal.push(*other),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        let has = |is_it: fn(&Item) -> bool| {
            parts.iter().any(|part| match part {
                Part::Literal(_) => false,
                Part::Item(of) | Part::Json(of) => is_it(&of.item),
            })
        };
        let names_client = has(|item| matches!(item, Item::ClientName { of_connection: false }));
        let names_peer = has(|item| matches!(item, Item::ClientName { of_connection: true }));
        let names_user_of_host = has(|item| matches!(item, Item::RemoteLogname));
        Ok(Format { parts, names_client, names_peer, names_user_of_host })
    }

    /// Whether no item depends on what the phases found out of a request.
    pub fn reads_head_alone(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Literal(_) => true,
            Part::Item(directive) | Part::Json(directive) => directive.item.reads_head_alone(),
        })
    }

    /// Writes a request's line, without its line end.
    pub fn write(&self, request: &Request, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Item(directive) => {
                    if directive.write(request, out) == Value::None {
                        out.push(b'-');
                    }
                }
                Part::Json(directive) => directive.write_json(request, out),
            }
        }
    }
}

/// Parses `%J{…}`, which is not Apache's, or an item.
fn part<'t>(text: &'t [u8], registry: &Registry) -> Result<(Part, &'t [u8]), String> {
    let Some(inner) = text.strip_prefix(b"J{%") else {
        let (directive, rest) = directive(text, registry)?;
        return Ok((Part::Item(directive), rest));
    };
    let (directive, rest) = directive(inner, registry)?;
    match rest {
        [b'}', rest @ ..] => Ok((Part::Json(directive), rest)),
        _ => Err("Ran off end of LogFormat parsing args to some directive".to_owned()),
    }
}

fn directive<'t>(text: &'t [u8], registry: &Registry) -> Result<(Directive, &'t [u8]), String> {
    let mut rest = text;
    let mut argument: &[u8] = b"";
    let mut statuses = Vec::new();
    let mut negated = false;
    let mut original = None;
    loop {
        let [byte, after @ ..] = rest else {
            return Err("Ran off end of LogFormat parsing args to some directive".to_owned());
        };
        match byte {
            b'!' => negated = !negated,
            b'<' => original = Some(true),
            b'>' => original = Some(false),
            b',' => {}
            b'{' => {
                let end = after.iter().position(|byte| *byte == b'}').unwrap_or(after.len());
                argument = &after[..end];
                rest = after.get(end + 1..).unwrap_or_default();
                continue;
            }
            b'0'..=b'9' => {
                let end = rest.iter().position(|byte| !byte.is_ascii_digit());
                let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
                let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
                statuses.push(number.unwrap_or(0));
                rest = after;
                continue;
            }
            _ => {
                let length = if *byte == b'^' { 3.min(rest.len()) } else { 1 };
                let (name, after) = rest.split_at(length);
                let (item, of_original) = Item::named(name, argument, registry)?;
                let original = original.unwrap_or(of_original);
                return Ok((Directive { item, statuses, negated, original }, after));
            }
        }
        rest = after;
    }
}

impl Directive {
    fn write(&self, request: &Request, out: &mut Vec<u8>) -> Value {
        if !self.statuses.is_empty() {
            let listed = self.statuses.contains(&request.last().response.status);
            if listed == self.negated {
                return Value::None;
            }
        }
        let of = if self.original { request.original() } else { request.last() };
        self.item.write(of, out)
    }

    fn write_json(&self, request: &Request, out: &mut Vec<u8>) {
        let mut raw = Vec::new();
        let of = if self.original { request.original() } else { request.last() };
        match self.item.write_raw(of, &mut raw) {
            Value::None => out.extend_from_slice(b"null"),
            Value::Some => json::string(&raw, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &[u8]) -> Result<usize, String> {
        Format::parse(text, &Registry::new(crate::all())).map(|format| format.parts.len())
    }

    #[test]
    fn texts_and_items_take_turns() {
        assert_eq!(parts(b""), Ok(0));
        assert_eq!(parts(b"a\\tb%%c"), Ok(1));
        assert_eq!(parts(b"%h %>s\\n"), Ok(4));
        assert_eq!(parts(b"%!200,304{Referer}i"), Ok(1));
        assert_eq!(parts(json::FORMAT), Ok(29));
    }

    #[test]
    fn what_ends_early_is_refused() {
        for text in ["%", "%!", "%200", "%{x", "%J{%a", "%J{%", "%^t"] {
            assert!(parts(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in r"([%\\{}<>!,^J]|[0-9]{1,6}|[a-zA-Z ]|.){0,40}") {
            let _ = parts(text.as_bytes());
        }
    }
}

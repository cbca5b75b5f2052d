//! Field values with `%t`, `%D`, `%l`, `%i`, `%b`, `%{NAME}e` and `%{NAME}s`.

use std::io::Write;

use conf::expr::{Expr, Flags};
use server::expr;
use server::registry::Registry;
use server::request::Request;

use crate::mpm::Numbers;

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Format(Vec<Item>);

#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// Literal text.
    Text(Vec<u8>),
    /// `%t`: the time of the request's arrival.
    Time,
    /// `%D`: the time since then.
    Duration,
    /// `%l`: load averages.
    Load,
    /// `%i`: the percentage of idle workers.
    Idle,
    /// `%b`: the percentage of busy workers.
    Busy,
    /// `%{NAME}e`
    Variable(Vec<u8>),
    /// `%{NAME}s`; `None` if mod_ssl is not active.
    Tls(Option<Expr>),
}

impl Format {
    /// Parses a value. Errors are Apache's messages.
    pub fn parse(text: &[u8], registry: &Registry) -> Result<Format, String> {
        let mut items = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let percent = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
            let (literal, tag) = rest.split_at(percent);
            if !literal.is_empty() {
                items.push(Item::Text(unescape(literal)));
            }
            rest = match tag.strip_prefix(b"%") {
                None => tag,
                Some(tag) => {
                    let (item, after) = parse_tag(tag, registry)?;
                    items.push(item);
                    after
                }
            };
        }
        Ok(Format(items))
    }

    /// Whether the value is the same for every request.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|item| matches!(item, Item::Text(_)))
    }

    /// The value for a request.
    pub fn fill(&self, request: &mut Request) -> Vec<u8> {
        let mut out = Vec::new();
        for item in &self.0 {
            item.write(request, &mut out);
        }
        out
    }
}

/// Parses a tag after its `%`, and returns the rest.
fn parse_tag<'t>(tag: &'t [u8], registry: &Registry) -> Result<(Item, &'t [u8]), String> {
    let percent = Item::Text(b"%".to_vec());
    let (argument, letter) = match tag {
        [] => return Ok((percent, tag)),
        [b'%', after @ ..] => return Ok((percent, after)),
        [b'{', inside @ ..] => match inside.iter().position(|byte| *byte == b'}') {
            Some(end) => inside.split_at(end),
            None => (inside, &b""[..]),
        },
        _ => (&b""[..], tag),
    };
    let letter = letter.strip_prefix(b"}").unwrap_or(letter);
    let (letter, after) = match letter.split_first() {
        Some((letter, after)) => (Some(*letter), after),
        None => (None, &b""[..]),
    };
    let item = match letter {
        Some(b't') => Item::Time,
        Some(b'D') => Item::Duration,
        Some(b'l') => Item::Load,
        Some(b'i') => Item::Idle,
        Some(b'b') => Item::Busy,
        Some(b'e') => Item::Variable(argument.to_vec()),
        Some(b's') => Item::Tls(tls_variable(argument, registry)),
        other => {
            let shown = other.map(char::from).map(String::from).unwrap_or_default();
            return Err(format!("Unrecognized header format %{shown}"));
        }
    };
    Ok((item, after))
}

/// An expression for mod_ssl's variable, if mod_ssl is active.
fn tls_variable(name: &[u8], registry: &Registry) -> Option<Expr> {
    let text = [b"%{SSL:", name, b"}"].concat();
    expr::parse_string(registry, &text, Flags::default()).ok()
}

/// Replaces `\n`, `\r`, `\t` and `\\`; any other backslash stays.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let known = match (first, after.first()) {
            (b'\\', Some(b'\\')) => Some(b'\\'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b't')) => Some(b'\t'),
            _ => None,
        };
        out.push(known.unwrap_or(*first));
        rest = if known.is_some() { after.get(1..).unwrap_or_default() } else { after };
    }
    out
}

impl Item {
    fn write(&self, request: &mut Request, out: &mut Vec<u8>) {
        match self {
            Item::Text(text) => out.extend_from_slice(text),
            Item::Time => put(out, format_args!("t={}", request.time_us)),
            Item::Duration => {
                let now = request.engine.handle.clock().precise_wall_us();
                put(out, format_args!("D={}", now.saturating_sub(request.time_us)));
            }
            Item::Load => {
                let [one, five, fifteen] = load_averages();
                put(out, format_args!("l={one:.2}/{five:.2}/{fifteen:.2}"));
            }
            Item::Idle => put(out, format_args!("i={}", 100 - busy_percent(request))),
            Item::Busy => put(out, format_args!("b={}", busy_percent(request))),
            Item::Variable(name) => {
                let value = request.env.get(name).unwrap_or(MISSING);
                unwrap(value, out);
            }
            Item::Tls(variable) => {
                let value = variable.as_ref().and_then(|expr| expr::string(expr, request).ok());
                let value = value.filter(|value| !value.is_empty());
                unwrap(value.as_deref().unwrap_or(MISSING), out);
            }
        }
    }
}

/// The value of an unset variable.
const MISSING: &[u8] = b"(null)";

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// Replaces line ends by spaces, so that a value can't begin a new field.
fn unwrap(value: &[u8], out: &mut Vec<u8>) {
    out.extend(value.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
}

/// The system's load averages over 1, 5 and 15 minutes.
fn load_averages() -> [f64; 3] {
    let scale = f64::from(1u32 << 16);
    rustix::system::sysinfo().loads.map(|load| load as f64 / scale)
}

/// The number of requests being processed, in per cent of the maximum.
fn busy_percent(request: &Request) -> u64 {
    let snapshot = request.engine.scoreboard.snapshot();
    let loops = snapshot.processes.iter().flat_map(|process| &process.loops);
    let busy: u64 = loops.map(|each| each.connections.reading + each.connections.writing).sum();
    let most = Numbers::of(&request.engine.server);
    let most = most.map_or(1, |(_, numbers)| numbers.max_request_workers as u64).max(1);
    // This request is one of them, whatever the scoreboard shows.
    (busy.max(1) * 100).div_ceil(most).min(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Format, String> {
        Format::parse(text.as_bytes(), &Registry::new(Vec::new()))
    }

    fn text(text: &str) -> Item {
        Item::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn tags_and_texts() {
        let items = vec![text("a "), text("%"), text(" "), Item::Time, Item::Variable(b"X".into())];
        assert_eq!(parsed("a %% %t%{X}e"), Ok(Format(items)));
        assert_eq!(parsed("100%"), Ok(Format(vec![text("100"), text("%")])));
        assert_eq!(parsed(""), Ok(Format(vec![])));
    }

    #[test]
    fn unknown_tags_are_refused() {
        assert_eq!(parsed("%x").unwrap_err(), "Unrecognized header format %x");
        assert_eq!(parsed("%{X").unwrap_err(), "Unrecognized header format %");
    }

    #[test]
    fn escapes_of_control_characters() {
        assert_eq!(unescape(b"a\\tb\\\\c\\d\\"), b"a\tb\\c\\d\\");
    }

    #[test]
    fn a_value_is_one_line() {
        let mut out = Vec::new();
        unwrap(b"a\r\nX: b", &mut out);
        assert_eq!(out, b"a  X: b");
    }
}

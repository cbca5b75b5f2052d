//! A parsed text with references, variables and look-ups.
//!
//! Source: `do_expand`, `find_closing_curly`, `find_char_in_curlies`.

use super::variable::Variable;

/// Deepest nesting of look-ups.
const DEPTH_LIMIT: usize = 32;

/// The nesting of look-ups exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("map look-ups are nested more than {DEPTH_LIMIT} levels deep")]
pub(super) struct TooDeep;

/// A text that is filled in for each request, in one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template(pub Vec<Part>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Literal text.
    Literal(Vec<u8>),
    /// An escaped byte, which never begins a query.
    Escaped(u8),
    /// `$0`–`$9`
    OfRule(usize),
    /// `%0`–`%9`
    OfCondition(usize),
    /// `%{name}`
    Variable(Variable),
    /// `${map:key|default}`
    Map(Box<LookUp>),
}

/// A look-up in a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookUp {
    /// The map's name.
    pub map: Vec<u8>,
    /// The key.
    pub key: Template,
    /// The value of a missing key.
    pub default: Option<Template>,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TooDeep`]
    pub fn parse(text: &[u8]) -> Result<Template, TooDeep> {
        parse(text, 0)
    }

    /// The text of a template without variable parts.
    pub fn constant(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(b""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

fn parse(text: &[u8], depth: usize) -> Result<Template, TooDeep> {
    if depth > DEPTH_LIMIT {
        return Err(TooDeep);
    }
    let closing = closing_curlies(text);
    let mut parts = Parts::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        at += match rest {
            [b'\\', byte, ..] => {
                parts.escaped(*byte);
                2
            }
            [sign @ (b'$' | b'%'), digit @ b'0'..=b'9', ..] => {
                let group = usize::from(digit - b'0');
                let is_rule = *sign == b'$';
                parts.push(if is_rule { Part::OfRule(group) } else { Part::OfCondition(group) });
                2
            }
            [sign @ (b'$' | b'%'), b'{', ..] => {
                let open = at + 1;
                let end = closing.get(open).copied().flatten();
                let part = match end {
                    Some(end) if *sign == b'%' => {
                        let name = text.get(open + 1..end).unwrap_or_default();
                        Some(Part::Variable(Variable::parse(name)))
                    }
                    Some(end) => look_up(text, open + 1, end, &closing, depth)?,
                    None => None,
                };
                match (part, end) {
                    (Some(part), Some(end)) => {
                        parts.push(part);
                        end + 1 - at
                    }
                    _ => {
                        parts.literal(&[*sign, b'{']);
                        2
                    }
                }
            }
            [first, more @ ..] => {
                let special = |byte: &u8| matches!(byte, b'\\' | b'$' | b'%');
                let length = more.iter().position(special).unwrap_or(more.len());
                parts.literal(&[*first]);
                parts.literal(more.get(..length).unwrap_or_default());
                length + 1
            }
            [] => 1,
        };
    }
    Ok(Template(parts.0))
}

/// Parses the text between `${` and its end; `None` without a colon.
fn look_up(
    text: &[u8],
    start: usize,
    end: usize,
    closing: &[Option<usize>],
    depth: usize,
) -> Result<Option<Part>, TooDeep> {
    let Some(colon) = find(text, b':', start, end, closing) else { return Ok(None) };
    let bar = find(text, b'|', colon + 1, end, closing);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let key = parse(part(colon + 1, bar.unwrap_or(end)), depth + 1)?;
    let default = match bar {
        Some(bar) if bar + 1 < end => Some(parse(part(bar + 1, end), depth + 1)?),
        _ => None,
    };
    Ok(Some(Part::Map(Box::new(LookUp { map: part(start, colon).to_vec(), key, default }))))
}

/// The first `byte` from `start` outside of nested braces.
fn find(
    text: &[u8],
    byte: u8,
    start: usize,
    end: usize,
    closing: &[Option<usize>],
) -> Option<usize> {
    let mut at = start;
    while at < end {
        match text.get(at)? {
            found if *found == byte => return Some(at),
            b'{' => at = closing.get(at).copied().flatten()? + 1,
            _ => at += 1,
        }
    }
    None
}

/// The closing brace of each opening one, in one pass.
fn closing_curlies(text: &[u8]) -> Vec<Option<usize>> {
    if !text.contains(&b'{') {
        return Vec::new();
    }
    let mut closing = vec![None; text.len()];
    let mut open = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => {
                if let Some(slot) = open.pop().and_then(|start| closing.get_mut(start)) {
                    *slot = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn push(&mut self, part: Part) {
        self.0.push(part);
    }

    fn literal(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(Part::Literal(before)) => before.extend_from_slice(text),
            _ if text.is_empty() => {}
            _ => self.push(Part::Literal(text.to_vec())),
        }
    }

    fn escaped(&mut self, byte: u8) {
        match byte {
            b'?' => self.push(Part::Escaped(byte)),
            _ => self.literal(&[byte]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<Part> {
        Template::parse(text.as_bytes()).unwrap().0
    }

    fn literal(text: &str) -> Part {
        Part::Literal(text.as_bytes().to_vec())
    }

    fn map(name: &str, key: Vec<Part>, default: Option<Vec<Part>>) -> Part {
        let (map, key) = (name.as_bytes().to_vec(), Template(key));
        Part::Map(Box::new(LookUp { map, key, default: default.map(Template) }))
    }

    #[test]
    fn what_means_nothing_stands_for_itself() {
        assert_eq!(parts("/a/b"), [literal("/a/b")]);
        assert_eq!(parts("$$|%%|$|$a|%a$"), [literal("$$|%%|$|$a|%a$")]);
        assert_eq!(parts("%{a|${m:"), [literal("%{a|${m:")]);
        assert_eq!(parts("a\\"), [literal("a\\")]);
        assert_eq!(parts("\\$1\\\\\\%{X}"), [literal("$1\\%{X}")]);
        assert_eq!(parts(""), []);
    }

    #[test]
    fn references_and_variables() {
        let variable = Part::Variable(Variable::parse(b"REQUEST_URI"));
        assert_eq!(
            parts("/$1x%2%{REQUEST_URI}"),
            [literal("/"), Part::OfRule(1), literal("x"), Part::OfCondition(2), variable]
        );
        assert_eq!(parts("/a\\?b"), [literal("/a"), Part::Escaped(b'?'), literal("b")]);
    }

    #[test]
    fn look_ups_nest() {
        assert_eq!(parts("${m:$1}"), [map("m", vec![Part::OfRule(1)], None)]);
        assert_eq!(parts("${m:k|}"), [map("m", vec![literal("k")], None)]);
        assert_eq!(
            parts("${m:${n:a}|${n:b|c}}"),
            [map(
                "m",
                vec![map("n", vec![literal("a")], None)],
                Some(vec![map("n", vec![literal("b")], Some(vec![literal("c")]))])
            )]
        );
        assert_eq!(parts("${m}"), [literal("${m}")]);
    }

    #[test]
    fn depth_is_limited_and_long_texts_take_no_time() {
        let nested = |depth: usize| format!("{}x{}", "${m:".repeat(depth), "}".repeat(depth));
        assert!(Template::parse(nested(DEPTH_LIMIT).as_bytes()).is_ok());
        assert_eq!(Template::parse(nested(DEPTH_LIMIT + 1).as_bytes()), Err(TooDeep));
        for piece in ["${", "${m:", "${}", "%{", "{", "$"] {
            assert!(Template::parse(piece.repeat(200_000).as_bytes()).is_ok(), "{piece}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_template(text: Vec<u8>) {
            let _ = Template::parse(&text);
        }
    }
}

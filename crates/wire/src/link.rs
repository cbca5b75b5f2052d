//! `Link` fields (RFC 8288), as far as they say what a client will need.

use crate::chars::trim_blanks_start;

/// A target with the parameters that matter to mod_http2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link<'v> {
    /// The URI reference.
    pub target: &'v [u8],
    /// Whether one of its relations is `preload`.
    pub is_preload: bool,
    /// Whether it has the parameter `nopush`.
    pub is_nopush: bool,
    /// Whether it has the parameter `critical`.
    pub is_critical: bool,
}

/// The links in the value of a field, up to the first one that is malformed.
pub fn links(value: &[u8]) -> impl Iterator<Item = Link<'_>> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let (link, after) = link(rest?)?;
        rest = trim_blanks_start(after).strip_prefix(b",");
        Some(link)
    })
}

/// Reads a link; returns it, and what follows.
fn link(text: &[u8]) -> Option<(Link<'_>, &[u8])> {
    let text = trim_blanks_start(text).strip_prefix(b"<")?;
    let (target, mut text) = split_at_byte(text, b'>')?;
    let mut link = Link { target, ..Link::default() };
    while let Some((name, value, after)) = parameter(text) {
        text = after;
        match name.to_ascii_lowercase().as_slice() {
            // A later one counts.
            b"rel" => {
                link.is_preload =
                    value.split(|byte| *byte == b' ').any(|relation| relation == b"preload")
            }
            b"nopush" => link.is_nopush = true,
            b"critical" => link.is_critical = true,
            _ => {}
        }
    }
    Some((link, text))
}

/// Reads a parameter: its name, its value or nothing, and what follows.
fn parameter(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let text = trim_blanks_start(trim_blanks_start(text).strip_prefix(b";")?);
    let (name, text) = split_while(text, is_of_name)?;
    let Some(after) = trim_blanks_start(text).strip_prefix(b"=") else {
        return Some((name, b"", text));
    };
    let after = trim_blanks_start(after);
    let quoted = after.strip_prefix(b"\"").and_then(|quoted| split_at_byte(quoted, b'"'));
    match quoted.or_else(|| split_while(after, is_of_token)) {
        Some((value, after)) => Some((name, value, after)),
        None => Some((name, b"", after)),
    }
}

/// What precedes a byte, and what follows it.
fn split_at_byte(text: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == end)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// The bytes at the beginning, if there are any, and what follows them.
fn split_while(text: &[u8], is_part: fn(u8) -> bool) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| is_part(**byte)).count();
    (count > 0).then(|| text.split_at(count))
}

/// `attr-char` (RFC 5987).
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte)
}

/// `ptokenchar` (RFC 5988), as Apache has it.
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$&'()*+-./:<=>?@[]^_`{|}~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets that are pushed.
    fn pushed(value: &str) -> Vec<&str> {
        let pushed = links(value.as_bytes()).filter(|link| link.is_preload && !link.is_nopush);
        pushed.map(|link| std::str::from_utf8(link.target).unwrap()).collect()
    }

    #[test]
    fn preloads_are_found_as_apache_finds_them() {
        for (value, expected) in [
            ("</a>; rel=preload", &["/a"][..]),
            ("</a>", &[]),
            ("", &[]),
            ("</a>; rel=preload; nopush", &[]),
            ("</a>; rel=\"preload prefetch\"", &["/a"]),
            ("</a>; rel=\"prefetch preload\"", &["/a"]),
            ("</a>; rel=xpreload", &[]),
            ("</a>; rel=PRELOAD", &[]),
            ("</a>;rel=preload, </b>;rel=preload", &["/a", "/b"]),
            ("</a>;rel=preload, junk, </b>;rel=preload", &["/a"]),
            ("</a>; title=\"a;b,c\"; rel=preload", &["/a"]),
            ("</a> ; rel = preload , </b>", &["/a"]),
            ("</a>; rel=x; rel=preload", &["/a"]),
            ("</a>; rel=preload; rel=x", &[]),
            ("</a>; Rel=preload", &["/a"]),
            ("</a>; rel=; nopush, </b>;rel=preload", &["/b"]),
            ("</a; rel=preload", &[]),
            ("<>; rel=preload", &[""]),
        ] {
            assert_eq!(pushed(value), expected, "{value}");
        }
    }

    #[test]
    fn parameters_need_no_value() {
        let link = links(b"</a>;critical; rel=preload;as=style").next().unwrap();
        assert!(link.is_critical && link.is_preload && !link.is_nopush);
    }
}

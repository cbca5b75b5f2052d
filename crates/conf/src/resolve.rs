//! Replaces `${NAME}` by the value of `Define` or of the environment (`ap_resolve_env`).

use bstr::{BString, ByteSlice};

use crate::defines::Defines;
use crate::source::Span;
use crate::text::Text;

/// An undefined name with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The name between the braces.
    pub name: BString,
    /// The position of `${NAME}`.
    pub span: Span,
}

/// Replaces every `${NAME}` that has a value; others stay as they are.
///
/// Values are not expanded again. A name with a colon is left alone and not reported: it is a map
/// look-up of mod_rewrite.
pub fn resolve(text: &Text, defines: &Defines) -> (Text, Vec<Undefined>) {
    let bytes = text.bytes();
    if bytes.find(b"${").is_none() {
        return (text.clone(), Vec::new());
    }
    let mut out = text.slice(0..0);
    let mut undefined = Vec::new();
    let mut at = 0;
    while let Some((start, end)) = next_reference(bytes, at) {
        out.append(text, at..start);
        let name = bytes.get(start + 2..end - 1).unwrap_or(&[]);
        match value(name, defines) {
            Some(value) => out.push_replaced(&value, text.span(start..end)),
            None => {
                if !name.contains(&b':') {
                    undefined.push(Undefined { name: name.into(), span: text.span(start..end) });
                }
                out.append(text, start..end);
            }
        }
        at = end;
    }
    out.append(text, at..bytes.len());
    (out, undefined)
}

/// The next `${…}` from `at`: from its dollar to the end of its brace.
fn next_reference(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let start = at + bytes.get(at..)?.find(b"${")?;
    let length = bytes.get(start..)?.find_byte(b'}')?;
    Some((start, start + length + 1))
}

fn value(name: &[u8], defines: &Defines) -> Option<BString> {
    if let Some(value) = defines.value(name) {
        return Some(value.into());
    }
    // Some calls of the standard library panic on such names, which can't be variables anyway.
    if name.is_empty() || name.contains(&b'=') || name.contains(&0) {
        return None;
    }
    let value = std::env::var_os(name.to_os_str().ok()?)?;
    Some(std::os::unix::ffi::OsStringExt::into_vec(value).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileId;

    fn resolved(line: &str, names: &[(&str, &str)]) -> (Text, Vec<Undefined>) {
        let mut text = Text::new(FileId::default());
        text.push_source(line.as_bytes(), 7, 3);
        let mut defines = Defines::new();
        for (name, value) in names {
            defines.set(name.as_bytes(), Some(value.as_bytes()));
        }
        resolve(&text, &defines)
    }

    #[test]
    fn values_are_put_in_once() {
        let (text, undefined) = resolved("a ${X}${Y} b", &[("X", "1 ${Y}"), ("Y", "")]);
        assert_eq!(text.bytes(), "a 1 ${Y}${Y} b");
        assert_eq!(undefined.len(), 1);
        let (text, _) = resolved("${PATH}", &[]);
        assert_eq!(text.bytes().to_string(), std::env::var("PATH").unwrap());
    }

    #[test]
    fn what_has_no_value_stays() {
        let (text, undefined) = resolved("${NO_SUCH_NAME} ${a:b} ${open $X", &[("X", "1")]);
        assert_eq!(text.bytes(), "${NO_SUCH_NAME} ${a:b} ${open $X");
        assert_eq!(undefined.len(), 1);
        assert_eq!(undefined[0].span.column, 3);
        assert_eq!(undefined[0].span.length, 15);
    }

    #[test]
    fn places_survive() {
        let (text, _) = resolved("a ${X} end", &[("X", "long value")]);
        let value = text.span(2..6);
        assert_eq!((value.line, value.column, value.length), (7, 5, 4));
        let at = text.bytes().find("end").unwrap();
        assert_eq!(text.span(at..at + 3).column, 10);
    }
}

//! `${NAME}`: values of `Define`, then of the environment, put into a line (`ap_resolve_env`).

use bstr::{BString, ByteSlice};

use crate::defines::Defines;
use crate::source::Span;
use crate::text::Text;

/// A name that stands nowhere, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The name between the braces.
    pub name: BString,
    /// Where `${NAME}` stands.
    pub span: Span,
}

/// The text with every `${NAME}` replaced that has a value; what has none stays as it is.
///
/// A value is not looked at again. A name with a colon is left alone, as it is a map look-up of
/// mod_rewrite, and is not reported.
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

/// The next `${…}` from `at` on, from its dollar to behind its brace.
fn next_reference(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let start = at + bytes.get(at..)?.find(b"${")?;
    let length = bytes.get(start..)?.find_byte(b'}')?;
    Some((start, start + length + 1))
}

fn value(name: &[u8], defines: &Defines) -> Option<BString> {
    if let Some(value) = defines.value(name) {
        return Some(value.into());
    }
    // The standard library panics on such names in some calls; they can't be variables anyway.
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

//! `ProxyHTMLMeta`: header fields from `<meta http-equiv>` elements. Source: `metafix`.

use std::ops::Range;
use std::sync::LazyLock;

use pcre::{Captures, Flags, Regex};

static META: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(b"<meta[^>]*(http-equiv)[^>]*>", Flags::default().ignoring_case()).ok()
});

/// What the elements say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Metas {
    /// Names and values of fields.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The last element that names the media type, which is cut out.
    pub cut: Option<Range<usize>>,
}

/// Reads the elements in the beginning of a document.
pub fn read(text: &[u8]) -> Metas {
    let mut metas = Metas::default();
    let mut captures = Captures::new();
    let Some(regex) = LazyLock::force(&META) else { return metas };
    let mut from = 0;
    while let Some(rest) = text.get(from..)
        && regex.glance(rest, Some(&mut captures)) == Ok(true)
    {
        let (Some(all), Some(word)) = (captures.range(0), captures.range(1)) else { break };
        let element = rest.get(all.clone()).unwrap_or_default();
        let name = name_behind(rest.get(word.end..).unwrap_or_default());
        let begins = |prefix: &[u8]| {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if begins(b"Content-Type") {
            metas.cut = Some(from + all.start..from + all.end);
        } else if !begins(b"Content-")
            && let Some(value) = content(element)
        {
            metas.fields.push((name.to_vec(), value.to_vec()));
        }
        from += all.end;
    }
    metas
}

/// The first name behind `http-equiv`.
fn name_behind(text: &[u8]) -> &[u8] {
    let start =
        text.iter().skip(1).position(u8::is_ascii_alphabetic).map_or(text.len(), |at| at + 1);
    let name = text.get(start..).unwrap_or_default();
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    name.get(..name.iter().take_while(is_part).count()).unwrap_or_default()
}

/// The value of the attribute `content`, which Apache finds in lower case only.
fn content(element: &[u8]) -> Option<&[u8]> {
    let at = element.windows(7).position(|word| word == b"content")?;
    let rest = element.get(at + 7..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    match rest {
        [quote @ (b'"' | b'\''), value @ ..] => value.split(|byte| byte == quote).next(),
        value => value.split(|byte| byte.is_ascii_whitespace() || *byte == b'>').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let text =
            b"<META http-equiv=Refresh content='5; url=/x'><meta http-equiv=\"Content-Type\" \
            content=a><meta content=y http-equiv=X-A><meta http-equiv=Content-Language content=de>";
        let metas = read(text);
        let field = |name: &str, value: &str| (name.into(), value.into());
        assert_eq!(metas.fields, [field("Refresh", "5; url=/x"), field("X-A", "y")]);
        assert_eq!(metas.cut, Some(45..87));
        assert_eq!(read(b"<meta http-equiv>"), Metas::default());
    }
}

//! Finding out the character set of a text. Source: `sniff_encoding`.

use std::sync::LazyLock;

use pcre::{Captures, Flags, Regex};
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::charset::{self, Charset, Known};
use super::{Found, Xml2enc, resolved};

/// What is done with the beginning of a text.
pub(super) struct Sniffed {
    /// For the filter behind.
    pub found: Found,
    /// The character set to convert from, if this filter converts.
    pub convert: Option<Charset>,
    /// The element to cut out.
    pub cut: Option<std::ops::Range<usize>>,
}

/// An element that names the media type.
static META: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = b"(<meta[^>]*http-equiv[ \\t\\r\\n='\"]*content-type[^>]*>)";
    Regex::new(pattern, Flags::default().ignoring_case()).ok()
});

/// The name of a character set in a media type.
static CHARSET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(b"charset=([A-Za-z0-9_-]+)", Flags::default().ignoring_case()).ok()
});

/// Looks at the beginning of a text, and names its new character set in the response.
pub(super) fn sniff(request: &mut Request, head: &[u8]) -> Sniffed {
    let media = request.response.content_type.clone().unwrap_or_default();
    request.log::<Xml2enc>(
        Level::Debug,
        1430,
        format_args!("Content-Type is {}", Verbatim::new(&media)),
    );
    let mut name = of_media_type(&media);
    let mut known = Known::Nothing;
    if let Some(name) = &name {
        let shown = Verbatim::new(name);
        let what = format_args!("Got charset {shown} from HTTP headers");
        request.log::<Xml2enc>(Level::Info, 1431, what);
        known = charset::known(resolved(request, name));
    }
    if known == Known::Nothing
        && let Some((charset, detected)) = charset::detect(head)
    {
        request.log::<Xml2enc>(Level::Info, 1432, format_args!("Got charset from XML rules."));
        name = Some(detected.into());
        known = Known::Charset(charset);
    }
    // libxml2 would follow what is about to be wrong, so the element is cut out in any case.
    let cut = find(&META, head, 0);
    if let Some(cut) = &cut
        && name.is_none()
    {
        let element = head.get(cut.clone()).unwrap_or_default();
        if let Some(place) = find(&CHARSET, element, 1) {
            let named = element.get(place).unwrap_or_default();
            known = charset::known(resolved(request, named));
            if matches!(known, Known::Charset(_)) {
                let shown = Verbatim::new(named);
                let what = format_args!("Got charset {shown} from HTML META");
                request.log::<Xml2enc>(Level::Info, 1433, what);
            }
            name = Some(named.into());
        }
    }
    let (name, charset, convert) = decide(request, name, known);
    name_utf8(request, &media);
    let place = cut.as_ref().map(|cut| cut.start).filter(|_| convert.is_none());
    Sniffed { found: Found { charset, name, cut: place }, convert, cut }
}

/// The name, the character set behind the filter, and the one that it converts from.
fn decide(
    request: &Request,
    name: Option<Vec<u8>>,
    known: Known,
) -> (Vec<u8>, Charset, Option<Charset>) {
    let config = request.dir_of::<Xml2enc>().and_then(|config| config.default.get());
    let name = match (name, known) {
        (name, Known::Charset(charset)) => return (name.unwrap_or_default(), charset, None),
        (Some(name), _) => name,
        (None, _) => config.map_or_else(|| b"ISO-8859-1".to_vec(), |(name, _)| name.clone()),
    };
    let shown = Verbatim::new(&name);
    let what = format_args!("Charset {shown} not supported by libxml2; trying apr_xlate");
    request.log::<Xml2enc>(Level::Debug, 1434, what);
    if let Some(charset) = Charset::of(&name) {
        return (name, Charset::Utf8, Some(charset));
    }
    let what = format_args!("Charset {shown} not supported.  Consider aliasing it?");
    request.log::<Xml2enc>(Level::Error, 1435, what);
    let what = format_args!("No usable charset information; using configuration default");
    request.log::<Xml2enc>(Level::Warn, 1436, what);
    let charset = config.map_or(Charset::Latin1, |(_, charset)| *charset);
    (name, charset, None)
}

/// The character set in a media type.
fn of_media_type(media: &[u8]) -> Option<Vec<u8>> {
    const PARAMETER: &[u8] = b"charset=";
    let at =
        media.windows(PARAMETER.len()).position(|part| part.eq_ignore_ascii_case(PARAMETER))?;
    let value = media.get(at + PARAMETER.len()..)?;
    Some(value.split(|byte| matches!(byte, b' ' | b';')).next().unwrap_or_default().to_vec())
}

/// Names UTF-8 in the media type.
fn name_utf8(request: &mut Request, media: &[u8]) {
    let named = match find(&CHARSET, media, 1) {
        None => [media, b";charset=utf-8"].concat(),
        Some(place) => {
            let (before, after) = (media.get(..place.start), media.get(place.end..));
            [before.unwrap_or_default(), b"utf-8", after.unwrap_or_default()].concat()
        }
    };
    request.response.content_type = Some(named);
}

/// The place of a group in the first match.
fn find(
    regex: &LazyLock<Option<Regex>>,
    text: &[u8],
    group: usize,
) -> Option<std::ops::Range<usize>> {
    // Apache's subject is a C string.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut captures = Captures::new();
    let matched = regex.as_ref()?.glance(text, Some(&mut captures));
    if matched == Ok(true) { captures.range(group) } else { None }
}

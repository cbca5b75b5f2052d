//! The quality of a variant for a client: type, language, charset, encoding.
//!
//! Source: `set_accept_quality`, `set_language_quality`, `set_charset_quality`,
//! `set_encoding_quality` (modules/mappers/mod_negotiation.c).

use wire::accept::Entry;

use super::accept::{Accepts, Terms};
use super::variant::{INCLUDES_TYPE, INCLUDES_TYPE_3, Variant};
use super::{Directory, Force};

/// The quality of variants without a language if others have one, of the choice by
/// `ForceLanguagePriority Fallback`, and of no encoding if it was not requested.
const LEAST: f32 = 0.0001;

/// The quality of a language that matches a requested one only in its first part.
const RELATED_LANGUAGE: f32 = 0.001;

fn quality(entry: &Entry) -> f32 {
    f32::from(entry.quality_milli) / 1000.0
}

/// Applies `Accept`: the closest element counts.
pub(super) fn by_type(accepts: &Accepts, terms: &Terms, variant: &mut Variant) {
    let mut found = 0.0;
    let mut definite = true;
    for entry in &accepts.types {
        let before = variant.wanted.closeness;
        if !matches_type(entry, variant) || variant.wanted.closeness == before {
            continue;
        }
        // Old browsers append a wildcard that is not meant literally.
        let guessed = !terms.literal && !accepts.has_quality;
        found = match variant.wanted.closeness {
            1 if guessed => 0.01,
            2 if guessed => 0.02,
            _ => quality(entry),
        };
        definite = variant.wanted.closeness == 3;
    }
    variant.wanted.media_type = found;
    variant.wanted.definite &= definite;
}

/// Whether an element matches; notes how closely (`mime_match`).
fn matches_type(entry: &Entry, variant: &mut Variant) -> bool {
    let (name, own) = (entry.name.as_slice(), variant.media_type.as_slice());
    let family = name.strip_suffix(b"*").map(|rest| rest.get(..rest.len().saturating_sub(1)));
    let same_html = name == b"text/html" && variant.is_html();
    if name.first() == Some(&b'*') {
        variant.wanted.closeness = variant.wanted.closeness.max(1);
        true
    } else if let Some(Some(family)) = family
        && own.starts_with(family)
    {
        variant.wanted.closeness = variant.wanted.closeness.max(2);
        true
    } else if (name == own || same_html) && entry.level >= variant.level {
        variant.wanted.level_matched = variant.level;
        variant.wanted.closeness = 3;
        true
    } else {
        false
    }
}

/// The quality of a variant without a language (`set_default_lang_quality`).
pub(super) fn without_language(terms: &Terms, variants: &[Variant]) -> f32 {
    let some = variants.iter().any(|variant| !variant.languages.is_empty());
    if some && !terms.literal { LEAST } else { 1.0 }
}

/// Applies `Accept-Language`, then `LanguagePriority`.
pub(super) fn by_language(
    accepts: &Accepts,
    terms: &Terms,
    dir: &Directory,
    default: f32,
    variant: &mut Variant,
) {
    if variant.languages.is_empty() {
        if !terms.literal {
            variant.wanted.language = default;
        }
        return;
    }
    match &accepts.languages {
        None => variant.wanted.definite = false,
        Some(list) => {
            let (found, definite) = best_language(list, terms, &variant.languages);
            variant.wanted.language = found;
            variant.wanted.definite &= definite;
        }
    }
    by_priority(dir, variant);
}

/// The quality of the best of a variant's languages, and whether it is definite.
fn best_language(list: &[Entry], terms: &Terms, languages: &[Vec<u8>]) -> (f32, bool) {
    let star = list.iter().find(|entry| entry.name == b"*");
    let (mut best, mut by_star, mut related) = (None::<&Entry>, false, 0.0);
    for language in languages {
        let mut longest = None::<&Entry>;
        for entry in list.iter().filter(|entry| entry.name != b"*") {
            let closer = longest.is_none_or(|found| entry.name.len() > found.name.len());
            if is_range_of(&entry.name, language) && closer && !entry.name.is_empty() {
                longest = Some(entry);
            }
            if longest.is_none() && !terms.literal && shares_first_part(&entry.name, language) {
                related = RELATED_LANGUAGE;
            }
        }
        match (best, longest) {
            (None, _) => best = longest,
            (Some(before), Some(found)) if found.quality_milli > before.quality_milli => {
                best = longest;
            }
            _ => {}
        }
        by_star |= longest.is_none() && star.is_some();
    }
    if let Some(star) = star.filter(|_| by_star)
        && best.is_none_or(|best| star.quality_milli > best.quality_milli)
    {
        return (quality(star), false);
    }
    (best.map_or(related, quality), true)
}

/// Whether `range` covers `language`: `en` covers `en` and `en-gb`.
fn is_range_of(range: &[u8], language: &[u8]) -> bool {
    let rest = language.strip_prefix(range);
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'-')))
}

/// Whether the first parts are equal: `en-us` was requested, and the variant is in `en` or `en-gb`.
fn shares_first_part(range: &[u8], language: &[u8]) -> bool {
    let first = range.iter().position(|byte| *byte == b'-').and_then(|end| range.get(..end));
    first.is_some_and(|first| language.starts_with(first))
}

fn by_priority(dir: &Directory, variant: &mut Variant) {
    let force = dir.force.or(Force::DEFAULT);
    let Some(priority) = dir.language_priority.get() else { return };
    let place_of = |language: &Vec<u8>| {
        priority.iter().position(|wanted| {
            language.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
        })
    };
    let Some(place) = variant.languages.iter().filter_map(place_of).min() else { return };
    let unwanted = variant.wanted.language == 0.0;
    if !unwanted && force.prefer {
        variant.wanted.language_place = Some(place);
    }
    if unwanted && force.fallback {
        variant.wanted.language_place = Some(place);
        variant.wanted.language = LEAST;
        variant.wanted.definite = false;
    }
}

/// The default charset of text.
pub(super) const LATIN_1: &[u8] = b"iso-8859-1";

/// Applies `Accept-Charset`.
pub(super) fn by_charset(accepts: &Accepts, terms: &Terms, variant: &mut Variant) {
    let Some(list) = &accepts.charsets else {
        if !variant.charset.is_empty() {
            variant.wanted.definite = false;
        }
        return;
    };
    let own = variant.media_type.as_slice();
    let is_text = own.starts_with(b"text/") || matches!(own, INCLUDES_TYPE | INCLUDES_TYPE_3);
    let charset = match variant.charset.as_slice() {
        b"" if !is_text || terms.literal => return,
        b"" => LATIN_1,
        named => named,
    };
    if let Some(entry) = list.iter().find(|entry| entry.name == charset) {
        variant.wanted.charset = quality(entry);
    } else if let Some(star) = list.iter().rev().find(|entry| entry.name == b"*") {
        variant.wanted.charset = quality(star);
        variant.wanted.definite = false;
    } else {
        variant.wanted.charset = if charset == LATIN_1 { 1.0 } else { 0.0 };
    }
}

/// Applies `Accept-Encoding`; `x-gzip` is `gzip`.
pub(super) fn by_encoding(accepts: &Accepts, variant: &mut Variant) {
    let own = variant.encoding.as_deref();
    let plain = matches!(own, None | Some(b"" | b"7bit" | b"8bit" | b"binary"));
    let Some(list) = &accepts.encodings else {
        variant.wanted.encoding = if plain { 1.0 } else { 0.5 };
        return;
    };
    let wanted = if plain { b"identity" } else { without_x(own.unwrap_or_default()) };
    if let Some(entry) = list.iter().find(|entry| without_x(&entry.name) == wanted) {
        variant.wanted.encoding = quality(entry);
    } else if let Some(star) = list.iter().rev().find(|entry| entry.name == b"*") {
        variant.wanted.encoding = quality(star);
    } else {
        variant.wanted.encoding = if plain { LEAST } else { 0.0 };
    }
}

/// A coding's name without `x-`.
pub(super) fn without_x(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"x-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::accept::parse;

    fn languages(field: &str, own: &[&str], literal: bool) -> (f32, bool) {
        let own: Vec<Vec<u8>> = own.iter().map(|name| name.as_bytes().to_vec()).collect();
        let terms = Terms { literal, ..Terms::plain(true) };
        best_language(&parse(field.as_bytes()), &terms, &own)
    }

    #[test]
    fn the_longest_range_counts_for_a_language() {
        assert_eq!(languages("en;q=0.5, en-gb;q=0.2", &["en-gb"], false), (0.2, true));
        assert_eq!(languages("en;q=0.5", &["en-gb"], false), (0.5, true));
        assert_eq!(languages("en-gb", &["en"], false), (RELATED_LANGUAGE, true));
        assert_eq!(languages("en-gb", &["en"], true), (0.0, true));
        assert_eq!(languages("de, *;q=0.3", &["fr"], false), (0.3, false));
        assert_eq!(languages("de;q=0.1, fr;q=0.9", &["de", "fr"], false), (0.9, true));
    }

    fn media_type(field: &str, own: &str) -> f32 {
        let (headers, terms) = (parse(field.as_bytes()), Terms::plain(true));
        let accepts =
            Accepts { types: headers, has_quality: field.contains("q=0"), ..Accepts::default() };
        let mut variant = Variant::default();
        variant.set_type(wire::accept::parse_one(own.as_bytes()).0);
        by_type(&accepts, &terms, &mut variant);
        variant.wanted.media_type
    }

    #[test]
    fn the_closest_element_counts() {
        assert_eq!(media_type("text/*;q=0.3, text/plain;q=0.7, */*;q=0.1", "text/plain"), 0.7);
        assert_eq!(media_type("text/*;q=0.3, */*;q=0.1", "text/plain"), 0.3);
        assert_eq!(media_type("text/*, */*", "text/plain"), 0.02);
        assert_eq!(media_type("image/*", "text/plain"), 0.0);
        assert_eq!(media_type("image/*, */*", "text/plain"), 0.01);
    }

    #[test]
    fn encodings() {
        let wanted = |field: Option<&str>, own: Option<&str>| {
            let encodings = field.map(|field| parse(field.as_bytes()));
            let accepts = Accepts { encodings, ..Accepts::default() };
            let encoding = own.map(|own| own.as_bytes().to_vec());
            let mut variant = Variant { encoding, ..Variant::default() };
            by_encoding(&accepts, &mut variant);
            variant.wanted.encoding
        };
        assert_eq!(wanted(None, Some("gzip")), 0.5);
        assert_eq!(wanted(Some("gzip"), Some("x-gzip")), 1.0);
        assert_eq!(wanted(Some("br"), Some("gzip")), 0.0);
        assert_eq!(wanted(Some("br"), None), LEAST);
        assert_eq!(wanted(Some("identity;q=0"), None), 0.0);
    }
}

//! Chooses among variants.
//!
//! Source: `best_match`, `is_variant_better`, `is_variant_better_rvsa`
//! (modules/mappers/mod_negotiation.c); RFC 2296.

use std::cmp::Ordering;

use wire::Table;

use super::Directory;
use super::accept::{Accepts, Terms};
use super::quality::{self, LATIN_1};
use super::variant::{Variant, Wanted};

/// The outcome of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The index of the best variant, if there is one.
    pub best: Option<usize>,
    /// Whether it is good enough to be served; otherwise the client gets a list.
    pub clear: bool,
}

/// The encoded variants that the environment excludes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discard {
    Nothing,
    /// `no-gzip`
    Encoded,
    /// `gzip-only-text/html`
    EncodedButHtml,
}

impl Discard {
    fn read(env: &Table) -> Discard {
        if env.contains(b"no-gzip") {
            Discard::Encoded
        } else if env.get(b"gzip-only-text/html") == Some(b"1") {
            Discard::EncodedButHtml
        } else {
            Discard::Nothing
        }
    }

    fn takes(self, variant: &Variant) -> bool {
        match self {
            Discard::Nothing => false,
            _ if variant.is_identity() => false,
            Discard::Encoded => true,
            Discard::EncodedButHtml => !variant.media_type.starts_with(b"text/html"),
        }
    }
}

/// Finds the best variant, and notes the quality of each. `prefer-language` of the environment is
/// tried first, and dropped if it finds nothing.
pub(super) fn best_match(
    accepts: &Accepts,
    terms: &Terms,
    dir: &Directory,
    env: &Table,
    variants: &mut [Variant],
) -> Choice {
    let discard = Discard::read(env);
    if let Some(language) = env.get(b"prefer-language") {
        let choice = round(accepts, terms, dir, discard, Some(language), variants);
        if choice.clear && choice.best.is_some() {
            return choice;
        }
    }
    round(accepts, terms, dir, discard, None, variants)
}

fn round(
    accepts: &Accepts,
    terms: &Terms,
    dir: &Directory,
    discard: Discard,
    language: Option<&[u8]>,
    variants: &mut [Variant],
) -> Choice {
    let default = quality::without_language(terms, variants);
    let mut best = None::<usize>;
    let mut best_quality = 0.0;
    for at in 0..variants.len() {
        let Some(variant) = variants.get_mut(at) else { break };
        let excluded = language.is_some_and(|language| !variant.has_language(language));
        if discard.takes(variant) || excluded {
            continue;
        }
        variant.wanted = Wanted::default();
        quality::by_type(accepts, terms, variant);
        match language {
            Some(_) => variant.wanted.definite = true,
            None => quality::by_language(accepts, terms, dir, default, variant),
        }
        quality::by_encoding(accepts, variant);
        quality::by_charset(accepts, terms, variant);
        if !terms.may_choose {
            continue;
        }
        let Some(variant) = variants.get(at) else { break };
        let rival = best.and_then(|best| variants.get(best));
        let better = match terms.remote {
            true => is_better_remotely(variant, rival, best_quality),
            false => is_better(variant, rival, best_quality),
        };
        if let Some(quality) = better {
            best_quality = quality;
            best = Some(at);
        }
    }
    let definite = best.and_then(|best| variants.get(best)).is_some_and(|v| v.wanted.definite);
    Choice { best, clear: best_quality > 0.0 && (!terms.remote || definite) }
}

/// The quality of a variant that is better than the best so far by RFC 2296; `None` otherwise.
fn is_better_remotely(variant: &Variant, best: Option<&Variant>, best_quality: f32) -> Option<f32> {
    let wanted = variant.wanted;
    if wanted.encoding == 0.0 {
        return None;
    }
    let quality = wanted.media_type * variant.source_quality * wanted.charset * wanted.language;
    if quality <= 0.0 {
        return None;
    }
    let equal_but_encoding =
        quality == best_quality && best.is_some_and(|best| wanted.encoding > best.wanted.encoding);
    (quality > best_quality || equal_but_encoding).then_some(quality)
}

/// The quality of a variant that is better than the best so far by Apache's rules (type, language,
/// level, charset, encoding, length); `None` otherwise.
fn is_better(variant: &Variant, best: Option<&Variant>, best_quality: f32) -> Option<f32> {
    let wanted = variant.wanted;
    let all = [
        wanted.encoding,
        wanted.language,
        variant.source_quality,
        wanted.charset,
        wanted.media_type,
    ];
    if all.contains(&0.0) {
        return None;
    }
    let quality = wanted.media_type * variant.source_quality;
    if quality == 0.0 || quality < best_quality {
        return None;
    }
    let Some(best) = best.filter(|_| quality <= best_quality) else { return Some(quality) };
    (among_equals(variant, best) == Ordering::Greater).then_some(quality)
}

/// Compares two variants whose types have the same quality.
fn among_equals(variant: &Variant, best: &Variant) -> Ordering {
    let (own, other) = (variant.wanted, best.wanted);
    by_value(own.language, other.language)
        .then_with(|| by_place(own.language_place, other.language_place))
        .then_with(|| by_level(variant, best))
        .then_with(|| by_value(own.charset, other.charset))
        .then_with(|| by_charset(variant, best))
        .then_with(|| by_value(own.encoding, other.encoding))
        .then_with(|| match (variant.bytes, best.bytes) {
            // An unknown length is less than any other.
            (Some(own), Some(other)) => other.cmp(&own),
            (None, Some(_)) => Ordering::Greater,
            _ => Ordering::Equal,
        })
}

fn by_value(own: f32, other: f32) -> Ordering {
    own.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

/// A position in `LanguagePriority` is better than none, and an early one better than a late one.
fn by_place(own: Option<usize>, other: Option<usize>) -> Ordering {
    match (own, other) {
        (Some(own), Some(other)) => other.cmp(&own),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Ordering::Equal,
    }
}

/// The highest requested level wins, otherwise the lowest (`level_cmp`).
fn by_level(variant: &Variant, best: &Variant) -> Ordering {
    let comparable = match variant.is_html() {
        true => best.is_html(),
        false => variant.media_type == best.media_type,
    };
    if !comparable {
        return Ordering::Equal;
    }
    let matched = variant.wanted.level_matched.cmp(&best.wanted.level_matched);
    matched.then_with(|| best.level.cmp(&variant.level))
}

/// An explicit charset is better than the old default.
fn by_charset(variant: &Variant, best: &Variant) -> Ordering {
    let is_old = |charset: &[u8]| charset.is_empty() || charset == LATIN_1;
    match !is_old(&variant.charset) && is_old(&best.charset) {
        true => Ordering::Greater,
        false => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappers::mod_negotiation::Force;
    use wire::accept::parse_one;

    fn variant(name: &str, media_type: &str, languages: &[&str]) -> Variant {
        let mut variant = Variant { file_name: name.into(), bytes: Some(1), ..Variant::default() };
        variant.set_type(parse_one(media_type.as_bytes()).0);
        variant.languages = languages.iter().map(|name| name.as_bytes().to_vec()).collect();
        variant
    }

    fn choose(
        fields: &[(&str, &str)],
        env: &[(&str, &str)],
        dir: &Directory,
        variants: &mut [Variant],
    ) -> Option<String> {
        let (mut headers, mut variables) = (Table::new(), Table::new());
        fields.iter().for_each(|(name, value)| headers.set(name.as_bytes(), value.as_bytes()));
        env.iter().for_each(|(name, value)| variables.set(name.as_bytes(), value.as_bytes()));
        let (mut accepts, given) = Accepts::read(&headers);
        let terms = Terms::plain(true);
        accepts.add_defaults(given, &terms, false);
        let choice = best_match(&accepts, &terms, dir, &variables, variants);
        let best = variants.get(choice.best.filter(|_| choice.clear)?)?;
        Some(String::from_utf8_lossy(&best.file_name).into_owned())
    }

    fn priority(languages: &[&str], force: Option<Force>) -> Directory {
        let mut dir = Directory::default();
        let languages = languages.iter().map(|name| name.as_bytes().to_vec());
        dir.language_priority.set(languages.collect());
        if let Some(force) = force {
            dir.force.set(force);
        }
        dir
    }

    fn three() -> Vec<Variant> {
        ["en", "de", "fr"].iter().map(|name| variant(name, "text/html", &[name])).collect()
    }

    #[test]
    fn languages() {
        let none = Directory::default();
        let by = |field: &str, dir: &Directory| {
            choose(&[("Accept-Language", field)], &[], dir, &mut three())
        };
        assert_eq!(by("de", &none).as_deref(), Some("de"));
        assert_eq!(by("it", &none), None);
        let prefer = priority(&["fr", "de"], None);
        assert_eq!(by("en, de", &prefer).as_deref(), Some("de"));
        assert_eq!(by("it", &prefer), None);
        let fallback = priority(&["fr"], Some(Force { prefer: false, fallback: true }));
        assert_eq!(by("it", &fallback).as_deref(), Some("fr"));
    }

    #[test]
    fn a_preferred_language_counts_before_all_others() {
        let none = Directory::default();
        let by = |language: &str| {
            let env = [("prefer-language", language)];
            choose(&[("Accept-Language", "de")], &env, &none, &mut three())
        };
        assert_eq!(by("fr").as_deref(), Some("fr"));
        assert_eq!(by("it").as_deref(), Some("de"));
    }

    #[test]
    fn the_environment_rules_encodings_out() {
        let two = || {
            let mut packed = variant("packed", "text/plain", &[]);
            packed.encoding = Some(b"gzip".to_vec());
            vec![packed, variant("plain", "text/plain", &[])]
        };
        let none = Directory::default();
        let by =
            |env: &[(&str, &str)]| choose(&[("Accept-Encoding", "gzip")], env, &none, &mut two());
        assert_eq!(by(&[]).as_deref(), Some("packed"));
        assert_eq!(by(&[("no-gzip", "1")]).as_deref(), Some("plain"));
        assert_eq!(by(&[("gzip-only-text/html", "1")]).as_deref(), Some("plain"));
    }
}

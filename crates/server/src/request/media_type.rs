//! The `Content-Type` field.

use std::borrow::Cow;

use super::Request;
use crate::config::core::CoreDir;
use crate::phases::errors::SuppressCharset;

/// Marks a request whose media type chooses no handler (`AP_REQUEST_TRUSTED_CT`).
struct UntrustedType;

impl Request {
    /// Sets a media type that comes from a document: no handler is chosen by it, unless the request
    /// has this type already.
    pub fn set_untrusted_type(&mut self, media_type: Vec<u8>) {
        if self.response.content_type.as_ref() != Some(&media_type) {
            self.response.content_type = Some(media_type);
            self.keep(UntrustedType);
        }
    }

    /// Sets a media type that comes from the configuration.
    pub fn set_trusted_type(&mut self, media_type: Vec<u8>) {
        self.response.content_type = Some(media_type);
        self.forget::<UntrustedType>();
    }

    /// Whether the media type may choose the handler.
    pub fn has_trusted_type(&self) -> bool {
        self.kept::<UntrustedType>().is_none()
    }

    /// The `Content-Type` field, with the charset of `AddDefaultCharset` (`ap_make_content_type`).
    pub fn media_type(&self) -> Option<Cow<'_, [u8]>> {
        let media_type = self.response.content_type.as_ref().filter(|text| !text.is_empty())?;
        if self.kept::<SuppressCharset>().is_some() {
            return Some(media_type.into());
        }
        Some(with_charset(media_type, &self.plan.core))
    }
}

fn with_charset<'t>(media_type: &'t [u8], core: &CoreDir) -> Cow<'t, [u8]> {
    let Some(Some(charset)) = core.add_default_charset.get() else { return media_type.into() };
    let contains =
        |words: &[u8]| media_type.windows(words.len()).any(|part| part.eq_ignore_ascii_case(words));
    if (contains(b"text/plain") || contains(b"text/html")) && !contains(b"charset=") {
        return [media_type, b"; charset=", charset].concat().into();
    }
    media_type.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_and_html_get_a_charset() {
        let mut core = CoreDir::default();
        assert_eq!(*with_charset(b"text/html", &core), *b"text/html");
        core.add_default_charset.set(Some(b"utf-8".to_vec()));
        assert_eq!(*with_charset(b"text/html", &core), *b"text/html; charset=utf-8");
        assert_eq!(*with_charset(b"text/css", &core), *b"text/css");
        assert_eq!(*with_charset(b"text/plain; Charset=x", &core), *b"text/plain; Charset=x");
        assert_eq!(*with_charset(b"a/b-TEXT/html", &core), *b"a/b-TEXT/html; charset=utf-8");
    }
}

//! One variant of a resource.

use server::request::Request;
use wire::accept::Entry;

/// A type that mod_include parses (`INCLUDES_MAGIC_TYPE`).
pub(super) const INCLUDES_TYPE: &[u8] = b"text/x-server-parsed-html";
/// The same, with HTML level 3.
pub(super) const INCLUDES_TYPE_3: &[u8] = b"text/x-server-parsed-html3";

/// What a variant is, and how much the client wants it.
#[derive(Default)]
pub(super) struct Variant {
    /// The file, looked up; `None` for a variant of a type map.
    pub sub: Option<Request>,
    /// The media type, lower case.
    pub media_type: Vec<u8>,
    /// The file's name, relative to the resource.
    pub file_name: Vec<u8>,
    /// For a body inside a type map: where it begins in the map, bytes.
    pub body_at: Option<u64>,
    /// `Content-Encoding`
    pub encoding: Option<Vec<u8>>,
    /// `Content-Language`, lower case.
    pub languages: Vec<Vec<u8>>,
    /// The charset of the media type; empty where there is none.
    pub charset: Vec<u8>,
    /// What a type map says of it.
    pub description: Vec<u8>,
    /// The content's length, where it is known already.
    pub bytes: Option<u64>,
    /// The level of the media type (HTML).
    pub level: i32,
    /// The server's own opinion (`qs`).
    pub source_quality: f32,
    /// How much the client wants it.
    pub wanted: Wanted,
}

/// How much a client wants a variant, in each dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wanted {
    /// By `Accept-Language`.
    pub language: f32,
    /// By `Accept-Encoding`.
    pub encoding: f32,
    /// By `Accept-Charset`.
    pub charset: f32,
    /// By `Accept`.
    pub media_type: f32,
    /// The best place of its languages in `LanguagePriority`.
    pub language_place: Option<usize>,
    /// The level that `Accept` asked for.
    pub level_matched: i32,
    /// How closely `Accept` matched: 1 for `*/*`, 2 for `type/*`, 3 for the type.
    pub closeness: u8,
    /// The client has said all that there is to know (RFC 2296).
    pub definite: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            language: 1.0,
            encoding: 1.0,
            charset: 1.0,
            media_type: 1.0,
            language_place: None,
            level_matched: 0,
            closeness: 0,
            definite: true,
        }
    }
}

impl Variant {
    /// Takes over what a media type with parameters says (`set_mime_fields`).
    pub fn set_type(&mut self, entry: Entry) {
        self.source_quality = f32::from(entry.quality_milli) / 1000.0;
        self.media_type = entry.name;
        self.level = entry.level;
        self.charset = entry.charset;
    }

    /// HTML, parsed or not.
    pub fn is_html(&self) -> bool {
        [&b"text/html"[..], INCLUDES_TYPE, INCLUDES_TYPE_3].contains(&self.media_type.as_slice())
    }

    /// Whether it is in a language.
    pub fn has_language(&self, language: &[u8]) -> bool {
        self.languages.iter().any(|own| own == language)
    }

    /// Whether it is not encoded at all (`is_identity_encoding`).
    pub fn is_identity(&self) -> bool {
        match self.encoding.as_deref() {
            None | Some(b"" | b"7bit" | b"8bit" | b"binary" | b"identity") => true,
            Some(_) => false,
        }
    }
}

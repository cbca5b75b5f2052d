//! A variant of a resource.

use server::request::Request;
use wire::accept::Entry;

/// The type of files that mod_include parses (`INCLUDES_MAGIC_TYPE`).
pub(super) const INCLUDES_TYPE: &[u8] = b"text/x-server-parsed-html";
/// The same, with HTML level 3.
pub(super) const INCLUDES_TYPE_3: &[u8] = b"text/x-server-parsed-html3";

/// A variant's properties, and its quality for the client.
#[derive(Default)]
pub(super) struct Variant {
    /// The looked-up file; `None` for a variant of a type map.
    pub sub: Option<Request>,
    /// The media type in lower case.
    pub media_type: Vec<u8>,
    /// The file's name, relative to the resource.
    pub file_name: Vec<u8>,
    /// The offset of a body inside a type map.
    pub body_at: Option<u64>,
    /// `Content-Encoding`
    pub encoding: Option<Vec<u8>>,
    /// `Content-Language` in lower case.
    pub languages: Vec<Vec<u8>>,
    /// The charset of the media type, or empty.
    pub charset: Vec<u8>,
    /// The description in a type map.
    pub description: Vec<u8>,
    /// The content's length, if it is known.
    pub bytes: Option<u64>,
    /// The level of the media type (HTML).
    pub level: i32,
    /// The source quality (`qs`).
    pub source_quality: f32,
    /// The quality for the client.
    pub wanted: Wanted,
}

/// The quality of a variant for a client, in each dimension.
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
    /// The best position of its languages in `LanguagePriority`.
    pub language_place: Option<usize>,
    /// The level that `Accept` requested.
    pub level_matched: i32,
    /// How closely `Accept` matches: 1 for `*/*`, 2 for `type/*`, 3 for the type.
    pub closeness: u8,
    /// Whether the quality is definite (RFC 2296).
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
    /// Takes over the parameters of a media type (`set_mime_fields`).
    pub fn set_type(&mut self, entry: Entry) {
        self.source_quality = f32::from(entry.quality_milli) / 1000.0;
        self.media_type = entry.name;
        self.level = entry.level;
        self.charset = entry.charset;
    }

    /// Whether it is HTML, parsed or not.
    pub fn is_html(&self) -> bool {
        [&b"text/html"[..], INCLUDES_TYPE, INCLUDES_TYPE_3].contains(&self.media_type.as_slice())
    }

    /// Whether it is in this language.
    pub fn has_language(&self, language: &[u8]) -> bool {
        self.languages.iter().any(|own| own == language)
    }

    /// Whether it has no encoding (`is_identity_encoding`).
    pub fn is_identity(&self) -> bool {
        match self.encoding.as_deref() {
            None | Some(b"" | b"7bit" | b"8bit" | b"binary" | b"identity") => true,
            Some(_) => false,
        }
    }
}

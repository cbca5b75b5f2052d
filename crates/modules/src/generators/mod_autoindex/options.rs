//! `IndexOptions` and its inheritance.
//!
//! Source: `add_opts`, `merge_autoindex_configs`.

use server::merge::{Merge, Setting};

use crate::atoi::atoi;

/// Options as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

macro_rules! flags {
    ($($name:ident = $bit:expr, $word:expr;)*) => {
        impl Flags {
            $(#[doc = concat!("`", $word, "`")] pub const $name: Flags = Flags(1 << $bit);)*
        }

        /// The keywords of `IndexOptions` that are flags.
        const WORDS: &[(&str, Flags)] = &[$(($word, Flags::$name)),*];
    };
}

flags! {
    NONE = 0, "None";
    ICONS_ARE_LINKS = 1, "IconsAreLinks";
    SCAN_TITLES = 2, "ScanHTMLTitles";
    NO_ICON = 3, "SuppressIcon";
    NO_MODIFIED = 4, "SuppressLastModified";
    NO_SIZE = 5, "SuppressSize";
    NO_DESCRIPTION = 6, "SuppressDescription";
    NO_PREAMBLE = 7, "SuppressHTMLPreamble";
    NO_SORTING = 8, "SuppressColumnSorting";
    NO_RULES = 9, "SuppressRules";
    FOLDERS_FIRST = 10, "FoldersFirst";
    VERSION_SORT = 11, "VersionSort";
    TRACK_MODIFIED = 12, "TrackModified";
    FANCY = 13, "FancyIndexing";
    TABLE = 14, "HTMLTable";
    IGNORE_CLIENT = 15, "IgnoreClient";
    IGNORE_CASE = 16, "IgnoreCase";
    XHTML = 17, "XHTML";
    SHOW_FORBIDDEN = 18, "ShowForbidden";
    ALT_CLASS = 19, "AddAltClass";
    OLD_DATE = 20, "UseOldDateFormat";
}

impl Flags {
    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union with `other`.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These flags without those of `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// The width of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A fixed number of bytes.
    Bytes(usize),
    /// As wide as the widest entry, but at least this many bytes.
    Widest(usize),
}

/// `IndexOptions`
#[derive(Clone, Debug, Default)]
pub struct IndexOptions {
    plain: Flags,
    added: Flags,
    removed: Flags,
    /// `NameWidth`; 23 bytes by default.
    pub name_width: Setting<Width>,
    /// `DescriptionWidth`; by default the space that other columns leave.
    pub description_width: Setting<Width>,
    /// `IconWidth` in pixels; 0 if unset.
    pub icon_width: i64,
    /// `IconHeight` in pixels; 0 if unset.
    pub icon_height: i64,
    /// `Type`
    pub media_type: Setting<Vec<u8>>,
    /// `Charset`
    pub charset: Setting<Vec<u8>>,
}

/// The default width of both columns in bytes.
pub const COLUMN_BYTES: usize = 23;

/// The default width of an icon in pixels.
const ICON_WIDTH: i64 = 20;
/// The default height of an icon in pixels.
const ICON_HEIGHT: i64 = 22;

/// The widest column in bytes: every entry is padded to it.
const COLUMN_BYTES_MAX: i64 = 4096;

impl IndexOptions {
    /// The flags in force. As in Apache, signed ones take effect when configurations merge: those
    /// of the main server alone do not.
    pub fn flags(&self) -> Flags {
        self.plain.without(Flags::NONE)
    }

    /// Applies the words of a directive.
    pub fn take<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>) -> Result<(), &'static str> {
        let mut next = self.clone();
        for word in words {
            let (sign, word) = match word.split_first() {
                Some((sign @ (b'+' | b'-'), word)) => (Some(*sign), word),
                _ => (None, word),
            };
            let flag = next.take_word(sign, word)?;
            match sign {
                None => {
                    next.plain = next.plain.with(flag);
                    next.added = Flags::default();
                    next.removed = Flags::default();
                }
                Some(b'+') => {
                    next.added = next.added.with(flag);
                    next.removed = next.removed.without(flag);
                }
                Some(_) => {
                    next.removed = next.removed.with(flag);
                    next.added = next.added.without(flag);
                }
            }
        }
        if next.plain.has(Flags::NONE) && next.plain != Flags::NONE {
            return Err("Cannot combine other IndexOptions keywords with 'None'");
        }
        *self = next;
        Ok(())
    }

    /// Applies a word and returns its flag, or no flag if it is a value.
    fn take_word(&mut self, sign: Option<u8>, word: &[u8]) -> Result<Flags, &'static str> {
        if word.eq_ignore_ascii_case(b"None") {
            if sign.is_some() {
                return Err("Cannot combine '+' or '-' with 'None' keyword");
            }
            self.plain = Flags::default();
            self.added = Flags::default();
            self.removed = Flags::default();
            return Ok(Flags::NONE);
        }
        let is_word = |(known, _): &&(&str, Flags)| word.eq_ignore_ascii_case(known.as_bytes());
        if let Some((_, flag)) = WORDS.iter().find(is_word) {
            return Ok(*flag);
        }
        self.take_value(sign == Some(b'-'), word)?;
        Ok(Flags::default())
    }

    fn take_value(&mut self, minus: bool, word: &[u8]) -> Result<(), &'static str> {
        let (name, value) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) => (word.get(..at).unwrap_or_default(), word.get(at + 1..)),
            None => (word, None),
        };
        match (name.to_ascii_lowercase().as_slice(), value) {
            (b"iconwidth", None) => self.icon_width = if minus { 0 } else { ICON_WIDTH },
            (b"iconheight", None) => self.icon_height = if minus { 0 } else { ICON_HEIGHT },
            (b"iconwidth", Some(_)) if minus => return Err("Cannot combine '-' with IconWidth=n"),
            (b"iconheight", Some(_)) if minus => {
                return Err("Cannot combine '-' with IconHeight=n");
            }
            (b"iconwidth", Some(value)) => self.icon_width = i64::from(atoi(value)),
            (b"iconheight", Some(value)) => self.icon_height = i64::from(atoi(value)),
            (b"namewidth", None) if !minus => {
                return Err("NameWidth with no value may only appear as '-NameWidth'");
            }
            (b"namewidth", None) => self.name_width.set(Width::Bytes(COLUMN_BYTES)),
            (b"namewidth", Some(_)) if minus => return Err("Cannot combine '-' with NameWidth=n"),
            (b"namewidth", Some(value)) => {
                let short = "NameWidth value must be greater than 5";
                let before = self.name_width.get().copied();
                self.name_width.set(width(value, before, 5, short)?);
            }
            (b"descriptionwidth", None) if !minus => {
                return Err("DescriptionWidth with no value may only appear as \
                            '-DescriptionWidth'");
            }
            (b"descriptionwidth", None) => {
                self.description_width.set(Width::Bytes(COLUMN_BYTES));
            }
            (b"descriptionwidth", Some(_)) if minus => {
                return Err("Cannot combine '-' with DescriptionWidth=n");
            }
            (b"descriptionwidth", Some(value)) => {
                let short = "DescriptionWidth value must be greater than 12";
                let before = self.description_width.get().copied();
                self.description_width.set(width(value, before, 12, short)?);
            }
            (b"type", Some(value)) => self.media_type.set(value.to_vec()),
            (b"charset", Some(value)) => self.charset.set(value.to_vec()),
            _ => return Err("Invalid directory indexing option"),
        }
        Ok(())
    }
}

fn width(
    value: &[u8],
    before: Option<Width>,
    least: i64,
    short: &'static str,
) -> Result<Width, &'static str> {
    if value.first() == Some(&b'*') {
        let at_least = match before {
            Some(Width::Bytes(bytes) | Width::Widest(bytes)) => bytes,
            None => COLUMN_BYTES,
        };
        return Ok(Width::Widest(at_least));
    }
    let bytes = i64::from(atoi(value));
    if bytes != 0 && bytes < least {
        return Err(short);
    }
    Ok(Width::Bytes(usize::try_from(bytes.min(COLUMN_BYTES_MAX)).unwrap_or(0)))
}

impl Merge for IndexOptions {
    fn merge(outer: &Self, inner: &Self) -> Self {
        let pick = |inner: i64, outer: i64| if inner == 0 { outer } else { inner };
        let mut merged = IndexOptions {
            name_width: Setting::merge(&outer.name_width, &inner.name_width),
            description_width: Setting::merge(&outer.description_width, &inner.description_width),
            icon_width: pick(inner.icon_width, outer.icon_width),
            icon_height: pick(inner.icon_height, outer.icon_height),
            media_type: Setting::merge(&outer.media_type, &inner.media_type),
            charset: Setting::merge(&outer.charset, &inner.charset),
            ..IndexOptions::default()
        };
        if inner.plain == Flags::NONE {
            merged.plain = Flags::NONE;
        } else if inner.plain == Flags::default() {
            // Signed options change the inherited ones; `None` is not inherited past them.
            merged.added = outer.added.with(inner.added).without(inner.removed);
            merged.removed = outer.removed.with(inner.removed);
            merged.plain = outer.plain.without(Flags::NONE);
            merged.plain = merged.plain.with(merged.added).without(merged.removed);
        } else {
            merged.plain = inner.plain;
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> IndexOptions {
        let mut options = IndexOptions::default();
        options.take(text.split(' ').map(str::as_bytes)).unwrap();
        options
    }

    fn fault(text: &str) -> &'static str {
        let words = text.split(' ').map(str::as_bytes);
        IndexOptions::default().take(words).err().unwrap_or_default()
    }

    #[test]
    fn plain_words_clear_what_is_inherited_and_signs_change_it() {
        let outer = options("FancyIndexing SuppressSize");
        let inner = IndexOptions::merge(&outer, &options("-SuppressSize +XHTML")).flags();
        assert_eq!(inner, Flags::FANCY.with(Flags::XHTML));
        let anew = IndexOptions::merge(&outer, &options("HTMLTable")).flags();
        assert_eq!(anew, Flags::TABLE);
        let none = IndexOptions::merge(&outer, &options("None"));
        assert_eq!(none.flags(), Flags::default());
        let below = IndexOptions::merge(&none, &options("+XHTML")).flags();
        assert_eq!(below, Flags::XHTML);
        let forgotten = options("+ScanHTMLTitles -IconsAreLinks FancyIndexing +SuppressSize");
        assert_eq!(forgotten.flags(), Flags::FANCY);
        assert_eq!(IndexOptions::merge(&outer, &forgotten).flags(), Flags::FANCY);
    }

    #[test]
    fn values_are_inherited_by_themselves() {
        let outer = options("NameWidth=30 IconWidth Charset=UTF-8");
        let merged = IndexOptions::merge(&outer, &options("FancyIndexing NameWidth=*"));
        assert_eq!(merged.name_width.get(), Some(&Width::Widest(COLUMN_BYTES)));
        assert_eq!(merged.icon_width, ICON_WIDTH);
        assert_eq!(merged.charset.get().map(Vec::as_slice), Some(&b"UTF-8"[..]));
    }

    #[test]
    fn faults_are_told_in_apaches_words() {
        assert_eq!(fault("Foo"), "Invalid directory indexing option");
        assert_eq!(fault("+None"), "Cannot combine '+' or '-' with 'None' keyword");
        assert_eq!(fault("None XHTML"), "Cannot combine other IndexOptions keywords with 'None'");
        assert_eq!(fault("NameWidth=3"), "NameWidth value must be greater than 5");
        assert_eq!(fault("-IconWidth=3"), "Cannot combine '-' with IconWidth=n");
        let unsigned = "NameWidth with no value may only appear as '-NameWidth'";
        assert_eq!(fault("NameWidth"), unsigned);
    }
}

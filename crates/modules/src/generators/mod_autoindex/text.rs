//! Helpers shared by both kinds of fancy listing.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use wire::escape;

use super::DirConfig;
use super::entry::Entry;
use super::options::{COLUMN_BYTES, Flags, Width};
use super::query::{Column, Wanted};

/// A listing that is being written.
pub struct Page<'p> {
    /// The configuration.
    pub config: &'p DirConfig,
    /// The listing as requested.
    pub wanted: &'p Wanted,
    /// Width of the name column in bytes.
    pub name_width: usize,
    /// Width of the description column in characters.
    pub description_width: usize,
    /// The time zone of displayed times.
    pub zone: TimeZone,
    /// The text so far.
    pub out: Vec<u8>,
}

impl<'p> Page<'p> {
    /// Returns an empty page, with column widths for `entries`.
    pub fn new(config: &'p DirConfig, wanted: &'p Wanted, entries: &[Entry]) -> Page<'p> {
        let lines = wanted.flags.has(Flags::FANCY) && !wanted.flags.has(Flags::TABLE);
        let width = |setting: Option<&Width>, lengths: &dyn Fn(&Entry) -> usize| match setting {
            Some(Width::Bytes(bytes)) => *bytes,
            Some(Width::Widest(least)) if lines => {
                entries.iter().map(lengths).max().unwrap_or(0).max(*least)
            }
            Some(Width::Widest(least)) => *least,
            None => COLUMN_BYTES,
        };
        let options = &config.options;
        let described = |entry: &Entry| entry.description.as_ref().map_or(0, Vec::len);
        Page {
            name_width: width(options.name_width.get(), &|entry| entry.name.len()),
            description_width: width(options.description_width.get(), &described),
            config,
            wanted,
            zone: TimeZone::system(),
            out: Vec::new(),
        }
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: Flags) -> bool {
        self.wanted.flags.has(flag)
    }

    /// Appends text verbatim.
    pub fn put(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    /// Appends text escaped for HTML.
    pub fn put_escaped(&mut self, text: &[u8]) {
        escape::html(&mut self.out, text);
    }

    /// Appends the end of an empty tag.
    pub fn end_tag(&mut self) {
        let end: &[u8] = if self.has(Flags::XHTML) { b" />" } else { b">" };
        self.put(end);
    }

    /// Appends a column's heading, which is a link if it sorts (`emit_link`).
    pub fn heading(&mut self, text: &str, column: Column) {
        if self.has(Flags::NO_SORTING) {
            return self.put(text);
        }
        let order = self.wanted.order;
        let reverse = order.column == column && order.ascending;
        let direction = if reverse { b'D' } else { b'A' };
        self.put(b"<a href=\"?C=");
        self.out.extend_from_slice(&[column as u8, b';', b'O', b'=', direction]);
        self.put(&self.wanted.carried);
        self.put(b"\">");
        self.put(text);
        self.put(b"</a>");
    }

    /// Appends an image tag, except its end.
    pub fn image(&mut self, url: &[u8], alt: &[u8]) {
        self.put(b"<img src=\"");
        self.put_escaped(url);
        self.put(b"\" alt=\"");
        self.put(alt);
        self.put(b"\"");
        let options = &self.config.options;
        for (name, pixels) in [("width", options.icon_width), ("height", options.icon_height)] {
            if pixels != 0 {
                self.put(format!(" {name}=\"{pixels}\""));
            }
        }
        self.end_tag();
    }

    /// Appends an entry's icon; returns false if there is none.
    pub fn icon(&mut self, entry: &Entry) -> bool {
        let Some(url) = entry.icon.as_ref().or(self.config.default_icon.get()) else {
            return false;
        };
        let alt = entry.alt.as_deref().unwrap_or(b"   ");
        self.image(url, &[b"[", alt, b"]"].concat());
        true
    }

    /// Appends an entry's modification time and two blanks; returns false if it is unknown.
    pub fn time(&mut self, entry: &Entry) -> bool {
        let Some(mtime_us) = entry.mtime_us else { return false };
        let time = i64::try_from(mtime_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
        let time = time.unwrap_or_default().to_zoned(self.zone.clone());
        let format =
            if self.has(Flags::OLD_DATE) { "%d-%b-%Y %H:%M  " } else { "%Y-%m-%d %H:%M  " };
        self.put(time.strftime(format).to_string());
        true
    }

    /// The displayed name of an entry, truncated to the column, and the padding.
    pub fn name(&self, entry: &Entry, is_first: bool) -> (Vec<u8>, usize) {
        let name = shown_name(entry, is_first);
        let width = self.name_width;
        if name.len() <= width {
            return (name.to_vec(), width - name.len());
        }
        let kept = name.get(..width.saturating_sub(3)).unwrap_or_default();
        ([kept, b"..>"].concat(), 0)
    }
}

/// The name of an entry. If the first begins with a slash, it is the parent directory.
pub fn shown_name(entry: &Entry, is_first: bool) -> &[u8] {
    if is_first && entry.name.first() == Some(&b'/') { b"Parent Directory" } else { &entry.name }
}

/// The link to an entry, escaped for an attribute.
pub fn anchor(entry: &Entry) -> Vec<u8> {
    let (mut url, mut anchor) = (Vec::new(), Vec::new());
    escape::relative_path(&mut url, &entry.name);
    escape::html(&mut anchor, &url);
    anchor
}

/// Formats a size in four characters (`apr_strfsize`).
pub fn size(bytes: Option<u64>) -> String {
    /// The value from which the next unit is used.
    const UNIT_LIMIT: u64 = 973;
    let Some(mut bytes) = bytes else { return "  - ".to_owned() };
    if bytes < UNIT_LIMIT {
        return format!("{bytes:3} ");
    }
    for unit in "KMGTPE".chars() {
        let remainder = bytes & 1023;
        bytes >>= 10;
        if bytes >= UNIT_LIMIT {
            continue;
        }
        if bytes < 9 || (bytes == 9 && remainder < UNIT_LIMIT) {
            let tenths = (remainder * 5 + 256) / 512;
            return match tenths {
                10.. => format!("{}.0{unit}", bytes + 1),
                _ => format!("{bytes}.{tenths}{unit}"),
            };
        }
        let rounded = if remainder >= 512 { bytes + 1 } else { bytes };
        return format!("{rounded:3}{unit}");
    }
    "****".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_four_characters() {
        let all = [
            (0, "  0 "),
            (972, "972 "),
            (973, "1.0K"),
            (1500, "1.5K"),
            (10_240, " 10K"),
            (2_000_000, "1.9M"),
            (10_188, "9.9K"),
            (10_189, " 10K"),
            (u64::MAX, " 16E"),
        ];
        for (bytes, shown) in all {
            assert_eq!(size(Some(bytes)), shown, "{bytes}");
        }
        assert_eq!(size(None), "  - ");
    }
}

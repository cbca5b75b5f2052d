//! Lines of password and group files, and words of a line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use bstr::ByteSlice;
use conf::word;
use rustix::io::Errno;
use server::log::Level;
use server::module::Module;
use server::request::Request;

/// Most bytes of a line in a password file (`MAX_STRING_LEN`); reading ends at a longer one.
pub const PASSWORD_LINE_LIMIT: usize = 8191;

/// Most bytes of a line in a group file (`VARBUF_MAX_LEN`); reading ends at a longer one.
pub const GROUP_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// The lines of a file, without surrounding blanks, empty lines and comments. A backslash at the
/// end continues a line. Source: `ap_cfg_getline`.
pub struct Lines<R> {
    from: R,
    limit: usize,
}

/// The [`Lines`] of a text in memory, borrowed from it but for those that were joined.
pub struct TextLines<'t>(Lines<&'t [u8]>);

/// The lines of a text in memory with their numbers, without surrounding blanks, including empty
/// lines and comments. A backslash at the end continues a line, whose number is then that of its
/// last part. Source: `ap_cfg_getline`.
pub struct NumberedLines<'t> {
    rest: &'t [u8],
    number: usize,
    limit: usize,
}

/// Opens a file of lines.
///
/// # Errors
/// As those of [`regular::open`].
pub fn open(path: &Path, limit: usize) -> io::Result<Lines<BufReader<File>>> {
    Ok(Lines::new(BufReader::new(regular::open(path)?), limit))
}

/// Logs under the module's `number` that a file could not be opened, after Apache's line if the
/// name does not refer to a regular file (`ap_pcfg_openfile`).
pub fn log_unopened<M: Module>(
    request: &Request,
    number: u32,
    what: &str,
    path: &Path,
    why: &io::Error,
) {
    let path = path.display();
    let message = format_args!("Could not open {what}: {path}");
    let Some(error) = Errno::from_io_error(why) else {
        return request.log::<M>(Level::Error, number, message);
    };
    if error == regular::NOT_REGULAR {
        let denied = format_args!("Access to file {path} denied by server: not a regular file");
        request.engine.server.log("core.c", Level::Error, 554, denied);
    }
    request.log_error::<M>(Level::Error, number, error, message);
}

impl<R: BufRead> Lines<R> {
    /// Returns the lines of `from`, none longer than `limit` bytes.
    pub fn new(from: R, limit: usize) -> Lines<R> {
        Lines { from, limit }
    }

    /// The next line verbatim, with continuations joined.
    fn logical(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let before = line.len();
            let room = (self.limit + 2).saturating_sub(before) as u64;
            let read = io::Read::take(&mut self.from, room).read_until(b'\n', &mut line);
            let read = read.ok()?;
            if read == 0 {
                return (before > 0).then_some(line);
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.len() > self.limit {
                return None;
            }
            if line.last() != Some(&b'\\') {
                return Some(line);
            }
            line.pop();
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let line = self.logical()?;
            let line = cut(&line);
            if !line.is_empty() && line.first() != Some(&b'#') {
                return Some(line.to_vec());
            }
        }
    }
}

impl<'t> TextLines<'t> {
    /// The lines of `text`, none longer than `limit` bytes.
    pub fn new(text: &'t [u8], limit: usize) -> TextLines<'t> {
        TextLines(Lines::new(text, limit))
    }

    fn logical(&mut self) -> Option<Cow<'t, [u8]>> {
        let text = self.0.from;
        if let Some(end) = text.find_byte(b'\n').filter(|end| *end <= self.0.limit) {
            let (line, rest) = text.split_at(end);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.last() != Some(&b'\\') {
                self.0.from = rest.get(1..).unwrap_or_default();
                return Some(Cow::Borrowed(line));
            }
        }
        self.0.logical().map(Cow::Owned)
    }
}

impl<'t> Iterator for TextLines<'t> {
    type Item = Cow<'t, [u8]>;

    fn next(&mut self) -> Option<Cow<'t, [u8]>> {
        loop {
            let line = match self.logical()? {
                Cow::Borrowed(line) => Cow::Borrowed(cut(line)),
                Cow::Owned(line) => Cow::Owned(cut(&line).to_vec()),
            };
            if !line.is_empty() && line.first() != Some(&b'#') {
                return Some(line);
            }
        }
    }
}

impl<'t> NumberedLines<'t> {
    /// The lines of `text`, up to one that is longer than `limit` bytes.
    pub fn new(text: &'t [u8], limit: usize) -> NumberedLines<'t> {
        NumberedLines { rest: text, number: 0, limit }
    }
}

impl Iterator for NumberedLines<'_> {
    type Item = (usize, Vec<u8>);

    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        if self.rest.is_empty() {
            return None;
        }
        let mut line = Vec::new();
        loop {
            let end = self.rest.find_byte(b'\n').unwrap_or(self.rest.len());
            line.extend_from_slice(self.rest.get(..end).unwrap_or_default());
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            self.number += 1;
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.len() > self.limit {
                self.rest = b"";
                return None;
            }
            if line.last() != Some(&b'\\') || self.rest.is_empty() {
                return Some((self.number, cut(&line).to_vec()));
            }
            line.pop();
        }
    }
}

/// Trims blanks at both ends.
fn cut(line: &[u8]) -> &[u8] {
    let line = line.get(word::blanks(line)..).unwrap_or_default();
    let end = line.iter().rposition(|byte| !word::is_blank(*byte)).map_or(0, |last| last + 1);
    line.get(..end).unwrap_or_default()
}

/// The text before the next `stop`, and the rest. Adjacent ones count as one (`ap_getword`).
pub fn until(line: &[u8], stop: u8) -> (&[u8], &[u8]) {
    let Some(at) = line.iter().position(|byte| *byte == stop) else { return (line, b"") };
    let (word, rest) = line.split_at(at);
    let more = rest.iter().take_while(|byte| **byte == stop).count();
    (word, rest.get(more..).unwrap_or_default())
}

/// The first word of a text, unquoted, and the rest without leading blanks (`ap_getword_conf`).
pub fn first(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let text = text.get(word::blanks(text)..)?;
    let (found, length) = word::first_word(text)?;
    let rest = text.get(length..).unwrap_or_default();
    Some((found.into(), rest.get(word::blanks(rest)..).unwrap_or_default()))
}

/// The words of a text, up to an empty one.
pub fn words(text: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (found, after) = first(rest)?;
        rest = after;
        (!found.is_empty()).then_some(found)
    })
}

/// The words of a text in which quotation marks have no meaning (`ap_getword_white`).
pub fn plain_words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| wire::chars::is_space(*byte)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, limit: usize) -> Vec<String> {
        let lines = Lines::new(text.as_bytes(), limit);
        lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
    }

    #[test]
    fn lines_are_cut_and_joined() {
        assert_eq!(lines("  a:b \r\n# no\n\nc\\\n d\ne", 99), ["a:b", "c d", "e"]);
        assert_eq!(lines("a\\", 99), ["a"]);
    }

    #[test]
    fn a_line_that_is_too_long_ends_the_file() {
        assert_eq!(lines("a\n12345\nb\n", 5), ["a", "12345", "b"]);
        assert_eq!(lines("a\n123456\nb\n", 5), ["a"]);
        assert_eq!(lines("a\n123\\\n456\nb\n", 5), ["a"]);
    }

    #[test]
    fn lines_are_counted_with_those_that_continue_them() {
        let of = |text: &str, limit| NumberedLines::new(text.as_bytes(), limit).collect::<Vec<_>>();
        let line = |number, text: &str| (number, text.as_bytes().to_vec());
        assert_eq!(of("", 99), []);
        assert_eq!(of(" a \\\nb\r\n\n#c", 99), [line(2, "a b"), line(3, ""), line(4, "#c")]);
        assert_eq!(of("a\n123456\nb\n", 5), [line(1, "a")]);
    }

    #[test]
    fn words_are_unquoted() {
        let all: Vec<_> = words(b"a \"b c\" 'd'").collect();
        assert_eq!(all, [b"a".to_vec(), b"b c".to_vec(), b"d".to_vec()]);
        assert_eq!(words(b"a \"\" b").count(), 1);
        assert_eq!(until(b"a::b", b':'), (&b"a"[..], &b"b"[..]));
        assert_eq!(until(b"a", b':'), (&b"a"[..], &b""[..]));
    }

    proptest::proptest! {
        #[test]
        fn lines_of_a_text_are_those_of_a_file(
            text in "([a:# ]|\\\\|\r|\n|\\\\\n|\r\n){0,40}",
            limit in 0_usize..9,
        ) {
            let of_file: Vec<Vec<u8>> = Lines::new(text.as_bytes(), limit).collect();
            let of_text: Vec<Vec<u8>> =
                TextLines::new(text.as_bytes(), limit).map(Cow::into_owned).collect();
            proptest::prop_assert_eq!(of_text, of_file);
        }
    }
}

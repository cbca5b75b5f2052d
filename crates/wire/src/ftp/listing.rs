//! Listings of folders, as HTML. Source: `proxy_send_dir_filter`.

use crate::escape;

/// Of a longer line the rest is left out, bytes (`MAX_STRING_LEN`, without the end).
const LINE_BYTES: usize = 8191;

/// Writes the lines of a listing, with links to the files.
#[derive(Debug, Default)]
pub struct ListingWriter {
    /// What has come of a line.
    line: Vec<u8>,
}

/// A line in which no file's name is found: it is left out.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable(pub Vec<u8>);

impl ListingWriter {
    /// Takes the next line out of `input`, and appends it to `out`; returns the bytes that it used,
    /// or `None` once all have been taken. A line without its end is never written.
    pub fn write(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<(usize, Result<(), Unreadable>)> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let taken = input.get(..end.map_or(input.len(), |end| end + 1)).unwrap_or_default();
        let room = LINE_BYTES.saturating_sub(self.line.len());
        let text = taken.get(..room).unwrap_or(taken);
        self.line.extend_from_slice(text);
        end?;
        let mut line = std::mem::take(&mut self.line);
        line.truncate(line.iter().position(|byte| *byte == 0).unwrap_or(line.len()));
        for end in [b'\n', b'\r'] {
            if line.last() == Some(&end) {
                line.pop();
            }
        }
        let written = write_line(&mut line, out);
        // Its memory is used again.
        line.clear();
        self.line = line;
        Some((taken.len(), written))
    }
}

fn write_line(line: &mut [u8], out: &mut Vec<u8>) -> Result<(), Unreadable> {
    let first = line.first().copied().unwrap_or_default();
    if first == b'l'
        && let Some(arrow) = line.windows(4).position(|window| window == b" -> ")
    {
        write_symlink(line, arrow, out);
        return Ok(());
    }
    if !matches!(first, b'd' | b'-' | b'l' | b'0'..=b'9') {
        match of_short_listing(line) {
            Some(at) => {
                let (before, name) = line.split_at(at);
                escape::html(out, before);
                write_link(name, b"", name, out);
            }
            None => escape::html(out, line),
        }
        out.push(b'\n');
        return Ok(());
    }
    if first.is_ascii_digit() {
        replace_first(line, b'<', b'[');
        replace_first(line, b'>', b']');
    }
    let Some(blank) = line.iter().rposition(|byte| *byte == b' ') else {
        return Err(Unreadable(line.to_vec()));
    };
    let (before, name) = line.split_at(blank);
    let name = name.get(1..).unwrap_or_default();
    let is_folder = first == b'd' || matches!(name, b"." | b"..");
    escape::html(out, before);
    out.push(b' ');
    write_link(name, if is_folder { b"/" } else { b"" }, name, out);
    out.push(b'\n');
    Ok(())
}

/// The link's name is between the last space before the arrow and the arrow.
fn write_symlink(line: &[u8], arrow: usize, out: &mut Vec<u8>) {
    let (left, target) = line.split_at(arrow);
    let blank = left.iter().rposition(|byte| *byte == b' ').filter(|at| *at > 0);
    let (before, name) = match blank {
        Some(at) => (left.get(..at), left.get(at + 1..)),
        None => (Some(left), Some(left)),
    };
    escape::html(out, before.unwrap_or_default());
    out.push(b' ');
    let name = name.unwrap_or_default();
    write_link(name, b"", &[name, target].concat(), out);
    out.push(b'\n');
}

fn write_link(name: &[u8], more: &[u8], shown: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<a href=\"");
    let mut reference = Vec::with_capacity(name.len());
    escape::relative_path(&mut reference, name);
    // The name may hold a reference to a character, such as that of a scheme's colon.
    escape::html(out, &reference);
    out.extend_from_slice(more);
    out.extend_from_slice(b"\">");
    escape::html(out, shown);
    out.extend_from_slice(b"</a>");
}

fn replace_first(line: &mut [u8], old: u8, new: u8) {
    if let Some(found) = line.iter_mut().find(|byte| **byte == old) {
        *found = new;
    }
}

/// Where the name begins in a line of `ls -s1`: spaces, digits, spaces, name.
fn of_short_listing(line: &[u8]) -> Option<usize> {
    let at = line.iter().rposition(|byte| *byte == b' ')? + 1;
    let size = line.get(..at)?.trim_ascii();
    let is_size = !size.is_empty() && size.iter().all(u8::is_ascii_digit);
    let has_blanks = line.get(..at)?.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ');
    (is_size && has_blanks && at < line.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(listing: &str) -> String {
        let (mut writer, mut out) = (ListingWriter::default(), Vec::new());
        let mut rest = listing.as_bytes();
        while let Some((used, _)) = writer.write(rest, &mut out) {
            rest = &rest[used..];
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_have_links() {
        for (line, expected) in [
            ("drwx 2 Jan 1 a b\r\n", "drwx 2 Jan 1 a <a href=\"b/\">b</a>\n"),
            ("-rw 1 <x>\n", "-rw 1 <a href=\"%3cx%3e\">&lt;x&gt;</a>\n"),
            ("lrwx 1 a -> /b c\n", "lrwx 1 <a href=\"a\">a -&gt; /b c</a>\n"),
            ("l -> x\n", "l <a href=\"l\">l -&gt; x</a>\n"),
            ("01-01 <DIR> docs\n", "01-01 [DIR] <a href=\"docs\">docs</a>\n"),
            ("   12 a.txt\n", "   12 <a href=\"a.txt\">a.txt</a>\n"),
            ("   12 a b\n", "   12 a b\n"),
            (" 1  \n", " 1  \n"),
            ("total <3>\n", "total &lt;3&gt;\n"),
            ("\n", "\n"),
            ("no end", ""),
        ] {
            assert_eq!(html(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_without_a_name_are_left_out() {
        let (mut writer, mut out) = (ListingWriter::default(), Vec::new());
        let written = writer.write(b"-\r\nx", &mut out);
        assert_eq!(written, Some((3, Err(Unreadable(b"-".to_vec())))));
        assert!(out.is_empty());
    }

    #[test]
    fn of_long_lines_the_beginning_counts() {
        let line = format!("-rw {}\n-rw x\n", "y".repeat(2 * LINE_BYTES));
        let name = "y".repeat(LINE_BYTES - 4);
        let expected = format!("-rw <a href=\"{name}\">{name}</a>\n-rw <a href=\"x\">x</a>\n");
        assert_eq!(html(&line), expected);
    }
}

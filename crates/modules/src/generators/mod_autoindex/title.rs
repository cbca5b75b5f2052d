//! `ScanHTMLTitles`: finds the title at the beginning of a page.

use std::io::Read;

use server::path::as_path;

/// Bytes of a page that are searched.
const SCAN_BYTES: u64 = 8191;

/// Reads the titles of files. Blocks.
pub fn read_all(paths: &[(usize, Vec<u8>)]) -> Vec<(usize, Vec<u8>)> {
    let titles = paths.iter().filter_map(|(index, path)| Some((*index, read(path)?)));
    titles.collect()
}

fn read(path: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    regular::open(as_path(path)).ok()?.take(SCAN_BYTES).read_to_end(&mut text).ok()?;
    find(&text)
}

/// Finds the title in a page's text, with line ends replaced by blanks (`find_title`).
fn find(text: &[u8]) -> Option<Vec<u8>> {
    const TAG: &[u8] = b"<title>";
    // Apache's search ends at a NUL, and does not backtrack if a tag begins within another.
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let text = text.get(..end).unwrap_or_default();
    let mut matched = 0;
    let start = text.iter().position(|byte| {
        let fits = TAG.get(matched) == Some(&byte.to_ascii_lowercase());
        matched = if fits { matched + 1 } else { 0 };
        matched == TAG.len()
    })?;
    let rest = text.get(start + 1..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
    let title = rest.get(..end).unwrap_or_default();
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let skipped = title.iter().take_while(|byte| is_line_end(byte)).count();
    let shown = title.iter().skip(skipped);
    Some(shown.map(|byte| if is_line_end(byte) { b' ' } else { *byte }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_blanks() {
        assert_eq!(find(b"<html><title>One & two</title>").unwrap(), b"One & two");
        assert_eq!(find(b"<TITLE>\r\nTenth\ntitle </TITLE>").unwrap(), b"Tenth title ");
        assert_eq!(find(b"<title>open").unwrap(), b"open");
        assert_eq!(find(b"no title"), None);
        assert_eq!(find(b""), None);
    }
}

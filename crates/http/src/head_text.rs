//! Heads in the text of HTTP/1, which say what those of HTTP/2 contain.

use bstr::ByteSlice;

/// Status and fields of a head.
pub fn parse(text: &[u8]) -> Option<(u16, impl Iterator<Item = (&[u8], &[u8])> + Clone)> {
    let end = text.find_byte(b'\n').map_or(text.len(), |at| at + 1);
    let (line, lines) = text.split_at(end);
    let status = line.trim_ascii_end().split(|byte| *byte == b' ').nth(1)?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    Some((status, fields(lines)))
}

/// The fields of lines, up to an empty one.
pub fn fields(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    let lines = lines.lines().map(|line| line.trim_ascii_end());
    lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        Some((name, value.get(1..)?.trim_ascii()))
    })
}

/// Whether fields suggest further requests.
pub fn has_links<'f>(mut fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> bool {
    fields.any(|(name, _)| name.eq_ignore_ascii_case(b"Link"))
}

/// A head without the fields that HTTP/2 does not have.
pub fn without_connection(text: &[u8]) -> Vec<u8> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let mut left = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !wire::h2::is_of_connection(name) {
            left.extend_from_slice(line);
        }
    }
    left
}

/// The heads of a text that consists of them.
pub fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n")?;
        let (one, after) = rest.split_at(end + 4);
        rest = after;
        Some(one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_parsed() {
        let text = b"HTTP/1.1 404 Not Found\r\nDate: now\r\nX:  a:b \r\n\r\nbody: no\r\n";
        let (status, fields) = parse(text).unwrap();
        assert_eq!(status, 404);
        let expected: [(&[u8], &[u8]); 2] = [(b"Date", b"now"), (b"X", b"a:b")];
        assert_eq!(fields.collect::<Vec<_>>(), expected);
        assert!(parse(b"HTTP/1.1\r\n\r\n").is_none());
    }
}

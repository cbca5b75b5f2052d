//! Blanks comments and literals of Rust source, so that rules see only code.

/// Source with the length and lines of the original.
pub struct Masked {
    /// The code, with comments and the contents of literals replaced by spaces.
    pub code: String,
    /// For each line (from 0), whether it belongs to a test.
    pub test_lines: Vec<bool>,
}

/// Blanks comments and literals, and marks the items under `#[cfg(test)]` and `#[test]`.
pub fn mask(text: &str) -> Masked {
    let code = blank(text.as_bytes());
    let code = String::from_utf8(code).unwrap_or_default();
    let test_lines = test_lines(&code);
    Masked { code, test_lines }
}

/// The opposite of [`Masked::code`]: only comments and literals.
pub fn prose(text: &str, masked: &Masked) -> String {
    let pairs = text.bytes().zip(masked.code.bytes());
    let keep = |(byte, code): (u8, u8)| if byte == code && byte != b'\n' { b' ' } else { byte };
    String::from_utf8(pairs.map(keep).collect()).unwrap_or_default()
}

fn blank(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let (head, tail, length) = if rest.starts_with(b"//") {
            (0, 0, line_comment(rest))
        } else if rest.starts_with(b"/*") {
            (0, 0, block_comment(rest))
        } else if let Some(literal) = raw_string(text, at) {
            literal
        } else if byte == b'"' {
            (1, 1, quoted(rest, b'"'))
        } else if byte == b'\'' {
            (1, 1, character(rest))
        } else {
            at += 1;
            continue;
        };
        let end = at + length;
        let inner = at + head..end.saturating_sub(tail).max(at + head);
        for slot in out.get_mut(inner).into_iter().flatten() {
            if *slot != b'\n' {
                *slot = b' ';
            }
        }
        at = end;
    }
    out
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The lengths of a raw string's opening, closing and whole, if one starts here.
fn raw_string(text: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let after_word = at > 0 && text.get(at - 1).is_some_and(|&byte| is_word(byte));
    if after_word || text.get(at) != Some(&b'r') && !is_prefixed_raw(text, at) {
        return None;
    }
    let prefix = if text.get(at) == Some(&b'r') { 1 } else { 2 };
    let hashes = text[at + prefix..].iter().take_while(|&&byte| byte == b'#').count();
    let start = prefix + hashes + 1;
    if text.get(at + start - 1) != Some(&b'"') {
        return None;
    }
    let mut closing = vec![b'"'];
    closing.extend(std::iter::repeat_n(b'#', hashes));
    let body = &text[at + start..];
    let end = body.windows(closing.len()).position(|window| window == closing);
    Some((start, hashes + 1, start + end.map_or(body.len(), |end| end + closing.len())))
}

fn is_prefixed_raw(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), Some(b'b' | b'c')) && text.get(at + 1) == Some(&b'r')
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal's length; for a lifetime 1, its quote.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return quoted(rest, b'\'');
    }
    let text = std::str::from_utf8(rest.get(1..rest.len().min(9)).unwrap_or_default());
    let width = match text {
        Ok(text) => text.chars().next().map_or(1, char::len_utf8),
        Err(error) => rest
            .get(1..1 + error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok())
            .and_then(|valid| valid.chars().next())
            .map_or(1, char::len_utf8),
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 1 }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn test_lines(code: &str) -> Vec<bool> {
    let mut marks = vec![false; code.lines().count()];
    for attribute in ["#[cfg(test)]", "#[test]", "#[tokio::test"] {
        for (start, _) in code.match_indices(attribute) {
            let first = line_of(code, start);
            let last = line_of(code, item_end(code, start + attribute.len()));
            for mark in marks.iter_mut().take(last + 1).skip(first) {
                *mark = true;
            }
        }
    }
    marks
}

/// The end of the item that begins after `from`: its closing brace or semicolon.
pub fn item_end(code: &str, from: usize) -> usize {
    let mut braces = 0_usize;
    let mut brackets = 0_usize;
    for (offset, byte) in code.as_bytes().iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && brackets == 0 {
                    return offset;
                }
            }
            b';' if braces == 0 && brackets == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

/// The line of a byte offset, counted from 0.
pub fn line_of(code: &str, offset: usize) -> usize {
    code.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_blank_and_quotes_stay() {
        let text = "let a = \"x { y\"; // {\nlet b = r#\"}\"#; /* { /* } */ */ let c = '{';";
        let masked = mask(text);
        assert_eq!(masked.code.len(), text.len());
        assert!(!masked.code.contains('{') && !masked.code.contains('}'));
        assert!(masked.code.contains("let a = \"     \";"));
        assert!(masked.code.contains("let b = r#\" \"#;"));
        assert!(masked.code.contains("let c = ' ';"));
    }

    #[test]
    fn prose_is_what_code_is_not() {
        let text = "let other = \"a é\"; // b\nc";
        let prose = prose(text, &mask(text));
        assert_eq!(prose.split_whitespace().collect::<Vec<_>>(), ["a", "é", "//", "b"]);
        assert_eq!(prose.lines().count(), text.lines().count());
    }

    #[test]
    fn lifetimes_are_no_literals() {
        let code = mask("fn f<'a>(x: &'a str, y: char) { if y == 'é' || y == '\\'' { g() } }").code;
        assert_eq!(code.matches('{').count(), 2);
        assert!(code.contains("<'a>(x: &'a str"));
    }

    #[test]
    fn a_test_module_is_marked_to_its_closing_brace() {
        let masked = mask("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n");
        assert_eq!(masked.test_lines, [false, true, true, true, true, false]);
    }

    #[test]
    fn an_item_ends_after_its_brackets() {
        let code = "fn f(a: [u8; 2]) { g([0; 2]); } fn h();";
        assert_eq!(item_end(code, 0), code.find("} fn").unwrap());
        assert_eq!(item_end(code, 31), code.len() - 1);
    }

    #[test]
    fn a_declared_test_module_ends_at_its_semicolon() {
        let masked = mask("#[cfg(test)]\nmod tests;\nfn c() {}\n");
        assert_eq!(masked.test_lines, [true, true, false]);
    }
}

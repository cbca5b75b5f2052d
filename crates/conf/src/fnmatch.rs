//! Shell wildcards: APR's `apr_fnmatch`, and Apache's simpler `*` and `?` (`ap_strcmp_match`).

/// Options of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Wildcards do not match `/` (`APR_FNM_PATHNAME`).
    pub pathname: bool,
    /// A leading dot (with `pathname`: of any segment) matches only a dot (`APR_FNM_PERIOD`).
    pub period: bool,
    /// ASCII letters match either case (`APR_FNM_CASE_BLIND`).
    pub ignoring_case: bool,
    /// A backslash is an ordinary byte (`APR_FNM_NOESCAPE`).
    pub no_escape: bool,
}

/// Whether `text` matches `pattern`, with `*`, `?`, `[a-z]`, `[!a-z]` and backslash.
///
/// A `[` without its `]` is an ordinary byte. Runs in O(pattern × text), without recursion. Source:
/// `apr_fnmatch`.
pub fn fnmatch(pattern: &[u8], text: &[u8], flags: Flags) -> bool {
    let mut at = Cursor { pattern: 0, text: 0 };
    let mut retry: Option<Cursor> = None;
    loop {
        if pattern.get(at.pattern) == Some(&b'*') && !is_hidden_dot(text, at.text, flags) {
            at.pattern += 1;
            retry = Some(at);
            continue;
        }
        if at.text >= text.len() && at.pattern >= pattern.len() {
            return true;
        }
        if let Some(length) = match_one(pattern, text, at, flags) {
            at = Cursor { pattern: at.pattern + length, text: at.text + 1 };
            continue;
        }
        // Backtracks to the last star, which takes one more byte if it may.
        let Some(last) = retry else { return false };
        match text.get(last.text) {
            Some(b'/') if flags.pathname => return false,
            None => return false,
            Some(_) => {
                at = Cursor { pattern: last.pattern, text: last.text + 1 };
                retry = Some(at);
            }
        }
    }
}

/// Whether `pattern` has a wildcard. Source: `apr_fnmatch_test`.
pub fn has_wildcard(pattern: &[u8]) -> bool {
    let mut bracket_open = false;
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'?' | b'*' => return true,
            b'\\' => {
                bytes.next();
            }
            b'[' => bracket_open = true,
            b']' if bracket_open => return true,
            _ => {}
        }
    }
    false
}

/// Whether `text` matches `pattern`, in which only `*` and `?` are special and match any byte.
///
/// Source: `ap_strcmp_match`, `ap_strcasecmp_match`.
pub fn simple_match(pattern: &[u8], text: &[u8], ignoring_case: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                p += 1;
                retry = Some((p, t));
                continue;
            }
            (None, None) => return true,
            (Some(wanted), Some(found))
                if *wanted == b'?' || same(*wanted, *found, ignoring_case) =>
            {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            _ => {}
        }
        let Some((star, taken)) = retry else { return false };
        if taken >= text.len() {
            return false;
        }
        (p, t) = (star, taken + 1);
        retry = Some((p, t));
    }
}

/// Whether `pattern` has a `*` or `?`. Source: `ap_is_matchexp`.
pub fn is_match_expression(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| matches!(byte, b'*' | b'?'))
}

#[derive(Clone, Copy)]
struct Cursor {
    pattern: usize,
    text: usize,
}

/// Matches one byte of text with the pattern at the cursor, which is not at a star that may match
/// here. Returns the length of that part of the pattern.
fn match_one(pattern: &[u8], text: &[u8], at: Cursor, flags: Flags) -> Option<usize> {
    let byte = *text.get(at.text)?;
    let rest = pattern.get(at.pattern..)?;
    let (&first, after) = rest.split_first()?;
    let is_separator = flags.pathname && byte == b'/';
    let wild = !is_separator && !is_hidden_dot(text, at.text, flags);
    match first {
        b'?' => wild.then_some(1),
        b'*' => None,
        b'[' => match bracket(after, byte, flags) {
            Some((matched, length)) => (wild && matched).then_some(length + 1),
            None => (byte == b'[').then_some(1),
        },
        b'\\' if !flags.no_escape => {
            let (length, wanted) = after.first().map_or((1, b'\\'), |next| (2, *next));
            same(wanted, byte, flags.ignoring_case).then_some(length)
        }
        _ => same(first, byte, flags.ignoring_case).then_some(1),
    }
}

/// Reads a class after its `[`. Returns whether it matches, and its length including `]`.
fn bracket(class: &[u8], byte: u8, flags: Flags) -> Option<(bool, usize)> {
    let negated = matches!(class.first(), Some(b'!' | b'^'));
    let start = usize::from(negated);
    let mut at = start;
    let mut matched = false;
    loop {
        let first = *class.get(at)?;
        if first == b']' && at > start {
            return Some((matched != negated, at + 1));
        }
        if first == b'/' && flags.pathname {
            return None;
        }
        let (low, next) = class_byte(class, at, flags)?;
        at = next;
        let is_range =
            class.get(at) == Some(&b'-') && !matches!(class.get(at + 1), None | Some(b']'));
        let high = if is_range {
            let (high, next) = class_byte(class, at + 1, flags)?;
            at = next;
            high
        } else {
            low
        };
        matched |= (low..=high).contains(&byte);
        if flags.ignoring_case {
            matched |= (low..=high).contains(&byte.to_ascii_lowercase())
                || (low..=high).contains(&byte.to_ascii_uppercase());
        }
    }
}

fn class_byte(class: &[u8], at: usize, flags: Flags) -> Option<(u8, usize)> {
    match *class.get(at)? {
        b'\\' if !flags.no_escape => Some((*class.get(at + 1)?, at + 2)),
        byte => Some((byte, at + 1)),
    }
}

/// Whether the byte is a dot that only a dot may match.
fn is_hidden_dot(text: &[u8], at: usize, flags: Flags) -> bool {
    let starts = match at.checked_sub(1) {
        None => true,
        Some(before) => flags.pathname && text.get(before) == Some(&b'/'),
    };
    flags.period && starts && text.get(at) == Some(&b'.')
}

fn same(left: u8, right: u8, ignoring_case: bool) -> bool {
    left == right || (ignoring_case && left.eq_ignore_ascii_case(&right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(pattern: &str, text: &str) -> bool {
        fnmatch(pattern.as_bytes(), text.as_bytes(), Flags::default())
    }

    #[test]
    fn stars_marks_and_classes() {
        assert!(plain("*.conf", "a.conf") && plain("*.conf", ".conf") && plain("*", ""));
        assert!(!plain("*.conf", "a.conf~") && !plain("?", "") && plain("?", "x"));
        assert!(plain("[0-9][!a]x", "5bx") && !plain("[0-9][!a]x", "5ax"));
        assert!(plain("a[]]b", "a]b") && plain("a\\*b", "a*b") && !plain("a\\*b", "axb"));
        assert!(plain("a[b", "a[b") && plain("*a*b*c", "xxaybzc") && !plain("*a*b*c", "xxaybz"));
    }

    #[test]
    fn pathname_and_period() {
        let path = Flags { pathname: true, ..Flags::default() };
        assert!(fnmatch(b"/home/*/www", b"/home/ann/www", path));
        assert!(!fnmatch(b"/home/*/www", b"/home/a/b/www", path));
        assert!(!fnmatch(b"a?b", b"a/b", path) && !fnmatch(b"a[/]b", b"a/b", path));
        assert!(fnmatch(b"/home/*/www", b"/home/a/b/www", Flags::default()));
        let period = Flags { period: true, ..Flags::default() };
        assert!(!fnmatch(b"*.conf", b".conf", period) && fnmatch(b".*", b".conf", period));
        assert!(fnmatch(b"a*", b"a.b", period) && !fnmatch(b"?conf", b".conf", period));
    }

    #[test]
    fn case_blind() {
        let blind = Flags { ignoring_case: true, ..Flags::default() };
        assert!(fnmatch(b"AB[c-d]*", b"abDx", blind) && !plain("AB", "ab"));
    }

    #[test]
    fn wildcards_are_noticed() {
        assert!(has_wildcard(b"a*") && has_wildcard(b"[ab]") && !has_wildcard(b"[ab"));
        assert!(!has_wildcard(b"a\\*") && !has_wildcard(b"plain]"));
    }

    #[test]
    fn simple_patterns() {
        assert!(simple_match(b"*.example.com", b"www.EXAMPLE.com", true));
        assert!(!simple_match(b"*.example.com", b"www.EXAMPLE.com", false));
        assert!(simple_match(b"a?c*", b"abc", false) && !simple_match(b"a?c", b"ac", false));
        assert!(is_match_expression(b"a?") && !is_match_expression(b"[a]"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(pattern in ".{0,24}", text in ".{0,24}") {
            let all = Flags { pathname: true, period: true, ignoring_case: true, no_escape: false };
            fnmatch(pattern.as_bytes(), text.as_bytes(), all);
            simple_match(pattern.as_bytes(), text.as_bytes(), true);
        }

        #[test]
        fn an_escaped_text_matches_itself(text in "[a-z*?\\[\\]\\\\]{0,12}") {
            let pattern: String = text.chars().flat_map(|c| ['\\', c]).collect();
            assert!(fnmatch(pattern.as_bytes(), text.as_bytes(), Flags::default()));
        }
    }
}

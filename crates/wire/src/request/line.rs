//! Parses the request line by the rules of `ap_parse_request_line`.

use super::{HeadError, HeadFlags, HeadOptions, LogLevel, RequestHead, Version};
use crate::chars::{is_space, is_token, is_visible};
use crate::method::Method;
use crate::uri::Target;

/// Most bytes of a client's text in a log line.
const LOG_NAME_LIMIT: usize = 80;

/// The first fault of a request line. It is reported once the whole line is parsed, so that logs
/// and error pages show all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    BadWhitespace,
    ExcessWhitespace,
    BadMethod,
    BadTarget,
    BadProtocol,
    TrailingText,
    SimpleRefused,
    SimpleMethod,
}

struct Parts<'a> {
    method: &'a [u8],
    target: &'a [u8],
    protocol: &'a [u8],
    rest: &'a [u8],
    fault: Option<Fault>,
}

/// Parses `line`, which is without its line end, and fills the head's first half.
pub(super) fn parse(
    head: &mut RequestHead,
    line: &[u8],
    options: &HeadOptions<'_>,
) -> Result<(), Box<HeadError>> {
    take(head, &split(line, options.strict), options)
}

/// Sets what [`parse`] finds in the line of HTTP/2 that has this method, a token, and this target,
/// of visible bytes.
pub(super) fn compose(
    head: &mut RequestHead,
    method: &[u8],
    target: &[u8],
    options: &HeadOptions<'_>,
) -> Result<(), Box<HeadError>> {
    let parts = Parts { method, target, protocol: b"HTTP/2.0", rest: b"", fault: None };
    take(head, &parts, options)
}

fn take(
    head: &mut RequestHead,
    parts: &Parts<'_>,
    options: &HeadOptions<'_>,
) -> Result<(), Box<HeadError>> {
    store(head, parts);
    if head.line.is_empty() {
        head.flags.set(HeadFlags::BLANK);
    }
    head.method = Method::of(parts.method, options.methods);
    head.header_only = head.method == Method::GET && parts.method.first() == Some(&b'H');
    let mut fault = parts.fault;
    read_version(head, parts, options.strict, &mut fault);
    let target_is_valid = set_target(head);
    if head.is_simple() && fault.is_none() {
        fault = simple_fault(head, options);
    }
    let outcome = match fault {
        Some(fault) => Err(report(fault, parts)),
        None => check_target(head, options, target_is_valid),
    };
    if outcome.is_err() && head.is_simple() {
        // The response to a malformed line is HTTP/1.0; only a valid line is a simple request.
        head.version = Version::HTTP_10;
        head.protocol = (0, 0);
    }
    outcome
}

/// Splits the line at whitespace and records the first fault.
fn split(line: &[u8], strict: bool) -> Parts<'_> {
    let mut fault = None;
    let mut note = |found| {
        fault.get_or_insert(found);
    };
    let start = line.iter().position(|byte| !is_space(*byte)).unwrap_or(line.len());
    if start > 0 {
        note(Fault::BadWhitespace);
    }
    let rest = &line[start..];
    let class = if strict { is_token } else { is_visible };
    let (method, rest, clean) = cut_word(rest, class);
    if !clean || method.is_empty() {
        note(Fault::BadMethod);
    }
    let rest = skip_gap(rest, strict, &mut note);
    let (target, rest, clean) = cut_word(rest, is_visible);
    if !clean || target.is_empty() {
        note(Fault::BadTarget);
    }
    let rest = skip_gap(rest, strict, &mut note);
    let (protocol, mut rest, _) = cut_word(rest, |_| true);
    if strict && !rest.is_empty() {
        note(Fault::ExcessWhitespace);
    }
    while let Some((byte, shorter)) = rest.split_first().filter(|(byte, _)| is_space(**byte)) {
        if *byte != b' ' {
            note(Fault::BadWhitespace);
        }
        rest = shorter;
    }
    if !rest.is_empty() {
        note(Fault::TrailingText);
    }
    Parts { method, target, protocol, rest, fault }
}

/// Returns the word up to whitespace, the rest, and whether the whole word is of the class.
fn cut_word(text: &[u8], class: impl Fn(u8) -> bool) -> (&[u8], &[u8], bool) {
    let end = text.iter().position(|byte| is_space(*byte)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest, word.iter().all(|byte| class(*byte)))
}

/// Skips the whitespace between two words: one space in strict mode, otherwise any number.
fn skip_gap<'a>(text: &'a [u8], strict: bool, note: &mut impl FnMut(Fault)) -> &'a [u8] {
    let end = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    let (gap, rest) = text.split_at(end);
    if strict && gap.len() > 1 {
        note(Fault::ExcessWhitespace);
    }
    if gap.iter().any(|byte| *byte != b' ') {
        note(Fault::BadWhitespace);
    }
    rest
}

/// Stores the line with single spaces, as Apache logs it.
fn store(head: &mut RequestHead, parts: &Parts<'_>) {
    head.line.clear();
    head.line.extend_from_slice(parts.method);
    head.method_len = head.line.len();
    if !parts.target.is_empty() {
        head.line.push(b' ');
    }
    let start = head.line.len();
    head.line.extend_from_slice(parts.target);
    head.target = (start, head.line.len());
    if !parts.protocol.is_empty() {
        head.line.push(b' ');
    }
    let start = head.line.len();
    head.line.extend_from_slice(parts.protocol);
    head.protocol = (start, head.line.len());
}

/// Parses `HTTP/d.d`; in unsafe mode the letters are case-insensitive.
fn read_version(
    head: &mut RequestHead,
    parts: &Parts<'_>,
    strict: bool,
    fault: &mut Option<Fault>,
) {
    head.version = Version::HTTP_09;
    if parts.protocol.is_empty() {
        return;
    }
    let (name, number) = parts.protocol.split_at(parts.protocol.len().min(5));
    match *number {
        [major @ b'1'..=b'9', b'.', minor @ b'0'..=b'9'] if name.eq_ignore_ascii_case(b"HTTP/") => {
            head.version = Version(u32::from(major - b'0') * 1000 + u32::from(minor - b'0'));
            if name != b"HTTP/" && strict {
                fault.get_or_insert(Fault::BadProtocol);
            }
        }
        _ => {
            fault.get_or_insert(Fault::BadProtocol);
        }
    }
}

/// Splits the target (`ap_parse_uri`). Returns false if that fails, or the target has none of the
/// forms of RFC 9112.
pub(super) fn set_target(head: &mut RequestHead) -> bool {
    let whole = head.target;
    let is_options = head.method == Method::OPTIONS;
    let target = head.line.get(whole.0..whole.1).unwrap_or_default();
    if head.method != Method::CONNECT && is_origin_form(target) {
        let mark = target.iter().position(|byte| *byte == b'?');
        let end = whole.0 + mark.unwrap_or(target.len());
        head.path = (whole.0, end);
        head.query = mark.map(|_| (end + 1, whole.1));
        return true;
    }
    let Ok(parts) = Target::of_request(target, head.method == Method::CONNECT) else {
        // Of slashes at the beginning, one is left.
        let slashes = target.iter().take_while(|byte| **byte == b'/').count();
        head.path = (whole.0 + slashes.saturating_sub(1), whole.1);
        return false;
    };
    let range = |part: &[u8]| {
        let start = whole.0 + (part.as_ptr() as usize).wrapping_sub(target.as_ptr() as usize);
        (start, start + part.len())
    };
    let path = parts.path.map_or((0, 0), range);
    let query = parts.query.map(range);
    let valid = match parts.path {
        Some(path) => path.first() == Some(&b'/') || (is_options && path == b"*"),
        None => true,
    };
    let has_host = parts.host.is_some();
    head.path = path;
    head.query = query;
    if has_host {
        head.flags.set(HeadFlags::TARGET_HOST);
    }
    valid
}

/// Whether the target is a path, the usual form: it does not begin with two slashes, which could
/// begin an authority, and has no fragment.
fn is_origin_form(target: &[u8]) -> bool {
    target.first() == Some(&b'/') && target.get(1) != Some(&b'/') && !target.contains(&b'#')
}

fn simple_fault(head: &RequestHead, options: &HeadOptions<'_>) -> Option<Fault> {
    if !options.allow_http09 {
        return Some(Fault::SimpleRefused);
    }
    let is_get = head.method == Method::GET && !head.header_only;
    (options.strict && !is_get).then_some(Fault::SimpleMethod)
}

/// Checks that apply only to a line without faults.
fn check_target(
    head: &RequestHead,
    options: &HeadOptions<'_>,
    is_valid: bool,
) -> Result<(), Box<HeadError>> {
    if options.registered_methods && !head.method.is_known() {
        let message = quoted(
            "HTTP Request Line; Unrecognized HTTP method: ",
            head.method_name(),
            " (disallowed by RegisteredMethods)",
        );
        return Err(HeadError::new(501, 2423, LogLevel::Debug, message));
    }
    if !is_valid {
        let shown = head.path().split(|byte| *byte == b':').next().unwrap_or_default();
        let message = quoted("HTTP Request Line; Unable to parse URI: ", shown, "");
        return Err(HeadError::new(400, 3450, LogLevel::Debug, message));
    }
    if options.strict {
        return check_strict_target(head);
    }
    Ok(())
}

/// A request may contain neither a fragment nor a user and password (RFC 9110 section 4.2.4).
pub(super) fn check_strict_target(head: &RequestHead) -> Result<(), Box<HeadError>> {
    if head.target().contains(&b'#') {
        let message = "HTTP Request Line; URI must not contain a fragment";
        return Err(HeadError::new(400, 2421, LogLevel::Debug, message));
    }
    let has_host = head.flags.has(HeadFlags::TARGET_HOST);
    if has_host && head.split_target().is_ok_and(|target| target.user_info.is_some()) {
        let message = "HTTP Request Line; URI must not contain a username/password";
        return Err(HeadError::new(400, 2422, LogLevel::Debug, message));
    }
    Ok(())
}

fn report(fault: Fault, parts: &Parts<'_>) -> Box<HeadError> {
    let (log_number, message) = match fault {
        Fault::BadMethod => {
            (3445, quoted("HTTP Request Line; Invalid method token: ", parts.method, ""))
        }
        Fault::SimpleMethod => {
            let why = " (only GET is allowed for HTTP/0.9 requests)";
            (3444, quoted("HTTP Request Line; Invalid method token: ", parts.method, why))
        }
        Fault::BadTarget => {
            (3454, quoted("HTTP Request Line; URI incorrectly encoded: ", parts.target, ""))
        }
        Fault::BadWhitespace => (3447, b"HTTP Request Line; Invalid whitespace".to_vec()),
        Fault::ExcessWhitespace => {
            let text = b"HTTP Request Line; Excess whitespace (disallowed by HttpProtocolOptions \
                Strict)";
            (3448, text.to_vec())
        }
        Fault::TrailingText => {
            let why = " (perhaps whitespace was injected?)";
            (3449, quoted("HTTP Request Line; Extraneous text found ", parts.rest, why))
        }
        Fault::SimpleRefused => (2401, b"HTTP Request Line; Rejected HTTP/0.9 request".to_vec()),
        Fault::BadProtocol => {
            let why = " (perhaps whitespace was injected?)";
            (2418, quoted("HTTP Request Line; Unrecognized protocol ", parts.protocol, why))
        }
    };
    HeadError::new(400, log_number, LogLevel::Debug, message)
}

fn quoted(before: &str, text: &[u8], after: &str) -> Vec<u8> {
    let shown = text.get(..text.len().min(LOG_NAME_LIMIT)).unwrap_or_default();
    [before.as_bytes(), b"'", shown, b"'", after.as_bytes()].concat()
}

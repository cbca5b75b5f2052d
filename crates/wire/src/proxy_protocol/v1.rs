//! Version 1: a line of text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{FIRST_BYTES, Progress, Refusal};

/// The longest line with its end, bytes (`sizeof(proxy_v1)`).
const LINE_BYTES_MAX: usize = 108;

/// Apache's numbers of the address families, in a message.
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 10;

/// Whether the bytes are the beginning of such a line.
pub(super) fn begins(first: &[u8; FIRST_BYTES]) -> bool {
    first.starts_with(b"PROXY ")
}

/// Source: `remoteip_process_v1_header`. As in Apache the line is read up to its LF, and again if
/// it has no CR LF by then; and it never ends with the first bytes, which are read before.
pub(super) fn decode(input: &[u8]) -> Progress {
    let mut end = FIRST_BYTES;
    loop {
        let rest = input.get(end..).unwrap_or_default();
        let room = LINE_BYTES_MAX.saturating_sub(end);
        let line = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let length = line.unwrap_or(rest.len());
        if length > room {
            let message =
                format!("RemoteIPProxyProtocol header too long, got {length} expected {room}");
            return Refusal::refuse(10185, message);
        }
        if line.is_none() {
            return Progress::NeedMore;
        }
        end += length;
        let header = input.get(..end).unwrap_or_default();
        let Some((text, consumed)) = ended(header) else { continue };
        return match client(text) {
            Ok(_) if consumed != end => left_over(consumed, end),
            Ok(client) => Progress::Done { consumed, client },
            Err(refused) => refused,
        };
    }
}

/// The text before the first CR, and its length with the CR LF; `None` if an LF does not follow.
fn ended(header: &[u8]) -> Option<(&[u8], usize)> {
    let at = header.iter().position(|byte| *byte == b'\r')?;
    (header.get(at + 1) == Some(&b'\n')).then(|| (header.get(..at).unwrap_or_default(), at + 2))
}

/// A header that ends before the line that was read with it.
fn left_over(consumed: usize, received: usize) -> Progress {
    let message = format!(
        "RemoteIPProxyProtocol: internal error: have data left over;  need={consumed}, \
         rcvd={received}, brigade-empty=1"
    );
    Refusal::refuse(3513, message)
}

/// The client that a line names; `None` for `UNKNOWN`.
fn client(line: &[u8]) -> Result<Option<SocketAddr>, Progress> {
    // It is a string of C.
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).skip(1);
    let mut word =
        |what: &str| words.next().ok_or_else(|| refused(3497, &format!("no {what} found"), line));
    let family = match word("family")? {
        b"UNKNOWN" => return Ok(None),
        b"TCP4" => FAMILY_V4,
        b"TCP6" => FAMILY_V6,
        other => return Err(refused(3499, &format!("unknown family '{}'", text(other)), line)),
    };
    let host = word("client-address")?;
    if !host.iter().all(|byte| may_be_in_address(*byte, family)) {
        let what = format!("invalid client-address '{}' found", text(host));
        return Err(refused(3500, &what, line));
    }
    word("destination-address")?;
    let digits = word("client-port")?;
    let Some(port) = port(digits) else {
        return Err(refused(3501, &format!("error parsing port '{}'", text(digits)), line));
    };
    let Some(address) = address(host, family) else {
        let message = format!(
            "RemoteIPProxyProtocol: error converting family '{family}', host '{}', and port \
             '{port}' to sockaddr; header was '{}'",
            text(host),
            text(line),
        );
        let refusal = Refusal { log_number: 3502, message, is_of_other_family: true };
        return Err(Progress::Refused(refusal));
    };
    Ok(Some(SocketAddr::new(address, port)))
}

fn refused(log_number: u32, what: &str, line: &[u8]) -> Progress {
    let line = text(line);
    Refusal::refuse(log_number, format!("RemoteIPProxyProtocol: {what} in header '{line}'"))
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn may_be_in_address(byte: u8, family: u8) -> bool {
    let in_v4 = byte.is_ascii_digit() || byte == b'.';
    in_v4 || family == FAMILY_V6 && (byte.is_ascii_hexdigit() || byte == b':')
}

fn address(text: &[u8], family: u8) -> Option<IpAddr> {
    if family == FAMILY_V4 {
        return classic(text).map(IpAddr::V4);
    }
    let address: Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(IpAddr::V6(address).to_canonical())
}

/// An address of one to four decimal or octal numbers, the last of which fills the rest
/// (`inet_aton`).
fn classic(text: &[u8]) -> Option<Ipv4Addr> {
    let mut numbers = [0u32; 4];
    let mut count = 0;
    for part in text.split(|byte| *byte == b'.') {
        let radix = if part.len() > 1 && part.first() == Some(&b'0') { 8 } else { 10 };
        *numbers.get_mut(count)? =
            u32::from_str_radix(std::str::from_utf8(part).ok()?, radix).ok()?;
        count += 1;
    }
    let (last, octets) = numbers.get(..count)?.split_last()?;
    let mut address = 0u32;
    for octet in octets {
        address = address << 8 | u32::from(u8::try_from(*octet).ok()?);
    }
    let bits = 8 * (4 - u32::try_from(octets.len()).ok()?);
    let fits = u64::from(*last) < 1 << bits;
    let above = u64::from(address) << bits;
    fits.then(|| u32::try_from(above | u64::from(*last)).ok().map(Ipv4Addr::from))?
}

/// A number as `sscanf("%hu")` reads it: the digits at the beginning, modulo 65536.
fn port(text: &[u8]) -> Option<u16> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = digits.get(..length).filter(|digits| !digits.is_empty())?;
    let value = digits
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    let value = match (value, negative) {
        (None, _) => u64::MAX,
        (Some(value), true) => value.wrapping_neg(),
        (Some(value), false) => value,
    };
    Some((value & 0xffff) as u16)
}

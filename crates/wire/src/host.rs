//! Host names in requests: syntax, port, and whether the target or the `Host` field counts
//! (`fix_hostname`, and `ap_update_vhost_from_headers` up to the choice of a virtual host).

use std::net::Ipv6Addr;

use crate::chars::decimal;
use crate::request::{HeadError, HeadFlags, LogLevel, RequestHead, Version};
use crate::uri::Target;

/// The host of a request. Recycled like the head.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RequestHost {
    name: Vec<u8>,
    /// The `Host` field that the name was made from, or empty if the name came from the target.
    /// Persistent connections repeat the same field.
    source: Vec<u8>,
    is_strict: bool,
    /// Whether the request named a host, possibly an empty one (`r->hostname` is not NULL).
    pub is_given: bool,
    /// Port from the `Host` field or the target; 0 when none was given.
    pub port: u16,
    /// Whether the name is an IPv6 address (without its brackets).
    pub is_ipv6: bool,
}

impl RequestHost {
    /// Returns a value without a host.
    pub const fn new() -> Self {
        RequestHost {
            name: Vec::new(),
            source: Vec::new(),
            is_strict: false,
            is_given: false,
            port: 0,
            is_ipv6: false,
        }
    }

    /// Clears the host and keeps the memory.
    pub fn clear(&mut self) {
        self.name.clear();
        self.source.clear();
        self.is_given = false;
        self.port = 0;
        self.is_ipv6 = false;
    }

    /// Bytes of memory held, including unused ones.
    pub fn capacity_bytes(&self) -> usize {
        self.name.capacity() + self.source.capacity()
    }

    /// The host's name in lower case, without port, brackets and trailing dot (`r->hostname`).
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Determines the host of a request whose head is complete.
    ///
    /// `scheme` is the connection's (`http` or `https`): an absolute target of another scheme does
    /// not name a host. In strict mode the target's host replaces the `Host` field.
    ///
    /// On error (400) the name is the target's or empty, as in Apache's logs and pages.
    pub fn resolve(
        &mut self,
        head: &mut RequestHead,
        scheme: &[u8],
        strict: bool,
    ) -> Result<(), Box<HeadError>> {
        if head.flags.has(HeadFlags::TARGET_HOST) {
            self.clear();
            return self.resolve_from_target(head, scheme, strict);
        }
        self.resolve_from_field(head, strict)
    }

    /// An HTTP/1.1 request must name its host (RFC 9112 section 3.2). Apache also requires this of
    /// later versions, where a host in the target suffices.
    pub fn check_presence(&self, head: &RequestHead) -> Result<(), Box<HeadError>> {
        let missing_name = !self.is_given && head.version >= Version::HTTP_11;
        let missing_field = head.version == Version::HTTP_11 && !head.flags.has(HeadFlags::HOST);
        if missing_name || missing_field {
            let mut message = b"client sent HTTP/1.1 request without hostname \
                (see RFC2616 section 14.23): "
                .to_vec();
            message.extend_from_slice(head.path());
            return Err(HeadError::new(400, 569, LogLevel::Debug, message));
        }
        Ok(())
    }

    fn resolve_from_target(
        &mut self,
        head: &mut RequestHead,
        scheme: &[u8],
        strict: bool,
    ) -> Result<(), Box<HeadError>> {
        let is_connect = head.method == crate::Method::CONNECT;
        let Ok(target) = Target::of_request(head.target(), is_connect) else {
            return self.resolve_from_field(head, strict);
        };
        let names_us = target.scheme.is_some_and(|sent| sent.eq_ignore_ascii_case(scheme));
        let Some(host) = target.host.filter(|_| is_connect || names_us) else {
            head.flags.unset(HeadFlags::TARGET_HOST);
            return self.resolve_from_field(head, strict);
        };
        self.is_given = true;
        self.port = target.port_number();
        self.name.extend_from_slice(host);
        if !self.name.is_empty() {
            self.is_ipv6 = host.contains(&b':');
            self.check_name(strict)?;
        }
        if strict && head.flags.has(HeadFlags::HOST) {
            let field = host_field(&self.name, self.is_ipv6, target.port);
            head.headers.set(b"Host", &field);
        }
        Ok(())
    }

    fn resolve_from_field(
        &mut self,
        head: &RequestHead,
        strict: bool,
    ) -> Result<(), Box<HeadError>> {
        let field = head.headers.get(b"Host").unwrap_or_default();
        let is_same = !field.is_empty() && field == self.source && strict == self.is_strict;
        if is_same && self.is_given {
            return Ok(());
        }
        self.clear();
        if field.is_empty() {
            return Ok(());
        }
        match plain_host(field) {
            Some((host, port)) => {
                self.name.extend_from_slice(host);
                self.name.make_ascii_lowercase();
                self.port = port;
                self.is_given = true;
            }
            None => self.take_field(field, strict)?,
        }
        self.source.extend_from_slice(field);
        self.is_strict = strict;
        Ok(())
    }

    /// Applies the full rules to a field that is not empty.
    fn take_field(&mut self, field: &[u8], strict: bool) -> Result<(), Box<HeadError>> {
        if field.iter().all(u8::is_ascii_digit) {
            if strict {
                return Err(malformed(field));
            }
            self.name.extend_from_slice(field);
            self.is_given = true;
            return Ok(());
        }
        let split = split_port(field).ok_or_else(|| malformed(field))?;
        self.port = split.port;
        self.name.extend_from_slice(split.host);
        self.is_ipv6 = split.is_ipv6;
        if self.check_name(strict).is_err() {
            self.clear();
            return Err(malformed(field));
        }
        self.is_given = true;
        Ok(())
    }

    /// Lowercases the name and removes its trailing dot. Fails if it can't be a host name.
    fn check_name(&mut self, strict: bool) -> Result<(), Box<HeadError>> {
        let valid = if self.is_ipv6 {
            is_ipv6_text(&self.name)
        } else {
            let clean = !self.name.windows(2).any(|pair| pair == b"..")
                && !self.name.iter().any(|byte| matches!(byte, b'/' | b'\\'));
            if clean && self.name.last() == Some(&b'.') {
                self.name.pop();
            }
            clean && (!strict || is_strict_name(&self.name))
        };
        self.name.make_ascii_lowercase();
        if valid { Ok(()) } else { Err(malformed(&self.name)) }
    }
}

/// A letter, a hyphen or an underscore.
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const DOT: u8 = 4;

/// The bytes of the usual hosts.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' => LETTER,
            b'0'..=b'9' => DIGIT,
            b'.' => DOT,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

/// Recognises the usual hosts in one pass: labels of letters, digits, hyphens and underscores,
/// including IPv4 addresses, with or without a port. `None` leaves the decision to the full rules.
fn plain_host(field: &[u8]) -> Option<(&[u8], u16)> {
    let (mut dots, mut kinds, mut before) = (0, 0, DOT);
    let mut end = field.len();
    for (at, byte) in field.iter().enumerate() {
        let kind = KINDS[usize::from(*byte)];
        if kind == DOT {
            dots += 1;
        }
        if *byte == b':' {
            end = at;
            break;
        }
        if kind == 0 || (kind == DOT && before == DOT) {
            return None;
        }
        kinds |= kind;
        before = kind;
    }
    let name = field.get(..end)?;
    let mut labels = name.rsplit(|byte| *byte == b'.');
    let begins_with_letter = |label: &[u8]| label.first().is_some_and(u8::is_ascii_alphabetic);
    let is_sound = if kinds & LETTER != 0 {
        dots == 0 || labels.next().is_some_and(begins_with_letter)
    } else {
        dots == 3 && !labels.any(|label| label.len() > 1 && label.first() == Some(&b'0'))
    };
    if before == DOT || !is_sound {
        return None;
    }
    let port = match field.get(end + 1..) {
        Some(port) => decimal(port).filter(|port| (1..=65535).contains(port))? as u16,
        None => 0,
    };
    Some((name, port))
}

struct HostAndPort<'a> {
    host: &'a [u8],
    port: u16,
    is_ipv6: bool,
}

/// Splits `host[:port]` from the end (`apr_parse_addr_port`).
fn split_port(field: &[u8]) -> Option<HostAndPort<'_>> {
    let digits = field.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, port) = field.split_at(field.len() - digits);
    let (mut host, mut number) = (field, 0);
    if let (Some(name), false) = (before.strip_suffix(b":"), port.is_empty()) {
        number = decimal(port).filter(|port| (1..=65535).contains(port))? as u16;
        host = name;
    }
    if host.is_empty() {
        return None;
    }
    match host.strip_prefix(b"[") {
        Some(literal) => {
            let address = literal.strip_suffix(b"]")?;
            std::str::from_utf8(address).ok()?.parse::<Ipv6Addr>().ok()?;
            Some(HostAndPort { host: address, port: number, is_ipv6: true })
        }
        None => Some(HostAndPort { host, port: number, is_ipv6: false }),
    }
}

/// `fix_hostname_v6_literal`.
fn is_ipv6_text(name: &[u8]) -> bool {
    let mut double_colons = 0;
    for (at, byte) in name.iter().enumerate() {
        let next = name.get(at + 1);
        match byte {
            b':' if next == Some(&b':') => double_colons += 1,
            b':' if next == Some(&b'.') => return false,
            b'.' if matches!(next, Some(b':' | b'.')) => return false,
            b':' | b'.' => {}
            _ if byte.is_ascii_hexdigit() => {}
            _ => return false,
        }
    }
    double_colons <= 1
}

/// Letters, digits, hyphen, underscore and dots; a name of digits alone must be an IPv4 address,
/// and the last label begins with a letter (`strict_hostname_check`).
fn is_strict_name(name: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !name.iter().all(allowed) {
        return false;
    }
    if name.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        let leading_zero =
            |label: &[u8]| matches!(label, [b'0', next, ..] if next.is_ascii_digit());
        let labels = name.split(|byte| *byte == b'.');
        return name.first() != Some(&b'.')
            && labels.clone().count() == 4
            && !labels.clone().any(leading_zero);
    }
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot) => name.get(dot + 1).is_none_or(u8::is_ascii_alphabetic),
        None => true,
    }
}

/// Formats the `Host` field for the host of a target (`construct_host_header`).
fn host_field(name: &[u8], is_ipv6: bool, port: Option<&[u8]>) -> Vec<u8> {
    let mut field = Vec::with_capacity(name.len() + 8);
    if is_ipv6 {
        field.push(b'[');
    }
    field.extend_from_slice(name);
    if is_ipv6 {
        field.push(b']');
    }
    if let Some(port) = port {
        field.push(b':');
        field.extend_from_slice(port);
    }
    field
}

fn malformed(field: &[u8]) -> Box<HeadError> {
    let mut message = b"Client sent malformed Host header: ".to_vec();
    message.extend_from_slice(field);
    HeadError::new(400, 550, LogLevel::Debug, message)
}

#[cfg(test)]
mod tests;

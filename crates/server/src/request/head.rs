//! How a request takes over its head, and finds its host.

use std::borrow::Cow;

use wire::host::RequestHost;
use wire::{HeadError, HeadFlags, Method, Table};

use super::Request;
use crate::engine::plan::Place;

/// A host that the connection has requested before, and the initial place of its requests.
pub struct KnownHost {
    /// The name as in the request, lower case, without port.
    name: Vec<u8>,
    place: Place,
}

/// Why a request has no host.
pub enum Unhosted {
    /// Its head is invalid.
    Invalid(Box<HeadError>),
    /// The connection's handshake was for another host.
    Misdirected(Box<HeadError>),
}

impl From<Box<HeadError>> for Unhosted {
    fn from(error: Box<HeadError>) -> Unhosted {
        Unhosted::Invalid(error)
    }
}

/// The note of a request whose connection ends without an announcement in the response.
pub const CLOSES_SILENTLY: &[u8] = b"closes-silently";

/// Scheme and authority of an absolute-form target.
#[derive(Clone, Debug)]
pub struct Absolute {
    /// `http`, `https`, …
    pub scheme: Vec<u8>,
    /// Host and port as received.
    pub authority: Vec<u8>,
}

/// The head of a request, as the client sent it.
pub struct Head {
    /// The request line as received, for logs.
    pub request_line: Vec<u8>,
    /// The method. HEAD is GET with [`Head::header_only`].
    pub method: Method,
    /// The method as received (`HEAD`, or an extension's name).
    pub method_name: Cow<'static, [u8]>,
    /// HEAD: no body is sent.
    pub header_only: bool,
    /// The protocol version in thousands: HTTP/1.1 is 1001.
    pub protocol: u16,
    /// HTTP/0.9: no head is sent.
    pub simple: bool,
    /// The target as received, with query.
    pub unparsed_uri: Vec<u8>,
    /// The scheme and authority of an absolute-form target.
    pub absolute: Option<Box<Absolute>>,
    /// The header fields.
    pub headers_in: Table,
    /// The trailer fields.
    pub trailers_in: Table,
    /// Facts about the fields, from the parser.
    pub flags: HeadFlags,
}

impl Default for Head {
    fn default() -> Head {
        Head {
            request_line: Vec::new(),
            method: Method::GET,
            method_name: Cow::Borrowed(b"GET"),
            header_only: false,
            protocol: 1001,
            simple: false,
            unparsed_uri: Vec::new(),
            absolute: None,
            headers_in: Table::new(),
            trailers_in: Table::new(),
            flags: HeadFlags::NONE,
        }
    }
}

impl Head {
    /// Clears everything for the next request; texts and tables keep their memory.
    pub(super) fn renew(&mut self) {
        #[rustfmt::skip]
        let Head {
            // [`Request::take_head`] sets them.
            method: _, method_name: _, header_only: _, protocol: _, simple: _, flags: _,
            request_line, unparsed_uri, absolute, headers_in, trailers_in,
        } = self;
        request_line.clear();
        unparsed_uri.clear();
        *absolute = None;
        headers_in.clear();
        trailers_in.clear();
    }
}

impl Request {
    /// Takes over a parsed head; its fields are moved, not copied.
    pub fn take_head(&mut self, head: &mut wire::RequestHead) {
        self.head.method = head.method;
        // HTTP/0.9 has no HEAD: where it is not refused, Apache sends the body.
        let is_strict = || self.connection.base_host.core.strict_protocol();
        self.head.header_only = head.header_only && (!head.is_simple() || is_strict());
        self.head.method_name = match head.method_name() {
            b"GET" => Cow::Borrowed(b"GET"),
            b"HEAD" => Cow::Borrowed(b"HEAD"),
            b"POST" => Cow::Borrowed(b"POST"),
            other => Cow::Owned(other.to_vec()),
        };
        self.head.protocol = head.version.0 as u16;
        self.head.simple = head.is_simple();
        self.head.request_line.extend_from_slice(head.line());
        self.head.unparsed_uri.extend_from_slice(head.target());
        self.resource.uri.extend_from_slice(head.path());
        self.resource.args = head.query().map(<[u8]>::to_vec);
        self.head.flags = head.flags;
        std::mem::swap(&mut self.head.headers_in, &mut head.headers);
    }

    /// Finds the host of the request by name, among those of the connection's address.
    pub fn find_host(
        &mut self,
        host: &mut RequestHost,
        head: &mut wire::RequestHead,
        known: &mut Option<KnownHost>,
    ) -> Result<(), Unhosted> {
        let strict = self.connection.base_host.core.strict_protocol();
        let scheme: &[u8] = if self.connection.tls.is_some() { b"https" } else { b"http" };
        // The previous name belongs to the last user of this memory, which may be another client.
        let name = self.forget_host();
        host.resolve(head, scheme, strict)?;
        if host.is_given {
            let mut name = name.unwrap_or_default();
            name.clear();
            name.extend_from_slice(host.name());
            self.hostname = Some(name);
        }
        self.named_port = (host.port != 0).then_some(host.port);
        match known {
            Some(known) if host.is_given && known.name == host.name() => self.enter(&known.place),
            _ => {
                let selected =
                    self.engine.server.vhosts.select(&self.connection, host, head.path())?;
                let place = self.engine.plans.place(selected);
                self.enter(&place);
                *known = host.is_given.then(|| KnownHost { name: host.name().to_vec(), place });
            }
        }
        // Only now: an absolute URI names the host whose error document and log it is.
        host.check_presence(head)?;
        head.check_expect()?;
        self.check_tls().map_err(Unhosted::Misdirected)?;
        if head.has_known_scheme() || self.engine.server.registry.hooks.forwards(&self.host.server)
        {
            return Ok(());
        }
        Err(Unhosted::Invalid(Box::new(HeadError {
            status: 400,
            log_number: 0,
            level: wire::LogLevel::Debug,
            message: Vec::new(),
            notes: "",
        })))
    }

    /// The protocol as received (`r->protocol`): `HTTP/0.9` if there was none, and `HTTP/1.0` if it
    /// was invalid; `INCLUDED` in a subrequest.
    pub fn protocol_name(&self) -> Cow<'_, [u8]> {
        if self.main.is_some() {
            return b"INCLUDED".into();
        }
        if self.head.flags.has(HeadFlags::UNREAD) {
            return b"HTTP/1.0".into();
        }
        let words = self.head.request_line.rsplit(|byte| *byte == b' ');
        let mut words = words.filter(|word| !word.is_empty());
        let last = words.next();
        let has_target = words.next().is_some() && words.next().is_some();
        let last = last.filter(|_| has_target).unwrap_or_default();
        match last.split_at_checked(5) {
            Some((name, [b'1'..=b'9', b'.', b'0'..=b'9'])) if name == b"HTTP/" => last.into(),
            Some((name, [b'1'..=b'9', b'.', b'0'..=b'9']))
                if name.eq_ignore_ascii_case(b"HTTP/") =>
            {
                let strict = self.connection.base_host.core.strict_protocol();
                if strict { last.into() } else { last.to_ascii_uppercase().into() }
            }
            _ if self.head.simple => b"HTTP/0.9".into(),
            _ => b"HTTP/1.0".into(),
        }
    }

    /// Clears the requested host; returns memory for reuse.
    pub fn forget_host(&mut self) -> Option<Vec<u8>> {
        self.named_port = None;
        self.hostname.take()
    }

    /// Checks that a request on a TLS connection names the host of its handshake, or one that is as
    /// strict.
    fn check_tls(&mut self) -> Result<(), Box<HeadError>> {
        let Some(tls) = &self.connection.tls else { return Ok(()) };
        if tls.admitted.get() == Some(self.host.id) && self.hostname.is_some() {
            return Ok(());
        }
        let server = &self.engine.server;
        let Some(hook) = server.registry.hooks.tls() else { return Ok(()) };
        if let (Some(name), None) = (&tls.server_name, &self.hostname) {
            return Err(nameless(name));
        }
        (hook.admit)(&self.connection, server, tls, &self.host)?;
        tls.admitted.set(Some(self.host.id));
        Ok(())
    }
}

/// The number of the message that only the handshake names the host, which is mod_ssl's.
pub const SNI_ALONE: u32 = 2031;

/// The error for a request without a host name on a connection whose handshake had one.
fn nameless(server_name: &str) -> Box<HeadError> {
    let message = format!(
        "Hostname {server_name} provided via SNI, but no hostname provided in HTTP request"
    );
    Box::new(HeadError {
        status: 400,
        log_number: SNI_ALONE,
        level: wire::LogLevel::Error,
        message: message.into_bytes(),
        notes: "",
    })
}

//! The items of a log format: the output of each `%` letter.
//!
//! Source: the `log_*` functions of modules/loggers/mod_log_config.c.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use server::connection_info::KeepAlive;
use server::request::Request;
use wire::{HeadFlags, Table, escape};

use super::time::Time;

/// An item that another module provides by `hooks.provider("log_item", letter, …)`.
pub struct LogItem {
    /// Receives the argument in braces, and appends its value or returns false.
    pub write: fn(&Request, &[u8], &mut Vec<u8>) -> bool,
    /// Whether it depends on nothing that the phases found out of a request.
    pub reads_head_alone: bool,
}

/// Whether an item has a value; otherwise the line contains a `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The value was written.
    Some,
    /// There is no value.
    None,
}

/// A letter with its argument.
pub enum Item {
    /// `%h`, `%{c}h`: the client's name if it has been looked up, otherwise its address.
    ClientName {
        /// Whether it is the connection's peer, not mod_remoteip's client.
        of_connection: bool,
    },
    /// `%a`, `%{c}a`
    ClientAddress {
        /// Whether it is the connection's peer, not mod_remoteip's client.
        of_connection: bool,
    },
    /// `%A`
    LocalAddress,
    /// `%B`: bytes of the body. `%b` writes `-` for 0.
    BodyBytes {
        /// `%b`
        dash: bool,
    },
    /// `%{name}C`
    Cookie(Vec<u8>),
    /// `%D`, `%T`, `%{unit}T`: microseconds per unit.
    Duration(u64),
    /// `%{name}e`
    Env(Vec<u8>),
    /// `%f`
    Filename,
    /// `%H`
    Protocol,
    /// `%{name}i`
    HeaderIn(Vec<u8>),
    /// `%k`
    KeepAlives,
    /// `%l`
    RemoteLogname,
    /// `%L`, `%{c}L`
    LogId { of_connection: bool },
    /// `%m`
    Method,
    /// `%{name}n`
    Note(Vec<u8>),
    /// `%{name}o`
    HeaderOut(Vec<u8>),
    /// `%p`: canonical, local, remote.
    Port(Port),
    /// `%P`: process, thread, or thread in hexadecimal.
    Process(Process),
    /// `%q`
    Query,
    /// `%r`
    RequestLine,
    /// `%R`
    Handler,
    /// `%s`
    Status,
    /// `%t`
    Time(Time),
    /// `%u`
    User,
    /// `%U`
    Path,
    /// `%v`
    ServerName,
    /// `%V`
    CanonicalName,
    /// `%X`
    Connection,
    /// `%{name}^ti`
    TrailerIn(Vec<u8>),
    /// `%{name}^to`
    TrailerOut(Vec<u8>),
    /// `%{…}p` or `%{…}P` with an unknown word, which is the value.
    Argument(Vec<u8>),
    /// Another module's item.
    Other(Arc<LogItem>, Vec<u8>),
}

/// `%{…}p`
#[derive(Clone, Copy)]
pub enum Port {
    /// The port of the server's canonical name.
    Canonical,
    /// The connection's local port.
    Local,
    /// The client's port: 0 if only its address is known, from a proxy.
    Remote,
}

/// `%{…}P`
#[derive(Clone, Copy)]
pub enum Process {
    /// `pid`
    Pid,
    /// `tid`
    Tid,
    /// `hextid`
    HexTid,
}

impl Item {
    /// Whether it depends on nothing that the phases found out of a request
    /// ([`server::hooks::Hooks::on_log`]).
    pub fn reads_head_alone(&self) -> bool {
        match self {
            Item::Argument(_)
            | Item::BodyBytes { .. }
            | Item::CanonicalName
            | Item::ClientAddress { .. }
            | Item::ClientName { .. }
            | Item::Connection
            | Item::Cookie(_)
            | Item::Duration(_)
            | Item::HeaderIn(_)
            | Item::KeepAlives
            | Item::LocalAddress
            | Item::LogId { .. }
            | Item::Method
            | Item::Port(_)
            | Item::Process(_)
            | Item::Protocol
            | Item::Query
            | Item::RemoteLogname
            | Item::RequestLine
            | Item::ServerName
            | Item::Status
            | Item::Time(_)
            | Item::TrailerIn(_)
            // Phases that find a user are not left out.
            | Item::User => true,
            Item::Other(item, _) => item.reads_head_alone,
            _ => false,
        }
    }

    /// Appends the value. Parts from the client are escaped as in Apache.
    pub fn write(&self, request: &Request, out: &mut Vec<u8>) -> Value {
        // The items of the usual formats take the shortest way.
        match self {
            Item::HeaderIn(name) => return escaped(request.head.headers_in.get(name), out),
            Item::RequestLine => {
                return escaped(request_line(request).as_deref(), out);
            }
            Item::User if request.user.is_none() => return Value::None,
            Item::BodyBytes { .. } | Item::RemoteLogname | Item::Status | Item::Time(_) => {
                return self.own(request, out);
            }
            _ => {}
        }
        match self.foreign(request) {
            Some(text) => escaped(text.as_deref(), out),
            None => self.own(request, out),
        }
    }

    /// Appends the raw value, for formats that escape it themselves.
    pub fn write_raw(&self, request: &Request, out: &mut Vec<u8>) -> Value {
        if let Some(raw) = self.foreign(request) {
            let Some(text) = raw else { return Value::None };
            out.extend_from_slice(&text);
            return Value::Some;
        }
        self.own(request, out)
    }

    /// A value that may come from outside and must be escaped; `None` for other items.
    fn foreign<'r>(&self, request: &'r Request) -> Option<Option<Cow<'r, [u8]>>> {
        let borrowed = |text: &'r [u8]| Some(Cow::Borrowed(text));
        Some(match self {
            Item::Env(name) => request.env.get(name).and_then(borrowed),
            Item::Note(name) => request.notes.get(name).and_then(borrowed),
            Item::HeaderIn(name) => request.head.headers_in.get(name).and_then(borrowed),
            Item::TrailerIn(name) => request.head.trailers_in.get(name).and_then(borrowed),
            Item::TrailerOut(name) => request.response.trailers_out.get(name).and_then(borrowed),
            Item::HeaderOut(name) => header_out(request, name),
            Item::Cookie(name) => cookie(&request.head.headers_in, name).map(Into::into),
            Item::Filename => borrowed(&request.resource.filename).filter(|name| !name.is_empty()),
            Item::RequestLine => request_line(request),
            Item::Path => borrowed(&request.resource.uri).filter(|path| !path.is_empty()),
            Item::Method => {
                let head = &request.head;
                let is_some = !head.method_name.is_empty() || head.flags.has(HeadFlags::BLANK);
                borrowed(&head.method_name).filter(|_| is_some)
            }
            Item::User => match request.user.as_deref() {
                // The marks of an empty name are not escaped.
                Some(b"") => return None,
                Some(user) => borrowed(user),
                None => None,
            },
            Item::Query => match request.query() {
                Some(args) => Some([b"?", args].concat().into()),
                None => borrowed(b""),
            },
            Item::Handler => request.handler.as_deref().and_then(borrowed),
            Item::ClientName { of_connection: false } => {
                return request.known_client_name().map(borrowed);
            }
            Item::ClientName { of_connection: true } => {
                return request.known_peer_name().map(borrowed);
            }
            Item::Argument(text) => return Some(Some(text.clone().into())),
            Item::CanonicalName => borrowed(request.server_name()),
            Item::ServerName => borrowed(&request.host.identity.name),
            _ => return None,
        })
    }

    /// Writes a value that the server produces.
    fn own(&self, request: &Request, out: &mut Vec<u8>) -> Value {
        match self {
            Item::ClientName { of_connection } | Item::ClientAddress { of_connection } => {
                let connection = &request.connection;
                address(if *of_connection { connection.peer } else { request.useragent_addr }, out);
            }
            Item::User => out.extend_from_slice(b"\"\""),
            Item::LocalAddress => address(request.connection.local, out),
            Item::BodyBytes { dash: true } if request.response.bytes_sent == 0 => {
                return Value::None;
            }
            Item::BodyBytes { .. } => number(request.response.bytes_sent, out),
            Item::Duration(unit) => {
                let now = request.engine.handle.clock().precise_wall_us();
                number(now.saturating_sub(request.time_us) / unit, out);
            }
            Item::Protocol => out.extend_from_slice(&request.protocol_name()),
            Item::KeepAlives => {
                number(u64::from(request.connection.keepalives.get().saturating_sub(1)), out);
            }
            Item::RemoteLogname => {
                return escaped(request.connection.logname.get().map(|name| name.as_slice()), out);
            }
            Item::LogId { of_connection: true } => match request.connection.log_id.get() {
                Some(id) => out.extend_from_slice(&id),
                None => return Value::None,
            },
            Item::LogId { .. } => match request.log_id() {
                Some(id) => out.extend_from_slice(id),
                None => return Value::None,
            },
            Item::Port(Port::Canonical) => {
                let own = Some(request.host.identity.port).filter(|port| *port != 0);
                number(own.unwrap_or_else(|| request.default_port()).into(), out);
            }
            Item::Port(Port::Local) => number(request.connection.local.port().into(), out),
            Item::Port(Port::Remote) => number(request.useragent_addr.port().into(), out),
            Item::Process(process) => process.write(out),
            Item::Status if request.response.status == 0 => return Value::None,
            Item::Status => number(request.response.status.into(), out),
            Item::Time(time) => {
                let clock = request.engine.handle.clock();
                let at = if time.at_end { clock.precise_wall_us() } else { request.time_us };
                time.write(at, out);
            }
            Item::Connection => out.push(match request.connection.keepalive.get() {
                _ if request.connection.aborted.get() => b'X',
                KeepAlive::Open => b'+',
                KeepAlive::Close | KeepAlive::Unknown => b'-',
            }),
            Item::Other(item, argument) => {
                if !(item.write)(request, argument, out) {
                    return Value::None;
                }
            }
            _ => return Value::None,
        }
        Value::Some
    }
}

impl Process {
    fn write(self, out: &mut Vec<u8>) {
        let tid = || nix::unistd::gettid().as_raw();
        let text = match self {
            Process::Pid => std::process::id().to_string(),
            Process::Tid => tid().to_string(),
            Process::HexTid => format!("{:x}", tid()),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// A response field, including `Content-Type` and others that are created when the head is written.
fn header_out<'r>(request: &'r Request, name: &[u8]) -> Option<Cow<'r, [u8]>> {
    if name.eq_ignore_ascii_case(b"content-type") {
        // Without parameters, as with `ap_field_noparam`.
        let media_type = request.response.content_type.as_deref()?;
        let bare = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        return Some(bare.trim_ascii_end().into());
    }
    request.field_sent(name)
}

/// The value of a cookie.
fn cookie(headers: &Table, name: &[u8]) -> Option<Vec<u8>> {
    let of_line = |line: &[u8]| {
        line.split(|byte| *byte == b';').find_map(|pair| {
            let equals = pair.iter().position(|byte| *byte == b'=')?;
            let (key, value) = pair.split_at(equals);
            // One without a value is none; blanks are an empty value.
            let value = value.get(1..).filter(|value| !value.is_empty())?;
            let is_it = key.trim_ascii().eq_ignore_ascii_case(name);
            is_it.then(|| value.trim_ascii().to_vec())
        })
    };
    headers.get_all(b"Cookie").find_map(of_line)
}

/// Writes an address without port.
fn address(address: SocketAddr, out: &mut Vec<u8>) {
    use std::io::Write;
    match address {
        SocketAddr::V4(v4) => wire::address::write_ipv4(out, *v4.ip()),
        SocketAddr::V6(v6) => {
            let _ = write!(out, "{}", v6.ip());
        }
    }
}

fn number(number: u64, out: &mut Vec<u8>) {
    wire::range::write_decimal(out, number);
}

/// The request line, with a mask for the password of its URL; `None` if none came.
fn request_line(request: &Request) -> Option<Cow<'_, [u8]>> {
    let (head, came) = (&request.head, HeadFlags::UNREAD.with(HeadFlags::BLANK));
    let is_some = !head.request_line.is_empty() || head.flags.any(came);
    is_some.then(|| request.line_without_password(Some(b"XXXXXXXX")))
}

/// Writes a value from outside.
fn escaped(value: Option<&[u8]>, out: &mut Vec<u8>) -> Value {
    let Some(text) = value else { return Value::None };
    escape::log_item(out, text);
    Value::Some
}

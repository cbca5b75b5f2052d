//! The values of variables.
//!
//! Source: `lookup_variable`.

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use server::hostname;
use server::request::{FileKind, Request};
use server::variant_key::Inputs;

use super::input;
use super::variable::Plain;
use crate::metadata::mod_ident;
use crate::ssl::mod_ssl;

/// `MODULE_MAGIC_NUMBER` of Apache 2.4.71.
const API_VERSION: &[u8] = b"20120211:142";

/// Appends the value of a name, if there is one. Notes in the request whether a response to it can
/// be cached.
pub(super) fn append(request: &mut Request, name: Plain, out: &mut Vec<u8>) {
    look(request, name);
    let value = match name {
        Plain::ApiVersion => Some(API_VERSION),
        Plain::AuthType => request.auth_type.as_deref().map(str::as_bytes),
        Plain::ContextDocumentRoot => Some(context_document_root(request)),
        Plain::ContextPrefix => request.notes.get(b"CONTEXT_PREFIX"),
        Plain::DocumentRoot => Some(document_root(request)),
        Plain::Https => Some(on_off(request.connection.tls.is_some())),
        Plain::Ipv6 => Some(on_off(is_ipv6(request))),
        Plain::IsSubreq => Some(if request.main.is_some() { &b"true"[..] } else { b"false" }),
        Plain::PathInfo => Some(request.resource.path_info.as_slice()),
        Plain::QueryString => request.query(),
        Plain::RemoteUser => request.user.as_deref(),
        Plain::RequestFilename => Some(request.resource.filename.as_slice()),
        Plain::RequestMethod => Some(&*request.head.method_name),
        Plain::RequestScheme => Some(request.scheme().as_bytes()),
        Plain::RequestUri => Some(request.resource.uri.as_slice()),
        Plain::ServerAdmin => {
            let own = request.host.core.server_admin.get().map(Vec::as_slice);
            own.or(Some(b"[no address given]"))
        }
        Plain::RemoteIdent => request.connection.logname.get().map(|name| name.as_slice()),
        Plain::ServerSoftware => Some(request.engine.server.banner.as_bytes()),
        Plain::TheRequest => Some(request.head.request_line.as_slice()),
        _ => return append_made(request, name, out),
    };
    out.extend_from_slice(value.unwrap_or_default());
}

/// Appends a computed value.
fn append_made(request: &Request, name: Plain, out: &mut Vec<u8>) {
    let address = |address: std::net::SocketAddr| address.ip().to_canonical();
    // Writing to a vector can't fail.
    let _ = match name {
        Plain::ConnRemoteAddr => write!(out, "{}", address(request.connection.peer)),
        Plain::RemoteAddr => write!(out, "{}", address(request.useragent_addr)),
        Plain::RemoteHost => match request.known_client_name() {
            Some(name) => out.write_all(name),
            None => write!(out, "{}", address(request.useragent_addr)),
        },
        Plain::RemotePort => write!(out, "{}", request.useragent_addr.port()),
        Plain::ScriptUser | Plain::ScriptGroup => {
            out.write_all(owner(request, name == Plain::ScriptUser).as_bytes())
        }
        Plain::ServerAddr => write!(out, "{}", address(request.connection.local)),
        Plain::ServerName => out.write_all(&request.server_name_for_url()),
        Plain::ServerPort => write!(out, "{}", request.server_port()),
        Plain::ServerProtocol => out.write_all(&request.protocol_name()),
        _ => Ok(()),
    };
}

/// Notes what a name's value depends on besides configuration, path and files.
fn look(request: &mut Request, name: Plain) {
    match name {
        Plain::ApiVersion
        | Plain::ContextDocumentRoot
        | Plain::ContextPrefix
        | Plain::DocumentRoot
        | Plain::IsSubreq
        | Plain::PathInfo
        | Plain::RequestFilename
        | Plain::RequestUri
        | Plain::ServerAdmin
        | Plain::ServerSoftware => {}
        // Of requests whose responses are cached it is GET or HEAD, which are cached apart.
        Plain::RequestMethod => {}
        // They are noted where they are read.
        Plain::QueryString | Plain::ServerName | Plain::ServerPort => {}
        Plain::Https | Plain::RequestScheme => request.looks_at(Inputs::AUTHORITY),
        Plain::ServerAddr => request.looks_at(Inputs::OWN_ADDRESS),
        Plain::TheRequest => input::looks_at_request_line(request),
        _ => request.depends.pure = false,
    }
}

/// Looks up the client's name if it is wanted (`HostnameLookups`), and asks its host for the user
/// (`IdentityCheck`).
pub(super) async fn prepare(request: &mut Request, name: Plain) {
    if name == Plain::RemoteHost && hostname::is_unknown(request) {
        hostname::client_name(request).await;
    }
    if name == Plain::RemoteIdent && mod_ident::is_unasked(request) {
        mod_ident::ask(request).await;
    }
}

/// Appends `ENV:name`: a note, a variable, or a variable of the process.
pub(super) fn append_env(request: &Request, name: &[u8], out: &mut Vec<u8>) {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let known = request.notes.get(name).or_else(|| request.env.get(name));
    if let Some(value) = known {
        return out.extend_from_slice(value);
    }
    let of_process = std::env::var_os(std::ffi::OsStr::from_bytes(name));
    out.extend(of_process.map(OsStringExt::into_vec).unwrap_or_default());
}

/// `SSL:name`
pub(super) fn append_ssl(request: &Request, name: &[u8], out: &mut Vec<u8>) {
    let value = mod_ssl::lookup(request, &String::from_utf8_lossy(name));
    out.extend(value.unwrap_or_default());
}

/// Appends the current local time.
pub(super) fn append_time(request: &Request, format: &str, out: &mut Vec<u8>) {
    let now = i64::try_from(request.engine.handle.clock().wall_us()).unwrap_or(i64::MAX);
    if let Ok(time) = Timestamp::from_microsecond(now) {
        let _ = write!(out, "{}", time.to_zoned(TimeZone::system()).strftime(format));
    }
}

/// `DocumentRoot` (`ap_document_root`).
pub(super) fn document_root(request: &Request) -> &[u8] {
    request.document_root().unwrap_or(b"/")
}

/// The folder of `Alias` and similar (`ap_context_document_root`).
pub(super) fn context_document_root(request: &Request) -> &[u8] {
    request.notes.get(b"CONTEXT_DOCUMENT_ROOT").unwrap_or(document_root(request))
}

/// Whether the client's address is IPv6.
pub(super) fn is_ipv6(request: &Request) -> bool {
    request.useragent_addr.ip().to_canonical().is_ipv6()
}

fn on_off(on: bool) -> &'static [u8] {
    if on { b"on" } else { b"off" }
}

fn owner(request: &Request, user: bool) -> String {
    let name = match request.resource.file.kind {
        FileKind::None => None,
        _ if user => {
            let found = nix::unistd::User::from_uid(request.resource.file.uid.into());
            found.ok().flatten().map(|found| found.name)
        }
        _ => {
            let found = nix::unistd::Group::from_gid(request.resource.file.gid.into());
            found.ok().flatten().map(|found| found.name)
        }
    };
    name.unwrap_or_else(|| "<unknown>".to_owned())
}

//! What a request asks an FTP server for. Source: the beginning of `proxy_ftp_handler`.

use server::request::{Proxied, Request};
use wire::ftp::is_clean;

use super::client;
use crate::aaa::mod_auth_basic;
use crate::proxy::mod_proxy::fault;
use crate::proxy::mod_proxy::parts::Parts;
use crate::proxy::mod_proxy::scheme::Exchange;

/// The type of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Ascii,
    Ebcdic,
    Image,
}

impl Type {
    /// The letter in a `TYPE` command.
    pub fn letter(self) -> char {
        match self {
            Type::Ascii => 'A',
            Type::Ebcdic => 'E',
            Type::Image => 'I',
        }
    }
}

/// The path, its type, and who asks.
pub(super) struct Asked {
    /// Without the slash at its beginning, still escaped.
    pub path: Vec<u8>,
    /// The type of the transfer.
    pub kind: Type,
    /// `;type=d`: a listing, whatever the path is.
    pub lists: bool,
    /// The user.
    pub user: Vec<u8>,
    /// The user's password.
    pub password: Vec<u8>,
}

impl Asked {
    /// Reads the URL and the request's fields.
    ///
    /// # Errors
    /// The status of the response.
    pub fn of(exchange: &mut Exchange<'_>) -> Result<Asked, u16> {
        let path = path(exchange)?;
        let path = path.strip_prefix(b"/").unwrap_or(&path);
        let semicolon = path.iter().position(|byte| *byte == b';').unwrap_or(path.len());
        let (path, suffix) = path.split_at(semicolon);
        let suffix = suffix.get(1..).unwrap_or_default();
        let (kind, lists) = kind(suffix).map_err(|()| {
            let before = b"ftp proxy supports only types 'a', 'i', or 'e': \"";
            let why = [before, suffix, b"\" is invalid."].concat();
            fault::answer(exchange.request, 400, why)
        })?;
        let path = path.to_vec();
        let (user, password) = login(exchange.request)?;
        Ok(Asked { path, kind, lists, user, password })
    }
}

/// A forward proxy's path is the client's, otherwise it is that of the canonical URL.
fn path(exchange: &mut Exchange<'_>) -> Result<Vec<u8>, u16> {
    if exchange.request.resource.proxied == Proxied::Forward {
        return Ok(client::path(exchange.request));
    }
    let url = exchange.url;
    let parts = Parts::parse(url).map_err(|_| {
        let why = [b"URI cannot be parsed: ", url].concat();
        fault::answer(exchange.request, 400, why)
    })?;
    let end = parts.path.iter().position(|byte| matches!(byte, b'?' | b'#'));
    Ok(parts.path.get(..end.unwrap_or(parts.path.len())).unwrap_or_default().to_vec())
}

/// The type that follows a semicolon, and whether it is that of a listing.
fn kind(suffix: &[u8]) -> Result<(Type, bool), ()> {
    let letter = suffix.strip_prefix(b"type=").and_then(|rest| rest.first());
    Ok(match letter.filter(|letter| letter.is_ascii_alphabetic()) {
        None => (Type::Image, false),
        Some(b'd' | b'D') => (Type::Ascii, true),
        Some(b'a' | b'A') => (Type::Ascii, false),
        Some(b'e' | b'E') => (Type::Ebcdic, false),
        Some(b'i' | b'I') => (Type::Image, false),
        Some(_) => return Err(()),
    })
}

/// The login that the client sends, or that of anonymous users.
fn login(request: &mut Request) -> Result<(Vec<u8>, Vec<u8>), u16> {
    let field = request.head.headers_in.get(b"Authorization");
    let login = field.and_then(mod_auth_basic::sent).filter(|login| !login.user.is_empty());
    let Some(login) = login else {
        return Ok((b"anonymous".to_vec(), b"apache-proxy@".to_vec()));
    };
    if !is_clean(&login.user) || !is_clean(&login.password) {
        let why = "user credentials contained invalid character";
        return Err(fault::answer(request, 400, why));
    }
    request.auth_type = Some("Basic".into());
    request.user = Some(login.user.clone());
    Ok((login.user, login.password))
}

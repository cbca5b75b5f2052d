//! The parts of a URL, as they are written.

use super::Target;
use super::target::{host_and_port, socket, split_at_text};

/// A URL of the form `[unix:path|]scheme://[user@]host[:port][/path]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'u> {
    /// The path of the UNIX socket, which may be relative.
    pub socket: Option<&'u [u8]>,
    /// The scheme.
    pub scheme: &'u [u8],
    /// User and password.
    pub user: Option<&'u [u8]>,
    /// The host, without the brackets of an IPv6 address.
    pub host: &'u [u8],
    /// `None`: the scheme's own.
    pub port: Option<u32>,
    /// With the query.
    pub path: &'u [u8],
}

impl<'u> Parts<'u> {
    /// Parses a URL.
    ///
    /// # Errors
    /// Apache's words, without the directive's name.
    pub fn parse(url: &'u [u8]) -> Result<Parts<'u>, String> {
        let (socket, whole) = socket(url)?;
        let shown = || String::from_utf8_lossy(whole);
        let not_absolute = || format!("URL must be absolute!: {}", shown());
        let (scheme, rest) = match split_at_text(whole, b"://") {
            Some(parts) => parts,
            None => {
                let of_socket = whole.strip_suffix(b":").filter(|_| socket.is_some());
                (of_socket.ok_or_else(not_absolute)?, &b"localhost"[..])
            }
        };
        let (mut end, mut at) = (rest.len(), None);
        for (index, byte) in rest.iter().enumerate() {
            match byte {
                b'/' | b'?' | b'#' => {
                    end = index;
                    break;
                }
                b'@' => at = Some(index),
                _ => {}
            }
        }
        let (authority, path) = rest.split_at(end);
        let user = at.and_then(|at| authority.get(..at));
        let place = authority.get(at.map_or(0, |at| at + 1)..).unwrap_or_default();
        let bad = || format!("Unable to parse URL: {}", shown());
        let (host, port) = host_and_port(place).ok_or_else(bad)?;
        let host = match socket {
            Some(_) if host.is_empty() => b"localhost",
            _ => host,
        };
        if host.is_empty() || scheme.is_empty() {
            return Err(not_absolute());
        }
        Ok(Parts { socket, scheme, user, host, port, path })
    }
}

impl From<Parts<'_>> for Target {
    fn from(parts: Parts<'_>) -> Target {
        Target {
            socket: parts.socket.map(<[u8]>::to_vec),
            scheme: parts.scheme.to_ascii_lowercase(),
            user: parts.user.map(<[u8]>::to_vec),
            host: parts.host.to_ascii_lowercase(),
            port: parts.port,
            path: parts.path.to_vec(),
        }
    }
}

impl<'u> From<&'u Target> for Parts<'u> {
    fn from(target: &'u Target) -> Parts<'u> {
        Parts {
            socket: target.socket.as_deref(),
            scheme: &target.scheme,
            user: target.user.as_deref(),
            host: &target.host,
            port: target.port,
            path: &target.path,
        }
    }
}

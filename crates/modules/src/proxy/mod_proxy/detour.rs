//! Where a connection to a worker leads, if that depends on the request.

use super::pool::Slot;
use super::scheme::Exchange;
use super::tls::Wanted;

/// A place other than the worker's own: other requests use a connection to it only if they want the
/// same one. Source: `ap_proxy_determine_connection`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detour {
    /// The UNIX socket that the request names (`SetHandler "proxy:unix:…|fcgi://…"`).
    Socket(Vec<u8>),
    /// A remote proxy.
    Remote(Vec<u8>, u16),
}

/// The detour of an exchange.
pub(super) fn of(exchange: &Exchange<'_>) -> Option<Detour> {
    match (named(exchange), exchange.remote) {
        (Some(path), _) => Some(Detour::Socket(path.to_vec())),
        (None, Some(remote)) => {
            let place = remote.place();
            Some(Detour::Remote(place.host.into_owned(), place.port))
        }
        (None, None) => None,
    }
}

impl Slot {
    /// Whether the connection in this place will do for an exchange that needs `wanted`.
    pub(super) fn fits(&self, exchange: &Exchange<'_>, wanted: &Wanted) -> bool {
        let leads_there = match (&self.detour, named(exchange), exchange.remote) {
            (Some(Detour::Socket(own)), Some(path), _) => own == path,
            (Some(Detour::Remote(host, port)), None, Some(remote)) => {
                let place = remote.place();
                *host == *place.host && *port == place.port
            }
            (own, path, remote) => own.is_none() && path.is_none() && remote.is_none(),
        };
        leads_there && wanted.is_that_of(self.security.as_ref())
    }
}

/// The UNIX socket that the request names, not its worker.
fn named<'r>(exchange: &Exchange<'r>) -> Option<&'r [u8]> {
    exchange.socket.filter(|_| exchange.worker.target.socket.is_none())
}

//! The interface between mod_proxy and the modules of its schemes (mod_proxy_http and others).

use std::future::Future;
use std::pin::Pin;

use server::hooks::{Bound, Verdict};
use server::request::Request;

use super::workers::Worker;
use super::{Proxy, RemoteProxy, tls};

/// The group of the providers that are schemes, by their names: `http`, `fcgi`.
pub const GROUP: &str = "proxy_scheme";
/// The group of schemes that come before those of [`GROUP`] with the same name.
pub const UPGRADES: &str = "proxy_upgrade";
/// The group of the provider that serves CONNECT, whose targets have no scheme.
pub const TUNNELS: &str = "proxy_tunnel";

/// A scheme: how URLs of it are written, and how a request is forwarded.
pub trait Scheme: Send + Sync {
    /// The port of URLs without one.
    fn default_port(&self) -> u16;

    /// Whether a mapping to `url`, of whatever scheme, applies to the request (`check_trans`). Only
    /// schemes of [`UPGRADES`] are asked.
    fn accepts(&self, _: &Request, _url: &[u8]) -> bool {
        true
    }

    /// Returns the canonical form of `url`, which begins with the scheme (`canon_handler`); sets
    /// what the scheme needs of the request, such as `path_info`.
    ///
    /// # Errors
    /// The status that ends the request.
    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16>;

    /// Forwards the request, and returns when the response's head has been read, edited, and put
    /// into the request's response, with the rest of the body as a stream (`scheme_handler`).
    fn serve<'r>(&'r self, exchange: Exchange<'r>) -> Served<'r>;
}

/// What a scheme does for a request: its verdict, or the status that ends the request.
pub type Served<'r> = Pin<Box<dyn Future<Output = Result<Verdict, u16>> + 'r>>;

/// A provider of [`GROUP`].
pub type SchemeProvider = &'static dyn Scheme;

/// A request on its way to a worker.
pub struct Exchange<'r> {
    /// The request.
    pub request: &'r mut Request,
    /// The configuration that applies to it.
    pub bound: Bound<'r, Proxy>,
    /// The worker, for a member of a balancer the chosen one.
    pub worker: &'r Worker,
    /// The canonical URL, which begins with the scheme.
    pub url: &'r [u8],
    /// The path of the UNIX socket to connect to: the worker's, or the one that the request names.
    pub socket: Option<&'r [u8]>,
    /// The proxy to go through, instead of connecting to the worker.
    pub remote: Option<&'r RemoteProxy>,
}

impl<'r> Exchange<'r> {
    /// The remote proxy that gets the request itself; one of TLS goes through a tunnel.
    pub fn asked_proxy(&self) -> Option<&'r RemoteProxy> {
        self.remote.filter(|_| !tls::is_tls(self.url))
    }
}

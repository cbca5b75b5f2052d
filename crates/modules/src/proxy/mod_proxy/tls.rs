//! TLS to a backend. Source: `ap_proxy_connection_create_ex`, `ssl_io_filter_handshake`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use rt::Stream;
use rt::tls::{ClientConfig, TlsError};
use rustls_pki_types::ServerName;
use server::errorlog::Verbatim;
use server::host::{Host, Server};
use server::log::Level;

use super::backend::{Options, Place, place};
use super::scheme::Exchange;
use super::target::Target;
use super::{Proxy, fault, through};
use crate::ssl::mod_ssl::backends;

/// What a connection with TLS was made for: other requests use it only if they want the same.
#[derive(Clone)]
pub struct Security {
    config: Arc<ClientConfig>,
    /// The name that is sent and compared with the certificate's.
    name: ServerName<'static>,
}

impl PartialEq for Security {
    fn eq(&self, other: &Security) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.name == other.name
    }
}

/// What the exchange's connection needs.
pub(super) enum Wanted {
    /// No TLS.
    Plain,
    /// TLS.
    Tls(Security),
    /// TLS, which SSLProxyEngine does not allow, or whose files can't be read.
    Refused(Option<String>),
}

impl Wanted {
    /// Whether a connection with this TLS, or without, will do.
    pub(super) fn is_that_of(&self, other: Option<&Security>) -> bool {
        match self {
            Wanted::Plain => other.is_none(),
            Wanted::Tls(security) => Some(security) == other,
            Wanted::Refused(_) => false,
        }
    }

    pub(super) fn into_security(self) -> Option<Security> {
        match self {
            Wanted::Tls(security) => Some(security),
            Wanted::Plain | Wanted::Refused(_) => None,
        }
    }
}

/// What the exchange's connection needs, by the URL's scheme and the request's configuration.
pub(super) async fn wanted(exchange: &mut Exchange<'_>) -> Wanted {
    if !is_tls(exchange.url) {
        return Wanted::Plain;
    }
    let config = match backends::of_request(exchange.request).await {
        Ok(Some(config)) => config,
        Ok(None) => return Wanted::Refused(None),
        Err(why) => return Wanted::Refused(Some(why)),
    };
    let config = if scheme(exchange.url) == b"h2" { for_http2(&config) } else { config };
    let preserves = exchange.bound.dir.preserves_host.or(false);
    let asked = exchange.request.hostname.clone().filter(|_| preserves);
    // A remote proxy only relays.
    let host = match exchange.remote {
        Some(_) => Target::parse(exchange.url).map(|target| Cow::Owned(target.host)).ok(),
        None => place(exchange).map(|place| place.host).ok(),
    };
    let Some(host) = host else { return Wanted::Refused(None) };
    let name = asked.as_deref().unwrap_or(&host);
    let name = std::str::from_utf8(name).ok().and_then(|name| ServerName::try_from(name).ok());
    match name {
        Some(name) => Wanted::Tls(Security { config, name: name.to_owned() }),
        None => Wanted::Refused(Some("the backend's name is not one of DNS".to_owned())),
    }
}

/// The same configuration, which offers HTTP/2 alone. It is the same one each time: connections are
/// found again by it.
fn for_http2(config: &Arc<ClientConfig>) -> Arc<ClientConfig> {
    HTTP2.with_borrow_mut(|known| {
        let is_it = |(of, _): &&(Arc<ClientConfig>, Arc<ClientConfig>)| Arc::ptr_eq(of, config);
        if let Some((_, made)) = known.iter().find(is_it) {
            return made.clone();
        }
        if known.len() >= HTTP2_KEPT {
            known.clear();
        }
        let mut made = ClientConfig::clone(config);
        made.alpn_protocols = vec![b"h2".to_vec()];
        let made = Arc::new(made);
        known.push((config.clone(), made.clone()));
        made
    })
}

/// The configurations for HTTP/2 that a loop keeps.
const HTTP2_KEPT: usize = 64;

thread_local! {
    /// Configurations, and those that offer HTTP/2 alone.
    static HTTP2: RefCell<Vec<(Arc<ClientConfig>, Arc<ClientConfig>)>> =
        const { RefCell::new(Vec::new()) };
}

/// Logs that there is no TLS; returns the status of the response.
pub(super) fn refuse(exchange: &Exchange<'_>, why: Option<&str>) -> u16 {
    let place = Place::of(exchange.worker);
    if let Some(why) = why {
        let (server, host) = (&exchange.request.engine.server, &exchange.request.host);
        server.log_host(host, "mod_ssl.c", Level::Error, 0, format_args!("{why}"));
    }
    let (scheme, host) = (Verbatim::new(scheme(exchange.url)), Verbatim::new(&place.host));
    let text = format_args!("{scheme}: failed to enable ssl support for {place} ({host})");
    exchange.log_of_server(Level::Error, 961, None, text);
    500
}

/// Performs the handshake.
///
/// # Errors
/// The status of the response. What happened has been logged.
pub(super) async fn secure(
    exchange: &mut Exchange<'_>,
    stream: Stream,
    security: &Security,
    options: &Options<'_>,
) -> Result<Stream, u16> {
    let stream = match exchange.remote {
        Some(remote) => Box::pin(through::open(exchange, stream, remote, options)).await?,
        None => stream,
    };
    let deadline = stream.handle().deadline(exchange.timeout());
    let (config, name) = (security.config.clone(), security.name.clone());
    let error = match rt::tls::connect(stream, config, name, deadline).await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let request = &*exchange.request;
    let place = Place::of(exchange.worker);
    tell((&request.engine.server, &request.host), &place, &security.name, &error);
    let host = Verbatim::new(&place.host);
    let text = format_args!("pass request body failed to {place} ({host})");
    exchange.request.log::<Proxy>(Level::Error, 1084, text);
    let status = fault::answer(exchange.request, 500, FAILED);
    let client = exchange.request.useragent_addr.ip();
    let text = format_args!("pass request body failed to {place} ({host}) from {client} ()");
    exchange.request.log_as(options.module, Level::Error, options.unsent, text);
    Err(status)
}

const FAILED: &str = "Error during SSL Handshake with remote server";

/// Logs why the handshake failed.
pub(in crate::proxy) fn tell(
    (server, host): (&Server, &Host),
    place: &Place<'_>,
    name: &ServerName<'_>,
    error: &TlsError,
) {
    use rustls::{CertificateError as Certificate, Error};
    let log = |level, number, text: std::fmt::Arguments<'_>| {
        let text = format_args!("[remote {place}] {text}");
        server.log_host(host, "mod_ssl.c", level, number, text);
    };
    match error {
        TlsError::Handshake(Error::InvalidCertificate(why)) => match why {
            Certificate::NotValidForName => {
                let name = name.to_str();
                let what = "SSL Proxy: Peer certificate does not match for hostname";
                log(Level::Info, 2411, format_args!("{what} {name}"));
            }
            Certificate::Expired | Certificate::NotValidYet => {
                log(Level::Info, 2004, format_args!("SSL Proxy: Peer certificate is expired"));
            }
            why => {
                log(Level::Error, 2039, format_args!("Certificate Verification: Error: {why}"));
                log(Level::Info, 2003, format_args!("SSL Proxy connect failed"));
            }
        },
        why => log(Level::Info, 2003, format_args!("SSL Proxy connect failed: {why}")),
    }
}

/// Whether connections for a URL have TLS.
pub fn is_tls(url: &[u8]) -> bool {
    matches!(scheme(url), b"https" | b"wss" | b"h2")
}

/// The scheme of a URL, in lower case as canonical ones have it.
fn scheme(url: &[u8]) -> &[u8] {
    let end = url.iter().position(|byte| *byte == b':');
    url.get(..end.unwrap_or(0)).unwrap_or_default()
}

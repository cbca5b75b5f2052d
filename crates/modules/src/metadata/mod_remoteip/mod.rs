//! mod_remoteip: takes the client's address from a trusted proxy.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_remoteip.html>. The connection reads the
//! header of the PROXY protocol ([`server::connection_info::Proxied`]); this module selects the
//! connections, and uses the result.

mod chain;
mod listening;
mod proxies;
mod rows;

use std::net::SocketAddr;
use std::sync::Arc;

use rt::names::Unresolved;
use server::directive::Row;
use server::errorlog::{Cause, Verbatim};
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::hostname;
use server::log::Level;
use server::merge::{Own, Prepend, Setting};
use server::module::Module;
use server::request::Request;

use chain::{Chain, Looked, Outcome};
use listening::Listening;
use proxies::Proxy;

/// `mod_remoteip.c`
pub struct Remoteip;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `RemoteIPHeader`
        header: Setting<Vec<u8>>,
        /// `RemoteIPProxiesHeader`
        proxies_header: Setting<Vec<u8>>,
        /// `RemoteIPInternalProxy` and `RemoteIPTrustedProxy`: the first that matches counts.
        proxies: Prepend<Proxy>,
        /// `RemoteIPProxyProtocol`, for the addresses of this host.
        protocol: Own<Option<bool>>,
        /// `RemoteIPProxyProtocolExceptions`
        exceptions: Own<Vec<conf::values::Subnet>>,
        /// Where connections begin with a header of the PROXY protocol: the same in all hosts.
        listening: Own<Arc<Listening>>,
    }
}

impl Module for Remoteip {
    const NAME: &'static str = "remoteip_module";
    const FILE: &'static str = "mod_remoteip.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Remoteip>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(listening::settle);
        hooks.logs_opened(listening::announce);
        hooks.expects_proxy_header(listening::is_on);
        hooks.on(
            Phase::PostReadRequest,
            Rank::FIRST,
            |bound| bound.server.header.is_set() || bound.server.listening.0.is_anywhere(),
            find_client,
        );
    }
}

/// The maximum number of names in a header that are looked up for a request.
const NAMES_MAX: usize = 10;

/// Source: `remoteip_modify_request`.
fn find_client<'r>(bound: Bound<'r, Remoteip>, request: &'r mut Request) -> Step<'r> {
    if let Some(proxied) = &request.connection.proxied {
        request.useragent_addr = proxied.client;
        let ip = request.useragent_addr.ip();
        let text = format_args!("Using {ip} as client's IP from PROXY protocol");
        request.log::<Remoteip>(Level::Trace1, 0, text);
        return Step::OK;
    }
    let Some(header) = bound.server.header.get() else { return Step::DECLINED };
    let Some(value) = request.head.headers_in.get(header) else { return Step::OK };
    let chain = Chain::new(value, request.useragent_addr.ip(), &bound.server.proxies);
    match chain.follow(&[]) {
        Ok(outcome) => {
            take(bound.server, header, outcome, request);
            Step::OK
        }
        Err(name) => Step::Pending(Box::pin(look_up(bound.server, header, request, name))),
    }
}

/// Looks up names in the header, one after the other as they count.
async fn look_up(
    settings: &Settings,
    header: &[u8],
    request: &mut Request,
    mut name: Vec<u8>,
) -> Verdict {
    let mut looked: Vec<Looked> = Vec::new();
    let outcome = loop {
        let address = match looked.len() < NAMES_MAX {
            true => hostname::address_of(request, name.clone()).await,
            false => None,
        };
        looked.push(Looked { name, address });
        let value = request.head.headers_in.get(header).unwrap_or_default();
        let chain = Chain::new(value, request.useragent_addr.ip(), &settings.proxies);
        match chain.follow(&looked) {
            Ok(outcome) => break outcome,
            Err(next) => name = next,
        }
    };
    take(settings, header, outcome, request);
    Verdict::Ok
}

/// Applies the client that was found, if any, and logs the element that was rejected.
fn take(settings: &Settings, header: &[u8], outcome: Outcome, request: &mut Request) {
    if let Some(refused) = &outcome.refused {
        let (name, value) = (Verbatim::new(header), Verbatim::new(&refused.value));
        let (number, why) = match refused.is_private {
            true => (1569, "appears to be a private IP or nonsensical.  Ignored"),
            false => (1568, "cannot be parsed as a client IP"),
        };
        let text = format_args!("RemoteIP: Header {name} value of {value} {why}");
        if refused.is_private {
            request.log::<Remoteip>(Level::Debug, number, text);
        } else {
            request.log_error::<Remoteip>(
                Level::Debug,
                number,
                Cause::Unresolved(Unresolved::NoName),
                text,
            );
        }
    }
    let Some(client) = outcome.client else { return };
    match &outcome.remaining {
        Some(rest) => request.head.headers_in.set(header, rest),
        None => drop(request.head.headers_in.unset(header)),
    }
    if !outcome.proxies.is_empty() {
        request.notes.set(b"remoteip-proxy-ip-list", outcome.proxies.as_bytes());
        if let Some(name) = settings.proxies_header.get() {
            request.head.headers_in.set(name, outcome.proxies.as_bytes());
        }
    }
    request.useragent_addr = SocketAddr::new(client, 0);
    let proxies = &outcome.proxies;
    let text = match proxies.is_empty() {
        true => format_args!("Using {client} as client's IP by internal proxies"),
        false => format_args!("Using {client} as client's IP by proxies {proxies}"),
    };
    request.log::<Remoteip>(Level::Trace1, 0, text);
}

//! ProxyBlock: hosts for which requests are refused.
//!
//! Source: `ap_proxy_checkproxyblock2` (proxy_util.c).

use std::net::IpAddr;
use std::sync::Arc;

use server::errorlog::Verbatim;
use server::hooks::Bound;
use server::log::Level;
use server::request::Request;

use super::scheme::Exchange;
use super::{Proxy, Target, fault, unasked};

/// Refuses a connection to a host, by its name or by its addresses; these are not known if a remote
/// proxy looks them up.
///
/// # Errors
/// The status that ends the request.
pub fn check(
    request: &mut Request,
    proxy: Bound<'_, Proxy>,
    host: &[u8],
    addresses: &[IpAddr],
) -> Result<(), u16> {
    for blocked in proxy.server.blocked.iter() {
        let word = blocked.word.as_slice();
        let is_in_name = word.first() == Some(&b'*')
            || !word.is_empty() && host.windows(word.len()).any(|window| window == word);
        let same = blocked.addresses.iter().find(|address| addresses.contains(address));
        let shown = Verbatim::new(host);
        match (is_in_name, same) {
            (true, _) => {
                let word = Verbatim::new(word);
                let why =
                    format_args!("connect to remote machine {shown} blocked: name {word} matched");
                request.log::<Proxy>(Level::Warn, 916, why);
            }
            (false, Some(address)) => {
                let why =
                    format_args!("connect to remote machine {shown} blocked: IP {address} matched");
                request.log::<Proxy>(Level::Warn, 917, why);
            }
            (false, None) => continue,
        }
        return Err(fault::answer(request, 403, "Connect to remote machine blocked"));
    }
    Ok(())
}

/// Refuses the host of an exchange's URL. A remote proxy looks addresses up itself.
///
/// # Errors
/// The status that ends the request.
pub(super) async fn check_url(exchange: &mut Exchange<'_>) -> Result<(), u16> {
    let Ok(target) = Target::parse(exchange.url) else { return Ok(()) };
    let is_near = exchange.remote.is_none() && exchange.socket.is_none();
    let addresses = match is_near {
        true => {
            let ttl = exchange.worker.parameters.address_ttl;
            let host = String::from_utf8_lossy(&target.host);
            let found = unasked::look_up(exchange.request, &host, ttl).await;
            found.map_err(|error| fault::unknown_host(exchange.request, &target.host, &error))?
        }
        false => Arc::default(),
    };
    check(exchange.request, exchange.bound, &target.host, &addresses)
}

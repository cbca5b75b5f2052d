//! Bodies that wait for the backend's `100 Continue`.

use std::time::Duration;

use server::request::Proxied;

use crate::proxy::mod_proxy::scheme::Exchange;

/// Who asks the backend for `100 Continue` before the body is sent.
pub(super) struct Asks {
    /// The client, end to end (`Proxy100Continue`).
    pub client: bool,
    /// This server (`ping=`).
    pub ping: Option<Duration>,
}

impl Asks {
    /// Who does for this request.
    pub fn of(exchange: &Exchange<'_>, is_http10: bool) -> Asks {
        let forwards = exchange.bound.dir.forwards_continue.or(true);
        let is_reverse = exchange.request.resource.proxied == Proxied::Reverse;
        Asks {
            client: !is_http10 && forwards && exchange.request.body_in.awaits_continue(),
            ping: exchange.worker.parameters.ping.filter(|_| !is_http10 && is_reverse),
        }
    }

    /// Whether any does.
    pub fn any(&self) -> bool {
        self.client || self.ping.is_some()
    }

    /// How long the backend may take.
    pub fn wait(&self, exchange: &Exchange<'_>) -> Option<Duration> {
        Some(self.ping.unwrap_or_else(|| exchange.timeout()))
    }
}

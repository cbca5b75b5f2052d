//! Where connections lead.

use std::borrow::Cow;
use std::fmt;

use server::errorlog::Verbatim;

use super::fault;
use super::scheme::Exchange;
use super::target::{Target, host_and_port, split_at_text};
use super::workers::Worker;

/// The port that messages show for workers of any URL.
const GENERIC_PORT: u16 = 80;

/// Where a connection leads.
pub struct Place<'a> {
    /// A name or an address.
    pub host: Cow<'a, [u8]>,
    /// The port.
    pub port: u16,
}

impl Place<'static> {
    /// Parses `host:port`, in which an IPv6 address is in brackets. Of a port that is too large the
    /// lower bits count.
    pub fn parse(text: &[u8]) -> Option<Place<'static>> {
        let (host, port) = host_and_port(text)?;
        let port = port.filter(|_| !host.is_empty())?;
        Some(Place { host: Cow::Owned(host.to_vec()), port: port as u16 })
    }
}

impl<'a> Place<'a> {
    /// Where the connections of a worker lead.
    pub fn of(worker: &'a Worker) -> Place<'a> {
        let default = match worker.is_generic {
            true => GENERIC_PORT,
            false => worker.scheme.map_or(0, |scheme| scheme.default_port()),
        };
        let port = worker.target.port.and_then(|port| u16::try_from(port).ok());
        Place { host: Cow::Borrowed(&worker.target.host), port: port.unwrap_or(default) }
    }
}

impl Place<'_> {
    /// The place as a text that is valid UTF-8.
    pub fn to_text(&self) -> String {
        format!("{}:{}", String::from_utf8_lossy(&self.host), self.port)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Verbatim::new(&self.host), self.port)
    }
}

/// Where the exchange's connection leads: to the worker, or for a worker of any URL where the URL
/// says.
pub fn place<'a>(exchange: &mut Exchange<'a>) -> Result<Place<'a>, u16> {
    exchange.place().ok_or_else(|| {
        let why = [b"URI cannot be parsed: ", exchange.url].concat();
        fault::answer(exchange.request, 400, why)
    })
}

impl<'a> Exchange<'a> {
    /// The scheme of the worker, or that of the URL for a worker of any.
    pub(super) fn scheme(&self) -> &'a [u8] {
        match self.worker.is_generic {
            true => split_at_text(self.url, b":").map_or(self.url, |(scheme, _)| scheme),
            false => &self.worker.target.scheme,
        }
    }

    /// Where messages say that the connection leads.
    pub fn shown_place(&self) -> Place<'a> {
        self.place().unwrap_or_else(|| Place::of(self.worker))
    }

    fn place(&self) -> Option<Place<'a>> {
        if let Some(remote) = self.remote {
            return Some(remote.place());
        }
        if self.worker.has_one_place() {
            return Some(Place::of(self.worker));
        }
        let target = Target::parse(self.url).ok()?;
        let scheme = self.bound.server.workers.0.scheme(&target.scheme);
        let default = scheme.map_or(80, |scheme| scheme.default_port());
        let port = target.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(default);
        Some(Place { host: Cow::Owned(target.host), port })
    }
}

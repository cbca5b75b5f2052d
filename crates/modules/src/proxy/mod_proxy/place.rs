//! Where connections lead.

use std::borrow::Cow;
use std::fmt;

use server::errorlog::Verbatim;

use super::target::host_and_port;
use super::workers::Worker;

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
        let default = worker.scheme.map_or(0, |scheme| scheme.default_port());
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

//! The request that a URL stands for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Parser;
use server::host::{Host, Server};

use super::options::Options;

/// A request: its head, and the ends of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The URL in full.
    pub url: String,
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's address.
    pub local: SocketAddr,
    /// The protocol of the TLS session, if there is one.
    pub tls: Option<&'static str>,
    /// Whether the protocol is HTTP/2.
    pub http2: bool,
    /// The host's name, without port.
    pub host: String,
    /// Request line, fields and body; as in HTTP/1.1 if the protocol is HTTP/2.
    pub sent: Vec<u8>,
}

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
struct Url<'u> {
    is_tls: bool,
    host: &'u str,
    port: Option<u16>,
    /// Path and query.
    target: String,
}

/// The clients' port.
const CLIENT_PORT: u16 = 50_000;

impl Target {
    /// Returns the request for `url`.
    ///
    /// # Errors
    /// What is wrong with the URL or a field.
    pub fn new(
        url: &str,
        method: &str,
        options: &Options,
        server: &Server,
    ) -> Result<Self, String> {
        let main = String::from_utf8_lossy(server.main().name()).into_owned();
        // The target of CONNECT is a host with a port (RFC 9110 section 9.3.6).
        let is_far = method == "CONNECT" && !url.contains('/');
        let whole = match url.starts_with('/') {
            true => format!("{}{url}", base_of(&main, options, server)),
            false if is_far => base_of(&main, options, server),
            false => url.to_owned(),
        };
        let mut parts = Url::parse(&whole)?;
        if is_far {
            parts.target = url.to_owned();
        }
        let tls = match (parts.is_tls, options.tls.as_deref()) {
            (_, Some("1.2")) => Some("TLSv1.2"),
            (true, _) | (false, Some(_)) => Some("TLSv1.3"),
            (false, None) => None,
        };
        let port = parts.port.unwrap_or(if parts.is_tls { 443 } else { 80 });
        let local = options.to.unwrap_or_else(|| local_address(server, parts.host, port));
        let peer = SocketAddr::new(options.from, CLIENT_PORT);
        let sent = head(&parts, method, options)?;
        let host = parts.host.to_owned();
        Ok(Target { url: whole, peer, local, tls, http2: options.http == "2", host, sent })
    }

    /// The path of the URL.
    pub fn path(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
        path.split(['?', '#']).next().unwrap_or("/")
    }

    /// The same request with a body, and with its length unless a field has it.
    #[must_use]
    pub fn with_body(mut self, body: &[u8]) -> Target {
        let head = String::from_utf8_lossy(&self.sent).to_ascii_lowercase();
        let is_framed = |line: &str| {
            line.starts_with("content-length:") || line.starts_with("transfer-encoding:")
        };
        if !head.lines().any(is_framed) {
            self.sent.truncate(self.sent.len().saturating_sub(2));
            let field = format!("Content-Length: {}\r\n\r\n", body.len());
            self.sent.extend_from_slice(field.as_bytes());
        }
        self.sent.extend_from_slice(body);
        self
    }
}

/// A plain GET for a path of a host, at the host's first address without TLS or with it.
pub fn target_of(server: &Server, host: &Host, path: &str) -> Option<Target> {
    let label = String::from_utf8(host.label()).ok()?;
    let (name, port) = match label.rsplit_once(':') {
        Some((name, port)) => (name.to_owned(), port.parse().ok()?),
        None => (label, modules::mpm::listens(server).first().map_or(80, |listen| listen.port)),
    };
    let is_tls = modules::mpm::listens(server)
        .iter()
        .any(|line| line.port == port && line.protocol == "https");
    let scheme = if is_tls { "https" } else { "http" };
    let options = Options::try_parse_from(["explain", "/"]).ok()?;
    let path: String = path.bytes().map(escaped).collect();
    Target::new(&format!("{scheme}://{name}:{port}{path}"), "GET", &options, server).ok()
}

fn escaped(byte: u8) -> String {
    match byte {
        b'/' | b'.' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    }
}

/// The scheme and authority of a path.
fn base_of(name: &str, options: &Options, server: &Server) -> String {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let port = match options.to {
        Some(to) => to.port(),
        None => modules::mpm::listens(server).first().map_or(80, |listen| listen.port),
    };
    match (scheme, port) {
        ("http", 80) | ("https", 443) => format!("{scheme}://{name}"),
        _ => format!("{scheme}://{name}:{port}"),
    }
}

/// The address of the server that a client of the URL would connect to. Names are not looked up:
/// it is the address in the URL, or the first `<VirtualHost>` address with a host of that name.
fn local_address(server: &Server, host: &str, port: u16) -> SocketAddr {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return SocketAddr::new(ip, port);
    }
    let named = |ip: &IpAddr| {
        let local = SocketAddr::new(*ip, port);
        server.vhosts.named(local, host.to_ascii_lowercase().as_bytes()).is_some()
    };
    let of_hosts = server.vhosts.addresses(port).into_iter().find(named);
    let of_listen = || {
        let lines = modules::mpm::listens(server);
        lines.iter().find(|line| line.port == port).and_then(|line| line.address)
    };
    let usual = |ip: &IpAddr| !ip.is_unspecified();
    let ip = of_hosts.or_else(of_listen).filter(usual);
    SocketAddr::new(ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port)
}

fn head(url: &Url<'_>, method: &str, options: &Options) -> Result<Vec<u8>, String> {
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("'{method}' is not a method"));
    }
    let version = if options.http == "1.0" { "1.0" } else { "1.1" };
    let mut head = format!("{method} {} HTTP/{version}\r\n", url.target).into_bytes();
    let named =
        |field: &String| field.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("host:"));
    if !options.headers.iter().any(named) {
        let port = url.port.map(|port| format!(":{port}")).unwrap_or_default();
        head.extend_from_slice(format!("Host: {}{port}\r\n", url.host).as_bytes());
    }
    for field in &options.headers {
        if !field.contains(':') || field.contains(['\r', '\n', '\0']) {
            return Err(format!("'{field}' is not a header field: expected 'Name: value'"));
        }
        head.extend_from_slice(field.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

impl Url<'_> {
    fn parse(text: &str) -> Result<Url<'_>, String> {
        let wrong = |why: &str| format!("'{text}': {why}");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            wrong("expected a URL such as http://example.org/page, or a path such as /page")
        })?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("the scheme must be http or https")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port =
                    port.parse().map_err(|_| wrong("the port must be a number below 65536"))?;
                (host, Some(port))
            }
            _ => (authority, None),
        };
        if host.is_empty() {
            return Err(wrong("there is no host"));
        }
        if let Some(bad) = target.chars().find(|letter| *letter <= ' ' || *letter == '\x7f') {
            let code = u32::from(bad);
            return Err(wrong(&format!("write %{code:02X} for the character {bad:?}")));
        }
        Ok(Url { is_tls, host, port, target: encoded(target) })
    }
}

/// A target with its first slash, in which characters outside ASCII are encoded as browsers do.
fn encoded(target: &str) -> String {
    let mut out = String::new();
    if !target.starts_with('/') {
        out.push('/');
    }
    for byte in target.bytes() {
        match byte.is_ascii() {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        let url = Url::parse("https://user@example.org:8443/a/é?x#y").unwrap();
        assert!(url.is_tls);
        assert_eq!((url.host, url.port), ("example.org", Some(8443)));
        assert_eq!(url.target, "/a/%C3%A9?x");
        let url = Url::parse("http://[::1]?q").unwrap();
        assert_eq!((url.host, url.port, url.target.as_str()), ("[::1]", None, "/?q"));
    }

    #[test]
    fn what_is_no_url_is_named() {
        for (text, part) in [
            ("example.org/a", "expected a URL"),
            ("ftp://a/", "scheme"),
            ("http:///a", "no host"),
            ("http://a:99999/", "port"),
            ("http://a/b c", "%20"),
        ] {
            assert!(Url::parse(text).unwrap_err().contains(part), "{text}");
        }
    }
}

//! The URL of a worker or a balancer.
//! `ap_proxy_define_worker`, `apr_uri_parse`.

use super::parts::Parts;

/// The longest path of a UNIX socket (`sun_path` without its end), bytes.
const SOCKET_PATH_BYTES: usize = 107;

/// Where requests go: `[unix:path|]scheme://[user@]host[:port][/path]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path of the UNIX socket, which may be relative.
    pub socket: Option<Vec<u8>>,
    /// In lower case.
    pub scheme: Vec<u8>,
    /// User and password.
    pub user: Option<Vec<u8>>,
    /// In lower case, without the brackets of an IPv6 address.
    pub host: Vec<u8>,
    /// `None`: the scheme's own.
    pub port: Option<u32>,
    /// With the query, as written.
    pub path: Vec<u8>,
}

impl Target {
    /// Whether it is a balancer.
    pub fn is_balancer(&self) -> bool {
        self.scheme == b"balancer"
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// Apache's words, without the directive's name.
    pub fn parse(url: &[u8]) -> Result<Target, String> {
        Parts::parse(url).map(Target::from)
    }
}

impl Target {
    /// Parses a URL in which `$1` and so on stand for parts of a path. They may follow the port,
    /// where they belong to the path.
    ///
    /// # Errors
    /// As [`Target::parse`].
    pub fn parse_pattern(url: &[u8]) -> Result<Target, String> {
        let Some(cut) = captures_after_port(url) else { return Target::parse(url) };
        let captures = url.get(cut.clone()).unwrap_or_default();
        let (before, after) = (url.get(..cut.start), url.get(cut.end..));
        let trimmed = [before.unwrap_or_default(), after.unwrap_or_default()].concat();
        let target = Target::parse(&trimmed)?;
        Ok(Target { path: [captures, &target.path].concat(), ..target })
    }

    /// The name of its worker: the URL without the socket and without the scheme's own port
    /// (`apr_uri_unparse`).
    pub fn name(&self) -> Vec<u8> {
        let mut name = [&self.scheme[..], b"://"].concat();
        if let Some(user) = &self.user {
            name.extend_from_slice(user);
            name.push(b'@');
        }
        let is_v6 = self.host.contains(&b':');
        let (open, close): (&[u8], &[u8]) = if is_v6 { (b"[", b"]") } else { (b"", b"") };
        name.extend_from_slice(&[open, &self.host, close].concat());
        if let Some(port) = self.port.filter(|port| default_port(&self.scheme) != Some(*port)) {
            name.extend_from_slice(format!(":{port}").as_bytes());
        }
        name.extend_from_slice(&self.path);
        name
    }

    /// The port, the scheme's own if there is none; 0 if that is unknown.
    pub fn port_number(&self) -> u32 {
        self.port.or_else(|| default_port(&self.scheme)).unwrap_or(0)
    }
}

/// The place of `$1` and so on directly after the port.
fn captures_after_port(url: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = url.windows(3).position(|window| window == b"://")? + 3;
    let rest = url.get(start..)?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    let colon = authority.iter().position(|byte| *byte == b':')?;
    let is_capture = |pair: &[u8]| matches!(pair, [b'$', digit] if digit.is_ascii_digit());
    let dollar = authority.get(colon..)?.windows(2).position(is_capture)?;
    Some(start + colon + dollar..start + end)
}

/// The port of a scheme (`ap_proxy_port_of_scheme`).
pub(super) fn default_port(scheme: &[u8]) -> Option<u32> {
    Some(match scheme {
        b"http" | b"ws" | b"h2c" => 80,
        b"https" | b"wss" | b"h2" => 443,
        b"fcgi" => 8000,
        b"ajp" => 8009,
        b"scgi" => 4000,
        b"ftp" => 21,
        _ => return None,
    })
}

/// Removes the socket from a URL (`ap_proxy_de_socketfy`); `None` if no URL is behind it.
pub(super) fn without_socket(url: &[u8]) -> Option<std::borrow::Cow<'_, [u8]>> {
    let is_unix = url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:"));
    let Some((_, rest)) = split_at_text(url, b"|").filter(|_| is_unix) else {
        return Some(url.into());
    };
    let colon = rest.iter().position(|byte| *byte == b':')?;
    Some(match rest.get(colon + 1..) {
        Some(b"") => [rest, b"//localhost"].concat().into(),
        Some(b"//") => [rest, b"localhost"].concat().into(),
        _ => rest.into(),
    })
}

/// The socket's path and the URL behind it.
pub(super) fn socket(url: &[u8]) -> Result<(Option<&[u8]>, &[u8]), String> {
    let rest = url.get(5..).unwrap_or_default();
    if !url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:")) {
        return Ok((None, url));
    }
    match split_at_text(rest, b"|") {
        Some((path, _)) if path.len() > SOCKET_PATH_BYTES => {
            Err(format!("worker uds path ({}) too long", String::from_utf8_lossy(path)))
        }
        Some((path, rest)) => Ok((Some(path), rest)),
        None => Ok((None, url)),
    }
}

/// The texts before and behind the first `at`.
pub fn split_at_text<'t>(text: &'t [u8], at: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let (first, more) = at.split_first()?;
    let mut from = 0;
    // It is short, its first byte is rare, and its place near the beginning.
    loop {
        let start = from + text.get(from..)?.iter().position(|byte| byte == first)?;
        if let Some(rest) = text.get(start + 1..)?.strip_prefix(more) {
            return Some((text.get(..start)?, rest));
        }
        from = start + 1;
    }
}

/// `None` if the port is not a number.
pub(super) fn host_and_port(place: &[u8]) -> Option<(&[u8], Option<u32>)> {
    let (host, port) = match place.strip_prefix(b"[") {
        Some(rest) => {
            let (host, rest) = split_at_text(rest, b"]")?;
            (host, rest.strip_prefix(b":").unwrap_or_default())
        }
        None => split_at_text(place, b":").unwrap_or((place, b"")),
    };
    if port.is_empty() {
        return Some((host, None));
    }
    Some((host, Some(std::str::from_utf8(port).ok()?.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        let target = Target::parse(b"unix:/run/s|FCGI://localhost:9/a?b").unwrap();
        assert_eq!(target.socket.as_deref(), Some(&b"/run/s"[..]));
        assert_eq!((&target.scheme[..], &target.host[..]), (&b"fcgi"[..], &b"localhost"[..]));
        assert_eq!((target.port, &target.path[..]), (Some(9), &b"/a?b"[..]));
        let target = Target::parse(b"http://u:p@[::1]").unwrap();
        assert_eq!((&target.host[..], target.port), (&b"::1"[..], None));
        assert!(Target::parse(b"balancer://b").unwrap().is_balancer());
    }

    #[test]
    fn workers_are_named_by_their_url() {
        for (url, name) in [
            ("HTTP://Host.Test:80/A?b", "http://host.test/A?b"),
            ("http://u:p@h:81", "http://u:p@h:81"),
            ("https://[::1]:443/", "https://[::1]/"),
            ("unix:/run/s|fcgi:", "fcgi://localhost"),
            ("unix:s|http://localhost/x", "http://localhost/x"),
            ("unix:s|http:///x", "http://localhost/x"),
        ] {
            assert_eq!(Target::parse(url.as_bytes()).unwrap().name(), name.as_bytes());
        }
        let pattern = Target::parse_pattern(b"http://h:8080$1$2/x").unwrap();
        assert_eq!((pattern.port, &pattern.name()[..]), (Some(8080), &b"http://h:8080$1$2/x"[..]));
    }

    #[test]
    fn mistakes_are_told_in_apaches_words() {
        for (url, text) in [
            ("nonsense", "URL must be absolute!: nonsense"),
            ("http:///x", "URL must be absolute!: http:///x"),
            ("unix:/tmp/s", "URL must be absolute!: unix:/tmp/s"),
            ("http://127.0.0.1:x/", "Unable to parse URL: http://127.0.0.1:x/"),
        ] {
            assert_eq!(Target::parse(url.as_bytes()).unwrap_err(), text);
        }
    }
}

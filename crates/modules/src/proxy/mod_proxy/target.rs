//! The URL of a worker or a balancer.
//! `ap_proxy_define_worker`, `apr_uri_parse`.

/// The longest path of a UNIX socket (`sun_path` without its end), bytes.
const SOCKET_PATH_BYTES: usize = 107;

/// Where requests go: `[unix:path|]scheme://[user@]host[:port][/path]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path of the UNIX socket, which may be relative.
    pub socket: Option<Vec<u8>>,
    /// In lower case.
    pub scheme: Vec<u8>,
    /// Without the brackets of an IPv6 address.
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
        let (socket, rest) = socket(url)?;
        let shown = String::from_utf8_lossy(rest).into_owned();
        let not_absolute = || format!("URL must be absolute!: {shown}");
        let (scheme, rest) = split_at_text(rest, b"://").ok_or_else(not_absolute)?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
        let user = authority.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
        let place = authority.get(user..).unwrap_or_default();
        let bad = || format!("Unable to parse URL: {shown}");
        let (host, port) = host_and_port(place).ok_or_else(bad)?;
        if host.is_empty() || scheme.is_empty() {
            return Err(not_absolute());
        }
        Ok(Target {
            socket: socket.map(<[u8]>::to_vec),
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_vec(),
            port,
            path: path.to_vec(),
        })
    }
}

/// The socket's path and the URL behind it.
fn socket(url: &[u8]) -> Result<(Option<&[u8]>, &[u8]), String> {
    let is_unix = url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:"));
    let rest = url.get(5..).unwrap_or_default();
    match split_at_text(rest, b"|").filter(|_| is_unix) {
        Some((path, _)) if path.len() > SOCKET_PATH_BYTES => {
            Err(format!("worker uds path ({}) too long", String::from_utf8_lossy(path)))
        }
        Some((path, rest)) => Ok((Some(path), rest)),
        None => Ok((None, url)),
    }
}

pub(super) fn split_at_text<'t>(text: &'t [u8], at: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let start = text.windows(at.len()).position(|window| window == at)?;
    Some((text.get(..start)?, text.get(start + at.len()..)?))
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

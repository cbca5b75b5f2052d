//! Header fields of trusted proxies: what they say replaces what the connection says. Fields of
//! the same meaning that do not count are removed, also if the peer is no trusted proxy, so that no
//! client can forge them (CVE-2022-2255).
//!
//! Source: `wsgi_process_proxy_headers`

use std::net::IpAddr;

use conf::values::Subnet;
use wire::Table;

/// What a field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Client,
    Scheme,
    Host,
    ServerName,
    Port,
    ScriptName,
}

/// A header field of proxies, by its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header(&'static str, Meaning);

const HEADERS: [Header; 15] = [
    Header("HTTP_X_FORWARDED_FOR", Meaning::Client),
    Header("HTTP_X_CLIENT_IP", Meaning::Client),
    Header("HTTP_X_REAL_IP", Meaning::Client),
    Header("HTTP_X_FORWARDED_HTTPS", Meaning::Scheme),
    Header("HTTP_X_FORWARDED_PROTO", Meaning::Scheme),
    Header("HTTP_X_FORWARDED_SCHEME", Meaning::Scheme),
    Header("HTTP_X_FORWARDED_SSL", Meaning::Scheme),
    Header("HTTP_X_HTTPS", Meaning::Scheme),
    Header("HTTP_X_SCHEME", Meaning::Scheme),
    Header("HTTP_X_FORWARDED_HOST", Meaning::Host),
    Header("HTTP_X_HOST", Meaning::Host),
    Header("HTTP_X_FORWARDED_SERVER", Meaning::ServerName),
    Header("HTTP_X_FORWARDED_PORT", Meaning::Port),
    Header("HTTP_X_SCRIPT_NAME", Meaning::ScriptName),
    Header("HTTP_X_FORWARDED_SCRIPT_NAME", Meaning::ScriptName),
];

impl Header {
    /// The field of a name, `X-Forwarded-For`.
    pub fn named(name: &[u8]) -> Option<Header> {
        let mut variable = b"HTTP_".to_vec();
        variable.extend(name.iter().map(|byte| match byte {
            b'-' => b'_',
            byte => byte.to_ascii_uppercase(),
        }));
        HEADERS.iter().find(|header| header.0.as_bytes() == variable).copied()
    }
}

/// The names of all fields.
pub(super) fn known() -> String {
    let name = |header: &Header| {
        let words = header.0.trim_start_matches("HTTP_").split('_');
        let capital = |word: &str| match word {
            "IP" | "HTTPS" | "SSL" => word.to_owned(),
            word => {
                let (first, rest) = word.split_at(1);
                first.to_owned() + &rest.to_lowercase()
            }
        };
        words.map(capital).collect::<Vec<_>>().join("-")
    };
    let names: Vec<String> = HEADERS.iter().map(name).collect();
    format!("known are: {}", names.join(", "))
}

/// Applies the fields of a request whose peer has this address. Without a list of proxies, each
/// peer is trusted.
pub(super) fn apply(env: &mut Table, headers: &[Header], proxies: &[Subnet], peer: IpAddr) {
    let is_trusted = |address: IpAddr| proxies.iter().any(|proxy| proxy.contains(address));
    let trusts = proxies.is_empty() || is_trusted(peer);
    let mut winners: Vec<Header> = Vec::new();
    for header in headers.iter().filter(|_| trusts) {
        let Some(value) = env.get(header.0.as_bytes()).map(<[u8]>::to_vec) else { continue };
        winners.retain(|winner| winner.1 != header.1);
        winners.push(*header);
        match header.1 {
            Meaning::Client => {
                let client = match header.0 {
                    "HTTP_X_FORWARDED_FOR" => {
                        let chain = forwarded_for(&value, proxies);
                        env.set(header.0.as_bytes(), &chain.join(&b", "[..]));
                        chain.first().copied().unwrap_or_default()
                    }
                    _ => value.trim_ascii(),
                };
                env.set(b"REMOTE_ADDR", client);
            }
            Meaning::Scheme => {
                let says_so = [&b"https"[..], b"on", b"1", b"true"];
                let value = value.trim_ascii();
                match says_so.iter().any(|word| value.eq_ignore_ascii_case(word)) {
                    true => env.set(b"HTTPS", b"1"),
                    false => drop(env.unset(b"HTTPS")),
                }
            }
            Meaning::Host => env.set(b"HTTP_HOST", &value),
            Meaning::ServerName => env.set(b"SERVER_NAME", &value),
            Meaning::Port => env.set(b"SERVER_PORT", &value),
            Meaning::ScriptName => {
                env.set(b"SCRIPT_NAME", &value);
                env.set(b"mod_wsgi.mount_point", &value);
            }
        }
    }
    for header in HEADERS {
        let is_configured = headers.iter().any(|configured| configured.1 == header.1);
        if is_configured && !winners.contains(&header) {
            env.unset(header.0.as_bytes());
        }
    }
}

/// The client in a chain, and what follows it: the last address that is no trusted proxy; the first
/// one if all are.
fn forwarded_for<'v>(value: &'v [u8], proxies: &[Subnet]) -> Vec<&'v [u8]> {
    let mut items: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let is_proxy = |item: &&[u8]| {
        let address = std::str::from_utf8(item).ok().and_then(|text| text.parse::<IpAddr>().ok());
        address.is_some_and(|address| proxies.iter().any(|proxy| proxy.contains(address)))
    };
    let client = match proxies.is_empty() {
        true => 0,
        false => items.iter().rposition(|item| !is_proxy(item)).unwrap_or(0),
    };
    items.split_off(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Table {
        let mut table = Table::new();
        for (name, value) in pairs {
            table.add(name.as_bytes(), value.as_bytes());
        }
        table
    }

    fn text(env: &Table, name: &str) -> Option<String> {
        env.get(name.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn a_trusted_proxy_is_believed_and_synonyms_vanish() {
        let headers =
            [Header::named(b"x-forwarded-for").unwrap(), Header::named(b"X-Scheme").unwrap()];
        let proxies = [Subnet::parse(b"10.0.0.0/8").unwrap()];
        let fields = [
            ("REMOTE_ADDR", "10.0.0.1"),
            ("HTTP_X_FORWARDED_FOR", "6.6.6.6, 1.2.3.4, 10.0.0.2"),
            ("HTTP_X_CLIENT_IP", "6.6.6.6"),
            ("HTTP_X_SCHEME", "HTTPS"),
            ("HTTP_X_FORWARDED_PROTO", "http"),
            ("HTTP_X_HOST", "untouched"),
        ];
        let mut trusted = env(&fields);
        apply(&mut trusted, &headers, &proxies, "10.0.0.1".parse().unwrap());
        assert_eq!(text(&trusted, "REMOTE_ADDR").unwrap(), "1.2.3.4");
        assert_eq!(text(&trusted, "HTTP_X_FORWARDED_FOR").unwrap(), "1.2.3.4, 10.0.0.2");
        assert_eq!(text(&trusted, "HTTPS").unwrap(), "1");
        assert_eq!(text(&trusted, "HTTP_X_CLIENT_IP"), None);
        assert_eq!(text(&trusted, "HTTP_X_FORWARDED_PROTO"), None);
        assert_eq!(text(&trusted, "HTTP_X_HOST").unwrap(), "untouched");

        let mut other = env(&fields);
        apply(&mut other, &headers, &proxies, "192.0.2.1".parse().unwrap());
        assert_eq!(text(&other, "REMOTE_ADDR").unwrap(), "10.0.0.1");
        for name in ["HTTP_X_FORWARDED_FOR", "HTTP_X_CLIENT_IP", "HTTP_X_SCHEME", "HTTPS"] {
            assert_eq!(text(&other, name), None, "{name}");
        }
    }

    #[test]
    fn names_are_listed_as_fields() {
        let known = known();
        for name in ["X-Forwarded-For", "X-Real-IP", "X-Forwarded-SSL", "X-HTTPS", "X-Script-Name"]
        {
            assert!(known.contains(name), "{known}");
            assert!(Header::named(name.as_bytes()).is_some());
        }
        assert_eq!(Header::named(b"X-Other"), None);
    }
}

//! The two forms of `DBDParams`: pairs of `name=value`, and a URI.
//!
//! Specification: <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>.

/// The parameters of a text, in its order.
///
/// # Errors
/// What is wrong with it. A URI is not shown: its password would be.
pub(super) fn parameters(text: &str) -> Result<Vec<(String, String)>, String> {
    let uri = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"));
    uri.map_or_else(|| of_pairs(text), of_uri)
}

/// The pairs of `name = value`, where a value may be in quotes. Source: `conninfo_parse`.
fn of_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut letters = text.chars().peekable();
    let mut pairs = Vec::new();
    loop {
        while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return Ok(pairs);
        }
        let mut name = String::new();
        while let Some(letter) = letters.next_if(|c| *c != '=' && !c.is_ascii_whitespace()) {
            name.push(letter);
        }
        while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
        if letters.next() != Some('=') {
            return Err(format!("missing \"=\" after \"{name}\" in connection info string"));
        }
        while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
        let is_quoted = letters.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match letters.next() {
                Some('\'') if is_quoted => break,
                Some('\\') => value.extend(letters.next()),
                Some(letter) if !is_quoted && letter.is_ascii_whitespace() => break,
                Some(letter) => value.push(letter),
                None if is_quoted => {
                    return Err("unterminated quoted string in connection info string".to_owned());
                }
                None => break,
            }
        }
        pairs.push((name, value));
    }
}

/// The parameters of a URI without its scheme. Source: `conninfo_uri_parse_options`.
fn of_uri(text: &str) -> Result<Vec<(String, String)>, String> {
    let (text, query) = text.split_once('?').map_or((text, None), |(uri, more)| (uri, Some(more)));
    let (authority, database) = text.split_once('/').unwrap_or((text, ""));
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: &str| -> Result<(), String> {
        if !value.is_empty() {
            pairs.push((name.to_owned(), decoded(value)?));
        }
        Ok(())
    };
    let (login, hosts) = authority.split_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    add("user", user)?;
    add("password", password)?;
    let servers: Vec<_> = hosts.split(',').map(host_and_port).collect::<Result<_, _>>()?;
    let list = |part: fn(&(String, String)) -> &str| {
        let parts: Vec<&str> = servers.iter().map(part).collect();
        if parts.iter().all(|part| part.is_empty()) { String::new() } else { parts.join(",") }
    };
    add("host", &list(|(host, _)| host))?;
    add("port", &list(|(_, port)| port))?;
    add("dbname", database)?;
    for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty())
    {
        let missing = || "missing key/value separator \"=\" in URI query parameter".to_owned();
        let (name, value) = pair.split_once('=').ok_or_else(missing)?;
        if value.contains('=') {
            return Err("extra key/value separator \"=\" in URI query parameter".to_owned());
        }
        let (name, value) = (decoded(name)?, decoded(value)?);
        // JDBC's parameter.
        pairs.push(match (name.as_str(), value.as_str()) {
            ("ssl", "true") => ("sslmode".to_owned(), "require".to_owned()),
            _ => (name, value),
        });
    }
    Ok(pairs)
}

fn host_and_port(text: &str) -> Result<(String, String), String> {
    let Some(address) = text.strip_prefix('[') else {
        let (host, port) = text.split_once(':').unwrap_or((text, ""));
        return Ok((host.to_owned(), port.to_owned()));
    };
    let Some((address, after)) = address.split_once(']') else {
        return Err("no \"]\" ends the IPv6 host address in the URI".to_owned());
    };
    if address.is_empty() {
        return Err("IPv6 host address may not be empty in URI".to_owned());
    }
    match after.strip_prefix(':') {
        Some(port) => Ok((address.to_owned(), port.to_owned())),
        None if after.is_empty() => Ok((address.to_owned(), String::new())),
        None => Err("an unexpected character follows the IPv6 host address in the URI".to_owned()),
    }
}

/// A part of a URI. Source: `conninfo_uri_decode`.
fn decoded(text: &str) -> Result<String, String> {
    let mut parts = text.split('%');
    let mut value = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let hex = part.get(..2).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.ok_or("invalid percent-encoded token in the URI")? {
            0 => return Err("forbidden value %00 in percent-encoded value".to_owned()),
            byte => value.push(byte),
        }
        value.extend(part.bytes().skip(2));
    }
    String::from_utf8(value).map_err(|_| "the URI is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parameters(text) {
            Ok(pairs) => {
                let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
                pairs.collect::<Vec<_>>().join(" ")
            }
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn uris_are_libpqs() {
        for (uri, expected) in [
            ("postgresql://", ""),
            ("postgresql://localhost", "host=localhost"),
            ("postgres://localhost:5433", "host=localhost port=5433"),
            ("postgresql://localhost/mydb", "host=localhost dbname=mydb"),
            ("postgresql://user@localhost", "user=user host=localhost"),
            ("postgresql://u:s%20%3A@localhost/d", "user=u password=s : host=localhost dbname=d"),
            ("postgresql://h1:123,h2:456/d", "host=h1,h2 port=123,456 dbname=d"),
            ("postgresql://h1,h2:456/", "host=h1,h2 port=,456"),
            ("postgresql:///d?host=/var/run&port=1", "dbname=d host=/var/run port=1"),
            ("postgresql://%2Fvar%2Frun/d", "host=/var/run dbname=d"),
            ("postgresql://[2001:db8::1]:7/d", "host=2001:db8::1 port=7 dbname=d"),
            (
                "postgresql://a/?ssl=true&sslrootcert=x%26y",
                "host=a sslmode=require sslrootcert=x&y",
            ),
        ] {
            assert_eq!(shown(uri), expected, "{uri}");
        }
    }

    #[test]
    fn what_is_wrong_is_an_error_without_the_password() {
        for (wrong, why) in [
            ("host", "missing \"=\""),
            ("host='a", "unterminated"),
            ("postgresql://u:secret@[::1", "no \"]\""),
            ("postgresql://u:secret@[]", "may not be empty"),
            ("postgresql://u:secret@[::1]x", "unexpected character"),
            ("postgresql://u:secret@a/?x", "missing key"),
            ("postgresql://u:secret@a/?x=y=z", "extra key"),
            ("postgresql://u:secret%2@a", "invalid percent"),
            ("postgresql://u:secret%00@a", "forbidden value"),
            ("postgresql://u:secret%ff@a", "not UTF-8"),
        ] {
            let shown = shown(wrong);
            assert!(shown.starts_with("error: ") && shown.contains(why), "{wrong}: {shown}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(postgresql://)?[a-z=' \\\\,:@/?&%0-9\\[\\]]{0,40}") {
            let _ = parameters(&text);
        }
    }
}

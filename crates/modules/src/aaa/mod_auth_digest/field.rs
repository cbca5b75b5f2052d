//! The field with the credentials. Source: `get_digest_rec`.

/// Credentials that are complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    pub username: Vec<u8>,
    pub realm: Vec<u8>,
    pub nonce: Vec<u8>,
    pub uri: Vec<u8>,
    pub response: Vec<u8>,
    pub algorithm: Option<Vec<u8>>,
    pub cnonce: Vec<u8>,
    pub opaque: Option<Vec<u8>>,
    pub qop: Option<Vec<u8>>,
    pub count: Vec<u8>,
}

/// What a field has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Another scheme, of this name.
    Other(Vec<u8>),
    /// Something is missing.
    Incomplete {
        /// The opaque value is there, although it counts for that of no client.
        has_opaque: bool,
    },
    /// Credentials.
    Whole(Box<Credentials>),
}

/// Bytes of a nonce, as [`super::nonce`] makes them.
pub(super) const NONCE_BYTES: usize = 52;

/// Digits of an MD5.
const DIGEST_BYTES: usize = 32;

/// Reads a field.
pub(super) fn read(field: &[u8]) -> Sent {
    let field = field.trim_ascii_start();
    let end = field.iter().position(u8::is_ascii_whitespace).unwrap_or(field.len());
    let (scheme, rest) = field.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"Digest") {
        return Sent::Other(scheme.to_vec());
    }
    let mut found: [Option<Vec<u8>>; NAMES.len()] = Default::default();
    let mut rest = rest;
    while !rest.is_empty() {
        let (name, value, tail) = parameter(rest);
        rest = tail;
        let at = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
        if let Some(place) = at.and_then(|at| found.get_mut(at)) {
            *place = Some(value);
        }
    }
    let [username, realm, nonce, uri, response, algorithm, cnonce, opaque, qop, count] = found;
    let (Some(username), Some(realm), Some(nonce), Some(uri), Some(response)) =
        (username, realm, nonce, uri, response)
    else {
        return Sent::Incomplete { has_opaque: opaque.is_some() };
    };
    let is_short = qop.is_some() && (cnonce.is_none() || count.is_none());
    if is_short || response.len() != DIGEST_BYTES || nonce.len() != NONCE_BYTES {
        return Sent::Incomplete { has_opaque: opaque.is_some() };
    }
    let (cnonce, count) = (cnonce.unwrap_or_default(), count.unwrap_or_default());
    Sent::Whole(Box::new(Credentials {
        username,
        realm,
        nonce,
        uri,
        response,
        algorithm,
        cnonce,
        opaque,
        qop,
        count,
    }))
}

const NAMES: [&[u8]; 10] = [
    b"username",
    b"realm",
    b"nonce",
    b"uri",
    b"response",
    b"algorithm",
    b"cnonce",
    b"opaque",
    b"qop",
    b"nc",
];

/// The first parameter, its value, and what follows its comma.
fn parameter(text: &[u8]) -> (&[u8], Vec<u8>, &[u8]) {
    let text = text.trim_ascii_start();
    let is_end = |byte: &u8| matches!(byte, b'=' | b',') || byte.is_ascii_whitespace();
    let (name, rest) = text.split_at(text.iter().position(is_end).unwrap_or(text.len()));
    let mut rest = rest.trim_ascii_start();
    let mut value = Vec::new();
    if let Some(after) = rest.strip_prefix(b"=") {
        rest = after.trim_ascii_start();
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            let mut bytes = quoted;
            while let Some((byte, tail)) = bytes.split_first() {
                bytes = tail;
                match (byte, tail.split_first()) {
                    (b'"', _) => break,
                    (b'\\', Some((escaped, after))) => {
                        value.push(*escaped);
                        bytes = after;
                    }
                    _ => value.push(*byte),
                }
            }
            rest = bytes;
        } else {
            let is_end = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
            let (token, tail) = rest.split_at(rest.iter().position(is_end).unwrap_or(rest.len()));
            (value, rest) = (token.to_vec(), tail);
        }
    }
    let comma = rest.iter().position(|byte| *byte == b',').map_or(rest.len(), |at| at + 1);
    (name, value, rest.get(comma..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_apache_does() {
        let (digits, nonce) = ("0".repeat(32), "n".repeat(NONCE_BYTES));
        let field = format!(
            "digest USERNAME = \"a\\\"b\" , realm=r, nonce=\"{nonce}\" junk, uri=/x,\
             response={digits}, qop=auth,nc=01, cnonce=c,unknown"
        );
        let Sent::Whole(found) = read(field.as_bytes()) else { panic!("complete") };
        assert_eq!((found.username.as_slice(), found.uri.as_slice()), (&b"a\"b"[..], &b"/x"[..]));
        assert_eq!((found.count.as_slice(), found.opaque), (&b"01"[..], None));
        assert_eq!(read(b"Basic x"), Sent::Other(b"Basic".to_vec()));
        assert_eq!(read(b"Digest"), Sent::Incomplete { has_opaque: false });
        for (whole, part) in [("nc=01,", ""), ("nnn", "nn"), ("000", "00")] {
            assert_eq!(
                read(field.replacen(whole, part, 1).as_bytes()),
                Sent::Incomplete { has_opaque: false }
            );
        }
        assert_eq!(read(b"Digest opaque=1"), Sent::Incomplete { has_opaque: true });
    }

    proptest::proptest! {
        #[test]
        fn no_field_panics(rest in "[a-z=\",\\\\ ]{0,60}", bytes: Vec<u8>) {
            let _ = read(format!("Digest {rest}").as_bytes());
            let _ = read(&[b"Digest ", bytes.as_slice()].concat());
        }
    }
}

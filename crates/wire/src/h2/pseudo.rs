//! Pseudo-header fields of requests (RFC 9113 section 8.3.1).

/// Their names.
#[derive(Clone, Copy)]
pub(super) enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    /// What the stream is to carry after CONNECT (RFC 8441).
    Protocol,
}

impl Pseudo {
    pub fn of_name(name: &[u8]) -> Option<Pseudo> {
        Some(match name {
            b"method" => Pseudo::Method,
            b"scheme" => Pseudo::Scheme,
            b"authority" => Pseudo::Authority,
            b"path" => Pseudo::Path,
            b"protocol" => Pseudo::Protocol,
            _ => return None,
        })
    }
}

/// The values of pseudo-header fields.
#[derive(Default)]
pub(super) struct Values {
    bytes: Vec<u8>,
    /// Where each one is.
    places: [Option<(usize, usize)>; 5],
}

impl Values {
    /// No values, with memory for them.
    pub fn in_memory(bytes: Vec<u8>) -> Values {
        Values { bytes, ..Values::default() }
    }

    pub fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    pub fn get(&self, of: Pseudo) -> Option<&[u8]> {
        let (first, end) = self.places.get(of as usize).copied().flatten()?;
        self.bytes.get(first..end)
    }

    pub fn has(&self, of: Pseudo) -> bool {
        self.get(of).is_some()
    }

    pub fn set(&mut self, of: Pseudo, value: &[u8]) {
        let first = self.bytes.len();
        self.bytes.extend_from_slice(value);
        if let Some(place) = self.places.get_mut(of as usize) {
            *place = Some((first, self.bytes.len()));
        }
    }
}

/// Whether a text may be an authority, by its bytes (RFC 3986 section 3.2).
pub(super) fn is_authority(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| IN_AUTHORITY[usize::from(*byte)])
}

/// The bytes that an authority may have.
static IN_AUTHORITY: [bool; 256] = {
    let mut all = [false; 256];
    let (others, mut at) = (b"-._~!$&'()*+,;=:@%[]", 0);
    while at < all.len() {
        all[at] = (at as u8).is_ascii_alphanumeric();
        at += 1;
    }
    at = 0;
    while at < others.len() {
        all[others[at] as usize] = true;
        at += 1;
    }
    all
};

/// Whether a text is a scheme (RFC 3986 section 3.1).
pub(super) fn is_scheme(text: &[u8]) -> bool {
    let is_of_one = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(is_of_one)
}

pub(super) fn is_http(scheme: &[u8]) -> bool {
    matches!(scheme, b"https" | b"http")
        || scheme.eq_ignore_ascii_case(b"https")
        || scheme.eq_ignore_ascii_case(b"http")
}

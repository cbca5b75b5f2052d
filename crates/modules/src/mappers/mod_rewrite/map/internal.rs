//! Maps that are functions.

/// `int:`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Internal {
    /// `toupper`
    ToUpper,
    /// `tolower`
    ToLower,
    /// `escape`
    Escape,
    /// `unescape`
    Unescape,
}

impl Internal {
    /// The function of this name, which is case-sensitive.
    pub fn of_name(name: &[u8]) -> Option<Internal> {
        Some(match name {
            b"toupper" => Internal::ToUpper,
            b"tolower" => Internal::ToLower,
            b"escape" => Internal::Escape,
            b"unescape" => Internal::Unescape,
            _ => return None,
        })
    }

    /// Its value.
    pub fn value(self, key: &[u8]) -> Vec<u8> {
        match self {
            Internal::ToUpper => key.to_ascii_uppercase(),
            Internal::ToLower => key.to_ascii_lowercase(),
            Internal::Escape => {
                let mut out = Vec::with_capacity(key.len());
                wire::escape::path(&mut out, key);
                out
            }
            Internal::Unescape => unescape(key),
        }
    }

    /// Whether the key is changed in place, so that the log shows it as the value.
    pub fn overwrites(self) -> bool {
        self != Internal::Escape
    }
}

/// Decodes everything; malformed escapes stay, and a NUL byte ends the text (`ap_unescape_url`).
fn unescape(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key;
    while let Some((first, more)) = rest.split_first() {
        let pair = more.first_chunk::<2>().filter(|_| *first == b'%');
        match pair.and_then(|[high, low]| Some((hex(*high)?, hex(*low)?))) {
            Some((0, 0)) => break,
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = more;
            }
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_decoded() {
        assert_eq!(unescape(b"a%2fb%25c"), b"a/b%c");
        assert_eq!(unescape(b"a%2fb%00c"), b"a/b");
        assert_eq!(unescape(b"%zz%2%"), b"%zz%2%");
    }

    #[test]
    fn names_have_case() {
        assert_eq!(Internal::of_name(b"tolower"), Some(Internal::ToLower));
        assert_eq!(Internal::of_name(b"TOLOWER"), None);
    }
}

//! The cookie: the one that a client sends, and a new one.
//!
//! Source: `make_cookie`, `set_and_comp_regexp` (modules/metadata/mod_usertrack.c).

use std::hash::{BuildHasher, Hasher, RandomState};

use super::{Directory, Style};

/// The value of a cookie in a `Cookie` field; `None` if it has none.
pub(super) fn find<'c>(cookies: &'c [u8], name: &[u8]) -> Option<&'c [u8]> {
    let is_end = |byte: &u8| matches!(byte, b';' | b',');
    let value_at = |rest: &'c [u8]| {
        let value = rest.strip_prefix(name)?.strip_prefix(b"=")?;
        let value = value.split(is_end).next().unwrap_or_default();
        (!value.is_empty()).then_some(value)
    };
    let ends = cookies.iter().enumerate().filter(|(_, byte)| is_end(byte)).map(|(at, _)| at + 1);
    let behind = |start: usize| {
        let rest = cookies.get(start..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        value_at(rest.get(blanks..).unwrap_or_default())
    };
    value_at(cookies).or_else(|| ends.into_iter().find_map(behind))
}

/// A value that no other client has: a random number and the time.
pub(super) fn fresh(time_us: u64) -> Vec<u8> {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(time_us);
    format!("{:x}.{time_us:x}", hasher.finish() >> 32).into_bytes()
}

impl Directory {
    /// The text of a new cookie that lives for `expires` seconds, or for the session.
    pub(super) fn cookie(&self, name: &[u8], value: &[u8], time_us: u64, expires: i32) -> Vec<u8> {
        let mut text = [name, b"=", value, b"; path=/"].concat();
        if expires != 0 && self.style == Style::Netscape {
            let now = i64::try_from(time_us / 1_000_000).unwrap_or(0);
            text.extend_from_slice(b"; expires=");
            text.extend_from_slice(&date(now + i64::from(expires)));
        } else if expires != 0 {
            text.extend_from_slice(format!("; max-age={expires}").as_bytes());
        }
        if let Some(domain) = &self.domain {
            text.extend_from_slice(b"; domain=");
            text.extend_from_slice(domain);
            if self.style == Style::Cookie2 {
                text.extend_from_slice(b"; version=1");
            }
        }
        if let Some(rule) = self.same_site {
            text.extend_from_slice(b"; SameSite=");
            text.extend_from_slice(rule);
        }
        if self.is_secure {
            text.extend_from_slice(b"; Secure");
        }
        if self.is_http_only {
            text.extend_from_slice(b"; HttpOnly");
        }
        text
    }
}

/// `Sun, 06-Nov-94 08:49:37 GMT`
fn date(seconds: i64) -> Vec<u8> {
    let date = wire::date::format(seconds);
    let part = |from: usize, to: usize| date.get(from..to).unwrap_or_default();
    [part(0, 7), b"-", part(8, 11), b"-", part(14, 29)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_behind_others() {
        let found = |cookies: &'static str| find(cookies.as_bytes(), b"A");
        assert_eq!(found("A=1"), Some(&b"1"[..]));
        assert_eq!(found("B=2;\t A=1 2,C=3"), Some(&b"1 2"[..]));
        assert_eq!(found("A=; A=1"), Some(&b"1"[..]));
        assert_eq!(found("AA=1; BA=1; a=1; A =1"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn a_cookie_says_what_is_configured() {
        let mut dir = Directory::default();
        let text = |dir: &Directory, expires| {
            String::from_utf8(dir.cookie(b"A", b"1", 784_111_777_000_000, expires)).unwrap()
        };
        assert_eq!(text(&dir, 0), "A=1; path=/");
        assert_eq!(text(&dir, 1), "A=1; path=/; expires=Sun, 06-Nov-94 08:49:38 GMT");
        dir.style = Style::Cookie;
        dir.is_secure = true;
        assert_eq!(text(&dir, 5), "A=1; path=/; max-age=5; Secure");
    }
}

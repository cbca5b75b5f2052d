//! Values of sessions in URLs and cookies. Source: `get_path_param`, `get_cookie_param`.

use bstr::ByteSlice;

/// The value behind `name=` anywhere in a URL.
pub fn in_url<'u>(url: &'u [u8], name: &[u8], semicolon_delimits: bool) -> Option<&'u [u8]> {
    let is_delimiter =
        |byte: &u8| matches!(byte, b'?' | b'&') || semicolon_delimits && *byte == b';';
    let mut at = 0;
    while let Some(found) = url.get(at..)?.find(name) {
        let end = at + found + name.len();
        let value = url.get(end..)?.strip_prefix(b"=").filter(|value| !value.is_empty());
        if let Some(value) = value {
            return value.split(is_delimiter).find(|part| !part.is_empty());
        }
        at = end + 1;
    }
    None
}

/// The value of a cookie in a `Cookie` field.
pub fn in_cookies<'c>(cookies: &'c [u8], name: &[u8]) -> Option<&'c [u8]> {
    let mut at = 0;
    while let Some(found) = cookies.get(at..)?.find(name) {
        let start = at + found;
        at = start + 1;
        let before = start.checked_sub(1).and_then(|before| cookies.get(before));
        if !before.is_none_or(|byte| matches!(byte, b';' | b',') || is_space(byte)) {
            continue;
        }
        let rest = cookies.get(start + name.len()..)?;
        let blanks = rest.iter().take_while(|byte| is_space(byte)).count();
        let value = rest.get(blanks..)?.strip_prefix(b"=").filter(|value| !value.is_empty());
        if let Some(value) = value {
            return value.split(|byte| matches!(byte, b';' | b',')).next();
        }
    }
    None
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::{in_cookies, in_url};

    fn shown(value: Option<&[u8]>) -> String {
        value.map_or("-".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn values_are_found_in_urls() {
        let of = |url: &str, semicolon| shown(in_url(url.as_bytes(), b"sid", semicolon));
        assert_eq!(of("balancer://b/x;sid=y.b", false), "y.b");
        assert_eq!(of("balancer://b/x;sid=y.b;c?d", false), "y.b;c");
        assert_eq!(of("balancer://b/x;sid=y.b;c?d", true), "y.b");
        assert_eq!(of("balancer://b/x?sid=&sid=y", false), "sid=y");
        assert_eq!(of("balancer://b/x?sid&asid=y", false), "y");
        assert_eq!(of("balancer://b/x?sid=", false), "-");
        assert_eq!(of("balancer://b/x?sid=&&", false), "-");
    }

    #[test]
    fn values_are_found_in_cookies() {
        let of = |cookies: &str| shown(in_cookies(cookies.as_bytes(), b"SID"));
        assert_eq!(of("SID=x.b"), "x.b");
        assert_eq!(of("a=1; SID = x"), " x");
        assert_eq!(of("aSID=1,SID=x,y;z"), "x");
        assert_eq!(of("SID; SID=; SID=x"), "");
        assert_eq!(of("aSID=1"), "-");
    }
}

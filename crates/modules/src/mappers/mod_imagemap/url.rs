//! Values in maps and directives as URLs.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::Imagemap;

/// The URL of a value, relative to `base`; `None` if there is none, which is logged. `error` and
/// `nocontent` stay as they are (`imap_url`).
pub(super) fn url(request: &Request, base: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let is = |word: &[u8]| value.eq_ignore_ascii_case(word);
    if is(b"map") || is(b"menu") {
        return Some(request.construct_url(&request.resource.uri));
    }
    if is(b"nocontent") || is(b"error") {
        return Some(value.to_vec());
    }
    let mut value = value;
    if is(b"referer") {
        let referer = request.head.headers_in.get(b"Referer").unwrap_or_default();
        if !referer.is_empty() {
            return Some(referer.to_vec());
        }
        value = b"";
    }
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    if value.get(letters) == Some(&b':') {
        return Some(value.to_vec());
    }
    match (base, value) {
        ([], []) => Some(request.construct_url(b"/")),
        ([], _) => Some(value.to_vec()),
        _ => {
            let joined = join(base, value).map_err(|fault| {
                let uri = Verbatim::new(&request.resource.uri);
                let (number, what) = match fault {
                    Fault::NoFolder => (677, "invalid base directive"),
                    Fault::AboveRoot => (678, "invalid directory name"),
                };
                request.log::<Imagemap>(
                    Level::Error,
                    number,
                    format_args!("{what} in map file: {uri}"),
                );
            });
            joined.ok()
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// The base has no folder that `..` could leave.
    NoFolder,
    /// `..` leaves the last one.
    AboveRoot,
}

/// Joins a base and a value. The folders of the base begin at its first single slash.
fn join(base: &[u8], mut value: &[u8]) -> Result<Vec<u8>, Fault> {
    if !base.contains(&b'/') && climbs(value) {
        return Err(Fault::NoFolder);
    }
    let mut joined = base.to_vec();
    let mut folders = None;
    if let Some(root) = first_single_slash(base) {
        if value.first() == Some(&b'/') {
            joined.truncate(root);
        } else {
            let last = base.iter().rposition(|byte| *byte == b'/').unwrap_or(root);
            joined.truncate(last + 1);
            folders = Some(root);
        }
    }
    while climbs(value) {
        // Without folders, Apache would loop forever.
        let Some(root) = folders.filter(|root| joined.len() > *root) else {
            return Err(Fault::AboveRoot);
        };
        climb(&mut joined, root);
        value = value.get(2..).unwrap_or_default();
        if value.starts_with(b"/../") || value == b"/.." {
            value = value.get(1..).unwrap_or_default();
        }
    }
    joined.extend_from_slice(value);
    Ok(joined)
}

fn climbs(value: &[u8]) -> bool {
    value.starts_with(b"../") || value == b".."
}

fn first_single_slash(base: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = base.get(at) {
        match (byte, base.get(at + 1)) {
            (b'/', Some(b'/')) => at += 2,
            (b'/', _) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// Removes the last folder, with the slash that may end it.
fn climb(joined: &mut Vec<u8>, root: usize) {
    let before = joined.len();
    while joined.len() > root && before - joined.len() <= 1 {
        let folders = joined.get(root..).unwrap_or_default();
        match folders.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => joined.truncate(root + slash),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, value: &str) -> Result<String, Fault> {
        let joined = join(base.as_bytes(), value.as_bytes())?;
        Ok(String::from_utf8(joined).unwrap())
    }

    #[test]
    fn values_are_relative_to_the_base() {
        let of = |value: &str| joined("http://a/b/c/map", value).unwrap_or_default();
        assert_eq!(of("x"), "http://a/b/c/x");
        assert_eq!(of("/x"), "http://a/x");
        assert_eq!(of("../x"), "http://a/b/x");
        assert_eq!(of("../../x"), "http://a/x");
        assert_eq!(of(".."), "http://a/b");
        assert_eq!(of(""), "http://a/b/c/");
        assert_eq!(joined("http://a/b/c/map", "../../../../x"), Err(Fault::AboveRoot));
        assert_eq!(joined("base", "../x"), Err(Fault::NoFolder));
        assert_eq!(joined("http://a", "../x"), Err(Fault::AboveRoot));
        assert_eq!(joined("base", "x").as_deref(), Ok("basex"));
    }
}

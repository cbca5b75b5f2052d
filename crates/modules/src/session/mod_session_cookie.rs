//! mod_session_cookie: keeps sessions in cookies.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_session_cookie.html>

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_session::{Draft, Failed, STORE, Store, Stored};
use crate::aaa::provider::Pending;

/// `mod_session_cookie.c`
pub struct SessionCookie;

impl Module for SessionCookie {
    const NAME: &'static str = "session_cookie_module";
    const FILE: &'static str = "mod_session_cookie.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<SessionCookie>] = &[
        Row::<SessionCookie>::new(
            "SessionCookieName",
            Takes::Raw(|cx, raw| {
                let cookie = parse(raw, "SessionCookieName")?;
                cx.dir().cookie.set(cookie);
                Ok(())
            }),
            "name attributes",
            "Keeps the session in a cookie of this name, set with these attributes.",
        )
        .standing(Places::ALL, Override::AUTH_CONFIG),
        Row::<SessionCookie>::new(
            "SessionCookieName2",
            Takes::Raw(|cx, raw| {
                let cookie = parse(raw, "SessionCookieName2")?;
                cx.dir().cookie2.set(cookie);
                Ok(())
            }),
            "name attributes",
            "Keeps the session in a cookie of this name, set by Set-Cookie2 (RFC 2965).",
        )
        .standing(Places::ALL, Override::AUTH_CONFIG),
        Row::new(
            "SessionCookieRemove",
            Takes::Flag(remove),
            "On|Off",
            "Hides the cookie from programs and from other servers.",
        )
        .standing(Places::ALL, Override::AUTH_CONFIG)
        .default("Off"),
    ];

    fn hooks(hooks: &mut Hooks<'_, SessionCookie>) {
        hooks.provider(STORE, "cookie", Store { name, is_of_redirects: true, read, write });
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `SessionCookieName`
        pub cookie: Setting<Cookie>,
        /// `SessionCookieName2`
        pub cookie2: Setting<Cookie>,
        /// `SessionCookieRemove`
        pub removes: Setting<bool>,
    }
}

/// A cookie's name and attributes.
#[derive(Clone, Debug)]
pub struct Cookie {
    name: Vec<u8>,
    attributes: Vec<u8>,
}

/// The attributes of a cookie without attributes (`DEFAULT_ATTRS`).
const DEFAULT_ATTRIBUTES: &[u8] = b"HttpOnly;Secure;Version=1";

/// Source: `set_cookie_name`, `check_string`.
fn parse(raw: &Arg, directive: &str) -> Result<Cookie, Fault> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let text = raw.text.trim_ascii();
    let end = text.iter().position(is_blank).unwrap_or(text.len());
    let (name, attributes) = text.split_at(end);
    if name.is_empty() || name.iter().any(|byte| matches!(byte, b'=' | b'&')) {
        let why = format!("{directive} cannot be empty, or contain '=' or '&'.");
        return Err(Fault::new(why).at(raw));
    }
    let attributes = attributes.trim_ascii_start().to_vec();
    Ok(Cookie { name: name.to_vec(), attributes })
}

fn remove(cx: &mut Cx<'_, '_, SessionCookie>, on: bool) -> Set {
    cx.dir().removes.set(on);
    Ok(())
}

fn name(request: &Request) -> Option<(Vec<u8>, bool)> {
    let dir = request.dir_of::<SessionCookie>()?;
    let cookie = dir.cookie2.get().or_else(|| dir.cookie.get())?;
    Some((cookie.name.clone(), dir.removes.or(false)))
}

/// Source: `session_cookie_load`.
fn read<'r>(
    request: &'r mut Request,
    name: &'r [u8],
) -> Pending<'r, Result<Option<Stored>, Failed>> {
    let removes = request.dir_of::<SessionCookie>().is_some_and(|dir| dir.removes.or(false));
    let found = take_cookie(request, name, removes);
    request.response.headers_out.add(b"Cache-Control", b"no-cache, private");
    Pending::Now(Ok(found.map(|text| Stored { text, key: None })))
}

/// The value of a cookie, which may be hidden from what follows. Source: `ap_cookie_read`.
pub(super) fn take_cookie(request: &mut Request, name: &[u8], removes: bool) -> Option<Vec<u8>> {
    let found = request.head.headers_in.get(b"Cookie").map(|field| Found::of(field, name))?;
    if found.is_ambiguous {
        let name = Verbatim::new(name);
        let uri = Verbatim::new(&request.resource.uri);
        let message =
            format_args!("ap_cookie: client submitted cookie '{name}' more than once: {uri}");
        request.log_as("core.c", Level::Error, 11, message);
        return None;
    }
    if removes {
        match &found.others {
            Some(others) => request.head.headers_in.set(b"Cookie", others),
            None => {
                request.head.headers_in.unset(b"Cookie");
            }
        }
    }
    found.value.filter(|value| !value.is_empty())
}

/// Source: `session_cookie_save`.
fn write(request: &mut Request, draft: Draft) -> Pending<'_, Result<Option<Vec<u8>>, Failed>> {
    let dir = request.dir_of::<SessionCookie>().cloned().unwrap_or_default();
    let encoded = &draft.text;
    let cookies = [(&b"Set-Cookie"[..], dir.cookie), (b"Set-Cookie2", dir.cookie2)];
    for (field, cookie) in cookies {
        let Some(cookie) = cookie.get() else { continue };
        let end = match (encoded.is_empty(), draft.max_age) {
            (true, _) => "Max-Age=0;".to_owned(),
            (false, 0) => String::new(),
            (false, seconds) => format!("Max-Age={seconds};"),
        };
        let value = cookie.with_value(encoded, &end);
        request.response.err_headers_out.add(field, &value);
        if encoded.is_empty() {
            request.response.headers_out.add(field, &value);
        }
    }
    Pending::Now(Ok(None))
}

impl Cookie {
    /// Its name.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The field that sets it, with the attribute that says for how long. Source:
    /// `ap_cookie_write`.
    pub(super) fn with_value(&self, value: &[u8], end: &str) -> Vec<u8> {
        let attributes: &[u8] = match self.attributes.as_slice() {
            // Apache removes a cookie without the attributes that it is set with by default.
            b"" if value.is_empty() => b"",
            b"" => DEFAULT_ATTRIBUTES,
            given => given,
        };
        [&self.name, &b"="[..], value, b";", end.as_bytes(), attributes].concat()
    }

    /// Reads a name and attributes.
    pub(super) fn new(name: &[u8], attributes: &[u8]) -> Cookie {
        Cookie { name: name.to_vec(), attributes: attributes.to_vec() }
    }
}

/// A cookie in a `Cookie` field.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    value: Option<Vec<u8>>,
    /// Whether it is there with different values.
    is_ambiguous: bool,
    /// The field without the cookie; `None` if there are no other cookies.
    others: Option<Vec<u8>>,
}

impl Found {
    /// Source: `extract_cookie_line`.
    fn of(field: &[u8], name: &[u8]) -> Found {
        let mut found = Found::default();
        let mut others = Vec::new();
        let (mut separator, mut count) = (b';', 0);
        // The attributes that follow a cookie are its own (RFC 2109 section 4.4).
        let mut hides_attributes = false;
        let parts = |text: &'_ [u8], end: u8| -> Vec<Vec<u8>> {
            let parts = text.split(|byte| *byte == end).filter(|part| !part.is_empty());
            parts.map(<[u8]>::to_vec).collect()
        };
        for list in parts(field, b',') {
            for part in parts(&list, b';') {
                let text = part.trim_ascii_start();
                let is_attribute = text.starts_with(b"$");
                let value = text.strip_prefix(name);
                match value.and_then(|value| value.strip_prefix(b"=")) {
                    Some(value) => {
                        let other = found.value.as_deref().is_some_and(|known| known != value);
                        found.is_ambiguous |= other;
                        found.value = Some(value.to_vec());
                        hides_attributes = true;
                    }
                    None if is_attribute && hides_attributes => {}
                    None => {
                        hides_attributes = false;
                        count += usize::from(!is_attribute);
                        if !others.is_empty() {
                            others.push(separator);
                        }
                        others.extend_from_slice(&part);
                    }
                }
                separator = b';';
            }
            separator = b',';
        }
        found.others = (count > 0).then_some(others);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Found;

    #[test]
    fn a_cookie_is_found_and_hidden() {
        let found = |field: &str| Found::of(field.as_bytes(), b"one");
        assert_eq!(found("x=1; one=a=b; y=2").value, Some(b"a=b".to_vec()));
        assert_eq!(found("x=1; one=a=b; y=2").others, Some(b"x=1; y=2".to_vec()));
        assert_eq!(found("one=a").others, None);
        assert_eq!(found("$Version=1; one=a; $Path=/").others, None);
        assert_eq!(
            found("x=1; one=a; $Path=/; y=2; $Path=/z").others,
            Some(b"x=1; y=2; $Path=/z".to_vec())
        );
        assert_eq!(found("x=1;one=a,y=2").others, Some(b"x=1,y=2".to_vec()));
        assert!(found("one=a; one=b").is_ambiguous && !found("one=a; one=a").is_ambiguous);
        assert_eq!(found("ONE=a; done=b").value, None);
    }

    proptest::proptest! {
        #[test]
        fn no_field_panics(field: Vec<u8>, name: Vec<u8>) {
            let _ = Found::of(&field, &name);
        }
    }
}

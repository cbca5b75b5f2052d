//! The member that a session belongs to: its route is in a cookie or in the URL.
//!
//! Source: `find_session_route`.

use bstr::ByteSlice;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::ProxyBalancer;
use super::values::{in_cookies, in_url};

/// What separates the route from the rest, if `stickysessionsep` is not set.
const SEPARATOR: u8 = b'.';

/// What the parameters of a balancer say of sessions.
pub(super) struct Rules<'b> {
    /// The name of the cookie.
    pub cookie: &'b [u8],
    /// The name of the parameter in the URL.
    pub path: &'b [u8],
    /// `stickysessionsep`
    pub separator: Option<Option<u8>>,
    /// `scolonpathdelim`
    pub semicolon_delimits: bool,
}

/// A session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Session {
    /// The route; empty if there is nothing behind the separator.
    pub route: Vec<u8>,
    /// The name of what it was in.
    pub name: Vec<u8>,
}

impl Rules<'_> {
    /// The session of a request for `url`.
    pub fn session_of(&self, request: &Request, url: &[u8]) -> Option<Session> {
        let in_path = in_url(url, self.path, self.semicolon_delimits);
        let in_query = || in_url(request.query()?, self.path, self.semicolon_delimits);
        let (value, name, number) = match in_path.or_else(in_query) {
            Some(value) => (value, self.path, 1159),
            None => {
                let cookies = request.head.headers_in.get(b"Cookie")?;
                (in_cookies(cookies, self.cookie)?, self.cookie, 1160)
            }
        };
        let (shown, of) = (Verbatim::new(value), Verbatim::new(name));
        let text = format_args!("Found value {shown} for stickysession {of}");
        request.log::<ProxyBalancer>(Level::Debug, number, text);
        let route = self.route(value)?.to_vec();
        if !route.is_empty() {
            let text = format_args!("Found route {}", Verbatim::new(&route));
            request.log::<ProxyBalancer>(Level::Debug, 1161, text);
        }
        Some(Session { route, name: name.to_vec() })
    }

    /// What follows the separator.
    fn route<'v>(&self, value: &'v [u8]) -> Option<&'v [u8]> {
        let Some(separator) = self.separator.unwrap_or(Some(SEPARATOR)) else { return Some(value) };
        let at = value.find_byte(separator)?;
        value.get(at + 1..)
    }
}

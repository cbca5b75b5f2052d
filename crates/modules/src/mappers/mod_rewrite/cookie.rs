//! `CO`: a cookie for the client.
//!
//! Source: `add_cookie`.

use jiff::Timestamp;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::trace::Trace;
use crate::atoi::atoi;

/// The names of cookies already set for a request.
#[derive(Default)]
struct Set(Vec<Vec<u8>>);

/// Sets a cookie by `name:value:domain[:minutes[:path[:secure[:httponly[:samesite]]]]]`, once for
/// each name, also from a subrequest. If the text begins with `;`, that is the separator.
pub(super) fn add(request: &mut Request, trace: Trace, text: &[u8]) {
    let (separator, text) = match text.strip_prefix(b";") {
        Some(rest) => (b';', rest),
        None => (b':', text),
    };
    let mut parts = text.split(|byte| *byte == separator).filter(|part| !part.is_empty());
    let (Some(name), Some(value), Some(domain)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    request.depends.pure = false;
    let mut cookie = [name, b"=", value, b"; path="].concat();
    let expires = parts.next();
    cookie.extend_from_slice(parts.next().unwrap_or(b"/"));
    cookie.extend_from_slice(&[b"; domain=", domain].concat());
    if let Some(time) = expires.and_then(|minutes| expiry(request, minutes)) {
        cookie.extend_from_slice(format!("; expires={time}").as_bytes());
    }
    let is_on = |part: Option<&[u8]>, word: &str| {
        part.is_some_and(|part| {
            part == b"1"
                || part.eq_ignore_ascii_case(b"true")
                || part.eq_ignore_ascii_case(word.as_bytes())
        })
    };
    let is_secure = is_on(parts.next(), "secure");
    if is_secure {
        cookie.extend_from_slice(b"; secure");
    }
    // Apache tells `HttpOnly` only behind `secure`.
    if is_on(parts.next(), "HttpOnly") && is_secure {
        cookie.extend_from_slice(b"; HttpOnly");
    }
    let same_site =
        parts.next().filter(|part| *part != b"0" && !part.eq_ignore_ascii_case(b"false"));
    if let Some(same_site) = same_site {
        cookie.extend_from_slice(&[b"; SameSite=", same_site].concat());
    }
    let name = name.to_vec();
    request.change_main(Box::new(move |main| set(main, trace, name, &cookie)));
}

/// Sets a cookie unless it is already set.
fn set(main: &mut Request, trace: Trace, name: Vec<u8>, cookie: &[u8]) {
    if is_set(main, &name) {
        let name = Verbatim::new(&name);
        let line = format_args!("skipping already set cookie '{name}'");
        return trace.line(main, Level::Trace5, None, line);
    }
    main.response.err_headers_out.add(b"Set-Cookie", cookie);
    if main.kept::<Set>().is_none() {
        main.keep(Set::default());
    }
    if let Some(set) = main.kept_mut::<Set>() {
        set.0.push(name);
    }
    let cookie = Verbatim::new(cookie);
    trace.line(main, Level::Trace5, None, format_args!("setting cookie '{cookie}'"));
}

/// Whether the cookie is already set, possibly before an internal redirect.
fn is_set(request: &Request, name: &[u8]) -> bool {
    let mut next = Some(request);
    while let Some(request) = next {
        if request.kept::<Set>().is_some_and(|set| set.0.iter().any(|known| known == name)) {
            return true;
        }
        next = request.prev.as_deref();
    }
    false
}

/// This many minutes after the request; `None` for none.
fn expiry(request: &Request, minutes: &[u8]) -> Option<String> {
    let minutes = i64::from(atoi(minutes));
    let now = i64::try_from(request.time_us).ok()?;
    let time = Timestamp::from_microsecond(now.checked_add(minutes.checked_mul(60_000_000)?)?);
    let shown = time.ok()?.strftime("%a, %d-%b-%Y %H:%M:%S GMT").to_string();
    (minutes != 0).then_some(shown)
}

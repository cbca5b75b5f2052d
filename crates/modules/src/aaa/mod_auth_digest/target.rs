//! Whether the URI of credentials is that of the request.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::uri::{Normalize, Slashes, Target, normalize_path, unescape_query, unescape_url};

use super::AuthDigest;
use super::field::Credentials;

/// The status if the URI of the credentials is not that of the client's request, which may be one
/// for something else that includes this one.
pub(super) fn refuse_target(request: &Request, sent: &Credentials) -> Option<u16> {
    let (method, asked) = request.clients_line();
    if asked == sent.uri {
        return None;
    }
    let shown = Verbatim::new(&sent.uri);
    let Ok(target) = Target::parse(&sent.uri) else {
        let message = format_args!("invalid uri <{shown}> in Authorization header");
        request.log::<AuthDigest>(Level::Error, 1783, message);
        return Some(400);
    };
    let is_connect = method == b"CONNECT";
    if !is_connect && is_same(request, &target, asked) {
        return None;
    }
    let number = if is_connect { 1785 } else { 1786 };
    let asked = Verbatim::new(asked);
    let message = format_args!("uri mismatch - <{shown}> does not match request-uri <{asked}>");
    request.log::<AuthDigest>(Level::Error, number, message);
    Some(400)
}

/// Whether host and port are those of the request, or of the server where it names none.
fn is_here(request: &Request, target: &Target<'_>, asked: &Target<'_>) -> bool {
    let named = |host: Option<&'_ [u8]>| host.filter(|host| !host.is_empty()).map(<[u8]>::to_vec);
    let number = |port: &[u8]| std::str::from_utf8(port).ok()?.parse().ok();
    let asked_port = asked.port.and_then(number).unwrap_or_else(|| request.server_port());
    if let Some(port) = target.port
        && number(port).unwrap_or(0) != asked_port
    {
        return false;
    }
    let Some(mut host) = named(target.host) else { return true };
    let _ = unescape_url(&mut host, Slashes::Decode);
    let own = named(asked.host).unwrap_or_else(|| request.server_name().to_vec());
    let has_port = target.port.is_some() || asked_port == request.default_port();
    has_port && own.eq_ignore_ascii_case(&host)
}

/// Whether host, port, path and query are the same.
fn is_same(request: &Request, target: &Target<'_>, asked: &[u8]) -> bool {
    let Ok(asked) = Target::of_request(asked, false) else { return false };
    let unescaped =
        |mut path: Vec<u8>| unescape_url(&mut path, Slashes::Decode).ok().map(|()| path);
    let path = target.path.unwrap_or_default().to_vec();
    // The request's has been normalised, that of the credentials is taken as it is.
    let mut asked_path = asked.path.unwrap_or_default().to_vec();
    let how = Normalize::request(request.host.core.merge_slashes.or(true));
    let _ = normalize_path(&mut asked_path, how);
    let query = |target: &Target<'_>| {
        target.query.map(|query| {
            let mut text = query.to_vec();
            let _ = unescape_query(&mut text);
            text
        })
    };
    is_here(request, target, &asked)
        && unescaped(path) == unescaped(asked_path)
        && query(target) == query(&asked)
}

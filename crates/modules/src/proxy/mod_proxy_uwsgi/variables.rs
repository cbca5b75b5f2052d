//! The variables that a uwsgi server gets. Source: `uwsgi_handler`, `uwsgi_send_headers`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::uri::{Slashes, unescape_url};

use super::ProxyUwsgi;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::util_script::variables::{add_cgi, add_common};

const SCHEME: &[u8] = b"uwsgi://";

/// Sets `PATH_INFO` to the path of the URL, unescaped, as which it is part of `SCRIPT_FILENAME`,
/// too.
///
/// # Errors
/// The status of the response.
pub(super) fn add_path_info(exchange: &mut Exchange<'_>) -> Result<(), u16> {
    let (url, request) = (exchange.url, &mut *exchange.request);
    let rest = url.get(SCHEME.len()..).unwrap_or_default();
    let slash = rest.iter().position(|byte| *byte == b'/');
    let at = slash.map_or(url.len(), |slash| SCHEME.len() + slash);
    let (origin, path) = url.split_at_checked(at).unwrap_or((url, b""));
    let mut path = path.to_vec();
    if unescape_url(&mut path, Slashes::Forbid).is_err() {
        let url = Verbatim::new(url);
        let text = format_args!("unable to decode uwsgi uri: {url}");
        request.log::<ProxyUwsgi>(Level::Error, 10100, text);
        return Err(500);
    }
    request.resource.filename = [b"proxy:", origin, &path].concat();
    request.env.add(b"PATH_INFO", &path);
    Ok(())
}

/// Adds the other variables to those of the request.
pub(super) async fn add(request: &mut Request) {
    add_common::<ProxyUwsgi>(request).await;
    add_cgi(request).await;
    let Request { env, head, .. } = request;
    if let Some(credentials) = head.headers_in.get(b"Authorization") {
        env.set(b"HTTP_AUTHORIZATION", credentials);
    }
    let (Some(name), Some(path)) = (env.get(b"SCRIPT_NAME"), env.get(b"PATH_INFO")) else { return };
    let name = script_name(name, path).to_vec();
    env.set(b"SCRIPT_NAME", &name);
}

/// The part of the request's path before `PATH_INFO`, going by its length alone.
fn script_name<'n>(name: &'n [u8], path_info: &[u8]) -> &'n [u8] {
    match path_info {
        b"/" if name == b"/" => b"",
        b"/" => name,
        path_info => {
            let length = name.len().checked_sub(path_info.len());
            length.and_then(|length| name.get(..length)).unwrap_or(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Recorded from Apache 2.4.71.
    #[test]
    fn path_info_counts_by_its_length() {
        assert_eq!(script_name(b"/bare/x/y", b"/x/y"), b"/bare");
        assert_eq!(script_name(b"/enc/x%20y", b"/srv/x y"), b"/e");
        assert_eq!(script_name(b"/noq/x", b"/srv/x"), b"");
        assert_eq!(script_name(b"/a/x", b"/srv/x"), b"/a/x");
        assert_eq!(script_name(b"/", b"/"), b"");
        assert_eq!(script_name(b"/bare", b"/"), b"/bare");
    }
}

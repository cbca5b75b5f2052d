//! The request's path: normalised, then unescaped.
//!
//! Source: `ap_process_request_internal` (server/request.c).

use wire::method::Method;
use wire::uri::{Normalize, Slashes, Target, normalize_path, unescape_path};

use crate::config::core::EncodedSlashes;
use crate::errorlog::Verbatim;
use crate::log::Level;
use crate::request::{Proxied, Request};

/// Normalises the escaped path (`ap_normalize_path`): dot segments, double slashes.
pub fn normalize(request: &mut Request) -> Result<(), u16> {
    let how = Normalize::request(request.host.core.merge_slashes.or(true));
    let is_valid = match request.resource.proxied {
        // The path is a whole URL, which stays as it is.
        Proxied::Forward => path_of(request).is_none_or(|mut path| normalize_path(&mut path, how)),
        _ => normalize_path(&mut request.resource.uri, how),
    };
    if is_valid {
        return Ok(());
    }
    let uri = request.head.unparsed_uri.clone();
    let message = format!("invalid URI path ({})", Verbatim::new(&uri));
    request.log_core(Level::Error, 10244, &message, None);
    Err(400)
}

/// The path of the URL that the client asked for.
fn path_of(request: &Request) -> Option<Vec<u8>> {
    let is_connect = request.head.method == Method::CONNECT;
    let target = Target::of_request(&request.head.unparsed_uri, is_connect).ok()?;
    target.path.map(<[u8]>::to_vec)
}

/// Unescapes the path (`ap_unescape_url` according to `AllowEncodedSlashes`), and resolves dot
/// segments that decoded slashes expose.
pub fn unescape(request: &mut Request) -> Result<(), u16> {
    let slashes = match request.host.core.allow_encoded_slashes.0 {
        EncodedSlashes::Off => Slashes::Forbid,
        EncodedSlashes::On => Slashes::Decode,
        EncodedSlashes::NoDecode => Slashes::Keep,
    };
    let forbids = matches!(slashes, Slashes::Forbid);
    let merge_slashes = request.host.core.merge_slashes.or(true);
    unescape_path(&mut request.resource.uri, slashes, merge_slashes).map_err(|error| {
        if error.status() == 404 {
            let uri = request.resource.uri.clone();
            // With the other values only a NUL byte leads here, which is not logged.
            if forbids {
                let unparsed = Verbatim::new(&request.head.unparsed_uri);
                let why =
                    format_args!("found %2f (encoded '/') in URI path ({unparsed}), returning 404");
                request.log_as("core.c", Level::Info, 26, why);
            }
            // To Apache, a NUL byte is the end.
            let end = uri.iter().position(|byte| *byte == 0);
            request.resource.uri.truncate(end.unwrap_or(uri.len()));
        }
        error.status()
    })
}

//! The request target: normalised, then unescaped.

use crate::request::Request;

/// Normalises the escaped path (`ap_normalize_path`): dot segments, doubled slashes.
pub fn normalize(request: &mut Request) -> Result<(), u16> {
    let _ = request;
    Ok(())
}

/// Unescapes the path (`ap_unescape_url` under `AllowEncodedSlashes`).
pub fn unescape(request: &mut Request) -> Result<(), u16> {
    let _ = request;
    Ok(())
}

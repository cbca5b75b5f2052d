//! The `Vary` field of a response.

use server::request::Request;

/// Joins `Vary` fields without repetition (`fixup_vary`). A `*` stays among the others.
pub(crate) fn join(request: &mut Request) {
    if !request.response.headers_out.contains(b"Vary") {
        return;
    }
    let mut names: Vec<Vec<u8>> = Vec::new();
    for value in request.response.headers_out.get_all(b"Vary") {
        for name in value.split(|byte| matches!(byte, b',' | b' ' | b'\t')) {
            let known = names.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !name.is_empty() && !known {
                names.push(name.to_vec());
            }
        }
    }
    if names.is_empty() {
        // An empty field is sent unchanged.
        return;
    }
    request.response.headers_out.set(b"Vary", &names.join(&b","[..]));
}

//! Reads and writes `Accept-Encoding`, `Content-Encoding` and `ETag` for mod_deflate.

use server::request::Request;

use super::AlterEtag;

/// The next token of a field and the rest (`ap_get_token`). A token ends at a comma, a semicolon
/// or, unless `with_blanks`, a blank; quoted text is part of it.
pub(in crate::filters) fn token(field: &[u8], with_blanks: bool) -> (&[u8], &[u8]) {
    let field = field.trim_ascii_start();
    let mut quoted = false;
    let ends = |byte: &u8| {
        if *byte == b'"' {
            quoted = !quoted;
        }
        !quoted && (matches!(byte, b',' | b';') || (!with_blanks && byte.is_ascii_whitespace()))
    };
    let end = field.iter().position(ends).unwrap_or(field.len());
    let (token, rest) = field.split_at(end);
    (token.trim_ascii_end(), rest.trim_ascii_start())
}

/// Whether the client accepts a coding, as Apache reads the field: its first occurrence counts,
/// unless its quality is zero. `*` does not count.
pub(in crate::filters) fn accepts(field: &[u8], coding: &[u8]) -> bool {
    let (mut name, mut rest) = token(field, false);
    while !name.is_empty() && !name.eq_ignore_ascii_case(coding) {
        while let Some(parameter) = rest.strip_prefix(b";") {
            rest = token(parameter, true).1;
        }
        rest = rest.strip_prefix(b",").unwrap_or(rest);
        (name, rest) = token(rest, false);
    }
    if name.is_empty() {
        return false;
    }
    while let Some(parameter) = rest.strip_prefix(b";") {
        rest = parameter;
    }
    let quality = if rest.starts_with(b",") { &[][..] } else { token(rest, true).0 };
    !(quality.len() >= 3 && b"q=0.000".starts_with(quality))
}

/// Whether content with this coding must not be compressed again.
pub(in crate::filters) fn is_coded(encoding: &[u8]) -> bool {
    const HARMLESS: [&[u8]; 4] = [b"identity", b"7bit", b"8bit", b"binary"];
    let mut codings = encoding.split(|byte| matches!(byte, b',' | b';')).map(<[u8]>::trim_ascii);
    codings.any(|coding| !coding.is_empty() && !HARMLESS.contains(&coding))
}

/// All codings of a response: those in its fields and the request's.
pub(in crate::filters) fn content_encoding(request: &Request) -> Vec<u8> {
    let field = |table: &wire::Table| table.get(b"Content-Encoding").map(<[u8]>::to_vec);
    let all = [
        field(&request.response.headers_out),
        field(&request.response.err_headers_out),
        request.response.content_encoding.clone(),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(&b","[..])
}

/// Sets `Content-Encoding`.
pub(in crate::filters) fn name_coding(request: &mut Request, coding: &[u8]) {
    const FIELD: &[u8] = b"Content-Encoding";
    let before = content_encoding(request);
    if before.is_empty() || before.eq_ignore_ascii_case(b"identity") {
        request.response.headers_out.set(FIELD, coding);
    } else {
        request.response.headers_out.merge(FIELD, coding);
    }
    if request.response.content_encoding.is_some() {
        request.response.content_encoding =
            request.response.headers_out.get(FIELD).map(<[u8]>::to_vec);
    }
}

/// The codings without gzip at the end; `None` if it is not there.
pub(in crate::filters) fn without_gzip(encoding: &[u8]) -> Option<Vec<u8>> {
    let is_gzip = |coding: &[u8]| {
        coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
    };
    let mut codings: Vec<&[u8]> = encoding.split(|byte| *byte == b',').collect();
    while let Some(last) = codings.pop() {
        let last = last.trim_ascii();
        if is_gzip(last) {
            return Some(codings.join(&b","[..]));
        }
        if !last.is_empty() && !last.eq_ignore_ascii_case(b"identity") {
            return None;
        }
    }
    None
}

/// Removes gzip from a response's codings, and returns whether it was there (`check_gzip`).
pub(in crate::filters) fn take_gzip(request: &mut Request) -> bool {
    const FIELD: &[u8] = b"Content-Encoding";
    let in_own = request.response.headers_out.contains(FIELD);
    let table = if in_own || !request.response.err_headers_out.contains(FIELD) {
        &mut request.response.headers_out
    } else {
        &mut request.response.err_headers_out
    };
    let Some(field) = table.get(FIELD).map(<[u8]>::to_vec) else {
        let of_request = request.response.content_encoding.as_deref().and_then(without_gzip);
        let Some(rest) = of_request else { return false };
        request.response.content_encoding = Some(rest).filter(|rest| !rest.is_empty());
        return true;
    };
    let Some(rest) = without_gzip(&field) else { return false };
    if rest.is_empty() {
        table.unset(FIELD);
    } else {
        table.set(FIELD, &rest);
    }
    if request.response.content_encoding.is_some() {
        request.response.content_encoding = Some(rest).filter(|rest| !rest.is_empty());
    }
    true
}

/// Changes the ETag to reflect that the content has changed (`deflate_check_etag`).
pub(in crate::filters) fn alter_etag(request: &mut Request, suffix: &[u8], how: AlterEtag) {
    match how {
        AlterEtag::NoChange => {}
        AlterEtag::Remove => {
            request.response.headers_out.unset(b"ETag");
        }
        AlterEtag::AddSuffix => {
            let Some(etag) = request.response.headers_out.get(b"ETag") else { return };
            if let Some(open) = etag.strip_suffix(b"\"").filter(|open| open.len() > 1) {
                let etag = [open, b"-", suffix, b"\""].concat();
                request.response.headers_out.set(b"ETag", &etag);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_if_it_is_named() {
        for yes in ["gzip", "GZIP", "deflate, gzip;q=1.0, *;q=0.5", "br;q=1, gzip", "gzip;q=0.001"]
        {
            assert!(accepts(yes.as_bytes(), b"gzip"), "{yes}");
        }
        for no in ["", "x-gzip", "gzip;q=0", "gzip; q=0.00", "*", "deflate", "gzipped", "br;gzip"] {
            assert!(!accepts(no.as_bytes(), b"gzip"), "{no}");
        }
    }

    #[test]
    fn the_last_coding_is_the_one_that_is_undone() {
        assert_eq!(without_gzip(b"gzip"), Some(vec![]));
        assert_eq!(without_gzip(b"br, x-gzip"), Some(b"br".to_vec()));
        assert_eq!(without_gzip(b"gzip, identity"), Some(vec![]));
        assert_eq!(without_gzip(b"gzip, br"), None);
        assert!(is_coded(b"identity, br") && !is_coded(b"identity") && !is_coded(b""));
    }
}

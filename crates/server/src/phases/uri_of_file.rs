//! The URI of a file that is looked up by its name, and its query.

use crate::request::Request;

/// Apache parses the URI of a file in the request's directory as one that a client sends, unless it
/// is looked up as an entry: what follows a question mark in its name, or in the directory's, is a
/// query.
pub fn parse_uri(sub: &mut Request) {
    let is_end = |byte: &u8| matches!(byte, b'?' | b'#');
    let Some(end) = sub.resource.uri.iter().position(is_end) else { return };
    sub.resource.args = query_of_name(&sub.resource.uri);
    sub.resource.uri.truncate(end);
}

/// The query of a look-up of a file elsewhere: Apache parses the file's name as if it were a URI.
pub fn query_of_name(name: &[u8]) -> Option<Vec<u8>> {
    let uri = name.split(|byte| *byte == b'#').next().unwrap_or_default();
    let mark = uri.iter().position(|byte| *byte == b'?')?;
    uri.get(mark + 1..).map(<[u8]>::to_vec)
}

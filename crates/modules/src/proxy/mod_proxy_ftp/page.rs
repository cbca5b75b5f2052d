//! The page around a listing. Source: `proxy_send_dir_filter`.

use server::errors::signature;
use server::request::Request;
use wire::escape;
use wire::ftp::{decode, has_wildcards};

use super::client;

/// What stands before and behind the lines of a listing.
pub(super) struct Page {
    /// Up to the first line.
    pub head: Vec<u8>,
    /// After the last one.
    pub foot: Vec<u8>,
}

impl Page {
    /// The page of a request's listing. `readme` is what the server said at the login, `folder`
    /// the folder's own name.
    pub fn new(request: &Request, readme: &[u8], folder: Option<&[u8]>) -> Page {
        let place = PlaceShown::of(request);
        let mut head = Vec::with_capacity(1024);
        write_title(&place, &mut head);
        write_folders(&place, &mut head);
        head.extend_from_slice(b"</h2>\n\n");
        if let Some(folder) = folder.filter(|folder| !place.path.starts_with(folder)) {
            head.push(b'(');
            escape::html(&mut head, folder);
            head.extend_from_slice(b")\n\n");
        }
        head.extend_from_slice(b"  <hr />\n\n<pre>");
        escape::html(&mut head, readme);
        head.extend_from_slice(b"\n</pre>\n\n<hr />\n\n<pre>\n");
        let signature = signature(request, b"");
        let foot = [b"</pre>\n\n  <hr />\n\n  ", &signature[..], b"\n\n </body>\n</html>\n"];
        Page { head, foot: foot.concat() }
    }
}

/// Where the client thinks that it is.
struct PlaceShown {
    /// Scheme and authority.
    site: Vec<u8>,
    /// `/%2f` if the path begins at the server's root.
    base: &'static [u8],
    /// Decoded, between two slashes.
    path: Vec<u8>,
    /// The last part of the path, if it is a pattern.
    wildcard: Vec<u8>,
}

impl PlaceShown {
    fn of(request: &Request) -> PlaceShown {
        let site = client::site(request).unwrap_or_else(|| request.construct_url(b""));
        let path = client::path(request);
        let is_root = path.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"/%2f"));
        let end = path.windows(6).position(|window| window == b";type=").unwrap_or(path.len());
        let path = decode(path.get(..end).unwrap_or_default());
        let slashes = path.iter().take_while(|byte| **byte == b'/').count();
        let path = path.get(slashes..).unwrap_or_default();
        let mut path = [b"/", path].concat();
        let last = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let mut wildcard = Vec::new();
        if path.get(last..).is_some_and(has_wildcards) {
            wildcard = path.split_off(last);
            wildcard.remove(0);
        }
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        path.truncate(end);
        path.push(b'/');
        PlaceShown { site, base: if is_root { b"/%2f" } else { b"" }, path, wildcard }
    }
}

fn write_title(place: &PlaceShown, out: &mut Vec<u8>) {
    let mut shown = [&place.site[..], place.base].concat();
    escape::html(&mut shown, &place.path);
    let root: &[u8] = if place.base.is_empty() { b"" } else { b"<a href=\"/%2f/\">%2f</a>/" };
    let text: [&[u8]; 9] = [
        b"<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
          \"http://www.w3.org/TR/html4/strict.dtd\">\n<html>\n <head>\n  <title>",
        &shown,
        b"</title>\n<base href=\"",
        &shown,
        b"\">\n </head>\n <body>\n  <h2>Directory of <a href=\"/\">",
        &place.site,
        b"</a>/",
        root,
        b"",
    ];
    out.extend_from_slice(&text.concat());
}

/// A link for each folder of the path.
fn write_folders(place: &PlaceShown, out: &mut Vec<u8>) {
    let mut start = 1;
    for (at, byte) in place.path.iter().enumerate().skip(1) {
        let next_is_slash = place.path.get(at + 1) == Some(&b'/');
        if *byte != b'/' || at == start && next_is_slash {
            continue;
        }
        out.extend_from_slice(b"<a href=\"");
        out.extend_from_slice(place.base);
        escape::path(out, place.path.get(..at).unwrap_or_default());
        out.extend_from_slice(b"/\">");
        escape::html(out, place.path.get(start..at).unwrap_or_default());
        out.extend_from_slice(b"</a>/");
        start = at + 1;
    }
    escape::html(out, &place.wildcard);
}

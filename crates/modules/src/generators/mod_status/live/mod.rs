//! `SetHandler tamarack-status`: the server's state as a page with live charts.
//!
//! The page consists of a few files, which the handler serves by query (`?app.js`), so it works
//! without any other server. Its data is `?json`, requested once a second. Nothing is inline, so
//! that a strict Content-Security-Policy applies.

pub mod json;

use server::body::Body;
use server::hooks::{Bound, Step};
use server::request::Request;
use wire::{Method, MethodSet};

use super::{Status, part};

/// The policy: load the page's own files and request its own data.
const POLICY: &[u8] = b"default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'self'";

/// A file of the page.
struct Asset {
    /// The query that selects it.
    query: &'static [u8],
    content_type: &'static str,
    bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset { query: b"", content_type: HTML, bytes: include_bytes!("assets/page.html") },
    Asset { query: b"app.js", content_type: SCRIPT, bytes: include_bytes!("assets/app.js") },
    Asset { query: b"charts.js", content_type: SCRIPT, bytes: include_bytes!("assets/charts.js") },
    Asset { query: b"panels.js", content_type: SCRIPT, bytes: include_bytes!("assets/panels.js") },
    Asset { query: b"model.js", content_type: SCRIPT, bytes: include_bytes!("assets/model.js") },
    Asset { query: b"style.css", content_type: STYLE, bytes: include_bytes!("assets/style.css") },
    Asset {
        query: b"uplot.js",
        content_type: SCRIPT,
        bytes: include_bytes!("uplot/uPlot.iife.min.js"),
    },
    Asset {
        query: b"uplot.css",
        content_type: STYLE,
        bytes: include_bytes!("uplot/uPlot.min.css"),
    },
];

/// Serves the page, one of its files, or its data.
pub(super) fn handle<'r>(_: Bound<'r, Status>, request: &'r mut Request) -> Step<'r> {
    let get: MethodSet = [Method::GET].into_iter().collect();
    request.response.allowed = get;
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    let query = request.query().unwrap_or_default().to_vec();
    let word = query.split(|byte| *byte == b'&').next().unwrap_or_default();
    if word == b"json" {
        return part::after_asking(request, make_data);
    }
    // Any other query selects the page, as `?notable` does in Apache.
    let named = ASSETS.iter().find(|asset| asset.query == word);
    let Some(asset) = named.or_else(|| ASSETS.first()) else { return Step::DECLINED };
    request.response.content_type = Some(asset.content_type.as_bytes().to_vec());
    for (name, value) in [
        (&b"Cache-Control"[..], &b"no-cache"[..]),
        (b"Content-Security-Policy", POLICY),
        (b"X-Content-Type-Options", b"nosniff"),
        (b"Referrer-Policy", b"no-referrer"),
    ] {
        request.response.headers_out.set(name, value);
    }
    request.response.body = Body::from(asset.bytes.to_vec());
    Step::OK
}

/// Responds with the page's data.
fn make_data(request: &mut Request) -> Step<'_> {
    request.engine.publish();
    let body = json::write(request);
    request.response.content_type = Some(b"application/json".to_vec());
    request.response.headers_out.set(b"Cache-Control", b"no-store");
    request.response.body = Body::from(body);
    Step::OK
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;

    #[test]
    fn the_page_asks_for_nothing_that_is_not_there_and_has_nothing_inline() {
        let page = ASSETS[0].bytes;
        for attribute in ["src=\"", "href=\""] {
            for named in page.split_str(attribute).skip(1) {
                let end = named.find_byte(b'"').unwrap();
                // An empty icon; otherwise browsers would request /favicon.ico.
                if &named[..end] == b"data:," {
                    continue;
                }
                let query = named[..end].strip_prefix(b"?").unwrap_or_else(|| panic!("not ours"));
                assert!(ASSETS.iter().any(|asset| asset.query == query), "{}", query.as_bstr());
            }
        }
        for inline in ["style=", "<style", "onclick", "onload", "javascript:", "://"] {
            assert!(page.find(inline).is_none(), "{inline}");
        }
        for script in page.split_str("<script").skip(1) {
            let (tag, rest) = script.split_once_str(">").unwrap();
            assert!(tag.contains_str("src=") && rest.starts_with(b"</script>"));
        }
    }
}

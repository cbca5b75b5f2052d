//! Differences of the server's own pages that a status makes a success.

use blackbox::compare::{Rule, difference};
use blackbox::http2;

use crate::site::{Request, Site};
use crate::wanted::{names, status, status_line, without_length};

/// A rule, or a login or logout by form, may send the page of an error with a status that is none,
/// such as 200.
pub fn differ_in_page_of_success(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    const RANGE: &str = "< Content-Range: ";
    const PARTS: &str = "< Content-Type: multipart/byteranges";
    let is_part = |lines: &[String]| {
        lines.iter().any(|line| line.starts_with(RANGE) || line.starts_with(PARTS))
    };
    let is_page = |lines: &[String]| {
        let status = status_line(lines).and_then(|line| line.strip_prefix("< HTTP/"));
        let status = status.and_then(|line| line.split_once(' ')).map(|(_, status)| status);
        let title = format!("| <title>{}", status.unwrap_or_default());
        let is_title = |line: &String| match http2::is_on() {
            // The status comes without its words.
            true => line.starts_with(&title),
            false => *line == format!("{title}</title>"),
        };
        let is_sent = lines.iter().any(is_title) && lines.iter().any(|line| line.contains("<h1>"));
        is_sent || request.method == "HEAD" || is_part(lines)
    };
    let plain = |lines: &[String]| {
        let is_head = |line: &&String| !line.starts_with('|') && !line.starts_with(RANGE);
        without_length(lines).iter().filter(is_head).cloned().collect::<Vec<_>>()
    };
    let is_file = |line: &String| line.starts_with("< Last-Modified: ");
    let is_html =
        |line: &String| line.starts_with("< Content-Type: text/html") || line.starts_with(PARTS);
    // A request in clear to a host of TLS may get such a page.
    let mut has_rule = site.is_tls;
    site.walk(&mut |node| {
        has_rule |= node.name == "RewriteRule" && node.words.contains("R=2");
        has_rule |= node.name == "SetHandler" && node.words.starts_with("form-log");
    });
    if has_rule && differ_in_ranges_of_page(request, apache, tamarack) {
        return true;
    }
    has_rule
        && [apache, tamarack].into_iter().all(is_page)
        && status(apache).is_some_and(|status| (200..300).contains(&status))
        && (apache.iter().any(is_html) || names(site, "Header", "Content-Type"))
        && !apache.iter().any(is_file)
        && difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

/// Ranges select something in a page of one length, nothing in that of another, or all of it.
fn differ_in_ranges_of_page(request: &Request, apache: &[String], tamarack: &[String]) -> bool {
    const OF_PARTS: [&str; 3] = ["< HTTP/", "< Content-Type: ", "< Content-Range: "];
    let has_ranges = request.fields.iter().any(|(name, _)| name == "Range");
    let is_page = |lines: &[String]| {
        let is_known = |line: &String| line == "body canned" || line.contains("<title>200 OK<");
        matches!(status(lines), Some(206)) || lines.iter().any(is_known)
    };
    let plain = |lines: &[String]| {
        let is_head = |line: &&String| {
            line.starts_with("< ") && !OF_PARTS.iter().any(|begin| line.starts_with(begin))
        };
        without_length(lines).iter().filter(is_head).cloned().collect::<Vec<_>>()
    };
    let is_of_range = |lines: &[String]| matches!(status(lines), Some(200 | 206 | 416));
    has_ranges
        && status(apache) != status(tamarack)
        && [apache, tamarack].into_iter().all(|lines| is_of_range(lines) && is_page(lines))
        && difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

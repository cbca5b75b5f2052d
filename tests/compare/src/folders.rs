//! Differences of folders whose handler sends files as they are.

use blackbox::http2;

use crate::site::{Request, Site};
use crate::wanted::{length, names, status, status_of_page};

/// The line that allows another end of such a folder.
pub const OF_FOLDERS_AS_IS: &str = "for a folder with the handler `send-as-is`";
/// What the error log says of it.
pub const REFUSED_AS_IS: &str = "AH01234:";

/// The response in front of such a one to a request with `Expect`.
const CONTINUE: [&str; 2] = ["< HTTP/1.1 100 Continue", "<"];

/// Apache begins to send a folder as it is, and to HEAD has already responded.
pub fn differ_in_folders_as_is(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    names(site, "", "send-as-is") && differ_as_folders(site, request, apache, tamarack)
}

/// The same, where the handler may also be in an `.htaccess` that was written in between.
pub fn differ_as_folders(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    // The client may first be asked for its body.
    let apache = apache.strip_prefix(&CONTINUE.map(str::to_owned)).unwrap_or(apache);
    let (mut sets_type, mut is_filtered, mut buffers) = (false, false, false);
    let mut substitutes = false;
    site.walk(&mut |node| {
        substitutes |= node.words.contains("SUBSTITUTE");
        buffers |= node.words.contains("BUFFER");
        let filters = ["DEFLATE", "BROTLI_COMPRESS", "DATA", "Sed", "SUBSTITUTE"];
        is_filtered |=
            filters.iter().any(|name| node.words.contains(name)) || node.name == "CharsetSourceEnc";
        sets_type |= match node.name.as_str() {
            "Header" => node.words.contains("Content-Type"),
            "RewriteRule" => node.words.contains("T=") || node.words.contains("type="),
            // That of a URL without one.
            _ if node.words.contains("DATA") => true,
            name => matches!(name, "ForceType" | "AddType"),
        };
    });
    let is_folder = "< Content-Type: httpd/unix-directory";
    let is_unheard = matches!(apache.first().map(String::as_str), None | Some("= no answer"));
    // A folder may also be the document of an error, which keeps its status.
    let is_document = request.method == "HEAD"
        && status(apache).is_some_and(|status| status >= 400)
        && status(apache) == status(tamarack)
        && apache.iter().any(|line| line == is_folder);
    // mod_substitute passes nothing on.
    let is_substituted = substitutes
        && length(apache) == Some(0)
        && (sets_type || apache.iter().any(|line| line == is_folder));
    let is_begun = match apache.first() {
        None => true,
        Some(_) if is_document => true,
        Some(_) if is_unheard => true,
        Some(line) => {
            // Over HTTP/2, behind a filter, and behind a buffer the response looks complete.
            let lacks_body = apache.iter().any(|line| line.starts_with("= broken: 0 of "))
                || (http2::is_on() || buffers) && is_filtered && length(apache) == Some(0);
            let is_head = request.method == "HEAD";
            let has_type = apache.iter().any(|line| line.starts_with("< Content-Type: "));
            let is_shown = sets_type || !has_type || apache.iter().any(|line| line == is_folder);
            // Of a range, it has checked that the folder's size has it, or that it does not.
            let has_range = request.fields.iter().any(|(name, _)| name == "Range");
            match line.split(' ').nth(2) {
                Some("200") => is_head && is_shown || lacks_body || is_substituted,
                // Over HTTP/2 it sends bytes that are not the folder's.
                Some("206") => has_range && ((is_head || http2::is_on()) && is_shown || lacks_body),
                Some("416") => has_range,
                // A filter that reads the folder finds out before the head is sent.
                Some("500") => is_filtered,
                _ => false,
            }
        }
    };
    let is_refused = match status(tamarack).or_else(|| status_of_page(tamarack)) {
        Some(403) => true,
        // Or leads to a URL, as a redirect.
        Some(status) => is_document || is_unheard && (status >= 400 || status == 302),
        None => false,
    };
    is_begun && is_refused
}

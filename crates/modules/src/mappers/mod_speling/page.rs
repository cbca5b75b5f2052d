//! The list of candidates.

use server::request::Request;
use wire::escape;

use super::candidates::{Candidate, Similarity};

/// The list as a part of a page, and as a variable.
pub(super) struct Page {
    /// The part of the page.
    pub text: Vec<u8>,
    /// `VARIANTS`
    pub variants: Vec<u8>,
}

impl Page {
    /// The candidates of a request; `url` is the path of their directory.
    pub fn make(request: &Request, url: &[u8], found: &[Candidate]) -> Page {
        let mut page = Page { text: Vec::new(), variants: Vec::new() };
        let text = &mut page.text;
        text.extend_from_slice(b"The document name you requested (<code>");
        escape::html(text, &request.resource.uri);
        text.extend_from_slice(
            b"</code>) could not be found on this server.\nHowever, we found documents with names \
              similar to the one you requested.<p>Available documents:\n<ul>\n",
        );
        for (at, candidate) in found.iter().enumerate() {
            page.add(request, url, candidate);
            let is_last = |next: &Candidate| {
                at > 0
                    && candidate.similarity != Similarity::BaseName
                    && next.similarity == Similarity::BaseName
            };
            if found.get(at + 1).is_some_and(is_last) {
                page.text.extend_from_slice(
                    b"</ul>\nFurthermore, the following related documents were found:\n<ul>\n",
                );
            }
        }
        page.text.extend_from_slice(b"</ul>\n");
        if let Some(referer) = request.head.headers_in.get(b"Referer") {
            // The client names it: no link leads there.
            let text = &mut page.text;
            text.extend_from_slice(
                b"Please consider informing the owner of the referring page <tt>",
            );
            escape::html(text, referer);
            text.extend_from_slice(b"</tt> about the broken link.\n");
        }
        page
    }

    fn add(&mut self, request: &Request, url: &[u8], candidate: &Candidate) {
        let mut target = [url, &candidate.name, &request.resource.path_info].concat();
        if let Some(query) = request.query() {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        let mut escaped = Vec::new();
        escape::path(&mut escaped, &target);
        let reason = candidate.similarity.reason().as_bytes();
        // Apache puts a comma between all of these, and not only between the candidates.
        for part in [&b"\""[..], &escaped, b"\";\"", reason, b"\""] {
            if !self.variants.is_empty() {
                self.variants.push(b',');
            }
            self.variants.extend_from_slice(part);
        }
        self.text.extend_from_slice(b"<li><a href=\"");
        self.text.extend_from_slice(&escaped);
        self.text.extend_from_slice(b"\">");
        escape::html(&mut self.text, &target);
        self.text.extend_from_slice(b"</a> (");
        self.text.extend_from_slice(reason);
        self.text.extend_from_slice(b")\n");
    }
}

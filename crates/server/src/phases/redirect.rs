//! Internal redirects.
//!
//! Source: `ap_internal_redirect` (modules/http/http_request.c).

use crate::api::hooks::{Phase, Verdict};
use crate::explain::Kind;
use crate::phases::errors;
use crate::phases::process;
use crate::phases::subrequest::record;
use crate::request::Request;
use crate::request::etag::VariantsTag;

/// What the names of a request's variables begin with in the request that it is redirected to.
const REDIRECT: &[u8] = b"REDIRECT_";

/// Responds with another URI of this server. Afterwards `request` is the new, completed request,
/// and the old one is its `prev`. Returns [`Verdict::Done`], or a status if the limit is reached.
pub async fn internal_redirect(request: &mut Request, uri: &[u8]) -> Verdict {
    redirect(request, uri, Quick::Yes).await
}

/// Like [`internal_redirect`], for a program that processes the resource, without quick handlers.
/// If its response has no media type, it gets that of the resource.
///
/// Source: `ap_internal_redirect_handler`.
pub async fn internal_redirect_handler(request: &mut Request, uri: &[u8]) -> Verdict {
    let media_type = request.response.content_type.clone();
    redirect(request, uri, Quick::No(media_type)).await
}

/// Whether quick handlers run; if not, the media type that the response may get.
enum Quick {
    Yes,
    No(Option<Vec<u8>>),
}

/// [`Request::given_type`]
struct GivenType(Vec<u8>);

async fn redirect(request: &mut Request, uri: &[u8], quick: Quick) -> Verdict {
    let depth = request.depth.redirects + 1;
    if depth > request.host.core.max_internal_redirects() {
        request.log_limit(124, depth - 1, "internal redirects");
        return Verdict::Status(500);
    }
    if request.handler_of_type {
        // The log shows it without the handler that its media type stood for.
        request.handler = None;
    }
    request.succeed(uri);
    let recorded = record(request, Kind::Request, uri);
    let run = async {
        match process::run_all(request, Phase::PostReadRequest).await {
            Verdict::Ok => match quick {
                Quick::Yes => process::process(request).await,
                Quick::No(given) => {
                    given.into_iter().for_each(|given| request.give_type(given));
                    process::process_at_length(request).await
                }
            },
            decided => decided,
        }
    };
    let verdict = Box::pin(run).await;
    if let Verdict::Status(status) = verdict {
        request.depends.pure &= errors::is_reusable(request, status);
        Box::pin(errors::die(request, status)).await;
    }
    if let Some(recorded) = recorded {
        recorded.end(|event| event.outcome = request.response.status.to_string());
    }
    Verdict::Done
}

impl Request {
    /// The media type that the response gets if it has none of its own: that of the request before,
    /// which has passed this one to a handler. No handler is chosen by it.
    pub fn given_type(&self) -> Option<&[u8]> {
        self.kept().map(|GivenType(given)| &given[..])
    }

    /// Changes [`Request::given_type`].
    pub fn give_type(&mut self, media_type: Vec<u8>) {
        self.keep(GivenType(media_type));
    }

    /// Becomes a new request for `uri` (with query), whose `prev` is this one.
    pub fn succeed(&mut self, uri: &[u8]) {
        let mut next = self.successor(uri);
        next.depth.redirects += 1;
        std::mem::swap(self, &mut next);
        self.prev = Some(next);
    }

    /// A new request for `uri` (with query) that replaces this one.
    fn successor(&mut self, uri: &[u8]) -> Box<Request> {
        let place = self.engine.plans.place(&self.host);
        let mut next = match self.spare.take() {
            Some(mut spare) => {
                spare.begin(&self.connection, &place);
                spare
            }
            None => {
                let (engine, connection) = (self.engine.clone(), self.connection.clone());
                Box::new(Request::blank(engine, connection, place))
            }
        };
        self.derive(&mut next, uri);
        next.named_port = self.named_port;
        next.head.method = self.head.method;
        next.head.method_name.clone_from(&self.head.method_name);
        next.head.header_only = self.head.header_only;
        next.main = self.main.clone();
        next.traffic = self.traffic;
        next.body_in = std::mem::take(&mut self.body_in);
        // The limits are those of its own configuration, once that is known.
        next.body_in.set_limit(None);
        next.depends.trace = self.depends.trace.take();
        next.depends.pure = self.depends.pure;
        next.depends.variant_keys = self.depends.variant_keys.clone();
        next.response.status = self.response.status;
        next.response.no_cache = self.response.no_cache;
        next.response.no_local_copy = self.response.no_local_copy;
        if self.notes.contains(b"redirect-keeps-vary")
            && let Some(vary) = self.response.headers_out.get(b"Vary")
        {
            next.response.headers_out.set(b"Vary", vary);
        }
        if let Some(list) = self.kept::<VariantsTag>() {
            next.keep(list.clone());
        }
        if self.kept::<errors::FailedInFilter>().is_some() {
            next.keep(errors::FailedInFilter);
        }
        std::mem::swap(&mut next.response.err_headers_out, &mut self.response.err_headers_out);
        let mut name_after = REDIRECT.to_vec();
        for (name, value) in self.env.iter() {
            name_after.truncate(REDIRECT.len());
            name_after.extend_from_slice(name);
            next.env.set(&name_after, value);
        }
        for name in self.undecided_variables() {
            next.leave_undecided(&[REDIRECT, name.as_slice()].concat());
        }
        let mut digits = itoa::Buffer::new();
        next.env.set(b"REDIRECT_STATUS", digits.format(self.response.status).as_bytes());
        next
    }
}

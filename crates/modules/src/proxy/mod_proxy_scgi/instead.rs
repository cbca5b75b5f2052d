//! What a program lets this server respond with instead of its own body: a file, or another
//! resource. Source: `pass_response`, `scgi_request_status`.

use server::body::Body;
use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::request::{FileKind, Request};
use server::subrequest;

use super::ProxyScgi;
use super::rows::INTERNAL_REDIRECT;
use crate::util_script::redirect::to_local;

/// What is sent instead.
pub(super) enum Instead {
    /// `ProxySCGISendfile`: a file, by its name.
    File(Vec<u8>),
    /// `ProxySCGIInternalRedirect`: another resource, by its path with the query.
    Resource(Vec<u8>),
}

impl Instead {
    /// Takes the field that says so out of the response's head.
    pub fn take(request: &mut Request) -> Option<Instead> {
        let own = request.dir_of::<ProxyScgi>();
        let sendfile = own.and_then(|own| own.sendfile.get()).cloned().flatten();
        let redirect = own.and_then(|own| own.internal_redirect.get()).cloned();
        if let Some(file) = sendfile.and_then(|name| take(request, &name, |_| true)) {
            return Some(Instead::File(file));
        }
        let name = redirect.unwrap_or_else(|| Some(INTERNAL_REDIRECT.into()))?;
        if request.response.status != 200 {
            return None;
        }
        take(request, &name, |path| path.starts_with(b"/")).map(Instead::Resource)
    }

    /// Responds with it.
    pub async fn respond(self, request: &mut Request) -> Verdict {
        match self {
            Instead::File(name) => send_file(request, &name).await,
            Instead::Resource(uri) => redirect(request, &uri).await,
        }
    }
}

/// Removes a field whose value `suits`, and returns it. The fields that go with errors come first.
fn take(request: &mut Request, name: &[u8], suits: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let response = &mut request.response;
    let fields = match response.err_headers_out.contains(name) {
        true => &mut response.err_headers_out,
        false => &mut response.headers_out,
    };
    let value = fields.get(name).filter(|value| suits(value))?.to_vec();
    fields.unset(name);
    Some(value)
}

async fn redirect(request: &mut Request, uri: &[u8]) -> Verdict {
    let shown = Verbatim::new(uri);
    request.log::<ProxyScgi>(Level::Debug, 862, format_args!("Internal redirect to {shown}"));
    request.response.status_line = None;
    to_local(request, uri).await
}

/// Responds with a file, whose fields are not those of the response.
async fn send_file(request: &mut Request, name: &[u8]) -> Verdict {
    let shown = Verbatim::new(name);
    request.log::<ProxyScgi>(Level::Debug, 863, format_args!("File subrequest to {shown}"));
    let mut sub = Box::new(subrequest::lookup_file(request, name).await);
    let (status, kind) = (sub.response.status, sub.resource.file.kind);
    if status != 200 || kind == FileKind::None {
        let text = format_args!(
            "Subrequest to file '{shown}' not possible. (rr->status={status}, \
             rr->finfo.filetype={kind:?})"
        );
        request.log::<ProxyScgi>(Level::Error, 864, text);
        return Verdict::Status(500);
    }
    if matches!(subrequest::run(&mut sub).await, Verdict::Ok | Verdict::Done) {
        server::filter::apply_all(&mut sub).await;
        request.response.body = std::mem::replace(&mut sub.response.body, Body::Empty);
    }
    Verdict::Ok
}

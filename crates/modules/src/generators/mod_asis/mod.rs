//! mod_asis: files that begin with their own header fields.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_asis.html>

mod document;
mod head;

use messages::Message;
use server::body::Body;
use server::discard::discard_body;
use server::errorlog::Verbatim;
use server::errors::ReportsFilters;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::module::Module;
use server::redirect;
use server::request::{Announced, FileKind, Request};
use wire::Method;

use document::{Document, Failure};

/// `mod_asis.c`
pub struct Asis;

impl Module for Asis {
    const NAME: &'static str = "asis_module";
    const FILE: &'static str = "mod_asis.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        for name in ["send-as-is", "httpd/send-as-is"] {
            hooks.on(Phase::Handler, Rank::MIDDLE, |_| true, handle).handles(name).pure();
        }
    }
}

/// Source: `asis_handler`
fn handle<'r>(_: Bound<'r, Asis>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    if request.resource.file.kind == FileKind::None {
        let file = Verbatim::new(&request.resource.filename);
        request.log::<Asis>(Level::Info, 1233, format_args!("File does not exist: {file}"));
        return Step::status(404);
    }
    Step::Pending(Box::pin(respond(request)))
}

async fn respond(request: &mut Request) -> Verdict {
    let document = match Document::read(request).await {
        Ok(document) => document,
        Err(Failure::Open(error)) => {
            let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
            let file = Verbatim::new(&request.resource.filename);
            request.log_error::<Asis>(
                Level::Error,
                1234,
                errno.unwrap_or(rustix::io::Errno::IO),
                format_args!("file permissions deny server access: {file}"),
            );
            return Verdict::Status(403);
        }
        Err(Failure::Pool(why)) => {
            let number = Message::PoolRefused.number();
            request.log::<Asis>(Level::Error, number, format_args!("{why}"));
            return Verdict::Status(503);
        }
    };
    let start = head::take(request, document.beginning());
    if let Some(target) = local_target(request) {
        request.response.status = 200;
        return redirect::internal_redirect_handler(request, &target).await;
    }
    if request.head.header_only {
        request.response.announced = Announced::End;
        request.response.body = Body::Empty;
        // Nothing is sent before the handler is over (`ap_finalize_request_protocol`).
        return discard_body(request).await.map_or_else(Verdict::Status, |()| Verdict::Ok);
    }
    request.keep(ReportsFilters);
    request.response.body = document.body(start);
    Verdict::Ok
}

/// The path of another resource, whose response is sent instead.
fn local_target(request: &Request) -> Option<Vec<u8>> {
    let target = request.response.headers_out.get(b"Location")?;
    let status = request.response.status;
    let is_redirect = status == 200 || wire::status::is_redirect(status);
    (target.first() == Some(&b'/') && is_redirect).then(|| target.to_vec())
}

//! mod_status: the server's activity, for people and programs.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_status.html>. A loop takes the place of
//! Apache's worker thread: one letter, one row.

mod auto;
pub mod live;
pub mod metrics;
mod note;
mod number;
mod page;
pub mod part;
mod programs;
pub(crate) mod report;

use server::body::Body;
use server::discard::finish_printed;
use server::hooks::{Bound, Hooks, Step};
use server::module::Module;
use server::request::Request;
use wire::{Method, MethodSet};

use crate::atoi::atol;
use report::Report;

/// `mod_status.c`
pub struct Status;

impl Module for Status {
    const NAME: &'static str = "status_module";
    const FILE: &'static str = "mod_status.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Status>) {
        hooks.handler("server-status", handle);
        hooks.handler("application/x-httpd-status", handle);
        hooks.handler("tamarack-metrics", metrics::handle).shows_host_counts();
        hooks.handler("tamarack-status", live::handle).shows_host_counts();
        hooks.answered(note::after);
    }
}

/// Whether single requests are shown: by default, unless `ExtendedStatus Off`.
fn is_extended(request: &Request) -> bool {
    let main = request.engine.server.main();
    main.core.globals.0.extended_status.or(true)
}

/// The default interval between loads of a page, in seconds.
const REFRESH_S: i64 = 10;

fn handle<'r>(_: Bound<'r, Status>, request: &'r mut Request) -> Step<'r> {
    part::after_asking(request, make)
}

/// Source: `status_handler`.
fn make(request: &mut Request) -> Step<'_> {
    let get: MethodSet = [Method::GET].into_iter().collect();
    request.response.allowed = get;
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    let query = request.query().unwrap_or_default().to_vec();
    let says = |word: &[u8]| bstr::ByteSlice::find(query.as_slice(), word);
    if let Some(at) = says(b"refresh") {
        let rest = query.get(at + b"refresh".len()..).unwrap_or_default();
        let seconds = rest.strip_prefix(b"=").map_or(0, atol);
        let seconds = if seconds < 1 { REFRESH_S } else { seconds };
        request.response.headers_out.set(b"Refresh", seconds.to_string().as_bytes());
    }
    let extended = is_extended(request);
    if extended {
        note::begin(request);
        note::connection(request);
    }
    request.engine.publish();
    let report = Report::gather(request, extended);
    let companions = request.engine.scoreboard.programs();
    let text = if says(b"auto").is_some() {
        request.response.content_type = Some(b"text/plain; charset=ISO-8859-1".to_vec());
        let mut text = auto::write(&report);
        programs::write_auto(&companions, &mut text);
        part::of(request).for_each(|part| part.auto(request, &mut text));
        text
    } else {
        request.response.content_type = Some(b"text/html; charset=ISO-8859-1".to_vec());
        let signature = server::errors::signature(request, b"<hr />\n");
        let mut parts = Vec::new();
        programs::write_page(&companions, &mut parts);
        part::of(request).for_each(|part| part.page(request, &mut parts));
        page::write(&report, says(b"notable").is_none(), [&parts, &signature])
    };
    request.print(Body::from(text));
    finish_printed(request)
}

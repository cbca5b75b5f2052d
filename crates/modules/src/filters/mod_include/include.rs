//! `include`: the responses of subrequests in the page.
//!
//! Source: `handle_include`

use std::cell::RefCell;
use std::rc::Rc;

use server::body::Body;
use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::request::Request;
use server::subrequest;

use super::entity;
use super::file_info::below;
use super::page::Page;
use super::parse::Element;
use super::rest::Pause;
use super::variables::{Handover, Shared};

/// How much of an included program's output is read before a page that must not pause goes on:
/// programs with less run one after the other, as in Apache.
const AHEAD_BYTES: usize = 64 * 1024;

/// How long a request may take before its client gets what its page has made so far: after a
/// program, in microseconds.
const LONG_US: u64 = 20_000;

/// `<!--#include virtual|file="…" [onerror|virtual|file="…"] … -->`
pub(super) async fn include(page: &mut Page<'_>, element: &Element) {
    if !page.begins(element, 1, (1341, "missing argument for include element in")) {
        return;
    }
    let mut has_failed = false;
    for (at, (name, value)) in element.values().enumerate().skip(page.done_values) {
        let value = entity::decoded(value);
        if !matches!(name, b"virtual" | b"file" | b"onerror") {
            let (name, file) = (Verbatim::new(name), page.file());
            let text = format!("unknown parameter \"{name}\" to tag include in {file}");
            page.refuse(1342, &text);
            break;
        }
        let target = page.substituted(&value);
        let outcome = match name {
            b"file" => include_file(page, &target).await,
            b"virtual" if !has_failed => include_uri(page, &target).await,
            b"onerror" if has_failed => include_uri(page, &target).await,
            _ => continue,
        };
        let Err(why) = outcome else {
            if page.pause.is_some() {
                page.done_values = at + 1;
                return;
            }
            has_failed = false;
            continue;
        };
        let (shown, file) = (Verbatim::new(&value), page.file());
        let what = why.what();
        let text = format!("unable to include {what}\"{shown}\" in parsed file {file}{why}");
        page.log(Level::Error, 0, format_args!("{text}"));
        if has_failed {
            break;
        }
        has_failed = true;
    }
    if has_failed {
        page.fail();
    }
}

/// Why something is not included.
enum Failed {
    /// The file is not below the page's folder.
    Path,
    /// The look-up ended with this status.
    LookUp(u16),
    /// It may be a program, and none may run.
    NoText,
    /// The handler ended with this status.
    Run(u16),
}

impl Failed {
    fn what(&self) -> &'static str {
        match self {
            Failed::Path => "file ",
            Failed::NoText => "potential exec ",
            Failed::LookUp(_) | Failed::Run(_) => "",
        }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Path => Ok(()),
            Failed::LookUp(status) => write!(f, ", subrequest setup returned {status}"),
            Failed::NoText => f.write_str(", content type not text/*"),
            Failed::Run(status) => write!(f, ", subrequest returned {status}"),
        }
    }
}

async fn include_file(page: &mut Page<'_>, name: &[u8]) -> Result<(), Failed> {
    let path = below(name).ok_or(Failed::Path)?;
    let sub = subrequest::lookup_below(&mut page.request, &path).await;
    include_found(page, sub).await
}

async fn include_uri(page: &mut Page<'_>, uri: &[u8]) -> Result<(), Failed> {
    let sub = subrequest::lookup_response_again(&mut page.request, uri).await;
    include_found(page, sub).await
}

async fn include_found(page: &mut Page<'_>, mut sub: Request) -> Result<(), Failed> {
    if sub.response.status != 200 {
        return Err(Failed::LookUp(sub.response.status));
    }
    let media_type = sub.response.content_type.as_deref();
    if !page.may_execute && media_type.is_some_and(|name| !name.starts_with(b"text/")) {
        return Err(Failed::NoText);
    }
    match run(page, &mut sub).await {
        _ if page.pause.is_some() => Ok(()),
        Verdict::Ok | Verdict::Done | Verdict::Declined => Ok(()),
        Verdict::Status(status) => Err(Failed::Run(status)),
    }
}

/// Runs a subrequest, and adds its body to the page.
pub(super) async fn run(page: &mut Page<'_>, sub: &mut Request) -> Verdict {
    let env = std::mem::take(&mut page.request.env);
    let mtime_us = page.request.resource.file.mtime_us;
    let known = std::mem::take(&mut page.known);
    let shared = Rc::new(RefCell::new(Some(Shared { env, known, mtime_us })));
    sub.keep(Handover { shared: shared.clone(), may_pause: page.may_pause });
    let verdict = subrequest::run_within(&mut page.request, sub).await;
    let body = std::mem::take(&mut sub.response.body);
    match shared.take() {
        Some(shared) => {
            page.request.env = shared.env;
            page.known = shared.known;
            match verdict {
                Verdict::Status(_) => page.out.put_passed(ahead(body).await),
                Verdict::Ok | Verdict::Done | Verdict::Declined => add(page, body).await,
            }
        }
        // A page within this one has them until its own programs have ended.
        None => page.pause = Some(Pause { body, lent: Some(shared) }),
    }
    verdict
}

/// Adds what a program writes. If it has not ended, or the page has taken long, the page pauses so
/// that its client gets what there is, unless it must not.
pub(super) async fn add(page: &mut Page<'_>, body: Body) {
    let request = &page.request;
    let taken_us =
        || request.engine.handle.clock().precise_wall_us().saturating_sub(request.time_us);
    let is_due = || matches!(body, Body::Stream(_)) || taken_us() > LONG_US;
    match page.may_pause && !request.depends.pure && is_due() {
        true => page.pause = Some(Pause { body, lent: None }),
        false => page.out.put_passed(ahead(body).await),
    }
}

/// The body of a program that has ended, unless it writes much.
async fn ahead(body: Body) -> Body {
    match body {
        Body::Stream(stream) => Body::Stream(stream).gathered(AHEAD_BYTES).await,
        body => body,
    }
}

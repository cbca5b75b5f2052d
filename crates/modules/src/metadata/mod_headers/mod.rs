//! mod_headers: changes the fields of requests and responses.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_headers.html>

mod apply;
mod entry;
mod format;
mod rows;

use std::rc::Rc;

use pcre::Later;
use server::body::Body;
use server::directive::Row;
use server::filter::{OutputFilter, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::matching;
use server::merge::Append;
use server::module::Module;
use server::plan::Plan;
use server::request::Request;

use apply::{Fields, Time, apply};
use entry::Entry;

/// `mod_headers.c`
pub struct Headers;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `RequestHeader`
        request: Append<Entry>,
        /// `Header`, for successful responses.
        success: Append<Entry>,
        /// `Header always`, for all responses.
        always: Append<Entry>,
    }
}

impl Module for Headers {
    const NAME: &'static str = "headers_module";
    const FILE: &'static str = "mod_headers.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Headers>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::PostReadRequest, Rank::FIRST, has_early, early);
        hooks.on(
            Phase::Fixups,
            Rank::LAST,
            |headers| has(&headers.dir.request, Time::Late),
            fixup_request,
        );
        hooks.on(Phase::InsertFilter, Rank::LAST, changes_answers, insert_filter).pure();
        hooks
            .on(
                Phase::InsertErrorFilter,
                Rank::LAST,
                |headers| has(&headers.dir.always, Time::Late),
                insert_error_filter,
            )
            .pure();
    }
}

fn has(entries: &[Entry], time: Time) -> bool {
    entries.iter().any(|entry| entry.is_early() == (time == Time::Early))
}

fn has_early(headers: Bound<'_, Headers>) -> bool {
    let dir = headers.dir;
    [&dir.request, &dir.success, &dir.always].into_iter().any(|list| has(list, Time::Early))
}

fn changes_answers(headers: Bound<'_, Headers>) -> bool {
    has(&headers.dir.success, Time::Late) || has(&headers.dir.always, Time::Late)
}

/// Applies `early` lines of the host's own configuration.
fn early<'r>(headers: Bound<'r, Headers>, request: &'r mut Request) -> Step<'r> {
    let dir = headers.dir;
    let lists = [
        (Fields::Request, &dir.request),
        (Fields::Always, &dir.always),
        (Fields::Success, &dir.success),
    ];
    let mut done = [0; 3];
    matching::settle(request, move |request| {
        for ((fields, list), done) in lists.into_iter().zip(&mut done) {
            apply(request, fields, list, Time::Early, done)?;
        }
        Ok(Verdict::Declined)
    })
}

fn fixup_request<'r>(headers: Bound<'r, Headers>, request: &'r mut Request) -> Step<'r> {
    let mut done = 0;
    matching::settle(request, move |request| {
        apply(request, Fields::Request, &headers.dir.request, Time::Late, &mut done)?;
        Ok(Verdict::Declined)
    })
}

fn insert_filter<'r>(_: Bound<'r, Headers>, request: &'r mut Request) -> Step<'r> {
    let filter = Fixup::new(request, false);
    request.add_filter("FIXUP_HEADERS_OUT", Stage::CONTENT_SET, filter);
    Step::OK
}

fn insert_error_filter<'r>(_: Bound<'r, Headers>, request: &'r mut Request) -> Step<'r> {
    let filter = Fixup::new(request, true);
    request.add_filter("FIXUP_HEADERS_ERR", Stage::CONTENT_SET, filter);
    Step::OK
}

/// Changes the response's fields when all of them are known.
struct Fixup {
    /// The configuration in force when the filter was inserted.
    plan: Rc<Plan>,
    /// The index of the module's configuration in it.
    slot: Option<usize>,
    /// Whether the response is an error, to which only `Header always` applies.
    on_error: bool,
    /// The number of lines of `Header always` and of `Header` that have been applied.
    done: (usize, usize),
}

impl Fixup {
    fn new(request: &Request, on_error: bool) -> Box<Fixup> {
        let slot = request.engine.server.registry.slot_of::<Headers>();
        Box::new(Fixup { plan: request.plan.clone(), slot, on_error, done: (0, 0) })
    }

    fn directory(&self) -> Option<&Directory> {
        self.plan.dir.get::<Directory>(self.slot?)
    }
}

impl OutputFilter for Fixup {
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        let plan = self.plan.clone();
        let dir = self.slot.and_then(|slot| plan.dir.get::<Directory>(slot));
        let Some(dir) = dir else { return Ok(()) };
        apply(request, Fields::Always, &dir.always, Time::Late, &mut self.done.0)?;
        if !self.on_error {
            apply(request, Fields::Success, &dir.success, Time::Late, &mut self.done.1)?;
        }
        Ok(())
    }

    fn apply(self: Box<Self>, _: &mut Request, body: Body) -> Body {
        body
    }

    fn is_pure(&self) -> bool {
        self.directory()
            .is_some_and(|dir| dir.always.iter().chain(dir.success.iter()).all(Entry::is_pure))
    }
}

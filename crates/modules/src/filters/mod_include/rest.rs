//! The rest of a page of which a program still makes a part. It is executed once that part has
//! been sent, as in Apache: a client gets what comes before a slow program, and each piece of its
//! output.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use server::body::{Body, BodyStream, Chunk};
use server::request::Request;
use server::twin::LateVariables;
use wire::Table;

use super::page::{Of, Page};
use super::variables::{self, Handover, Shared};
use crate::util_script::prompt::Prompt;

/// Where a page gets back the variables that a page within it has taken.
pub(super) type Lent = Rc<RefCell<Option<Shared>>>;

/// What a page waits for.
pub(super) struct Pause {
    /// What a program still writes.
    pub body: Body,
    /// The variables, if a page within that has them.
    pub lent: Option<Lent>,
}

/// A page that waits until what comes before its rest has been sent.
struct Waiting {
    page: Page<'static>,
    lent: Option<Lent>,
    /// Where its variables are left.
    late: LateVariables,
    /// The error that the page ended with.
    tail: Body,
}

/// A page's rest: see the module.
struct Rest {
    /// What is being sent.
    sending: Body,
    next: Next,
}

#[derive(Default)]
enum Next {
    Waits(Box<Waiting>),
    Runs(Pin<Box<dyn Future<Output = (Body, Next)>>>),
    #[default]
    Ended,
}

/// Kept in a request whose page's output is a page again, as with both XBitHack and
/// AddOutputFilter: the second needs the variables that the first has.
pub(super) struct IsInputOfPage;

/// Whether the rest of a page may be executed while the response is sent: a twin of its request
/// knows neither the request's body nor the requests before.
pub(super) fn may_pause(request: &Request) -> bool {
    let is_nested = |Handover { may_pause, .. }: &Handover| *may_pause;
    let body = &request.body_in;
    let is_plain = request.prev.is_none() && body.is_empty() && body.kept().is_none();
    is_plain
        && !request.head.header_only
        && request.kept::<IsInputOfPage>().is_none()
        && request.kept::<Handover>().is_none_or(is_nested)
}

/// The body of a page that pauses. `before` has the variables of the request without the page's.
pub(super) fn body(mut page: Page<'_>, pause: Pause, before: Table, tail: Body) -> Body {
    page.depends_on_request();
    page.request.response.chunked = true;
    let mut twin = Box::new(page.request.twin());
    // No cache gets the response: the log has all variables.
    twin.depends.pure = false;
    if let Some(handover) = page.request.kept::<Handover>().cloned() {
        twin.keep(handover);
    }
    if pause.lent.is_some() {
        page.request.env = before;
    }
    let late = LateVariables::default();
    page.request.keep(late.clone());
    let rest = Rest::of(page.detached(Of::Twin(twin)), pause, late, tail);
    Body::Stream(Box::pin(Prompt::new(rest)))
}

impl Rest {
    fn of(mut page: Page<'static>, pause: Pause, late: LateVariables, tail: Body) -> Rest {
        let (made, _) = std::mem::take(&mut page.out).finish();
        Rest {
            sending: Body::Parts([made, pause.body].into()),
            next: Next::Waits(Box::new(Waiting { page, lent: pause.lent, late, tail })),
        }
    }
}

impl Waiting {
    /// Executes the page to its end or to its next pause.
    async fn go_on(self) -> (Body, Next) {
        let Waiting { mut page, lent, late, tail } = self;
        if let Some(shared) = lent.and_then(|lent| lent.take()) {
            page.request.env = shared.env;
            page.known = shared.known;
        }
        page.execute().await;
        if let Some(pause) = page.pause.take() {
            let Rest { sending, next } = Rest::of(page, pause, late, tail);
            return (sending, next);
        }
        let (made, _) = std::mem::take(&mut page.out).finish();
        let known = std::mem::take(&mut page.known);
        variables::give_back(&mut page.request, known, Table::default());
        if page.request.kept::<Handover>().is_none() {
            late.leave(std::mem::take(&mut page.request.env));
        }
        (Body::Parts([made, tail].into()), Next::Ended)
    }
}

impl BodyStream for Rest {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        loop {
            match self.sending.poll_chunk(cx) {
                Poll::Ready(None) => {}
                other => return other,
            }
            match std::mem::take(&mut self.next) {
                Next::Ended => return Poll::Ready(None),
                Next::Waits(waiting) => self.next = Next::Runs(Box::pin(waiting.go_on())),
                Next::Runs(mut running) => match running.as_mut().poll(cx) {
                    Poll::Ready((sending, next)) => (self.sending, self.next) = (sending, next),
                    Poll::Pending => {
                        self.next = Next::Runs(running);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

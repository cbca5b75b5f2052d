//! A program as a filter of request bodies. It starts when the body is read.
//!
//! Source: `ef_input_filter`.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use server::filter::InputFilter;
use server::hooks::{Bound, Step, Verdict};
use server::request::Request;
use server::request_body::{BodyError, BodySource};
use wire::Table;

use super::ExtFilter;
use super::order::{Start, add_variables, applies, find, is_removed, start, trace};
use super::passage::{Broken, Passage};
use crate::util_script::exchange::Source;
use crate::util_script::program::Program;

/// The variables of a request for its filters, whose names are not known yet.
struct Variables(Table);

/// Computes the variables of a request with a body.
pub(super) fn prepare<'r>(_: Bound<'r, ExtFilter>, request: &'r mut Request) -> Step<'r> {
    if request.body_in.is_empty() || request.main.is_some() {
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(async move {
        let own = request.env.clone();
        add_variables(request).await;
        let all = std::mem::replace(&mut request.env, own);
        request.keep(Variables(all));
        Verdict::Declined
    }))
}

/// Creates the filter of a name.
pub(super) fn make(request: &mut Request, name: &str) -> Option<InputFilter> {
    let Ok(filter) = find(request, name) else {
        return refused(request, name, rustix::io::Errno::INVAL);
    };
    if !applies(request, &filter, request.head.headers_in.get(b"Content-Type")) {
        trace(request, &filter, false);
        return None;
    }
    let all = request.kept::<Variables>().map(|variables| variables.0.clone());
    let own = std::mem::replace(&mut request.env, all.unwrap_or_default());
    let start = start(request, &filter);
    request.env = own;
    match start {
        Ok(start) => {
            trace(request, &filter, true);
            let timeout = request.host.core.timeout();
            Some(Box::new(move |source| Box::new(Body::Unread { source, start, timeout })))
        }
        Err(errno) => refused(request, name, errno),
    }
}

fn refused(request: &Request, name: &str, errno: rustix::io::Errno) -> Option<InputFilter> {
    if is_removed(request, name, errno, true) {
        return None;
    }
    Some(Box::new(|_| Box::new(Body::Failed)))
}

/// A request body that a program filters.
enum Body {
    /// Nothing is read yet.
    Unread { source: Box<dyn BodySource>, start: Start, timeout: Duration },
    /// The program runs.
    Running(Box<Passage<Box<dyn BodySource>>>),
    /// It could not be started.
    Failed,
    /// It has ended.
    Ended,
}

impl Source for Box<dyn BodySource> {
    type Error = BodyError;

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.poll_data(cx)
    }
}

impl BodySource for Body {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if matches!(self, Body::Unread { .. }) {
            *self = std::mem::replace(self, Body::Ended).started();
        }
        let next = match self {
            Body::Running(passage) => ready!(passage.poll_output(cx, true)),
            Body::Failed => Some(Err(Broken::Program(500))),
            Body::Unread { .. } | Body::Ended => None,
        };
        if !matches!(next, Some(Ok(_))) {
            *self = Body::Ended;
        }
        Poll::Ready(next.map(|piece| {
            piece.map_err(|broken| match broken {
                Broken::Source(error) => error,
                Broken::Program(status) => BodyError::Status(status),
            })
        }))
    }
}

impl Body {
    fn started(self) -> Body {
        let Body::Unread { source, start, timeout } = self else { return self };
        let Start { line, mut order, lines, logs_errors } = start;
        match Program::try_start(&line, &mut order, true) {
            Ok(program) => {
                let messages = (lines, logs_errors);
                Body::Running(Box::new(Passage::new(source, program, messages, timeout)))
            }
            Err(error) => {
                lines.log(format!("can't be started: {error}").as_bytes());
                Body::Failed
            }
        }
    }
}

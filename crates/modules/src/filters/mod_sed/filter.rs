//! The filters. Source: `sed_response_filter`, `sed_request_filter`.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::body::Body;
use server::errorlog::Verbatim;
use server::errors;
use server::filter::{Beginning, InputFilter, OutputFilter};
use server::log::Level;
use server::request::{Announced, BodyEnd, Request};
use server::request_body::{BodyError, BodySource};

use super::Sed;
use super::parser::Parser;
use super::runner::Runner;
use crate::filters::rewritten::{Passed, Piece, Pieces, Rewrite, is_held, streamed};

/// The response's filter.
pub(super) struct Filter {
    script: Arc<Parser>,
    /// The script, once it runs.
    runner: Option<Runner>,
    is_done: bool,
}

impl Filter {
    /// With a script.
    pub fn new(script: Arc<Parser>) -> Filter {
        Filter { script, runner: None, is_done: false }
    }
}

impl OutputFilter for Filter {
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        if request.response.body.length() == Some(0) {
            self.is_done = true;
            // Of an empty file, the script prints nothing.
            request.response.announced = Announced::End;
            return None;
        }
        request.response.unset_length();
        Some(Box::pin(begin(self, request)))
    }

    fn apply(mut self: Box<Self>, request: &mut Request, body: Body) -> Body {
        match self.runner.take() {
            Some(runner) if !self.is_done => {
                request.response.chunked &= body.length().is_none();
                streamed(runner, Pieces::of(body), Vec::new())
            }
            _ => body,
        }
    }

    fn is_pure(&self) -> bool {
        let script = &self.script.script;
        script.sources.is_empty() && script.targets.is_empty() && !script.may_log()
    }
}

/// Creates the runner of a script. A script that can't be executed is logged.
fn start(request: &Request, script: &Arc<Parser>) -> Option<Runner> {
    let recorder = request.engine.recorder.as_ref();
    if let Some(recorder) = recorder.filter(|_| !script.script.targets.is_empty()) {
        recorder.not_asked("the files that a script of sed writes");
    }
    let runner = Runner::new(script.clone(), recorder.is_some());
    match (runner, &script.script.unfinished) {
        (Err(name), _) => log(request, 2998, &format!("cannot open {}", Verbatim::new(&name))),
        (Ok(_), Some(why)) => log(request, 0, why),
        (Ok(runner), None) => return Some(runner),
    }
    None
}

fn log(request: &Request, number: u32, message: &str) {
    request.log::<Sed>(Level::Error, number, format_args!("{message}"));
}

/// Executes the script on a body of known length, as far as Apache does before it sends the head;
/// returns false if the response has become an error.
async fn begin(filter: &mut Filter, request: &mut Request) -> bool {
    let Some(mut runner) = start(request, &filter.script) else {
        Box::pin(errors::fail_in_filter(request)).await;
        return false;
    };
    if request.response.body.length().is_none() {
        filter.runner = Some(runner);
        return true;
    }
    // What is printed before the end of the body, where that comes later, is passed on before.
    let comes_later = request.response.chunked || !request.allows_ranges();
    let (body, before) = cut(request);
    let mut pieces = Pieces::of(body);
    let (mut out, mut is_complete) = (Vec::new(), false);
    let (mut taken, mut early) = (0, 0);
    while (runner.is_behind() || !is_complete) && !runner.is_passed_on() {
        let done = if runner.is_behind() {
            rt::after_sockets().await;
            runner.push(b"", &mut out)
        } else {
            if taken == before && comes_later {
                early = out.len();
            }
            match poll_fn(|cx| pieces.poll_piece(cx)).await {
                Some(Ok(Piece::Bytes(piece))) => {
                    taken += piece.len() as u64;
                    rt::after_sockets().await;
                    runner.push(&piece, &mut out)
                }
                Some(Ok(Piece::Flush)) => Ok(()),
                Some(Err(_)) => {
                    request.response.body = Body::failed();
                    filter.is_done = true;
                    return true;
                }
                None => {
                    is_complete = true;
                    runner.end(&mut out)
                }
            }
        };
        for message in std::mem::take(&mut runner.messages) {
            log(request, 0, &message);
        }
        if let Err(error) = done {
            log(request, 0, &error.to_string());
            Box::pin(errors::fail_in_filter(request)).await;
            return false;
        }
    }
    filter.is_done = true;
    if is_complete && !runner.is_behind() {
        finish(request, &runner, out, early);
    } else {
        request.response.chunked = true;
        request.response.body = streamed(runner, pieces, out);
    }
    true
}

/// Makes what was printed the body. So many bytes of it were printed before its end came.
fn finish(request: &mut Request, runner: &Runner, out: Vec<u8>, early: usize) {
    request.response.end = BodyEnd::ByFraming;
    request.response.chunked = early > 0 || runner.is_passed_on_at_end();
    let length = out.len() as u64;
    if early > 0 {
        let with_end = length - early as u64;
        // After `q` nothing may come with the end: the last bucket is of what precedes it.
        let last = if with_end > 0 { with_end } else { Passed::whole(length).last };
        let is_held = Passed::whole(length - with_end).is_held || is_held(early as u64, with_end);
        request.keep(Passed { length, with_end, last, is_flushed: false, is_held });
    } else {
        request.allow_ranges();
        let passed = Passed::whole(length);
        if passed.last < length || request.kept::<Passed>().is_some() {
            request.keep(passed);
        }
    }
    if out.is_empty() {
        request.response.announced = Announced::End;
    }
    request.response.body = if out.is_empty() { Body::Empty } else { Body::from(out) };
}

/// Takes the body of known length, in two parts if the second one comes with the end; with the
/// length of what comes before.
fn cut(request: &mut Request) -> (Body, u64) {
    let body = std::mem::take(&mut request.response.body);
    let length = body.length().unwrap_or_default();
    let with_end = Passed::of(request, length).map_or(0, |passed| passed.with_end);
    match body {
        Body::Bytes(mut head) if with_end > 0 => {
            let before = length - with_end;
            let tail = head.split_off(usize::try_from(before).unwrap_or_default());
            (Body::Parts([Body::Bytes(head), Body::Bytes(tail)].into()), before)
        }
        body => (body, length),
    }
}

/// Creates the filter for the body of a request.
pub(super) fn input(request: &mut Request) -> Option<InputFilter> {
    let script = request.dir_of::<Sed>()?.own.get()?.input.clone()?;
    if !request.is_initial() {
        return None;
    }
    let runner = start(request, &script);
    Some(Box::new(move |source| Box::new(Input { source, runner, is_complete: false })))
}

/// The body of a request.
struct Input {
    source: Box<dyn BodySource>,
    /// `None` if the script can't be executed, or no more.
    runner: Option<Runner>,
    is_complete: bool,
}

impl Input {
    /// Executes the script on what has come; what it prints, or whether the source has more.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, BodyError>> {
        let failed = |_: io::Error| BodyError::Status(400);
        let mut out = Vec::new();
        if let Some(runner) = self.runner.as_mut().filter(|runner| runner.is_behind()) {
            return Poll::Ready(runner.push(b"", &mut out).map(|()| out).map_err(failed));
        }
        let piece = ready!(self.source.poll_data(cx)).transpose()?;
        let Some(runner) = &mut self.runner else {
            self.is_complete = true;
            return Poll::Ready(match piece {
                Some(_) => Err(BodyError::Status(400)),
                None => Ok(out),
            });
        };
        let done = match piece {
            Some(piece) => runner.push(&piece, &mut out),
            None => {
                self.is_complete = true;
                runner.end(&mut out)
            }
        };
        Poll::Ready(done.map(|()| out).map_err(failed))
    }

    fn is_over(&self) -> bool {
        self.is_complete && !self.runner.as_ref().is_some_and(Rewrite::is_behind)
    }
}

impl BodySource for Input {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        while !self.is_over() {
            match ready!(self.step(cx)) {
                Err(error) => {
                    (self.is_complete, self.runner) = (true, None);
                    return Poll::Ready(Some(Err(error)));
                }
                Ok(out) if !out.is_empty() => return Poll::Ready(Some(Ok(out.into()))),
                Ok(_) if self.runner.as_ref().is_some_and(Rewrite::is_behind) => {
                    rt::end_turn(cx.waker());
                    return Poll::Pending;
                }
                Ok(_) => {}
            }
        }
        Poll::Ready(None)
    }
}

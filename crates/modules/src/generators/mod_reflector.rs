//! mod_reflector: the body of a request as the response.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_reflector.html>

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use conf::Arg;
use server::body::{Body, BodyStream, Chunk};
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::discard::finish_printed;
use server::hooks::{Bound, Hooks, Step, Verdict};
use server::merge::Prepend;
use server::module::Module;
use server::request::{Announced, BodyEnd, Request};
use server::request_body::{BodyError, BodyIn};
use wire::method::Method;

/// `mod_reflector.c`
pub struct Reflector;

impl Module for Reflector {
    const NAME: &'static str = "reflector_module";
    const FILE: &'static str = "mod_reflector.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Reflector>] = &[Row::new(
        "ReflectorHeader",
        Takes::Some { least: 1, most: 2, set: header },
        "inputheader [outputheader]",
        "Copies a field of the request to the response.",
    )
    .standing(Places::ALL, Override::OPTIONS)];

    fn hooks(hooks: &mut Hooks<'_, Reflector>) {
        hooks.handler("reflector", handle);
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `ReflectorHeader`: the names of fields in the request and in the response.
        pub fields: Prepend<(Vec<u8>, Vec<u8>)>,
    }
}

fn header(cx: &mut Cx<'_, '_, Reflector>, args: &[Arg]) -> Set {
    if let [from, rest @ ..] = args {
        let to = rest.first().unwrap_or(from);
        let names = (from.text.to_vec(), to.text.to_vec());
        cx.dir().fields.push(names);
    }
    Ok(())
}

/// As many bytes are received before the response begins.
const WHOLE_BYTES: usize = 64 * 1024;

/// Source: `reflector_handler`.
fn handle<'r>(cx: Bound<'r, Reflector>, request: &'r mut Request) -> Step<'r> {
    request.response.allowed.insert(Method::POST);
    request.response.allowed.insert(Method::OPTIONS);
    match request.head.method {
        Method::OPTIONS if request.head.simple => Step::DECLINED,
        Method::OPTIONS => {
            let allow = request.allow();
            request.response.headers_out.set(b"Allow", &allow);
            request.response.body = Body::Empty;
            request.response.announced = Announced::End;
            finish_printed(request)
        }
        Method::POST if request.main.is_some() => Step::OK,
        Method::POST => Step::Pending(Box::pin(reflect(cx.dir, request))),
        _ => Step::status(405),
    }
}

async fn reflect(dir: &Dir, request: &mut Request) -> Verdict {
    copy_fields(dir, request);
    request.response.end = BodyEnd::Apart;
    let mut head = BytesMut::new();
    let mut body_in = std::mem::take(&mut request.body_in);
    let length = body_in.length();
    request.response.announced =
        if length.is_some() { Announced::Length } else { Announced::Fields };
    while head.len() < WHOLE_BYTES {
        match body_in.next().await {
            Some(Ok(bytes)) => head.extend_from_slice(&bytes),
            Some(Err(error)) => return Verdict::Status(error.status(request)),
            None => {
                request.response.chunked = length.is_none() && !head.is_empty();
                if head.is_empty() {
                    request.response.announced = Announced::End;
                    request.response.body = Body::Empty;
                    return Verdict::Ok;
                }
                request.refuse_ranges();
                request.response.body = Body::Bytes(head.freeze());
                return Verdict::Ok;
            }
        }
    }
    request.response.chunked = length.is_none();
    request.response.reads_request = true;
    let reading = Reading::Idle(Box::new(body_in));
    request.response.body = Body::Stream(Box::pin(Rest { head: head.freeze(), length, reading }));
    Verdict::Ok
}

fn copy_fields(dir: &Dir, request: &mut Request) {
    for (from, to) in dir.fields.iter() {
        if let Some(value) = request.head.headers_in.get(from) {
            request.response.headers_out.set(to, value);
        }
    }
    let accepted = request.core_of(&request.layer).accept_ranges();
    let out = &mut request.response.headers_out;
    if !out.contains(b"Last-Modified") {
        let seconds = i64::try_from(request.time_us / 1_000_000).unwrap_or(i64::MAX);
        out.set(b"Last-Modified", &wire::date::format(seconds));
    }
    out.set(b"Accept-Ranges", accepted);
    if let Some(media) = request.head.headers_in.get(b"Content-Type") {
        request.response.content_type = Some(media.to_vec());
    }
}

/// A body that is received while it is sent.
struct Rest {
    head: Bytes,
    length: Option<u64>,
    reading: Reading,
}

type Next = (Box<BodyIn>, Option<Result<Bytes, BodyError>>);

enum Reading {
    Idle(Box<BodyIn>),
    Waits(Pin<Box<dyn Future<Output = Next>>>),
    Ended,
}

impl BodyStream for Rest {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let this = self.get_mut();
        if !this.head.is_empty() {
            return Poll::Ready(Some(Ok(Chunk::Bytes(std::mem::take(&mut this.head)))));
        }
        let mut waits = match std::mem::replace(&mut this.reading, Reading::Ended) {
            Reading::Idle(mut body) => Box::pin(async move {
                let next = body.next().await;
                (body, next)
            }),
            Reading::Waits(waits) => waits,
            Reading::Ended => return Poll::Ready(None),
        };
        let Poll::Ready((body, next)) = waits.as_mut().poll(cx) else {
            this.reading = Reading::Waits(waits);
            return Poll::Pending;
        };
        Poll::Ready(match next {
            Some(Ok(bytes)) => {
                this.reading = Reading::Idle(body);
                Some(Ok(Chunk::Bytes(bytes)))
            }
            Some(Err(_)) => Some(Err(io::ErrorKind::InvalidData.into())),
            None => None,
        })
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

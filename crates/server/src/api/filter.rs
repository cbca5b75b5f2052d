//! Filters: they change a response between the handler and the connection, or a request body on its
//! way to the handler.

use pcre::Later;

use crate::explain;
use crate::phases::matching;
use crate::request::Request;
use crate::request::body::{Body, head};
use crate::request::request_body::BodySource;

/// The position of a filter in the chain (`AP_FTYPE_*`); lower stages process the response first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage(pub u8);

impl Stage {
    /// Changes of the resource itself (server-side includes).
    pub const RESOURCE: Stage = Stage(10);
    /// Changes of the whole content (compression, headers).
    pub const CONTENT_SET: Stage = Stage(20);
    /// Changes of the message (ranges).
    pub const PROTOCOL: Stage = Stage(30);
    /// Transfer codings.
    pub const TRANSCODE: Stage = Stage(40);
}

/// A filter of a response. It is applied once, after the handler and before anything is sent: it
/// may read and change status and headers, and wraps the body.
pub trait OutputFilter {
    /// Called before [`OutputFilter::apply`], and again after each match that had to be made first:
    /// decisions that depend on regular expressions belong here.
    ///
    /// # Errors
    /// [`Later`]
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        let _ = request;
        Ok(())
    }

    /// How many bytes at the beginning of the body [`OutputFilter::apply`] looks at: the response
    /// waits for them, or for the end of a shorter body, and [`Body::split_head`] returns them.
    /// Default: none.
    fn looks_at(&self, request: &Request) -> usize {
        let _ = request;
        0
    }

    /// Changes the response and returns its body.
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body;

    /// Whether its effect depends only on configuration and the response, and on declared variant
    /// keys of the request ([`Request::depends_on`]): then the filtered response can be cached (see
    /// [`crate::api::hooks::HookDef::pure`]). A filter with other effects, such as on the log, is
    /// not pure.
    fn is_pure(&self) -> bool {
        false
    }
}

/// A filter that the configuration can name (`SetOutputFilter`, `FilterProvider`).
pub struct FilterDef {
    /// Its name, such as `DEFLATE`.
    pub name: &'static str,
    /// Its stage.
    pub stage: Stage,
    /// Creates the filter for a response; `None` if it has nothing to do.
    pub make: fn(&mut Request) -> Option<Box<dyn OutputFilter>>,
}

/// A filter attached to a response.
pub struct Attached {
    /// The name it was attached by.
    pub name: std::borrow::Cow<'static, str>,
    /// Its stage.
    pub stage: Stage,
    /// The filter.
    pub filter: Box<dyn OutputFilter>,
}

/// Applies the output filters of a request in stage order.
#[inline]
pub async fn apply_all(request: &mut Request) {
    if request.engine.recorder.is_some() {
        explain::record_filters(request);
    }
    for mut attached in std::mem::take(&mut request.response.filters) {
        while let Err(Later) = attached.filter.prepare(request) {
            matching::decide(request).await;
        }
        request.depends.pure &= attached.filter.is_pure();
        let mut body = std::mem::take(&mut request.response.body);
        let wanted = attached.filter.looks_at(request);
        if wanted > 0 {
            body = head::gather(body, wanted).await;
        }
        request.response.body = attached.filter.apply(request, body);
    }
}

/// Wraps a request body in a filter.
pub type InputFilter = Box<dyn FnOnce(Box<dyn BodySource>) -> Box<dyn BodySource>>;

/// An input filter that the configuration can name (`SetInputFilter`, `AddInputFilter`).
pub struct InputFilterDef {
    /// Its name, such as `DEFLATE`.
    pub name: &'static str,
    /// Creates the filter for a request with a body; `None` if it has nothing to do.
    pub make: fn(&mut Request) -> Option<InputFilter>,
}

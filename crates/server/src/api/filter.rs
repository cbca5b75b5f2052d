//! Filters: what may change an answer between the handler and the connection, or a request's body
//! on its way to the handler.

use pcre::Later;

use crate::phases::matching;
use crate::request::Request;
use crate::request::body::Body;
use crate::request::request_body::BodySource;

/// Where in the chain a filter stands (`AP_FTYPE_*`); lower stages see the answer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage(pub u8);

impl Stage {
    /// The resource itself is changed (server-side includes).
    pub const RESOURCE: Stage = Stage(10);
    /// The content as a whole (compression, headers).
    pub const CONTENT_SET: Stage = Stage(20);
    /// The message (ranges).
    pub const PROTOCOL: Stage = Stage(30);
    /// Transfer codings.
    pub const TRANSCODE: Stage = Stage(40);
}

/// A filter at work on one answer. It is applied once, when the handler is done and before
/// anything is sent: it may look at and change status and headers, and wraps the body.
pub trait OutputFilter {
    /// Called before [`OutputFilter::apply`], once more each time that a match had to be made
    /// first: what hangs on regular expressions is decided here.
    ///
    /// # Errors
    /// [`Later`]
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        let _ = request;
        Ok(())
    }

    /// Changes the answer; gives back the body to send.
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body;

    /// Whether what it does depends on configuration and the answer alone, and on facets of the
    /// request that it declares ([`Request::depends_on`]): then the filtered answer can be kept
    /// (see [`crate::api::hooks::HookDef::pure`]). One that makes something that is no part of the
    /// answer, for the log say, is not pure.
    fn is_pure(&self) -> bool {
        false
    }
}

/// A filter that configuration can name (`SetOutputFilter`, `FilterProvider`).
pub struct FilterDef {
    /// Its name: `DEFLATE`.
    pub name: &'static str,
    /// Its stage.
    pub stage: Stage,
    /// Makes one for an answer; `None` where it has nothing to do.
    pub make: fn(&mut Request) -> Option<Box<dyn OutputFilter>>,
}

/// A filter attached to an answer.
pub struct Attached {
    /// The name it was attached by.
    pub name: std::borrow::Cow<'static, str>,
    /// Its stage.
    pub stage: Stage,
    /// The filter.
    pub filter: Box<dyn OutputFilter>,
}

/// Applies the output filters that a request has, in stage order.
#[inline]
pub async fn apply_all(request: &mut Request) {
    for mut attached in std::mem::take(&mut request.filters) {
        while let Err(Later) = attached.filter.prepare(request) {
            matching::decide(request).await;
        }
        request.pure &= attached.filter.is_pure();
        let body = std::mem::take(&mut request.body);
        request.body = attached.filter.apply(request, body);
    }
}

/// Puts a filter in front of a request's body.
pub type InputFilter = Box<dyn FnOnce(Box<dyn BodySource>) -> Box<dyn BodySource>>;

/// An input filter that configuration can name (`SetInputFilter`, `AddInputFilter`).
pub struct InputFilterDef {
    /// Its name: `DEFLATE`.
    pub name: &'static str,
    /// Makes one for a request that has a body; `None` where it has nothing to do.
    pub make: fn(&mut Request) -> Option<InputFilter>,
}

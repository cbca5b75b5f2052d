//! Filters: they change a response between the handler and the connection, or a request body on its
//! way to the handler.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pcre::Later;

use crate::api::hooks::DefinedProviders;
use crate::config::build::Build;
use crate::config::host::Server;
use crate::config::registry::Registry;
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
    /// The path of the type, with the name of its module.
    fn type_name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Called before [`OutputFilter::apply`], and again after each match that had to be made first:
    /// decisions that depend on regular expressions belong here.
    ///
    /// # Errors
    /// [`Later`]
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        let _ = request;
        Ok(())
    }

    /// Called once before [`OutputFilter::apply`], with the body still in the response: what has to
    /// wait belongs here. The future returns whether the response passes this filter and those
    /// behind it: not if it has become an error. Default: nothing.
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        let _ = request;
        None
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

    /// Whether a refusal of the request's body, which Apache's filters pass on as an error and its
    /// end, leaves this filter in pieces, and thus is a page in chunks. `comes` is whether it comes
    /// in pieces; default: it is passed on as it comes.
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        let _ = request;
        comes
    }

    /// Whether its effect depends only on configuration and the response, and on declared variant
    /// keys of the request ([`Request::depends_on`]): then the filtered response can be cached (see
    /// [`crate::api::hooks::HookDef::pure`]). A filter with other effects, such as on the log, is
    /// not pure.
    fn is_pure(&self) -> bool {
        false
    }
}

/// The future of [`OutputFilter::begin`].
pub type Beginning<'r> = Pin<Box<dyn Future<Output = bool> + 'r>>;

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
        let passes = match attached.filter.begin(request) {
            Some(beginning) => beginning.await,
            None => true,
        };
        if !passes {
            return;
        }
        let mut body = std::mem::take(&mut request.response.body);
        let wanted = attached.filter.looks_at(request);
        if wanted > 0 {
            body = head::gather(body, wanted).await;
        }
        request.response.body = attached.filter.apply(request, body);
    }
}

/// A filter that the configuration defines (`ExtFilterDefine`).
pub struct DefinedFilter {
    /// Its name, in lower case.
    pub name: String,
    /// Its stage.
    pub stage: Stage,
    /// Creates the filter of this name for a response.
    pub make: fn(&mut Request, &str) -> Option<Box<dyn OutputFilter>>,
}

/// An input filter that the configuration defines.
pub struct DefinedInputFilter {
    /// Its name, in lower case.
    pub name: String,
    /// Creates the filter of this name for a request with a body.
    pub make: fn(&mut Request, &str) -> Option<InputFilter>,
}

/// The group of [`DefinedFilter`]s among the configuration's providers.
const OUTPUT: &str = "output filter";
/// The group of [`DefinedInputFilter`]s.
const INPUT: &str = "input filter";

/// An output filter by its name: a module's, or one that the configuration defines.
#[derive(Clone)]
pub enum KnownFilter {
    /// A module's.
    OfModule(Arc<FilterDef>),
    /// The configuration's.
    Defined(Arc<DefinedFilter>),
}

impl KnownFilter {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            KnownFilter::OfModule(filter) => filter.name,
            KnownFilter::Defined(filter) => &filter.name,
        }
    }

    /// Its stage.
    pub fn stage(&self) -> Stage {
        match self {
            KnownFilter::OfModule(filter) => filter.stage,
            KnownFilter::Defined(filter) => filter.stage,
        }
    }

    /// Creates the filter for a response; `None` if it has nothing to do.
    pub fn make(&self, request: &mut Request) -> Option<Box<dyn OutputFilter>> {
        match self {
            KnownFilter::OfModule(filter) => (filter.make)(request),
            KnownFilter::Defined(filter) => (filter.make)(request, &filter.name),
        }
    }
}

fn find(registry: &Registry, defined: &DefinedProviders, name: &[u8]) -> Option<KnownFilter> {
    if let Some(filter) = registry.hooks.filter(name) {
        return Some(KnownFilter::OfModule(filter.clone()));
    }
    defined.find(OUTPUT, std::str::from_utf8(name).ok()?).map(KnownFilter::Defined)
}

impl Build {
    /// Adds an output filter that the configuration defines.
    pub fn define_filter(&mut self, filter: DefinedFilter) {
        self.defined.define(OUTPUT, filter.name.clone(), filter);
    }

    /// Adds an input filter that the configuration defines.
    pub fn define_input_filter(&mut self, filter: DefinedInputFilter) {
        self.defined.define(INPUT, filter.name.clone(), filter);
    }

    /// The output filter of this name; names are case-insensitive.
    pub fn filter(&self, name: &[u8]) -> Option<KnownFilter> {
        find(&self.registry, &self.defined, name)
    }
}

impl Server {
    /// The output filter of this name; names are case-insensitive.
    pub fn filter(&self, name: &[u8]) -> Option<KnownFilter> {
        find(&self.registry, &self.defined, name)
    }

    /// The input filter of this name that the configuration defines.
    pub fn defined_input_filter(&self, name: &[u8]) -> Option<Arc<DefinedInputFilter>> {
        self.defined.find(INPUT, std::str::from_utf8(name).ok()?)
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

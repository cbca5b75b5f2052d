//! What other modules add to the pages (`status_hook`).

use std::pin::Pin;
use std::sync::Arc;

use server::hooks::Step;
use server::request::Request;
use wire::Method;

use super::live::json::Json;
use super::metrics::Exposition;

/// The group of the providers.
pub const GROUP: &str = "status_hook";

/// A provider of [`GROUP`].
pub type PartProvider = &'static dyn Part;

/// What a module asks another process.
pub type Asking<'r> = Pin<Box<dyn Future<Output = ()> + 'r>>;

/// What a module adds.
pub trait Part: Send + Sync {
    /// Asks for what this process does not know, before anything is added; `None` if nothing has
    /// to be asked.
    fn ask<'r>(&self, _: &'r mut Request) -> Option<Asking<'r>> {
        None
    }
    /// To the HTML page, before the signature.
    fn page(&self, request: &Request, out: &mut Vec<u8>);
    /// To the lines of `?auto`.
    fn auto(&self, request: &Request, out: &mut Vec<u8>);
    /// To the data of the live page: a name and its value.
    fn live(&self, request: &Request, out: &mut Json);
    /// To the metrics.
    fn metrics(&self, request: &Request, page: &mut Exposition);
}

/// The parts of the modules that are loaded.
pub(super) fn of(request: &Request) -> impl Iterator<Item = Arc<PartProvider>> {
    let hooks = &request.engine.server.registry.hooks;
    hooks.providers::<PartProvider>(GROUP).into_iter().map(|(_, part)| part)
}

/// Makes a page once the parts have asked.
pub(super) fn after_asking<'r>(
    request: &'r mut Request,
    make: fn(&mut Request) -> Step<'_>,
) -> Step<'r> {
    if request.head.method != Method::GET {
        return make(request);
    }
    let parts: Vec<Arc<PartProvider>> = of(request).collect();
    Step::Pending(Box::pin(async move {
        for part in parts {
            if let Some(asking) = part.ask(request) {
                asking.await;
            }
        }
        make(request).verdict().await
    }))
}

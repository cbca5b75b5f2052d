//! What other modules add to the pages (`status_hook`).

use std::sync::Arc;

use server::request::Request;

use super::live::json::Json;
use super::metrics::Exposition;

/// The group of the providers.
pub const GROUP: &str = "status_hook";

/// A provider of [`GROUP`].
pub type PartProvider = &'static dyn Part;

/// What a module adds.
pub trait Part: Send + Sync {
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

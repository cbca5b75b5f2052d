//! A hook with the configurations that it runs under.

use std::sync::Arc;

use super::{Bound, RequestHook, Step};
use crate::api::module::Module;
use crate::request::Request;

/// A hook bound to a configuration.
pub trait Run {
    /// Runs the hook.
    fn run<'r>(&'r self, request: &'r mut Request) -> Step<'r>;

    /// Whether a hook of the log reads nothing that the phases found out: see
    /// [`super::Hooks::on_log`].
    fn reads_head_alone(&self) -> bool {
        false
    }
}

pub(super) struct BoundHook<M: Module> {
    pub server: Arc<M::Server>,
    pub dir: Arc<M::Dir>,
    pub run: RequestHook<M>,
    pub reads_head_alone: fn(Bound<'_, M>) -> bool,
}

impl<M: Module> Run for BoundHook<M> {
    fn run<'r>(&'r self, request: &'r mut Request) -> Step<'r> {
        (self.run)(Bound { server: &self.server, dir: &self.dir }, request)
    }

    fn reads_head_alone(&self) -> bool {
        (self.reads_head_alone)(Bound { server: &self.server, dir: &self.dir })
    }
}

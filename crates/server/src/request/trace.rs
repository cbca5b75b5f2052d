//! The paths that a request examines.

use std::sync::Arc;

use super::Request;
use crate::files::mirror::Fact;
use crate::files::path;
use crate::files::validity::Trace;

impl Request {
    /// Notes that a path is about to be examined, so that a cached response can depend on it; for a
    /// symbolic link without a mirror also the paths that it leads through.
    pub fn trace_path(&mut self, path: &[u8]) {
        if self.depends.trace.is_some() {
            let fact = self.engine.fact(path);
            self.trace_fact(path, fact.as_ref());
        }
    }

    /// Depends on what another request has looked at.
    pub fn take_trace(&mut self, looked_at: Option<Trace>) {
        if let (Some(trace), Some(more)) = (&mut self.depends.trace, looked_at) {
            trace.extend(more);
        }
    }

    /// The same with the mirror's fact of the path, if it has one.
    pub(crate) fn trace_fact(&mut self, path: &[u8], fact: Option<&Arc<Fact>>) {
        let Some(trace) = &mut self.depends.trace else { return };
        if let Some(fact) = fact {
            trace.facts.push(fact.clone());
        } else if path::lstat(path).is_ok_and(|entry| entry.is_symlink) {
            path::trace(path, &mut trace.paths);
        } else {
            trace.paths.push(path.to_vec());
        }
    }
}

//! The paths that a request examines.

use super::Request;
use crate::files::path;

impl Request {
    /// Notes that a path is about to be examined, so that a cached response can depend on it; for a
    /// symbolic link without a mirror also the paths that it leads through.
    pub fn trace_path(&mut self, path: &[u8]) {
        let Some(trace) = &mut self.depends.trace else { return };
        if let Some(fact) = self.engine.fact(path) {
            trace.facts.push(fact);
        } else if self.engine.lstat(path).is_ok_and(|entry| entry.is_symlink) {
            path::trace(path, &mut trace.paths);
        } else {
            trace.paths.push(path.to_vec());
        }
    }
}

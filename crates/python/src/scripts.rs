//! Scripts that the worker has loaded, and whether they have changed.

use std::sync::Mutex;

use pyo3_ffi as py;
use rustix::fs::Stat;

use crate::head::Head;
use crate::held::{Ref, latin1, locked};

/// What tells a file from another one: its time in nanoseconds, number, and size.
pub(crate) type Identity = (i64, u64, i64);

/// Scripts that are loaded.
#[derive(Default)]
pub(crate) struct Scripts(Mutex<Vec<Script>>);

struct Script {
    path: Vec<u8>,
    /// The path as the worker has it.
    text: Ref,
    identity: Identity,
    /// The module's names.
    names: Ref,
    /// The name of the application that was asked for last.
    callable: Vec<u8>,
    key: Ref,
}

/// The identity of a file.
pub(crate) fn identity(found: &Stat) -> Identity {
    let time = i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec);
    (i64::try_from(time).unwrap_or(i64::MAX), found.st_ino, found.st_size)
}

impl Scripts {
    /// From now on a script is this module's.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn know(
        &self,
        path: &[u8],
        (text, names): (Ref, Ref),
        identity: Identity,
    ) -> Option<()> {
        // SAFETY: as the caller promises.
        let key = unsafe { latin1(b"")? };
        let path = path.to_vec();
        let script = Script { path, text, identity, names, callable: Vec::new(), key };
        let before = self.without(&script.path);
        locked(&self.0).push(script);
        drop(before);
        Some(())
    }

    /// A script is not loaded any more.
    pub fn forget(&self, path: &[u8]) {
        drop(self.without(path));
    }

    fn without(&self, path: &[u8]) -> Option<Script> {
        let mut known = locked(&self.0);
        let place = known.iter().position(|script| script.path == path)?;
        Some(known.remove(place))
    }

    /// The application of a head, and the path of its script; `Some(None)` if the script is not
    /// loaded, has changed, or has no such application.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn application(&self, head: &Head<'_>) -> Option<Option<(Ref, Ref)>> {
        // SAFETY: as the caller promises.
        unsafe {
            let Some((names, text, identity, mut key)) = self.find(head) else { return Some(None) };
            if head.has(b'r') && !is_same(head.script(), identity) {
                return Some(None);
            }
            if key.is_none() {
                key = Some(self.key(head)?);
            }
            let mut found = std::ptr::null_mut();
            let key = key?;
            if py::compat::PyDict_GetItemRef(names.as_ptr(), key.as_ptr(), &raw mut found) < 0 {
                return None;
            }
            Some(Ref::own(found).map(|application| (application, text)))
        }
    }

    fn find(&self, head: &Head<'_>) -> Option<(Ref, Ref, Identity, Option<Ref>)> {
        let known = locked(&self.0);
        let script = known.iter().find(|script| script.path == head.script())?;
        let key = (script.callable == head.callable()).then(|| script.key.clone());
        Some((script.names.clone(), script.text.clone(), script.identity, key))
    }

    /// The name of an application, which is remembered.
    unsafe fn key(&self, head: &Head<'_>) -> Option<Ref> {
        // SAFETY: as the caller promises, with the lock of Python.
        let new = unsafe { latin1(head.callable())? };
        let mut known = locked(&self.0);
        let script = known.iter_mut().find(|script| script.path == head.script());
        let before = script.map(|script| {
            script.callable = head.callable().to_vec();
            std::mem::replace(&mut script.key, new.clone())
        });
        drop(known);
        drop(before);
        Some(new)
    }
}

/// Whether a file is still the same.
fn is_same(path: &[u8], known: Identity) -> bool {
    rustix::fs::stat(path).is_ok_and(|found| identity(&found) == known)
}

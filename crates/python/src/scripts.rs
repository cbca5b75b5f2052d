//! Scripts that the worker has loaded, and whether they have changed.

use std::sync::{Arc, Mutex};

use pyo3_ffi as py;

use crate::head::{Head, Identity};
use crate::held::{Ref, bytes_of, called, latin1, locked, none, unsigned};
use crate::ring::Shared;

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
            // If it may be another one, the worker's code looks at the file itself.
            if head.has(b'r') && head.identity() != Some(identity) {
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
            let found = Ref::own(found).filter(|found| found.as_ptr() != py::Py_None());
            Some(found.map(|application| (application, text)))
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

/// `know(path, text, names, time, number, size)`: a script is loaded: its path as bytes and as
/// text, the names of its module, and what `stat` said of the file, with the time in microseconds.
pub(crate) unsafe extern "C" fn know(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    let usage = c"know(path, text, names, time, number, size)";
    // SAFETY: as `called` needs it; the body has the lock.
    unsafe {
        called((this, args, count), usage, |shared: &Arc<Shared>, arguments| {
            let [path, text, names, time, inode, size] = arguments;
            let identity = (unsigned(time)?, unsigned(inode)?, unsigned(size)?);
            let objects = (Ref::share(text), Ref::share(names));
            shared.scripts.know(bytes_of(path)?, objects, identity)?;
            none()
        })
    }
}

/// `forget(path)`: a script is not loaded any more.
pub(crate) unsafe extern "C" fn forget(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as `called` needs it; the body has the lock.
    unsafe {
        called((this, args, count), c"forget(path)", |shared: &Arc<Shared>, [path]| {
            shared.scripts.forget(bytes_of(path)?);
            none()
        })
    }
}

//! The Python objects of a request that a seat serves, and the worker's code that it needs.

use std::ptr;

use pyo3_ffi as py;

use crate::held::{Ref, call, get, number};
use crate::request::{self, Request};
use crate::response::Maker;

/// What the worker's code does.
pub(crate) struct Worker {
    /// Makes the objects of a request: its wire, log, and input.
    pub kit: Ref,
    /// Gives a response that is not a usual one: `(wire, path, result, response)`.
    pub give: Ref,
    /// Says that the application has failed: `(wire, path, error)`.
    pub fail: Ref,
    /// Reports to the companion that the process is used.
    pub used: Ref,
    /// Its class of responses.
    pub class: Ref,
    /// Counts the weak references to an object.
    pub weak_count: Ref,
    /// Functions that receive each request as an event: only the worker's code calls them.
    pub events: Ref,
}

/// The objects of a request. A later one uses them again if the application has kept none of them.
pub(crate) struct Kit {
    pub request: Ref,
    pub wire: Ref,
    pub log: Ref,
    pub input: Ref,
    pub maker: Maker,
    /// How many references there are to each of them while no request has them; none if they are
    /// not used again, since the input has a body.
    counts: [py::Py_ssize_t; 6],
}

impl Kit {
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn make(worker: &Worker, request: Request, has_body: bool) -> Option<Kit> {
        // SAFETY: as the caller promises.
        unsafe {
            let request = request::make_object(request)?;
            let flag = Ref::own(py::PyBool_FromLong(has_body.into()))?;
            let parts = call(worker.kit.as_ptr(), [request.as_ptr(), flag.as_ptr()])?;
            let part = |at| {
                let part = py::PyTuple_GetItem(parts.as_ptr(), at);
                if part.is_null() { None } else { Some(Ref::share(part)) }
            };
            let (wire, log, input) = (part(0)?, part(1)?, part(2)?);
            let maker = Maker::new(&worker.class, &wire)?;
            drop(parts);
            let mut kit = Kit { request, wire, log, input, maker, counts: [0; 6] };
            if !has_body {
                kit.counts = kit.references();
            }
            Some(kit)
        }
    }

    fn references(&self) -> [py::Py_ssize_t; 6] {
        let [response, start] = self.maker.objects();
        let objects = [&self.request, &self.wire, &self.log, &self.input, response, start];
        // SAFETY: the objects live.
        objects.map(|object| unsafe { py::Py_REFCNT(object.as_ptr()) })
    }

    /// Whether the application has kept nothing of it, and left nothing in it.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn is_as_new(&self, worker: &Worker) -> bool {
        // Without a lock, another thread may share one of them meanwhile.
        if cfg!(Py_GIL_DISABLED) || self.references() != self.counts {
            return false;
        }
        // SAFETY: as the caller promises.
        unsafe {
            self.maker.clear();
            let is_bare = self.is_bare(worker);
            if is_bare.is_none() {
                py::PyErr_Clear();
            }
            is_bare == Some(true)
        }
    }

    /// Whether there are no weak references and no attributes; `None` with an error of Python.
    unsafe fn is_bare(&self, worker: &Worker) -> Option<bool> {
        let [_, start] = self.maker.objects();
        // SAFETY: as the caller promises.
        unsafe {
            for object in [&self.log, start] {
                let count = call(worker.weak_count.as_ptr(), [object.as_ptr(), ptr::null_mut()])?;
                if number(count.as_ptr())? != 0 {
                    return Some(false);
                }
            }
            let attributes = py::PyObject_GenericGetDict(self.log.as_ptr(), ptr::null_mut());
            Some(py::PyDict_Size(Ref::own(attributes)?.as_ptr()) == 0)
        }
    }

    /// # Safety
    /// With the lock of Python; the object lives as long as the reference is used.
    pub unsafe fn request<'a>(&self) -> &'a Request {
        // SAFETY: as the caller promises.
        unsafe { get::<Request>(self.request.as_ptr()) }
    }
}

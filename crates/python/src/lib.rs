//! The extension module of Python for workers (WSGI): requests in shared memory, environs, and
//! responses that an application gives as one piece. What it does not do, or not so simply, the
//! worker does in Python (`crates/modules/src/wsgi/mod_wsgi/worker`).
//!
//! It needs the limited API of Python 3.10 only, so that one file serves all later versions, but
//! those that can run without a lock: for each of these it is built on its own. The server never
//! links it: a companion gives it to the workers that it starts.
//!
//! Waiting for a request, for bytes or for room is done without the lock of the interpreter. With
//! the lock or without it, threads may use the same objects at the same time: what changes in them
//! is atomic, or under a lock that is never held over a call into Python. "With the lock of Python"
//! means, where there is none, a thread that the interpreter knows as running.
#![expect(unsafe_code, reason = "the C API of Python")]

mod environ;
mod head;
mod held;
mod kit;
mod names;
mod request;
mod response;
mod ring;
mod scripts;
mod seat;

use std::ptr;

use pyo3_ffi as py;

/// The function that Python calls to make the module.
///
/// # Safety
/// Python calls it once, with its lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PyInit__tamarack_wsgi() -> *mut py::PyObject {
    let definition = Box::leak(Box::new(py::PyModuleDef {
        m_base: py::PyModuleDef_HEAD_INIT,
        m_name: c"_tamarack_wsgi".as_ptr(),
        m_doc: ptr::null(),
        m_size: -1,
        m_methods: ptr::null_mut(),
        m_slots: ptr::null_mut(),
        m_traverse: None,
        m_clear: None,
        m_free: None,
    }));
    // SAFETY: the caller has the lock; the definition lives as long as the process.
    unsafe {
        let module = py::PyModule_Create(definition);
        if module.is_null() || !request::prepare() || !response::prepare() || !seat::prepare() {
            return ptr::null_mut();
        }
        let ring = ring::make_type();
        if ring.is_null() || py::PyModule_AddObject(module, c"Ring".as_ptr(), ring) < 0 {
            return ptr::null_mut();
        }
        #[cfg(Py_GIL_DISABLED)]
        if py::PyUnstable_Module_SetGIL(module, py::Py_MOD_GIL_NOT_USED) < 0 {
            return ptr::null_mut();
        }
        module
    }
}

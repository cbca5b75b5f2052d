//! Seats as Python has them.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3_ffi as py;

use super::Seat;
use crate::held::{Ref, attribute, called, locked, make, make_type, method, none, number, tuple};
use crate::kit::Worker;
use crate::ring::{self, Shared};

/// The type of seats.
static KIND: AtomicPtr<py::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Makes the type; false with an error of Python.
///
/// # Safety
/// With the lock of Python, once.
pub(crate) unsafe fn prepare() -> bool {
    let methods = vec![
        method(c"serve", serve),
        method(c"begin", begin),
        method(c"end", end),
        method(c"uncount", uncount),
        method(c"began", began),
        method(c"busy", busy),
        method(c"set_environ", set_environ),
        method(c"data", data),
        py::PyMethodDef::zeroed(),
    ];
    // SAFETY: as the caller promises.
    let kind = unsafe { make_type::<Seat>(c"_tamarack_wsgi.Seat", methods, None) };
    KIND.store(kind.cast(), Ordering::Relaxed);
    !kind.is_null()
}

/// `Ring.seat(thread, is_plain, most, kit, give, fail, used, class, events)`
pub(crate) unsafe extern "C" fn seat(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    let usage = c"seat(thread, is_plain, most, kit, give, fail, used, class, events)";
    // SAFETY: as `called` needs it; the body has the lock.
    unsafe {
        called((this, args, count), usage, |shared: &Arc<Shared>, arguments| {
            let [thread, is_plain, most, kit, give, fail, used, class, events] = arguments;
            let [kit, give, fail, used, class, events] =
                [kit, give, fail, used, class, events].map(|object| Ref::share(object));
            let module = Ref::own(py::PyImport_ImportModule(c"_weakref".as_ptr()))?;
            let weak_count = attribute(module.as_ptr(), c"getweakrefcount")?;
            let seat = Seat {
                shared: shared.clone(),
                worker: Worker { kit, give, fail, used, class, weak_count, events },
                thread: Ref::share(thread),
                is_plain: py::PyObject_IsTrue(is_plain) == 1,
                most: u64::try_from(number(most)?).ok(),
                began: AtomicU64::new(0),
                busy: AtomicU64::new(0),
                count: AtomicU64::new(0),
                environ: Mutex::default(),
                data: Mutex::default(),
                kit: Mutex::default(),
            };
            make(KIND.load(Ordering::Relaxed), seat)
        })
    }
}

/// A method without arguments.
///
/// # Safety
/// As for [`called`].
unsafe fn asked(
    call: (*mut py::PyObject, *mut *mut py::PyObject, py::Py_ssize_t),
    usage: &CStr,
    body: impl FnOnce(&Seat) -> Option<Ref>,
) -> *mut py::PyObject {
    // SAFETY: as the caller promises.
    unsafe { called(call, usage, |seat: &Seat, []| body(seat)) }
}

/// `serve()`: serves requests until there is one that the worker's code has to serve, whose wire is
/// returned; None once no more are taken. An error of the application, or of its response, is
/// logged before.
unsafe extern "C" fn serve(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as `asked` needs it, and so are those below; the body has the lock.
    unsafe { asked((this, args, count), c"serve()", |seat| seat.serve()) }
}

/// `begin()`: counts the request that was left: how many the thread and the process have.
unsafe extern "C" fn begin(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        asked((this, args, count), c"begin()", |seat| {
            let counts = seat.begin();
            tuple(counts.map(|count| Ref::own(py::PyLong_FromUnsignedLongLong(count))).into_iter())
        })
    }
}

/// `end()`: the request that was left is over.
unsafe extern "C" fn end(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        asked((this, args, count), c"end()", |seat| {
            seat.end();
            none()
        })
    }
}

/// `uncount()`: the request that was counted last goes to another process.
unsafe extern "C" fn uncount(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        asked((this, args, count), c"uncount()", |seat| {
            seat.count.fetch_sub(1, Ordering::Relaxed);
            seat.shared.uncount();
            none()
        })
    }
}

/// `began()`: when the current request was taken, as of `time.monotonic`; 0 if there is none.
unsafe extern "C" fn began(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        asked((this, args, count), c"began()", |seat| {
            let began = seat.began.load(Ordering::Relaxed);
            Ref::own(py::PyFloat_FromDouble(began as f64 / 1e9))
        })
    }
}

/// `busy()`: how long its requests took, in seconds.
unsafe extern "C" fn busy(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        asked((this, args, count), c"busy()", |seat| {
            let began = seat.began.load(Ordering::Relaxed);
            let current = if began == 0 { 0 } else { ring::now().saturating_sub(began) };
            let busy = seat.busy.load(Ordering::Relaxed) + current;
            Ref::own(py::PyFloat_FromDouble(busy as f64 / 1e9))
        })
    }
}

/// `set_environ(environ)`: of the request that was left; None once it has none any more.
unsafe extern "C" fn set_environ(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"set_environ(environ)", |seat: &Seat, [environ]| {
            seat.leave();
            if environ != py::Py_None() {
                let before = locked(&seat.environ).replace(Ref::share(environ));
                drop(before);
            }
            none()
        })
    }
}

/// `data()`: what the application keeps for the current request; None if there is no request.
unsafe extern "C" fn data(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        asked((this, args, count), c"data()", |seat| {
            if locked(&seat.environ).is_none() {
                return none();
            }
            let known = locked(&seat.data).clone();
            if known.is_some() {
                return known;
            }
            let new = Ref::own(py::PyDict_New())?;
            Some(locked(&seat.data).get_or_insert_with(|| new).clone())
        })
    }
}

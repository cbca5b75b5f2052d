//! A response that an application gives in the usual way: `start_response` once, with plain texts,
//! and a list with one bytes object. Anything else is left to the worker's class.

mod start;

use std::ffi::CStr;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3_ffi as py;

use crate::held::{
    Ref, attribute, bytes_of, call, called, caught, get, item, locked, make, make_type, none, tuple,
};
use crate::request::Request;
use crate::response::start::{Head, is_status, plain};

/// The type of responses, and their methods as functions.
static KIND: AtomicPtr<py::PyTypeObject> = AtomicPtr::new(ptr::null_mut());
static START: AtomicPtr<py::PyMethodDef> = AtomicPtr::new(ptr::null_mut());
static WRITE: AtomicPtr<py::PyMethodDef> = AtomicPtr::new(ptr::null_mut());

/// A response.
struct Response {
    /// The worker's class, and its argument.
    class: Ref,
    wire: Ref,
    /// The worker's response, once it is needed.
    other: Mutex<Option<Ref>>,
    /// What was given to `start_response`.
    given: Mutex<Option<Given>>,
}

/// A status and fields.
struct Given {
    status: Ref,
    headers: Ref,
    head: Head,
}

/// Makes the type; false with an error of Python.
///
/// # Safety
/// With the lock of Python, once.
pub(crate) unsafe fn prepare() -> bool {
    let definition = |name: &'static CStr, function: py::PyCFunctionFastWithKeywords| {
        Box::into_raw(Box::new(py::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: py::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: py::METH_FASTCALL | py::METH_KEYWORDS,
            ml_doc: ptr::null(),
        }))
    };
    START.store(definition(c"start_response", start), Ordering::Relaxed);
    WRITE.store(definition(c"write", write), Ordering::Relaxed);
    let methods = vec![py::PyMethodDef::zeroed()];
    // SAFETY: as the caller promises.
    let kind = unsafe { make_type::<Response>(c"_tamarack_wsgi.Response", methods, None) };
    KIND.store(kind.cast(), Ordering::Relaxed);
    !kind.is_null()
}

/// `respond(application, environ, log, class, wire)`: runs the application. None if the response is
/// complete; a tuple of what the application has returned and of a response of the class if the
/// worker has to go on.
pub(crate) unsafe extern "C" fn respond(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    let usage = c"respond(application, environ, log, class, wire)";
    // SAFETY: as `called` needs it; the body has the lock.
    unsafe {
        called((this, args, count), usage, |request: &Request, arguments| {
            let [application, environ, log, class, wire] = arguments.map(|one| Ref::share(one));
            let maker = Maker::new(&class, &wire)?;
            match maker.run(request, (&application, &environ, &log))? {
                Outcome::Complete => none(),
                Outcome::Other { result, response } => {
                    tuple([Some(result), Some(response)].into_iter())
                }
            }
        })
    }
}

/// A response, and its `start_response`.
pub(crate) struct Maker {
    response: Ref,
    start: Ref,
}

/// What an application has made.
pub(crate) enum Outcome {
    /// A response that is complete.
    Complete,
    /// What it has returned, and a response of the worker's class, which has to go on.
    Other { result: Ref, response: Ref },
}

impl Maker {
    /// `None` with an error of Python.
    ///
    /// # Safety
    /// With the lock of Python, after [`prepare`].
    pub unsafe fn new(class: &Ref, wire: &Ref) -> Option<Maker> {
        let response = Response {
            class: class.clone(),
            wire: wire.clone(),
            other: Mutex::default(),
            given: Mutex::default(),
        };
        // SAFETY: as the caller promises.
        unsafe {
            let response = make(KIND.load(Ordering::Relaxed), response)?;
            let definition = START.load(Ordering::Relaxed);
            let start = py::PyCFunction_NewEx(definition, response.as_ptr(), ptr::null_mut());
            Some(Maker { response, start: Ref::own(start)? })
        }
    }

    /// Its objects.
    pub fn objects(&self) -> [&Ref; 2] {
        [&self.response, &self.start]
    }

    /// Forgets what was given.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn clear(&self) {
        // SAFETY: as the caller promises.
        let response = unsafe { get::<Response>(self.response.as_ptr()) };
        let given = locked(&response.given).take();
        let other = locked(&response.other).take();
        drop((given, other));
    }

    /// Runs an application with an environ and a log; `None` with an error of Python.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn run(
        &self,
        request: &Request,
        (application, environ, log): (&Ref, &Ref, &Ref),
    ) -> Option<Outcome> {
        // SAFETY: as the caller promises.
        unsafe {
            let arguments = [environ.as_ptr(), self.start.as_ptr()];
            let result = call(application.as_ptr(), arguments)?;
            let response = get::<Response>(self.response.as_ptr());
            if response.finish(request, result.as_ptr(), log.as_ptr())? {
                return Some(Outcome::Complete);
            }
            Some(Outcome::Other { result, response: response.other()? })
        }
    }
}

impl Response {
    /// Sends the response if it is a usual one; `None` with an error of Python.
    unsafe fn finish(
        &self,
        request: &Request,
        result: *mut py::PyObject,
        log: *mut py::PyObject,
    ) -> Option<bool> {
        // SAFETY: with the lock of Python and objects that the caller keeps.
        unsafe {
            if locked(&self.other).is_some() || locked(&self.given).is_none() {
                return Some(false);
            }
            if py::PyList_CheckExact(result) == 0 || py::PyList_Size(result) != 1 {
                return Some(false);
            }
            let Some(item) = item(result, 0) else {
                // Another thread has changed it.
                py::PyErr_Clear();
                return Some(false);
            };
            if py::PyBytes_CheckExact(item.as_ptr()) == 0 {
                return Some(false);
            }
            flush(log)?;
            let data = bytes_of(item.as_ptr())?;
            let frames = match &*locked(&self.given) {
                Some(given) => given.head.frames(data),
                None => return Some(false),
            };
            // Whether the client has gone makes no difference.
            Some(request.send_whole(&frames).is_some())
        }
    }

    /// The worker's response, with what was given so far; `None` with an error of Python.
    unsafe fn other(&self) -> Option<Ref> {
        // SAFETY: with the lock of Python.
        unsafe {
            let known = locked(&self.other).clone();
            if known.is_some() {
                return known;
            }
            let other = call(self.class.as_ptr(), [self.wire.as_ptr(), ptr::null_mut()])?;
            let of = |given: &Given| (given.status.clone(), given.headers.clone());
            let given = locked(&self.given).as_ref().map(of);
            if let Some((status, headers)) = given {
                for (name, value) in [(c"status", status), (c"headers", headers)] {
                    let (object, value) = (other.as_ptr(), value.as_ptr());
                    if py::PyObject_SetAttrString(object, name.as_ptr(), value) < 0 {
                        return None;
                    }
                }
            }
            // Another thread of the application may have been faster meanwhile.
            Some(locked(&self.other).get_or_insert_with(|| other.clone()).clone())
        }
    }

    /// Takes usual arguments; false if they are not. `headers` is copied: the application may
    /// change it later, and another thread meanwhile.
    unsafe fn take(&self, status: *mut py::PyObject, headers: *mut py::PyObject) -> Option<bool> {
        // SAFETY: with the lock of Python and objects that the caller keeps.
        unsafe {
            let Some(line) = plain(status).filter(|line| is_status(line)) else {
                return Some(false);
            };
            if py::PyList_CheckExact(headers) == 0 {
                return Some(false);
            }
            let headers = Ref::own(py::PyList_GetSlice(headers, 0, py::Py_ssize_t::MAX))?;
            let Some(head) = Head::of(line, &headers) else { return Some(false) };
            let given = Given { status: Ref::share(status), headers, head };
            let before = locked(&self.given).replace(given);
            drop(before);
            Some(true)
        }
    }
}

/// `start_response(status, headers, exc_info=None)`
unsafe extern "C" fn start(
    this: *mut py::PyObject,
    args: *const *mut py::PyObject,
    count: py::Py_ssize_t,
    names: *mut py::PyObject,
) -> *mut py::PyObject {
    // SAFETY: Python calls it with its lock, a response, and as many arguments as counted, which
    // the caller keeps.
    caught(|| unsafe {
        let response = get::<Response>(this);
        if !names.is_null() && py::PyTuple_Size(names) > 0 {
            let text = c"start_response() takes no keyword arguments";
            py::PyErr_SetString(py::PyExc_TypeError, text.as_ptr());
            return None;
        }
        let is_usual = (count == 2 || count == 3 && *args.add(2) == py::Py_None())
            && locked(&response.other).is_none();
        // The worker's class says what is wrong with others.
        if is_usual && response.take(*args, *args.add(1))? {
            let definition = WRITE.load(Ordering::Relaxed);
            return Ref::own(py::PyCFunction_NewEx(definition, this, ptr::null_mut()));
        }
        pass_on(response, c"start", args, count, names)
    })
}

/// `write(data)`
unsafe extern "C" fn write(
    this: *mut py::PyObject,
    args: *const *mut py::PyObject,
    count: py::Py_ssize_t,
    names: *mut py::PyObject,
) -> *mut py::PyObject {
    // SAFETY: as above.
    caught(|| unsafe { pass_on(get::<Response>(this), c"write", args, count, names) })
}

/// Calls a method of the worker's response.
unsafe fn pass_on(
    response: &Response,
    name: &CStr,
    args: *const *mut py::PyObject,
    count: py::Py_ssize_t,
    names: *mut py::PyObject,
) -> Option<Ref> {
    // SAFETY: as the callers promise: behind the positional arguments are those with names.
    unsafe {
        let other = response.other()?;
        let method = attribute(other.as_ptr(), name)?;
        let positional = (0..count.cast_unsigned()).map(|at| Some(Ref::share(*args.add(at))));
        let positional = tuple(positional)?;
        let keywords = Ref::own(py::PyDict_New())?;
        let named = if names.is_null() { 0 } else { py::PyTuple_Size(names) };
        for place in 0..named {
            let (key, value) = (py::PyTuple_GetItem(names, place), *args.offset(count + place));
            if key.is_null() || py::PyDict_SetItem(keywords.as_ptr(), key, value) < 0 {
                return None;
            }
        }
        Ref::own(py::PyObject_Call(method.as_ptr(), positional.as_ptr(), keywords.as_ptr()))
    }
}

/// Sends what the log has of a line: later it would find no reader.
///
/// # Safety
/// With the lock of Python and an object that the caller keeps.
pub(crate) unsafe fn flush(log: *mut py::PyObject) -> Option<()> {
    // SAFETY: with the lock of Python and an object that the caller keeps.
    unsafe {
        let rest = attribute(log, c"_rest")?;
        if py::PyObject_IsTrue(rest.as_ptr()) != 0 {
            let flush = attribute(log, c"flush")?;
            call(flush.as_ptr(), [ptr::null_mut(); 2])?;
        }
        Some(())
    }
}

//! A response that an application gives in the usual way: `start_response` once, with plain texts,
//! and a list with one bytes object. Anything else is left to the worker's class.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3_ffi as py;

use crate::held::{Ref, caught, get, make, make_type, none, os_error};
use crate::request::{Request, bytes_of};

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
    other: RefCell<Option<Ref>>,
    /// What was given to `start_response`.
    given: RefCell<Option<(Ref, Ref)>>,
    /// The content of the frame of the head.
    head: RefCell<Vec<u8>>,
    length: Cell<Option<usize>>,
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
    // SAFETY: Python calls it with its lock, a request, and as many arguments as counted, which the
    // caller keeps.
    caught(|| unsafe {
        if count != 5 {
            return os_error(c"respond(application, environ, log, class, wire)");
        }
        let [application, environ, log, class, wire] = *args.cast::<[*mut py::PyObject; 5]>();
        let response = Response {
            class: Ref::share(class),
            wire: Ref::share(wire),
            other: RefCell::default(),
            given: RefCell::default(),
            head: RefCell::default(),
            length: Cell::new(None),
        };
        let object = Ref::own(make(KIND.load(Ordering::Relaxed), response));
        let Some(object) = object else { return ptr::null_mut() };
        let definition = START.load(Ordering::Relaxed);
        let start = py::PyCFunction_NewEx(definition, object.as_ptr(), ptr::null_mut());
        let Some(start) = Ref::own(start) else { return ptr::null_mut() };
        let nothing = ptr::null_mut::<py::PyObject>();
        let result =
            py::PyObject_CallFunctionObjArgs(application, environ, start.as_ptr(), nothing);
        let Some(result) = Ref::own(result) else { return ptr::null_mut() };
        let response = get::<Response>(object.as_ptr());
        match response.finish(get::<Request>(this), result.as_ptr(), log) {
            None => return ptr::null_mut(),
            Some(true) => return none(),
            Some(false) => {}
        }
        let Some(other) = response.other() else { return ptr::null_mut() };
        py::PyTuple_Pack(2, result.as_ptr(), other.as_ptr())
    })
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
            if self.other.borrow().is_some() || self.given.borrow().is_none() {
                return Some(false);
            }
            if py::PyList_CheckExact(result) == 0 || py::PyList_Size(result) != 1 {
                return Some(false);
            }
            let item = py::PyList_GetItem(result, 0);
            if item.is_null() || py::PyBytes_CheckExact(item) == 0 {
                return Some(false);
            }
            // The log may run code of the application, which could change the list.
            let item = Ref::share(item);
            flush(log)?;
            let data = bytes_of(item.as_ptr())?;
            let data = data.get(..self.length.get().unwrap_or(data.len())).unwrap_or(data);
            let head = self.head.borrow();
            let mut frames = Vec::with_capacity(head.len() + data.len() + 15);
            put_frame(&mut frames, b'H', &head);
            if !data.is_empty() {
                put_frame(&mut frames, b'D', data);
            }
            put_frame(&mut frames, b'E', &[]);
            // Whether the client has gone makes no difference.
            Some(request.send_whole(&frames).is_some())
        }
    }

    /// The worker's response, with what was given so far; `None` with an error of Python.
    unsafe fn other(&self) -> Option<Ref> {
        // SAFETY: with the lock of Python.
        unsafe {
            if let Some(other) = &*self.other.borrow() {
                return Some(Ref::share(other.as_ptr()));
            }
            let nothing = ptr::null_mut::<py::PyObject>();
            let class = self.class.as_ptr();
            let other = py::PyObject_CallFunctionObjArgs(class, self.wire.as_ptr(), nothing);
            let other = Ref::own(other)?;
            let given = self.given.borrow().as_ref().map(|(status, headers)| {
                (Ref::share(status.as_ptr()), Ref::share(headers.as_ptr()))
            });
            if let Some((status, headers)) = given {
                let object = other.as_ptr();
                let is_set =
                    py::PyObject_SetAttrString(object, c"status".as_ptr(), status.as_ptr()) == 0
                        && py::PyObject_SetAttrString(
                            object,
                            c"headers".as_ptr(),
                            headers.as_ptr(),
                        ) == 0;
                if !is_set {
                    return None;
                }
            }
            // Another thread of the application may have been faster meanwhile.
            let mut place = self.other.borrow_mut();
            let kept = place.get_or_insert_with(|| Ref::share(other.as_ptr()));
            let kept = Ref::share(kept.as_ptr());
            Some(kept)
        }
    }

    /// Takes usual arguments; false if they are not. `headers` is copied: the application may
    /// change it later.
    unsafe fn take(&self, status: *mut py::PyObject, headers: *mut py::PyObject) -> Option<bool> {
        // SAFETY: with the lock of Python and objects that the caller keeps.
        unsafe {
            let Some(line) = plain(status).filter(|line| is_status(line)) else {
                return Some(false);
            };
            if py::PyList_CheckExact(headers) == 0 {
                return Some(false);
            }
            // Taken out: Python may give its lock to another thread at any call.
            let mut head = self.head.take();
            head.clear();
            head.extend_from_slice(line);
            self.length.set(None);
            for place in 0..py::PyList_Size(headers) {
                let header = py::PyList_GetItem(headers, place);
                if header.is_null()
                    || py::PyTuple_CheckExact(header) == 0
                    || py::PyTuple_Size(header) != 2
                {
                    return Some(false);
                }
                let name = plain(py::PyTuple_GetItem(header, 0));
                let value = plain(py::PyTuple_GetItem(header, 1));
                let (Some(name), Some(value)) = (name, value) else { return Some(false) };
                if name.is_empty() || name.iter().any(|byte| matches!(byte, b' ' | b':' | b'\t')) {
                    return Some(false);
                }
                if name.eq_ignore_ascii_case(b"Content-Length") {
                    let Some(length) = decimal(value) else { return Some(false) };
                    self.length.set(Some(length));
                }
                head.push(0);
                head.extend_from_slice(name);
                head.push(0);
                head.extend_from_slice(value);
            }
            let copy = Ref::own(py::PyList_GetSlice(headers, 0, py::Py_ssize_t::MAX))?;
            self.head.replace(head);
            let before = self.given.replace(Some((Ref::share(status), copy)));
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
            return ptr::null_mut();
        }
        let is_usual = (count == 2 || count == 3 && *args.add(2) == py::Py_None())
            && response.other.borrow().is_none();
        if is_usual {
            match response.take(*args, *args.add(1)) {
                None => return ptr::null_mut(),
                Some(true) => {
                    let definition = WRITE.load(Ordering::Relaxed);
                    return py::PyCFunction_NewEx(definition, this, ptr::null_mut());
                }
                // The worker's class says what is wrong with it.
                Some(false) => {}
            }
        }
        call(response, c"start", args, count, names)
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
    caught(|| unsafe { call(get::<Response>(this), c"write", args, count, names) })
}

/// Calls a method of the worker's response.
unsafe fn call(
    response: &Response,
    name: &CStr,
    args: *const *mut py::PyObject,
    count: py::Py_ssize_t,
    names: *mut py::PyObject,
) -> *mut py::PyObject {
    // SAFETY: as the callers promise: behind the positional arguments are those with names.
    unsafe {
        let Some(other) = response.other() else { return ptr::null_mut() };
        let method = py::PyObject_GetAttrString(other.as_ptr(), name.as_ptr());
        let Some(method) = Ref::own(method) else { return ptr::null_mut() };
        let Some(tuple) = Ref::own(py::PyTuple_New(count)) else { return ptr::null_mut() };
        for place in 0..count {
            let item = Ref::share(*args.offset(place)).into_ptr();
            if py::PyTuple_SetItem(tuple.as_ptr(), place, item) < 0 {
                return ptr::null_mut();
            }
        }
        let Some(keywords) = Ref::own(py::PyDict_New()) else { return ptr::null_mut() };
        let named = if names.is_null() { 0 } else { py::PyTuple_Size(names) };
        for place in 0..named {
            let (key, value) = (py::PyTuple_GetItem(names, place), *args.offset(count + place));
            if key.is_null() || py::PyDict_SetItem(keywords.as_ptr(), key, value) < 0 {
                return ptr::null_mut();
            }
        }
        py::PyObject_Call(method.as_ptr(), tuple.as_ptr(), keywords.as_ptr())
    }
}

/// Sends what the log has of a line: later it would find no reader.
unsafe fn flush(log: *mut py::PyObject) -> Option<()> {
    // SAFETY: with the lock of Python and an object that the caller keeps.
    unsafe {
        let rest = Ref::own(py::PyObject_GetAttrString(log, c"_rest".as_ptr()))?;
        if py::PyObject_IsTrue(rest.as_ptr()) != 0 {
            let flush = Ref::own(py::PyObject_GetAttrString(log, c"flush".as_ptr()))?;
            Ref::own(py::PyObject_CallFunctionObjArgs(
                flush.as_ptr(),
                ptr::null_mut::<py::PyObject>(),
            ))?;
        }
        Some(())
    }
}

fn put_frame(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(content);
}

/// The characters of a text of visible ASCII, spaces and tabs.
unsafe fn plain<'a>(object: *mut py::PyObject) -> Option<&'a [u8]> {
    // SAFETY: with the lock of Python and an object that the caller keeps. The object keeps its
    // characters as UTF-8.
    unsafe {
        if object.is_null() || py::PyUnicode_CheckExact(object) == 0 {
            return None;
        }
        let mut len = 0;
        let start = py::PyUnicode_AsUTF8AndSize(object, &raw mut len);
        if start.is_null() {
            py::PyErr_Clear();
            return None;
        }
        let text = std::slice::from_raw_parts(start.cast::<u8>(), len.cast_unsigned());
        text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')).then_some(text)
    }
}

fn is_status(line: &[u8]) -> bool {
    let Some((digits, reason)) = line.split_at_checked(3) else { return false };
    digits.iter().all(u8::is_ascii_digit)
        && reason.first() == Some(&b' ')
        && !reason.contains(&b'\t')
}

/// A number without leading zeros or spaces.
fn decimal(text: &[u8]) -> Option<usize> {
    let is_plain = match text {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 18 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_plain.then(|| text.iter().fold(0, |all: usize, digit| all * 10 + usize::from(digit - b'0')))
}

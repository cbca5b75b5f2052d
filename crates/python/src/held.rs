//! Python objects that hold a value of Rust, and what all of them need.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3_ffi as py;

/// An object with a value.
#[repr(C)]
struct Held<T> {
    base: py::PyObject,
    value: *mut T,
}

/// Makes a type, whose values threads share. `methods` must end with [`py::PyMethodDef::zeroed`],
/// and lives as long as the process. Without `new`, only Rust makes objects.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn make_type<T: Send + Sync>(
    name: &'static CStr,
    methods: Vec<py::PyMethodDef>,
    new: Option<py::newfunc>,
) -> *mut py::PyObject {
    let methods = Box::leak(methods.into_boxed_slice());
    let slot = |slot: c_int, pfunc: *mut c_void| py::PyType_Slot { slot, pfunc };
    let mut slots = vec![
        slot(py::Py_tp_dealloc, drop_held::<T> as *mut c_void),
        slot(py::Py_tp_methods, methods.as_mut_ptr().cast()),
    ];
    let mut flags = py::Py_TPFLAGS_DEFAULT;
    match new {
        Some(new) => slots.push(slot(py::Py_tp_new, new as *mut c_void)),
        None => flags |= py::Py_TPFLAGS_DISALLOW_INSTANTIATION,
    }
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = py::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size_of::<Held<T>>() as c_int,
        itemsize: 0,
        flags: flags as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification is complete; Python copies it, but for the methods.
    unsafe { py::PyType_FromSpec(&raw mut spec) }
}

/// Makes an object; `None` with an error of Python.
///
/// # Safety
/// With the lock of Python, and a type that [`make_type`] has made for `T`.
pub(crate) unsafe fn make<T: Send + Sync>(kind: *mut py::PyTypeObject, value: T) -> Option<Ref> {
    // SAFETY: as the caller promises; the object has room for the pointer.
    unsafe {
        let object = Ref::own(py::PyType_GenericAlloc(kind, 0))?;
        (*object.as_ptr().cast::<Held<T>>()).value = Box::into_raw(Box::new(value));
        Some(object)
    }
}

/// The value of an object.
///
/// # Safety
/// With the lock of Python, for an object that [`make`] has made with a `T`, and not beyond its
/// life. The value is shared.
pub(crate) unsafe fn get<'a, T>(object: *mut py::PyObject) -> &'a T {
    // SAFETY: as the caller promises.
    unsafe { &*(*object.cast::<Held<T>>()).value }
}

unsafe extern "C" fn drop_held<T>(object: *mut py::PyObject) {
    // SAFETY: Python calls it once, for an object of a type of `make_type`.
    unsafe {
        let kind = py::Py_TYPE(object);
        let value = (*object.cast::<Held<T>>()).value;
        if !value.is_null() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(value))));
        }
        py::PyObject_Free(object.cast());
        py::Py_DECREF(kind.cast());
    }
}

/// Runs the body of a function that Python calls; `None` is an error of Python. A panic is an error
/// of this module, which must not end the process with the requests of its other threads.
pub(crate) fn caught(body: impl FnOnce() -> Option<Ref>) -> *mut py::PyObject {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        // SAFETY: Python calls with its lock, which nothing here gives up for good.
        unsafe { py::PyErr_SetString(py::PyExc_SystemError, c"a bug of _tamarack_wsgi".as_ptr()) };
        None
    });
    outcome.map_or(ptr::null_mut(), Ref::into_ptr)
}

/// Runs the body of a method with `N` arguments, as [`caught`] does. Another number of them is an
/// error with the text `usage`.
///
/// # Safety
/// Python calls the method with its lock, an object that [`make`] has made with a `T`, and as many
/// arguments as counted, all of which its caller keeps.
pub(crate) unsafe fn called<'a, T: 'a, const N: usize>(
    (this, args, count): (*mut py::PyObject, *mut *mut py::PyObject, py::Py_ssize_t),
    usage: &CStr,
    body: impl FnOnce(&'a T, [*mut py::PyObject; N]) -> Option<Ref>,
) -> *mut py::PyObject {
    // SAFETY: as the caller promises.
    caught(|| unsafe {
        if count.cast_unsigned() != N {
            return os_error(usage);
        }
        body(get::<T>(this), std::array::from_fn(|at| *args.add(at)))
    })
}

/// A method with positional arguments.
pub(crate) fn method(name: &'static CStr, function: py::PyCFunctionFast) -> py::PyMethodDef {
    py::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: py::PyMethodDefPointer { PyCFunctionFast: function },
        ml_flags: py::METH_FASTCALL,
        ml_doc: ptr::null::<c_char>(),
    }
}

/// An owned reference.
#[derive(Debug)]
pub(crate) struct Ref(*mut py::PyObject);

// SAFETY: objects belong to no thread, and all that is done with one is done as Python needs it.
unsafe impl Send for Ref {}
// SAFETY: as above.
unsafe impl Sync for Ref {}

impl Ref {
    /// Takes a reference over; `None` with an error of Python.
    ///
    /// # Safety
    /// The reference is null or owned by the caller.
    pub unsafe fn own(object: *mut py::PyObject) -> Option<Ref> {
        if object.is_null() { None } else { Some(Ref(object)) }
    }

    /// One more reference to an object.
    ///
    /// # Safety
    /// With the lock of Python; the object lives.
    pub unsafe fn share(object: *mut py::PyObject) -> Ref {
        // SAFETY: as the caller promises.
        unsafe { py::Py_INCREF(object) };
        Ref(object)
    }

    pub fn as_ptr(&self) -> *mut py::PyObject {
        self.0
    }

    pub fn into_ptr(self) -> *mut py::PyObject {
        let object = self.0;
        std::mem::forget(self);
        object
    }
}

impl Clone for Ref {
    fn clone(&self) -> Ref {
        // SAFETY: owned, and everything here is cloned under the lock of Python.
        unsafe { Ref::share(self.0) }
    }
}

impl Drop for Ref {
    fn drop(&mut self) {
        // SAFETY: owned, and everything here is dropped under the lock of Python.
        unsafe { py::Py_DECREF(self.0) };
    }
}

/// Gives an object another value.
///
/// # Safety
/// As for [`get`]; nothing uses the value that it has.
pub(crate) unsafe fn replace<T>(object: *mut py::PyObject, value: T) {
    // SAFETY: as the caller promises.
    unsafe { *(*object.cast::<Held<T>>()).value = value };
}

/// A name that is looked up often.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn interned(name: &CStr) -> Option<Ref> {
    // SAFETY: as the caller promises.
    unsafe { Ref::own(py::PyUnicode_InternFromString(name.as_ptr())) }
}

/// Text of Latin-1.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn latin1(text: &[u8]) -> Option<Ref> {
    let len = text.len().cast_signed();
    // SAFETY: the bytes are copied.
    unsafe { Ref::own(py::PyUnicode_DecodeLatin1(text.as_ptr().cast(), len, ptr::null())) }
}

/// A tuple; `None` if one of its items is.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn tuple(items: impl ExactSizeIterator<Item = Option<Ref>>) -> Option<Ref> {
    // SAFETY: as the caller promises. What is put into the tuple is given to it.
    unsafe {
        let tuple = Ref::own(py::PyTuple_New(items.len().cast_signed()))?;
        for (place, item) in (0..).zip(items) {
            if py::PyTuple_SetItem(tuple.as_ptr(), place, item?.into_ptr()) < 0 {
                return None;
            }
        }
        Some(tuple)
    }
}

/// An item of a list, which another thread may change; `None` with an error of Python.
///
/// # Safety
/// With the lock of Python; the list lives.
pub(crate) unsafe fn item(list: *mut py::PyObject, place: py::Py_ssize_t) -> Option<Ref> {
    // SAFETY: as the caller promises.
    unsafe { Ref::own(py::compat::PyList_GetItemRef(list, place)) }
}

/// Locks what threads share. What a panic has left there is in order.
pub(crate) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An attribute of an object.
///
/// # Safety
/// With the lock of Python; the object lives.
pub(crate) unsafe fn attribute(object: *mut py::PyObject, name: &CStr) -> Option<Ref> {
    // SAFETY: as the caller promises.
    unsafe { Ref::own(py::PyObject_GetAttrString(object, name.as_ptr())) }
}

/// What an object returns that is called with up to two arguments, of which further ones are null.
///
/// # Safety
/// With the lock of Python; the objects live.
pub(crate) unsafe fn call(
    object: *mut py::PyObject,
    [first, second]: [*mut py::PyObject; 2],
) -> Option<Ref> {
    let nothing = ptr::null_mut::<py::PyObject>();
    // SAFETY: as the caller promises.
    unsafe { Ref::own(py::PyObject_CallFunctionObjArgs(object, first, second, nothing)) }
}

/// An integer.
///
/// # Safety
/// With the lock of Python; the object lives.
pub(crate) unsafe fn number(object: *mut py::PyObject) -> Option<i64> {
    // SAFETY: as the caller promises.
    let number = unsafe { py::PyLong_AsLongLong(object) };
    // SAFETY: with the lock.
    (number != -1 || unsafe { py::PyErr_Occurred() }.is_null()).then_some(number)
}

/// An integer that is not negative.
///
/// # Safety
/// With the lock of Python; the object lives.
pub(crate) unsafe fn unsigned(object: *mut py::PyObject) -> Option<u64> {
    // SAFETY: as the caller promises.
    let number = unsafe { py::PyLong_AsUnsignedLongLong(object) };
    // SAFETY: with the lock.
    (number != u64::MAX || unsafe { py::PyErr_Occurred() }.is_null()).then_some(number)
}

/// The bytes of a bytes object; `None` with an error of Python.
///
/// # Safety
/// With the lock of Python, and as long as the object lives.
pub(crate) unsafe fn bytes_of<'a>(object: *mut py::PyObject) -> Option<&'a [u8]> {
    let (mut start, mut len) = (ptr::null_mut(), 0);
    // SAFETY: as the caller promises.
    unsafe {
        if py::PyBytes_AsStringAndSize(object, &raw mut start, &raw mut len) < 0 {
            return None;
        }
        Some(std::slice::from_raw_parts(start.cast::<u8>(), len.cast_unsigned()))
    }
}

/// Raises an `OSError`.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn os_error(text: &CStr) -> Option<Ref> {
    // SAFETY: with the lock.
    unsafe { py::PyErr_SetString(py::PyExc_OSError, text.as_ptr()) };
    None
}

/// None.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn none() -> Option<Ref> {
    // SAFETY: with the lock.
    Some(unsafe { Ref::share(py::Py_None()) })
}

/// Runs something without the lock of Python.
///
/// # Safety
/// With the lock of Python, which `wait` must not need.
pub(crate) unsafe fn unlocked<T>(wait: impl FnOnce() -> T) -> T {
    // SAFETY: as the caller promises; the state is given back on the same thread.
    unsafe {
        let state = py::PyEval_SaveThread();
        let result = catch_unwind(AssertUnwindSafe(wait));
        py::PyEval_RestoreThread(state);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

//! The memory that a worker process shares with the loops, and its threads that wait there.

use std::cell::{Cell, RefCell};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3_ffi as py;
use wsgi::{Geometry, Region};

use crate::environ::Templates;
use crate::held::{
    Ref, caught, get, make, make_type as make_held, method, none, number, os_error, unlocked,
};
use crate::request::{self, Request};

/// What all requests of a process share.
pub(crate) struct Shared {
    pub region: Region,
    pub place: u16,
    /// What earlier requests have left. A thread that uses it takes it out: Python may give its
    /// lock to another one at any call, which then does without.
    pub templates: RefCell<Templates>,
    /// What all environs have.
    constants: RefCell<Option<Ref>>,
    /// Descriptors that wake loops, by their lanes.
    bells: RefCell<Vec<Option<RawFd>>>,
    /// Requests that were taken and are not finished.
    pub busy: Cell<usize>,
    is_draining: AtomicBool,
    /// How long a client may take nothing.
    pub send_timeout: Option<Duration>,
}

impl Shared {
    /// What all environs have.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn constants(&self) -> Option<Ref> {
        let constants = self.constants.borrow();
        // SAFETY: as the caller promises; the object is kept here.
        constants.as_ref().map(|constants| unsafe { Ref::share(constants.as_ptr()) })
    }

    /// Something has happened in a slot of a loop.
    pub fn tell_loop(&self, lane: u16, slot: u32) {
        if self.region.tell_loop(lane, slot) {
            self.ring(lane);
        }
    }

    fn ring(&self, lane: u16) {
        if let Some(Some(bell)) = self.bells.borrow().get(usize::from(lane)) {
            // SAFETY: open until `set_bell` replaces it, under the same lock.
            let bell = unsafe { BorrowedFd::borrow_raw(*bell) };
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }
}

pub(crate) unsafe fn make_type() -> *mut py::PyObject {
    let methods = vec![
        method(c"take", take),
        method(c"drain", drain),
        method(c"busy", busy),
        method(c"set_bell", set_bell),
        method(c"set_constants", set_constants),
        method(c"stat", stat),
        py::PyMethodDef::zeroed(),
    ];
    // SAFETY: as the caller promises, with the lock.
    unsafe { make_held::<Rc<Shared>>(c"_tamarack_wsgi.Ring", methods, Some(new)) }
}

/// `Ring(descriptor, place, slots, lanes, places, timeout)`, the last in seconds or 0.
unsafe extern "C" fn new(
    kind: *mut py::PyTypeObject,
    args: *mut py::PyObject,
    _: *mut py::PyObject,
) -> *mut py::PyObject {
    // SAFETY: Python calls it with its lock and a tuple.
    caught(|| unsafe {
        let mut numbers = [0u32; 6];
        for (at, place) in (0..).zip(&mut numbers) {
            let item = py::PyTuple_GetItem(args, at);
            if item.is_null() {
                return ptr::null_mut();
            }
            match u32::try_from(py::PyLong_AsLongLong(item)) {
                Ok(number) => *place = number,
                Err(_) => return os_error(c"not the numbers of a region"),
            }
        }
        let [descriptor, place, slots, lanes, places, timeout] = numbers;
        let geometry = Geometry::new(slots as usize, lanes as usize, places as usize);
        let file = OwnedFd::from_raw_fd(descriptor.cast_signed());
        let (Ok(region), Ok(number)) = (Region::map(file, geometry), u16::try_from(place)) else {
            return os_error(c"the region can't be mapped");
        };
        if place >= geometry.processes() {
            return os_error(c"no such place in the region");
        }
        let shared = Shared {
            region,
            place: number,
            templates: RefCell::default(),
            constants: RefCell::default(),
            bells: RefCell::default(),
            busy: Cell::new(0),
            is_draining: AtomicBool::new(false),
            send_timeout: (timeout > 0).then(|| Duration::from_secs(timeout.into())),
        };
        make(kind, Rc::new(shared))
    })
}

/// Waits for a request; None at the end.
unsafe extern "C" fn take(
    this: *mut py::PyObject,
    _: *mut *mut py::PyObject,
    _: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: Python calls it with its lock and an object of this type, which the caller keeps.
    caught(|| unsafe {
        let shared = get::<Rc<Shared>>(this);
        let (region, place) = (&shared.region, u32::from(shared.place));
        loop {
            region.is_up(place);
            if shared.is_draining.load(Ordering::SeqCst) {
                // It may have been woken for a request, which is another process's.
                if region.queued() > 0 {
                    region.wake_worker();
                }
                return none();
            }
            if let Some((slot, state, has_more)) = region.take(shared.place) {
                if has_more {
                    region.wake_worker();
                }
                shared.busy.set(shared.busy.get() + 1);
                return request::make_object(Request::new(shared.clone(), slot, state));
            }
            let draining = &shared.is_draining;
            unlocked(|| {
                region.sleep(place, || draining.load(Ordering::SeqCst) || region.queued() > 0);
            });
        }
    })
}

/// From now on no request is taken.
unsafe extern "C" fn drain(
    this: *mut py::PyObject,
    _: *mut *mut py::PyObject,
    _: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    caught(|| unsafe {
        let shared = get::<Rc<Shared>>(this);
        shared.is_draining.store(true, Ordering::SeqCst);
        shared.region.wake_all(u32::from(shared.place));
        // Another process may be idle.
        if shared.region.queued() > 0 {
            shared.region.wake_worker();
        }
        none()
    })
}

/// The number of requests that are not finished.
unsafe extern "C" fn busy(
    this: *mut py::PyObject,
    _: *mut *mut py::PyObject,
    _: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    caught(|| unsafe { py::PyLong_FromSize_t(get::<Rc<Shared>>(this).busy.get()) })
}

/// `set_bell(lane, descriptor)`: a negative one if the loop has gone. Returns the one before.
unsafe extern "C" fn set_bell(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above; there are as many arguments as counted.
    caught(|| unsafe {
        let shared = get::<Rc<Shared>>(this);
        if count != 2 {
            return os_error(c"set_bell(lane, descriptor)");
        }
        let (Some(lane), Some(descriptor)) = (number(args, 0), number(args, 1)) else {
            return ptr::null_mut();
        };
        let Ok(lane) = u16::try_from(lane) else { return os_error(c"no lane") };
        if u32::from(lane) >= shared.region.geometry().lanes() {
            return os_error(c"no such lane");
        }
        let bell = RawFd::try_from(descriptor).ok().filter(|bell| *bell >= 0);
        let before = {
            let mut bells = shared.bells.borrow_mut();
            let needed = usize::from(lane) + 1;
            if bells.len() < needed {
                bells.resize(needed, None);
            }
            bells.get_mut(usize::from(lane)).and_then(|place| std::mem::replace(place, bell))
        };
        // What has happened before could not be told.
        shared.ring(lane);
        py::PyLong_FromLong(before.unwrap_or(-1).into())
    })
}

/// `set_constants(dict)`: what all environs have.
unsafe extern "C" fn set_constants(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    caught(|| unsafe {
        if count != 1 {
            return os_error(c"set_constants(dict)");
        }
        let shared = get::<Rc<Shared>>(this);
        let before = shared.constants.replace(Some(Ref::share(*args)));
        drop(before);
        none()
    })
}

/// `stat(path)`: time, number and size of a file, as `os.stat` has them; None if there is none.
unsafe extern "C" fn stat(
    _: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above. What is put into the tuple is given to it.
    caught(|| unsafe {
        if count != 1 {
            return os_error(c"stat(path)");
        }
        let Some(path) = request::bytes_of(*args) else { return ptr::null_mut() };
        let Ok(found) = rustix::fs::stat(path) else { return none() };
        let time = i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec);
        let time = py::PyLong_FromLongLong(i64::try_from(time).unwrap_or(i64::MAX));
        let number = py::PyLong_FromUnsignedLongLong(found.st_ino);
        let size = py::PyLong_FromLongLong(found.st_size);
        let Some(tuple) = Ref::own(py::PyTuple_New(3)) else { return ptr::null_mut() };
        for (place, item) in (0..).zip([time, number, size]) {
            if item.is_null() || py::PyTuple_SetItem(tuple.as_ptr(), place, item) < 0 {
                return ptr::null_mut();
            }
        }
        tuple.into_ptr()
    })
}

//! The memory that a worker process shares with the loops, and its threads that wait there.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pyo3_ffi as py;
use rustix::time::{ClockId, clock_gettime};
use wsgi::{Geometry, Known, Region, State};

use crate::environ::Templates;
use crate::held::{
    Ref, bytes_of, called, caught, locked, make, make_type as make_held, method, none, number,
    os_error, tuple, unlocked,
};
use crate::names::Names;
use crate::scripts::{self, Scripts};
use crate::seat;

/// A request that takes no longer is quick: the next one may be, too, and the loop's bell can wait
/// for its end. In nanoseconds.
const QUICK: u64 = 500_000;

/// How long ends of quick requests wait for others before the bells are rung, in nanoseconds.
const TOGETHER: u64 = 200_000;

/// What all requests of a process share.
pub(crate) struct Shared {
    pub region: Region,
    pub place: u16,
    /// What earlier requests have left, for each thread that uses it at the same time: it takes
    /// the last ones out, and puts them back.
    templates: Mutex<Vec<Templates>>,
    /// What all environs have.
    constants: Mutex<Option<Ref>>,
    /// Descriptors that wake loops, by their lanes.
    bells: RwLock<Vec<Option<RawFd>>>,
    /// Requests that were seen to wait.
    known: Mutex<Known>,
    /// When the first request ended for which no bell was rung; 0 if all were.
    unrung: AtomicU64,
    /// Requests that were taken and are not finished.
    pub busy: AtomicUsize,
    is_draining: AtomicBool,
    /// How long a client may take nothing.
    pub send_timeout: Option<Duration>,
    /// How many requests were begun.
    count: AtomicU64,
    /// When the extension last served a request by itself.
    activity: AtomicU64,
    /// When the companion last learned that the process is in use.
    pub used: AtomicU64,
    pub scripts: Scripts,
    pub names: Names,
}

/// A request that was taken, and when.
pub(crate) struct Taken {
    pub slot: u32,
    pub state: State,
    pub began: u64,
}

/// The time in nanoseconds, as `time.monotonic_ns` has it.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The time in seconds since 1970.
pub(crate) fn wall_seconds() -> f64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

impl Shared {
    /// What all environs have.
    pub fn constants(&self) -> Option<Ref> {
        locked(&self.constants).clone()
    }

    /// What an earlier request has left.
    pub fn take_templates(&self) -> Templates {
        locked(&self.templates).pop().unwrap_or_default()
    }

    /// Leaves it to a later request. As many as threads have used at the same time are kept.
    pub fn leave_templates(&self, templates: Templates) {
        locked(&self.templates).push(templates);
    }

    /// Counts a request that is begun.
    pub fn begin(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A request goes to another process.
    pub fn uncount(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many requests were begun.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// An application has done something at this time.
    pub fn touch(&self, now: u64) {
        self.activity.store(now, Ordering::Relaxed);
    }

    /// Something has happened in a slot of a loop.
    pub fn tell_loop(&self, lane: u16, slot: u32) {
        if self.region.tell_loop(lane, slot) {
            self.ring(lane);
        }
    }

    /// A request has ended in a slot of a loop, which began at this time. Its bell is left alone if
    /// the loop looks soon: it would take the CPU from this thread each time, which has more to do.
    pub fn tell_end(&self, lane: u16, slot: u32, began: u64) {
        let now = now();
        if now.saturating_sub(began) >= QUICK {
            return self.tell_loop(lane, slot);
        }
        if self.region.tell_loop_soon(lane, slot) {
            self.ring(lane);
        }
        match self.unrung.load(Ordering::SeqCst) {
            // Two threads may set it: the times differ by nothing that matters.
            0 => self.unrung.store(now.max(1), Ordering::SeqCst),
            first if now.saturating_sub(first) >= TOGETHER => self.ring_all(),
            _ => {}
        }
    }

    /// Rings the bells that were left alone.
    fn ring_all(&self) {
        if self.unrung.swap(0, Ordering::SeqCst) == 0 {
            return;
        }
        let lanes = self.bells.read().unwrap_or_else(PoisonError::into_inner).len();
        for lane in (0..lanes).filter_map(|lane| u16::try_from(lane).ok()) {
            if self.region.must_ring(lane) {
                self.ring(lane);
            }
        }
    }

    fn ring(&self, lane: u16) {
        let bells = self.bells.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(bell)) = bells.get(usize::from(lane)) {
            // SAFETY: open until `set_bell` has replaced it, for which it needs the lock.
            let bell = unsafe { BorrowedFd::borrow_raw(*bell) };
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }
}

pub(crate) unsafe fn make_type() -> *mut py::PyObject {
    let methods = vec![
        method(c"seat", seat::seat),
        method(c"drain", drain),
        method(c"busy", busy),
        method(c"set_bell", set_bell),
        method(c"set_constants", set_constants),
        method(c"stat", stat),
        method(c"know", scripts::know),
        method(c"forget", scripts::forget),
        method(c"count", count_begun),
        method(c"activity", activity),
        py::PyMethodDef::zeroed(),
    ];
    // SAFETY: as the caller promises, with the lock.
    unsafe { make_held::<Arc<Shared>>(c"_tamarack_wsgi.Ring", methods, Some(new)) }
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
                return None;
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
            templates: Mutex::default(),
            constants: Mutex::default(),
            bells: RwLock::default(),
            known: Mutex::default(),
            unrung: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            is_draining: AtomicBool::new(false),
            send_timeout: (timeout > 0).then(|| Duration::from_secs(timeout.into())),
            count: AtomicU64::new(0),
            activity: AtomicU64::new(0),
            used: AtomicU64::new(0),
            scripts: Scripts::default(),
            names: Names::new()?,
        };
        make(kind, Arc::new(shared))
    })
}

/// Waits for a request; `None` once no more are taken.
///
/// # Safety
/// With the lock of Python.
pub(crate) unsafe fn next_request(shared: &Shared) -> Option<Taken> {
    let (region, place) = (&shared.region, u32::from(shared.place));
    loop {
        region.is_up(place);
        if shared.is_draining.load(Ordering::SeqCst) {
            shared.ring_all();
            // It may have been woken for a request, which is another process's.
            if region.queued() > 0 {
                region.wake_worker();
            }
            return None;
        }
        let taken = region.take(shared.place, &mut locked(&shared.known));
        if let Some((slot, state, has_more)) = taken {
            if has_more {
                region.wake_worker();
            }
            shared.busy.fetch_add(1, Ordering::SeqCst);
            return Some(Taken { slot, state, began: now() });
        }
        shared.ring_all();
        let draining = &shared.is_draining;
        let wait =
            || region.sleep(place, || draining.load(Ordering::SeqCst) || region.queued() > 0);
        // SAFETY: as the caller promises; only the region is used.
        unsafe { unlocked(wait) };
    }
}

/// `drain()`: from now on no request is taken.
unsafe extern "C" fn drain(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as `called` needs it, and so are those below; the body has the lock.
    unsafe {
        called((this, args, count), c"drain()", |shared: &Arc<Shared>, []| {
            shared.is_draining.store(true, Ordering::SeqCst);
            shared.region.wake_all(u32::from(shared.place));
            // Another process may be idle.
            if shared.region.queued() > 0 {
                shared.region.wake_worker();
            }
            none()
        })
    }
}

/// `busy()`: the number of requests that are not finished.
unsafe extern "C" fn busy(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"busy()", |shared: &Arc<Shared>, []| {
            Ref::own(py::PyLong_FromSize_t(shared.busy.load(Ordering::SeqCst)))
        })
    }
}

/// `set_bell(lane, descriptor)`: a negative one if the loop has gone. Returns the one before.
unsafe extern "C" fn set_bell(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    let usage = c"set_bell(lane, descriptor)";
    // SAFETY: as above.
    unsafe {
        called((this, args, count), usage, |shared: &Arc<Shared>, [lane, descriptor]| {
            let (lane, descriptor) = (number(lane)?, number(descriptor)?);
            let Ok(lane) = u16::try_from(lane) else { return os_error(c"no lane") };
            if u32::from(lane) >= shared.region.geometry().lanes() {
                return os_error(c"no such lane");
            }
            let bell = RawFd::try_from(descriptor).ok().filter(|bell| *bell >= 0);
            let before = {
                let mut bells = shared.bells.write().unwrap_or_else(PoisonError::into_inner);
                let needed = usize::from(lane) + 1;
                if bells.len() < needed {
                    bells.resize(needed, None);
                }
                bells.get_mut(usize::from(lane)).and_then(|place| std::mem::replace(place, bell))
            };
            if let Some(bell) = bell {
                // An application that has ended may have had writes to it wait. It is open.
                let _ = rustix::io::ioctl_fionbio(BorrowedFd::borrow_raw(bell), true);
            }
            // What has happened before could not be told.
            shared.ring(lane);
            Ref::own(py::PyLong_FromLong(before.unwrap_or(-1).into()))
        })
    }
}

/// `set_constants(dict)`: what all environs have.
unsafe extern "C" fn set_constants(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"set_constants(dict)", |shared: &Arc<Shared>, [constants]| {
            let before = locked(&shared.constants).replace(Ref::share(constants));
            drop(before);
            none()
        })
    }
}

/// `stat(path)`: time, number and size of a file, as `os.stat` has them; None if there is none.
unsafe extern "C" fn stat(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"stat(path)", |_: &Arc<Shared>, [path]| {
            let Ok(found) = rustix::fs::stat(bytes_of(path)?) else { return none() };
            let time = i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec);
            let time = py::PyLong_FromLongLong(i64::try_from(time).unwrap_or(i64::MAX));
            let number = py::PyLong_FromUnsignedLongLong(found.st_ino);
            let size = py::PyLong_FromLongLong(found.st_size);
            let items = [time, number, size].map(|item| Ref::own(item));
            tuple(items.into_iter())
        })
    }
}

/// `count()`: how many requests were begun.
unsafe extern "C" fn count_begun(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"count()", |shared: &Arc<Shared>, []| {
            Ref::own(py::PyLong_FromUnsignedLongLong(shared.count()))
        })
    }
}

/// `activity()`: when a request was served last without the worker's code, as of `time.monotonic`;
/// 0 if none was.
unsafe extern "C" fn activity(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"activity()", |shared: &Arc<Shared>, []| {
            let activity = shared.activity.load(Ordering::Relaxed);
            Ref::own(py::PyFloat_FromDouble(activity as f64 / 1e9))
        })
    }
}

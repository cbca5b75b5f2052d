//! A request that this process has taken: its head, its body, and what is sent.

mod body;

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pyo3_ffi as py;
use wsgi::{State, Stream, Torn};

use crate::environ::Templates;
use crate::head::{Head, LENGTH_BYTES, TEXTS};
use crate::held::{
    Ref, bytes_of, called, locked, make, make_type, method, none, os_error, tuple, unlocked,
};
use crate::response;
use crate::ring::{Shared, Taken};

/// The type of requests.
static KIND: AtomicPtr<py::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// The text of a head with the time at which the request came.
const RECEIVED: usize = 7;

/// A request.
pub(crate) struct Request {
    shared: Arc<Shared>,
    slot: u32,
    state: State,
    /// When it was taken.
    began: u64,
    /// Under it, the slot is this request's: what is put there or taken from there is.
    ends: Mutex<Ends>,
}

/// How far a request is.
#[derive(Default)]
struct Ends {
    written: u32,
    read: u32,
    /// The head, if it was read for the worker's code.
    head: Option<Vec<u8>>,
    /// What was read and not used.
    rest: Vec<u8>,
    /// Bytes of the body's current piece that were not read.
    left: usize,
    /// The body was read to its end.
    has_read_all: bool,
    is_over: bool,
    /// A thread is in the middle of a frame, and waits.
    is_writing: bool,
}

impl Request {
    pub fn new(shared: Arc<Shared>, Taken { slot, state, began }: Taken) -> Request {
        Request { shared, slot, state, began, ends: Mutex::default() }
    }

    /// Whether the loop still waits for the response.
    pub fn is_waited_for(&self) -> bool {
        self.is_wanted(&locked(&self.ends))
    }

    /// The same for a caller that has the lock.
    fn is_wanted(&self, ends: &Ends) -> bool {
        !ends.is_over && self.shared.region.state(self.slot) == Some(self.state)
    }

    /// Reads until `rest` has at least so many bytes; false if they do not come.
    ///
    /// # Safety
    /// With the lock of Python.
    unsafe fn fill(&self, least: usize) -> bool {
        loop {
            if locked(&self.ends).rest.len() >= least {
                return true;
            }
            // SAFETY: as the caller promises.
            let received = unsafe {
                self.receive(|stream, Ends { read, rest, .. }| stream.take(read, usize::MAX, rest))
            };
            if received.is_none() {
                return false;
            }
        }
    }

    /// Takes bytes of the stream from the loop, or waits if there are none: how many were taken,
    /// `None` if no more come.
    ///
    /// # Safety
    /// With the lock of Python.
    unsafe fn receive(
        &self,
        take: impl FnOnce(&Stream<'_>, &mut Ends) -> Result<usize, Torn>,
    ) -> Option<usize> {
        let region = &self.shared.region;
        let mut ends = locked(&self.ends);
        let seen = region.changes(self.slot);
        if !self.is_wanted(&ends) {
            return None;
        }
        let count = take(&region.down(self.slot), &mut ends).ok()?;
        if count == 0 && region.is_down_closed(self.slot) {
            return None;
        }
        if region.takes_wait_for_room(self.slot, ends.read) {
            self.shared.tell_loop(self.state.lane, self.slot);
        }
        drop(ends);
        if count == 0 {
            // SAFETY: as the caller promises; only the region is used.
            unsafe { unlocked(|| region.wait_for_change(self.slot, seen)) };
        }
        Some(count)
    }

    /// Sends all of these bytes; false if the loop has gone.
    ///
    /// # Safety
    /// With the lock of Python. The bytes must stay what they are without it.
    unsafe fn send(&self, bytes: &[u8]) -> bool {
        locked(&self.ends).is_writing = true;
        // SAFETY: as the caller promises.
        let is_sent = unsafe { self.send_all(bytes) };
        locked(&self.ends).is_writing = false;
        is_sent
    }

    unsafe fn send_all(&self, mut bytes: &[u8]) -> bool {
        let region = &self.shared.region;
        let mut began: Option<Instant> = None;
        while !bytes.is_empty() {
            let seen = region.changes(self.slot);
            let count = {
                let mut ends = locked(&self.ends);
                if !self.is_wanted(&ends) {
                    return false;
                }
                region.up(self.slot).put(&mut ends.written, bytes)
            };
            match count {
                Err(_) => return false,
                Ok(0) => {
                    let waited = began.get_or_insert_with(Instant::now).elapsed();
                    if self.shared.send_timeout.is_some_and(|limit| waited >= limit) {
                        return false;
                    }
                    // SAFETY: as the caller promises; only the region is used.
                    unsafe { unlocked(|| region.wait_for_change(self.slot, seen)) };
                }
                Ok(count) => {
                    began = None;
                    self.shared.tell_loop(self.state.lane, self.slot);
                    bytes = bytes.get(count..).unwrap_or_default();
                }
            }
        }
        true
    }

    /// Sends a whole response and finishes, if it can be done at once; `None` if it can't, and
    /// whether the loop waits for it.
    pub fn send_whole(&self, frames: &[u8]) -> Option<bool> {
        let mut ends = locked(&self.ends);
        let stream = self.shared.region.up(self.slot);
        if ends.is_writing || ends.is_over || stream.room(ends.written).ok()? < frames.len() {
            return None;
        }
        let is_wanted = self.is_wanted(&ends);
        if is_wanted {
            let _ = stream.put(&mut ends.written, frames);
        }
        self.end(&mut ends);
        Some(is_wanted)
    }

    /// The slot is the loop's from now on.
    pub fn finish(&self) {
        self.end(&mut locked(&self.ends));
    }

    fn end(&self, ends: &mut Ends) {
        if !std::mem::replace(&mut ends.is_over, true) {
            self.shared.busy.fetch_sub(1, Ordering::SeqCst);
            if self.shared.region.finish(self.slot, self.state) {
                self.shared.tell_end(self.state.lane, self.slot, self.began);
            }
        }
    }

    /// Reads the head, as [`Head::parse`] takes it; `None` if the client has gone.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn read_head(&self) -> Option<Vec<u8>> {
        // SAFETY: as the caller promises, and so below.
        if !unsafe { self.fill(LENGTH_BYTES) } {
            return None;
        }
        let length = locked(&self.ends).rest.first_chunk::<LENGTH_BYTES>().copied()?;
        let end = LENGTH_BYTES + u32::from_le_bytes(length) as usize;
        // SAFETY: as above.
        if !unsafe { self.fill(end) } {
            return None;
        }
        let rest = &mut locked(&self.ends).rest;
        let left = rest.split_off(end);
        Some(std::mem::replace(rest, left))
    }

    /// Leaves the head to [`head`].
    pub fn put_back(&self, head: Vec<u8>) {
        locked(&self.ends).head = Some(head);
    }

    /// The head: its texts, the time, and the environ; None if the client has gone.
    unsafe fn head(&self) -> Option<Ref> {
        // SAFETY: with the lock of Python, as the caller promises.
        unsafe {
            let known = locked(&self.ends).head.take();
            let Some(head) = known.or_else(|| self.read_head()) else { return none() };
            let mut templates = self.shared.take_templates();
            let parsed = self.parsed(&Head::parse(&head), &mut templates);
            self.shared.leave_templates(templates);
            parsed
        }
    }

    /// The same of the text of a head.
    unsafe fn parsed(&self, head: &Head<'_>, templates: &mut Templates) -> Option<Ref> {
        // SAFETY: as above.
        let items = (0..TEXTS + 1).map(|place| unsafe {
            match head.texts.get(place) {
                None => templates.environ(head.environ, self.shared.constants().as_ref()),
                Some(_) if place == RECEIVED => Ref::own(py::PyFloat_FromDouble(head.received())),
                Some(text) => templates.text(place, text),
            }
        });
        // SAFETY: as above.
        unsafe { tuple(items) }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Makes the type; false with an error of Python.
///
/// # Safety
/// With the lock of Python, once.
pub(crate) unsafe fn prepare() -> bool {
    let methods = vec![
        method(c"head", head),
        method(c"piece", body::piece),
        method(c"send", send),
        method(c"is_closed", is_closed),
        method(c"finish", finish),
        method(c"respond", response::respond),
        py::PyMethodDef::zeroed(),
    ];
    // SAFETY: as the caller promises.
    let kind = unsafe { make_type::<Request>(c"_tamarack_wsgi.Request", methods, None) };
    KIND.store(kind.cast(), Ordering::Relaxed);
    !kind.is_null()
}

/// A request as an object.
///
/// # Safety
/// With the lock of Python, after [`prepare`].
pub(crate) unsafe fn make_object(request: Request) -> Option<Ref> {
    // SAFETY: as the caller promises.
    unsafe { make(KIND.load(Ordering::Relaxed), request) }
}

/// `head()`: a tuple, or None if the client has gone.
unsafe extern "C" fn head(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as `called` needs it, and so are those below; the body has the lock.
    unsafe { called((this, args, count), c"head()", |request: &Request, []| request.head()) }
}

/// `send(bytes)`
unsafe extern "C" fn send(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above. The caller keeps the argument, whose bytes never change.
    unsafe {
        called((this, args, count), c"send(bytes)", |request: &Request, [bytes]| {
            match request.send(bytes_of(bytes)?) {
                true => none(),
                false => os_error(c"the client has gone"),
            }
        })
    }
}

/// `is_closed()`
unsafe extern "C" fn is_closed(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"is_closed()", |request: &Request, []| {
            Ref::own(py::PyBool_FromLong((!request.is_waited_for()).into()))
        })
    }
}

/// `finish()`
unsafe extern "C" fn finish(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as above.
    unsafe {
        called((this, args, count), c"finish()", |request: &Request, []| {
            request.finish();
            none()
        })
    }
}

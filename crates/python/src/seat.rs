//! A thread of a worker, and the requests that it serves without code of the worker: those for a
//! script that is loaded and has not changed, as long as nothing is configured that needs more.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3_ffi as py;

use crate::head::Head;
use crate::held::{
    Ref, call, called, get, interned, locked, make, make_type as make_held, method, none, number,
    replace, tuple,
};
use crate::request::{self, Request};
use crate::response::{Maker, Outcome};
use crate::ring::{self, Shared, Taken};

/// The type of seats.
static KIND: AtomicPtr<py::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// How often the companion is told that the process is used, in nanoseconds.
const USED_EVERY: u64 = 1_000_000_000;

/// A thread's place.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    worker: Worker,
    /// The thread's number.
    thread: Ref,
    /// Whether all requests are left to the worker's code.
    is_plain: bool,
    /// How many requests the process serves (`maximum-requests`), or 0.
    maximum: u64,
    /// When the current request was taken; 0 if there is none.
    began: AtomicU64,
    /// How long earlier requests took, in nanoseconds.
    busy: AtomicU64,
    /// How many requests the thread has begun to serve.
    count: AtomicU64,
    /// The current request's environ, and what the application keeps for it.
    environ: Mutex<Option<Ref>>,
    data: Mutex<Option<Ref>>,
    kit: Mutex<Option<Kit>>,
}

/// What the worker's code does.
struct Worker {
    /// Makes the objects of a request: its wire, log, and input.
    kit: Ref,
    /// Gives a response that is not a usual one: `(wire, path, result, response)`.
    give: Ref,
    /// Says that the application has failed: `(wire, path, error)`.
    fail: Ref,
    /// Tells the companion that the process is used.
    used: Ref,
    /// Its class of responses.
    class: Ref,
    /// Functions that are told of each request: only the worker's code calls them.
    events: Ref,
}

/// The objects of a request. A later one uses them again if the application has kept none of them.
struct Kit {
    request: Ref,
    wire: Ref,
    log: Ref,
    input: Ref,
    maker: Maker,
    /// How many references there are to each of them while no request has them; none if they are
    /// not used again, since the input has a body.
    counts: [py::Py_ssize_t; 6],
}

/// How far a request came.
enum Progress {
    /// It is over; its objects may be used again.
    Over(Option<Kit>),
    /// The worker's code has to serve it, by this wire.
    Left(Ref),
}

impl Kit {
    /// # Safety
    /// With the lock of Python.
    unsafe fn make(worker: &Worker, request: Request, has_body: bool) -> Option<Kit> {
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
    unsafe fn is_as_new(&self) -> bool {
        // Without a lock, another thread may share one of them meanwhile.
        if cfg!(Py_GIL_DISABLED) || self.references() != self.counts {
            return false;
        }
        // SAFETY: as the caller promises.
        unsafe {
            self.maker.clear();
            let attributes =
                Ref::own(py::PyObject_GenericGetDict(self.log.as_ptr(), ptr::null_mut()));
            match attributes {
                Some(attributes) => py::PyDict_Size(attributes.as_ptr()) == 0,
                None => {
                    py::PyErr_Clear();
                    false
                }
            }
        }
    }

    /// # Safety
    /// With the lock of Python; the object lives as long as the reference is used.
    unsafe fn request<'a>(&self) -> &'a Request {
        // SAFETY: as the caller promises.
        unsafe { get::<Request>(self.request.as_ptr()) }
    }
}

impl Seat {
    /// Serves requests until there is one for the worker's code.
    ///
    /// # Safety
    /// With the lock of Python.
    unsafe fn serve(&self) -> Option<Ref> {
        // SAFETY: as the caller promises, and so are those below.
        unsafe {
            while let Some(taken) = ring::next_request(&self.shared) {
                self.began.store(taken.began, Ordering::Relaxed);
                let progress = self.serve_one(taken);
                if let Some(Progress::Left(wire)) = progress {
                    return Some(wire);
                }
                self.end();
                if let Progress::Over(Some(kit)) = progress?
                    && kit.is_as_new()
                {
                    let before = locked(&self.kit).replace(kit);
                    drop(before);
                }
            }
            none()
        }
    }

    /// The request is over when it returns, unless it is left.
    unsafe fn serve_one(&self, taken: Taken) -> Option<Progress> {
        // SAFETY: as the caller promises.
        unsafe {
            if self.is_used(taken.began) {
                call(self.worker.used.as_ptr(), [ptr::null_mut(); 2])?;
            }
            let request = Request::new(self.shared.clone(), taken);
            let text = request.read_head().filter(|_| request.is_waited_for());
            // Without it, the client has left while the request waited.
            let Some(text) = text else { return Some(Progress::Over(None)) };
            let head = Head::parse(&text);
            let Some((application, path)) = self.application(&head)? else {
                request.put_back(text);
                let kit = Kit::make(&self.worker, request, false)?;
                return Some(Progress::Left(kit.wire.clone()));
            };
            let kit = self.kit(request, head.has(b'b'))?;
            let run = self.run(&kit, &head, &application, &path);
            kit.request().finish();
            run.map(|()| Progress::Over(Some(kit)))
        }
    }

    /// The objects of a request.
    unsafe fn kit(&self, request: Request, has_body: bool) -> Option<Kit> {
        let known = if has_body { None } else { locked(&self.kit).take() };
        // SAFETY: as the caller promises. Nothing else knows of a request that is replaced.
        unsafe {
            match known {
                Some(kit) => {
                    replace(kit.request.as_ptr(), request);
                    Some(kit)
                }
                None => Kit::make(&self.worker, request, has_body),
            }
        }
    }

    /// The application of a request that needs no code of the worker, and the path of its script.
    unsafe fn application(&self, head: &Head<'_>) -> Option<Option<(Ref, Ref)>> {
        // SAFETY: as the caller promises.
        unsafe {
            let is_last = self.maximum > 0 && self.shared.count() + 1 >= self.maximum;
            let is_usual = self.is_plain
                && !is_last
                && head.is_plain()
                && py::PyList_Size(self.worker.events.as_ptr()) == 0;
            match is_usual {
                true => self.shared.scripts.application(head),
                false => Some(None),
            }
        }
    }

    /// Calls the application, and sends what it returns.
    unsafe fn run(&self, kit: &Kit, head: &Head<'_>, application: &Ref, path: &Ref) -> Option<()> {
        // SAFETY: as the caller promises.
        unsafe {
            let counts = self.begin();
            if !head.has(b'i') {
                self.shared.touch(self.began.load(Ordering::Relaxed));
            }
            let environ = self.environ(kit, head, counts)?;
            let before = locked(&self.environ).replace(environ.clone());
            drop(before);
            let arguments = (application, &environ, &kit.log);
            let outcome = kit.maker.run(kit.request(), arguments);
            let outcome = match outcome {
                Some(Outcome::Complete) => {
                    self.shared.touch(ring::now());
                    Some(())
                }
                Some(Outcome::Other { result, response }) => {
                    let arguments =
                        [&kit.wire, path, &result, &response].map(|one| Some(one.clone()));
                    self.ask(&self.worker.give, arguments)
                }
                None => self.fail(kit, path),
            };
            self.leave();
            outcome
        }
    }

    /// Has the worker's code say what went wrong.
    unsafe fn fail(&self, kit: &Kit, path: &Ref) -> Option<()> {
        let (mut kind, mut error, mut trace) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: as the caller promises; what is fetched is owned.
        unsafe {
            py::PyErr_Fetch(&raw mut kind, &raw mut error, &raw mut trace);
            py::PyErr_NormalizeException(&raw mut kind, &raw mut error, &raw mut trace);
            let [_kind, error, trace] = [kind, error, trace].map(|object| Ref::own(object));
            let error = error?;
            if let Some(trace) = &trace {
                py::PyException_SetTraceback(error.as_ptr(), trace.as_ptr());
            }
            drop(trace);
            let arguments = [&kit.wire, path, &error].map(|one| Some(one.clone()));
            self.ask(&self.worker.fail, arguments)
        }
    }

    unsafe fn ask<const N: usize>(
        &self,
        function: &Ref,
        arguments: [Option<Ref>; N],
    ) -> Option<()> {
        // SAFETY: as the caller promises.
        unsafe {
            let arguments = tuple(arguments.into_iter())?;
            let result = py::PyObject_Call(function.as_ptr(), arguments.as_ptr(), ptr::null_mut());
            Ref::own(result).map(drop)
        }
    }

    /// The environ of a request.
    unsafe fn environ(&self, kit: &Kit, head: &Head<'_>, counts: [u64; 2]) -> Option<Ref> {
        let names = &self.shared.names;
        // SAFETY: as the caller promises.
        unsafe {
            let mut templates = self.shared.take_templates();
            let environ = templates.environ(head.environ, self.shared.constants().as_ref());
            self.shared.leave_templates(templates);
            let environ = environ?;
            let received = Ref::own(py::PyFloat_FromDouble(head.received()))?;
            let now = Ref::own(py::PyFloat_FromDouble(ring::wall_seconds()))?;
            let counts = counts.map(|count| Ref::own(py::PyLong_FromUnsignedLongLong(count)));
            let [own, all] = counts;
            let flag = |flag| if head.has(flag) { &names.on } else { &names.off };
            let set = |name: &Ref, value: &Ref| {
                py::PyDict_SetItem(environ.as_ptr(), name.as_ptr(), value.as_ptr()) >= 0
            };
            let is_set = set(&names.errors, &kit.log)
                && set(&names.input, &kit.input)
                && set(&names.script_reloading, flag(b'r'))
                && set(&names.enable_sendfile, flag(b's'))
                && set(&names.ignore_activity, flag(b'i'))
                && set(&names.request_start, &received)
                && set(&names.queue_start, &received)
                && set(&names.daemon_start, &now)
                && set(&names.application_start, &now)
                && set(&names.thread_id, &self.thread)
                && set(&names.thread_requests, &own?)
                && set(&names.total_requests, &all?);
            is_set.then_some(environ)
        }
    }

    /// Counts a request: how many the thread and the process have.
    fn begin(&self) -> [u64; 2] {
        [self.count.fetch_add(1, Ordering::Relaxed) + 1, self.shared.begin()]
    }

    /// The current request has no environ any more.
    fn leave(&self) {
        let environ = locked(&self.environ).take();
        drop(environ);
        let data = locked(&self.data).take();
        drop(data);
    }

    /// The current request is over.
    fn end(&self) {
        let began = self.began.swap(0, Ordering::Relaxed);
        if began != 0 {
            self.busy.fetch_add(ring::now().saturating_sub(began), Ordering::Relaxed);
        }
    }

    /// Whether the companion is to be told that the process is used.
    fn is_used(&self, now: u64) -> bool {
        let used = &self.shared.used;
        let before = used.load(Ordering::Relaxed);
        now.saturating_sub(before) >= USED_EVERY
            && used.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Names of an environ that the server does not send.
pub(crate) struct Names {
    errors: Ref,
    input: Ref,
    script_reloading: Ref,
    enable_sendfile: Ref,
    ignore_activity: Ref,
    request_start: Ref,
    queue_start: Ref,
    daemon_start: Ref,
    application_start: Ref,
    thread_id: Ref,
    thread_requests: Ref,
    total_requests: Ref,
    /// Values of flags.
    on: Ref,
    off: Ref,
}

impl Names {
    /// `None` with an error of Python.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn new() -> Option<Names> {
        // SAFETY: as the caller promises.
        unsafe {
            Some(Names {
                errors: interned(c"wsgi.errors")?,
                input: interned(c"wsgi.input")?,
                script_reloading: interned(c"mod_wsgi.script_reloading")?,
                enable_sendfile: interned(c"mod_wsgi.enable_sendfile")?,
                ignore_activity: interned(c"mod_wsgi.ignore_activity")?,
                request_start: interned(c"mod_wsgi.request_start")?,
                queue_start: interned(c"mod_wsgi.queue_start")?,
                daemon_start: interned(c"mod_wsgi.daemon_start")?,
                application_start: interned(c"mod_wsgi.application_start")?,
                thread_id: interned(c"mod_wsgi.thread_id")?,
                thread_requests: interned(c"mod_wsgi.thread_requests")?,
                total_requests: interned(c"mod_wsgi.total_requests")?,
                on: interned(c"1")?,
                off: interned(c"0")?,
            })
        }
    }
}

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
    let kind = unsafe { make_held::<Seat>(c"_tamarack_wsgi.Seat", methods, None) };
    KIND.store(kind.cast(), Ordering::Relaxed);
    !kind.is_null()
}

/// `Ring.seat(thread, is_plain, maximum, kit, give, fail, used, class, events)`
pub(crate) unsafe extern "C" fn seat(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    let usage = c"seat(thread, is_plain, maximum, kit, give, fail, used, class, events)";
    // SAFETY: as `called` needs it; the body has the lock.
    unsafe {
        called((this, args, count), usage, |shared: &Arc<Shared>, arguments| {
            let [thread, is_plain, maximum, kit, give, fail, used, class, events] = arguments;
            let [kit, give, fail, used, class, events] =
                [kit, give, fail, used, class, events].map(|object| Ref::share(object));
            let seat = Seat {
                shared: shared.clone(),
                worker: Worker { kit, give, fail, used, class, events },
                thread: Ref::share(thread),
                is_plain: py::PyObject_IsTrue(is_plain) == 1,
                maximum: u64::try_from(number(maximum)?).unwrap_or(0),
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
/// returned; None once no more are taken. An error of the application, or of its response, is told
/// before it comes here.
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

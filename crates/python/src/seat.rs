//! A thread of a worker, and the requests that it serves without code of the worker: those for a
//! script that is loaded and has not changed, as long as nothing is configured that needs more.

mod methods;

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3_ffi as py;

pub(crate) use self::methods::{prepare, seat};
use crate::head::Head;
use crate::held::{Ref, call, locked, none, replace, tuple};
use crate::kit::{Kit, Worker};
use crate::request::Request;
use crate::response::{self, Outcome};
use crate::ring::{self, Shared, Taken};

/// How often the companion learns that the process is used, in nanoseconds.
const USED_EVERY: u64 = 1_000_000_000;

/// A thread's place.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    worker: Worker,
    /// The thread's number.
    thread: Ref,
    /// Whether the settings leave it requests: otherwise the worker's code serves all of them.
    is_plain: bool,
    /// How many requests the process begins before the others are left to the worker's code.
    most: Option<u64>,
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

/// How far a request came.
enum Progress {
    /// It is over; its objects may be used again.
    Over(Option<Kit>),
    /// The worker's code has to serve it, by this wire.
    Left(Ref),
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
                    && kit.is_as_new(&self.worker)
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
            let is_used = self.is_used(taken.began);
            // From now on it ends with this function, unless it is left.
            let request = Request::new(self.shared.clone(), taken);
            if is_used {
                call(self.worker.used.as_ptr(), [ptr::null_mut(); 2])?;
            }
            let text = request.read_head().filter(|_| request.is_waited_for());
            // Without it, the client has left while the request waited.
            let Some(text) = text else { return Some(Progress::Over(None)) };
            let head = Head::parse(&text);
            let known = locked(&self.kit).take();
            let Some((application, path)) = self.application(&head)? else {
                request.put_back(text);
                let kit = Kit::make(&self.worker, request, false)?;
                return Some(Progress::Left(kit.wire.clone()));
            };
            let kit = self.kit(known, request, head.has(b'b'))?;
            let run = self.run(&kit, &head, &application, &path);
            kit.request().finish();
            run.map(|()| Progress::Over(Some(kit)))
        }
    }

    /// The objects of a request: those of an earlier one, unless they are for a body.
    unsafe fn kit(&self, known: Option<Kit>, request: Request, has_body: bool) -> Option<Kit> {
        // SAFETY: as the caller promises. Nothing else knows of a request that is replaced.
        unsafe {
            match known {
                Some(kit) if !has_body => {
                    replace(kit.request.as_ptr(), request);
                    Some(kit)
                }
                _ => Kit::make(&self.worker, request, has_body),
            }
        }
    }

    /// The application of a request that needs no code of the worker, and the path of its script.
    unsafe fn application(&self, head: &Head<'_>) -> Option<Option<(Ref, Ref)>> {
        // SAFETY: as the caller promises.
        unsafe {
            let is_usual = self.is_plain
                && self.most.is_none_or(|most| self.shared.count() < most)
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
            outcome?;
            // What destructors have written.
            response::flush(kit.log.as_ptr())
        }
    }

    /// Has the worker's code say what went wrong.
    #[allow(deprecated, reason = "the limited API of Python 3.10 has nothing newer")]
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

    /// Whether the companion is to learn that the process is used.
    fn is_used(&self, now: u64) -> bool {
        let used = &self.shared.used;
        let before = used.load(Ordering::Relaxed);
        now.saturating_sub(before) >= USED_EVERY
            && used.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

//! Names of the environ that the worker adds to what the server sends.

use crate::held::{Ref, interned};

/// Names of an environ that the server does not send.
pub(crate) struct Names {
    pub errors: Ref,
    pub input: Ref,
    pub script_reloading: Ref,
    pub enable_sendfile: Ref,
    pub ignore_activity: Ref,
    pub request_start: Ref,
    pub queue_start: Ref,
    pub daemon_start: Ref,
    pub application_start: Ref,
    pub thread_id: Ref,
    pub thread_requests: Ref,
    pub total_requests: Ref,
    /// Values of flags.
    pub on: Ref,
    pub off: Ref,
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

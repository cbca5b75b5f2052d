//! A match that is interpreted and counted, so that it can be ended: by its work, or by a clock.
//!
//! libpcre2 has no limit for a whole match: its own begins again at each place of the subject. A
//! pattern compiled with PCRE2_AUTO_CALLOUT calls back before each of its items, which counts them
//! and the bytes between. Everything else is as without, so the outcome is the same.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pcre2_sys as sys;

use crate::captures::Captures;
use crate::engine::{Code, MatchContext, MatchData, outcome, start_of};
use crate::limits::{BYTES_PER_STEP, WORK_BETWEEN_LOOKS};
use crate::outcome::Why;

/// Ends matches that take too long.
#[derive(Debug)]
pub struct Watch {
    deadline: Instant,
    ended: AtomicBool,
}

impl Watch {
    /// Ends matches at `deadline`.
    pub fn until(deadline: Instant) -> Watch {
        Watch { deadline, ended: AtomicBool::new(false) }
    }

    /// Ends them now: their outcome is of no use any more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

/// Under which limits a counted match runs.
pub(crate) struct Limits<'w> {
    /// Steps from each place.
    pub steps: u32,
    /// Memory for backtracking.
    pub heap_kib: u32,
    /// Work in all.
    pub until: Until<'w>,
}

/// What ends a counted match.
pub(crate) enum Until<'w> {
    /// So much work; `done` is what it was.
    Work { most: u64, done: &'w mut u64 },
    /// A watch.
    Watch(&'w Watch),
}

/// Matches with a pattern that calls back.
pub(crate) fn run(
    code: &Code,
    subject: &[u8],
    captures: Option<&mut Captures>,
    limits: Limits<'_>,
) -> Result<bool, Why> {
    let (data, context) = (MatchData::new(), MatchContext::new(limits.heap_kib));
    if data.0.is_null() || context.0.is_null() {
        return Err(Why::Memory);
    }
    context.set_steps(limits.steps);
    let (watch, look_at) = match &limits.until {
        Until::Work { most, .. } => (None, *most),
        Until::Watch(watch) => (Some(*watch), 0),
    };
    let mut count = Count { work: 0, look_at, position: 0, watch };
    // SAFETY: all pointers are live during the call; data and context are this call's own. The
    // callback is given `count`, which nothing else refers to before the call has returned.
    let returned = unsafe {
        pcre2_set_callout_8(context.0, Some(step), (&raw mut count).cast());
        sys::pcre2_match_8(
            code.as_ptr(),
            start_of(subject),
            subject.len(),
            0,
            sys::PCRE2_NO_JIT,
            data.0,
            context.0,
        )
    };
    if let Until::Work { done, .. } = limits.until {
        *done = count.work;
    }
    outcome(returned, &data, captures).map_err(Why::of)
}

struct Count<'w> {
    work: u64,
    /// With this much work it is looked whether the match has to end.
    look_at: u64,
    position: usize,
    /// `None`: it ends there.
    watch: Option<&'w Watch>,
}

/// What libpcre2 tells a callback (`pcre2_callout_block`), as far as it is of use here: later
/// versions only add to the end.
#[repr(C)]
struct Block {
    version: u32,
    callout_number: u32,
    capture_top: u32,
    capture_last: u32,
    offset_vector: *mut usize,
    mark: *const u8,
    subject: *const u8,
    subject_length: usize,
    start_match: usize,
    current_position: usize,
}

type Callback = unsafe extern "C" fn(*mut Block, *mut c_void) -> i32;

// pcre2-sys binds everything but callouts.
unsafe extern "C" {
    fn pcre2_set_callout_8(
        context: *mut sys::pcre2_match_context_8,
        callback: Option<Callback>,
        data: *mut c_void,
    ) -> i32;
}

/// Called by libpcre2 before each item.
unsafe extern "C" fn step(block: *mut Block, count: *mut c_void) -> i32 {
    // SAFETY: libpcre2 gives a block that lives as long as the call, and the pointer that `run`
    // has set with the callback.
    let (position, count) = unsafe { ((*block).current_position, &mut *count.cast::<Count<'_>>()) };
    let distance = position.abs_diff(count.position) / BYTES_PER_STEP;
    count.position = position;
    count.work = count.work.saturating_add(1 + distance as u64);
    if count.work < count.look_at {
        return 0;
    }
    match count.watch {
        Some(watch) if !watch.is_over() => {
            count.look_at = count.work.saturating_add(WORK_BETWEEN_LOOKS);
            0
        }
        _ => sys::PCRE2_ERROR_CALLOUT,
    }
}

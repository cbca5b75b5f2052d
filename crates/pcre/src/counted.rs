//! Interprets a match and counts its work, so that a limit or a clock can end it.
//!
//! libpcre2's own limit starts again at each place of the subject, so it does not bound the whole
//! match. A pattern compiled with PCRE2_AUTO_CALLOUT calls back before each of its items, which
//! counts the items and the bytes between them. The outcome is the same as without.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pcre2_sys as sys;

use crate::captures::Captures;
use crate::engine::{Code, MatchContext, MatchData, outcome, start_of};
use crate::limits::{BYTES_PER_STEP, WORK_BETWEEN_LOOKS};
use crate::outcome::Why;

/// Ends matches that take too long, from another thread or by a clock.
#[derive(Debug)]
pub struct Watch {
    deadline: Instant,
    ended: AtomicBool,
}

impl Watch {
    /// Returns a watch that ends matches at `deadline`.
    pub fn until(deadline: Instant) -> Watch {
        Watch { deadline, ended: AtomicBool::new(false) }
    }

    /// Ends the matches now: their outcome is no longer needed.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

/// The limits of a counted match.
pub(crate) struct Limits<'w> {
    /// Steps from each place.
    pub steps: u32,
    /// Memory for backtracking.
    pub heap_kib: u32,
    /// Total work.
    pub until: Until<'w>,
}

/// What ends a counted match.
pub(crate) enum Until<'w> {
    /// An amount of work; `done` returns the work that was done.
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
    // SAFETY: all pointers are live during the call; data and context belong to this call. Nothing
    // else refers to `count`, which the callback receives, before the call returns.
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
    /// The amount of work after which the limit is checked next.
    look_at: u64,
    position: usize,
    /// `None` ends the match at `look_at`.
    watch: Option<&'w Watch>,
}

/// The beginning of libpcre2's `pcre2_callout_block`. Later versions only append to it.
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

// pcre2-sys binds everything except callouts.
unsafe extern "C" {
    fn pcre2_set_callout_8(
        context: *mut sys::pcre2_match_context_8,
        callback: Option<Callback>,
        data: *mut c_void,
    ) -> i32;
}

/// The callback, which libpcre2 calls before each item.
unsafe extern "C" fn step(block: *mut Block, count: *mut c_void) -> i32 {
    // SAFETY: libpcre2 passes a block that lives as long as the call, and the pointer that `run`
    // set with the callback.
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

//! The binding: what is owned by libpcre2, and the one call that matches.

use std::ptr::{self, NonNull};

use pcre2_sys as sys;

use crate::captures::{Captures, MAX_GROUPS};

/// How often the matcher may try before it gives up; a pattern that backtracks more does not match.
pub const MATCH_LIMIT: u32 = 1_000_000;
/// How deep backtracking may nest.
pub const DEPTH_LIMIT: u32 = 100_000;
/// Heap memory that one match may use, in KiB.
pub const HEAP_LIMIT_KIB: u32 = 16 * 1024;

/// A compiled pattern, freed with its last owner.
pub(crate) struct Code(NonNull<sys::pcre2_code_8>);

// SAFETY: libpcre2 never changes a compiled pattern after pcre2_jit_compile, which ran before the
// value was made; its documentation allows any number of threads to match with one code block.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the pointer came from pcre2_compile and is freed once, here.
        unsafe { sys::pcre2_code_free_8(self.0.as_ptr()) }
    }
}

impl Code {
    /// Compiles, with machine code where the platform can. The error is libpcre2's number and the
    /// offset.
    pub(crate) fn compile(pattern: &[u8], bits: u32) -> Result<Code, (i32, usize)> {
        let (mut number, mut offset) = (0, 0);
        // SAFETY: pattern pointer and length describe one live slice; the out pointers are locals.
        let code = unsafe {
            sys::pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                bits,
                &mut number,
                &mut offset,
                ptr::null_mut(),
            )
        };
        let code = Code(NonNull::new(code).ok_or((number, offset))?);
        // SAFETY: the code is live and not shared yet. Failure only means that it is interpreted.
        unsafe { sys::pcre2_jit_compile_8(code.0.as_ptr(), sys::PCRE2_JIT_COMPLETE) };
        Ok(code)
    }

    /// One number of pcre2_pattern_info whose type is a 32 bit integer.
    pub(crate) fn info_u32(&self, what: u32) -> u32 {
        let mut value: u32 = 0;
        // SAFETY: the items asked for here (counts and sizes) are written as uint32_t.
        unsafe { sys::pcre2_pattern_info_8(self.0.as_ptr(), what, (&raw mut value).cast()) };
        value
    }

    /// The table of named groups: per entry two bytes of index and a name that ends with NUL.
    pub(crate) fn name_table(&self) -> &[u8] {
        let entries = self.info_u32(sys::PCRE2_INFO_NAMECOUNT) as usize;
        let entry_size = self.info_u32(sys::PCRE2_INFO_NAMEENTRYSIZE) as usize;
        let mut table: *const u8 = ptr::null();
        // SAFETY: PCRE2_INFO_NAMETABLE writes a pointer into the code block.
        unsafe {
            sys::pcre2_pattern_info_8(
                self.0.as_ptr(),
                sys::PCRE2_INFO_NAMETABLE,
                (&raw mut table).cast(),
            )
        };
        if table.is_null() || entries == 0 {
            return &[];
        }
        // SAFETY: the table has entries × entry_size bytes and lives as long as the code does.
        unsafe { std::slice::from_raw_parts(table, entries * entry_size) }
    }

    /// Matches from the start of `subject`. No match, or a limit that was reached: false.
    pub(crate) fn run(&self, subject: &[u8], captures: Option<&mut Captures>) -> bool {
        SCRATCH.with(|scratch| scratch.run(self, subject, captures))
    }
}

/// The English text of one of libpcre2's error numbers.
pub(crate) fn message(number: i32) -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer's pointer and length are given together.
    let length =
        unsafe { sys::pcre2_get_error_message_8(number, buffer.as_mut_ptr(), buffer.len()) };
    let length = usize::try_from(length).unwrap_or(0);
    String::from_utf8_lossy(buffer.get(..length).unwrap_or(&[])).into_owned()
}

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

/// What a match needs beside the pattern; one per thread, made at its first match.
struct Scratch {
    data: *mut sys::pcre2_match_data_8,
    limits: *mut sys::pcre2_match_context_8,
}

impl Scratch {
    fn new() -> Scratch {
        // SAFETY: creation has no preconditions; a null result (no memory) is checked before use.
        unsafe {
            let data = sys::pcre2_match_data_create_8(MAX_GROUPS as u32, ptr::null_mut());
            let limits = sys::pcre2_match_context_create_8(ptr::null_mut());
            if !limits.is_null() {
                sys::pcre2_set_match_limit_8(limits, MATCH_LIMIT);
                sys::pcre2_set_depth_limit_8(limits, DEPTH_LIMIT);
                sys::pcre2_set_heap_limit_8(limits, HEAP_LIMIT_KIB);
            }
            Scratch { data, limits }
        }
    }

    fn run(&self, code: &Code, subject: &[u8], captures: Option<&mut Captures>) -> bool {
        if self.data.is_null() || self.limits.is_null() {
            return false;
        }
        // SAFETY: all pointers are live, the match data belongs to this thread alone, and no
        // callout is set that could re-enter.
        let groups = unsafe {
            sys::pcre2_match_8(
                code.0.as_ptr(),
                subject.as_ptr(),
                subject.len(),
                0,
                0,
                self.data,
                self.limits,
            )
        };
        let Ok(groups) = usize::try_from(groups) else { return false };
        if let Some(captures) = captures {
            self.report(groups, captures);
        }
        true
    }

    /// Copies the offsets; zero groups means that there were more than fit.
    fn report(&self, groups: usize, captures: &mut Captures) {
        let groups = if groups == 0 { MAX_GROUPS } else { groups.min(MAX_GROUPS) };
        captures.clear();
        // SAFETY: the vector of match data made for MAX_GROUPS pairs has 2 × MAX_GROUPS offsets,
        // and nothing writes to it while the slice lives.
        let offsets = unsafe {
            let vector = sys::pcre2_get_ovector_pointer_8(self.data);
            std::slice::from_raw_parts(vector, 2 * MAX_GROUPS)
        };
        for (index, pair) in offsets.chunks_exact(2).take(groups).enumerate() {
            if let [start, end] = *pair {
                captures.set(index, start, end);
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: both came from their create functions (or are null, which free accepts).
        unsafe {
            sys::pcre2_match_data_free_8(self.data);
            sys::pcre2_match_context_free_8(self.limits);
        }
    }
}

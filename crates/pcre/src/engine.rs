//! The binding to libpcre2: compiled patterns, and matches without counting.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use pcre2_sys as sys;

use crate::captures::{Captures, MAX_GROUPS};
use crate::limits::{JIT_STACK_BYTES, JIT_STACK_FIRST_BYTES, LOOP_HEAP_LIMIT_KIB};

/// Whether this process interprets all patterns.
static INTERPRETS: AtomicBool = AtomicBool::new(false);

/// Interprets all patterns that this process compiles from now on: for a program that matches few
/// times, machine code costs more than it saves.
pub fn interpret() {
    INTERPRETS.store(true, Ordering::Relaxed);
}

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
    /// Compiles to machine code if the platform supports that. The error is libpcre2's number and
    /// the offset.
    pub(crate) fn compile(pattern: &[u8], bits: u32) -> Result<Code, (i32, usize)> {
        let code = Code::interpreted(pattern, bits)?;
        if INTERPRETS.load(Ordering::Relaxed) {
            return Ok(code);
        }
        // SAFETY: the code is live and not shared yet. If it fails, the pattern is interpreted.
        unsafe { sys::pcre2_jit_compile_8(code.0.as_ptr(), sys::PCRE2_JIT_COMPLETE) };
        Ok(code)
    }

    /// Compiles without machine code.
    pub(crate) fn interpreted(pattern: &[u8], bits: u32) -> Result<Code, (i32, usize)> {
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
        Ok(Code(NonNull::new(code).ok_or((number, offset))?))
    }

    pub(crate) fn as_ptr(&self) -> *const sys::pcre2_code_8 {
        self.0.as_ptr()
    }

    /// A 32-bit value of pcre2_pattern_info.
    pub(crate) fn info_u32(&self, what: u32) -> u32 {
        let mut value: u32 = 0;
        // SAFETY: libpcre2 writes the items requested here (counts and options) as uint32_t.
        unsafe { sys::pcre2_pattern_info_8(self.0.as_ptr(), what, (&raw mut value).cast()) };
        value
    }

    /// Whether there is machine code.
    pub(crate) fn is_machine_code(&self) -> bool {
        self.info_size(sys::PCRE2_INFO_JITSIZE) > 0
    }

    /// Size in bytes of the compiled pattern and of its machine code.
    pub(crate) fn bytes(&self) -> usize {
        self.info_size(sys::PCRE2_INFO_SIZE) + self.info_size(sys::PCRE2_INFO_JITSIZE)
    }

    /// A size_t value of pcre2_pattern_info.
    fn info_size(&self, what: u32) -> usize {
        let mut value: usize = 0;
        // SAFETY: libpcre2 writes the items requested here as size_t.
        unsafe { sys::pcre2_pattern_info_8(self.0.as_ptr(), what, (&raw mut value).cast()) };
        value
    }

    /// The table of named groups. Each entry is two bytes of index and a NUL-terminated name.
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

    /// Matches from the start of `subject`, with at most `steps` steps from each place. The error
    /// is libpcre2's number.
    #[inline]
    pub(crate) fn run(
        &self,
        subject: &[u8],
        captures: Option<&mut Captures>,
        steps: u32,
    ) -> Result<bool, i32> {
        SCRATCH.with(|scratch| scratch.run(self, subject, captures, steps))
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

/// The address of a subject. An empty slice can begin at address 1, and a look-behind in machine
/// code subtracts from the address: past 0, to the end of the address space.
#[inline]
pub(crate) fn start_of(subject: &[u8]) -> *const u8 {
    static EMPTY: u8 = 0;
    if subject.is_empty() { &raw const EMPTY } else { subject.as_ptr() }
}

/// Interprets pcre2_match's return value: a match, none, or an error's number.
#[inline]
pub(crate) fn outcome(
    returned: i32,
    data: &MatchData,
    captures: Option<&mut Captures>,
) -> Result<bool, i32> {
    match usize::try_from(returned) {
        Ok(groups) => {
            if let Some(captures) = captures {
                data.report(groups, captures);
            }
            Ok(true)
        }
        Err(_) if returned == sys::PCRE2_ERROR_NOMATCH => Ok(false),
        Err(_) => Err(returned),
    }
}

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

/// Working memory of matches; each thread creates its own at its first match.
struct Scratch {
    data: MatchData,
    context: MatchContext,
    /// The limit that is set in the context.
    steps: Cell<u32>,
    stack: *mut sys::pcre2_jit_stack_8,
}

impl Scratch {
    fn new() -> Scratch {
        let context = MatchContext::new(LOOP_HEAP_LIMIT_KIB);
        // SAFETY: creation has no preconditions. Without its own stack (null), machine code uses 32
        // KiB of the thread's. The context never outlives its stack: both are dropped together, and
        // nothing matches meanwhile.
        let stack = unsafe {
            let first = JIT_STACK_FIRST_BYTES;
            let stack = sys::pcre2_jit_stack_create_8(first, JIT_STACK_BYTES, ptr::null_mut());
            if !context.0.is_null() && !stack.is_null() {
                sys::pcre2_jit_stack_assign_8(context.0, None, stack.cast());
            }
            stack
        };
        Scratch { data: MatchData::new(), context, steps: Cell::new(0), stack }
    }

    #[inline]
    fn run(
        &self,
        code: &Code,
        subject: &[u8],
        captures: Option<&mut Captures>,
        steps: u32,
    ) -> Result<bool, i32> {
        if self.steps.get() != steps {
            self.set_steps(steps)?;
        }
        // SAFETY: all pointers are live (those of the scratch were checked when the limit was set,
        // which is not zero), the match data belongs to this thread alone, and no callout is set
        // that could re-enter.
        let returned = unsafe {
            sys::pcre2_match_8(
                code.as_ptr(),
                start_of(subject),
                subject.len(),
                0,
                0,
                self.data.0,
                self.context.0,
            )
        };
        outcome(returned, &self.data, captures)
    }
}

impl Scratch {
    /// Sets the limit of steps. The error means that the thread's working memory could not be
    /// allocated.
    #[cold]
    fn set_steps(&self, steps: u32) -> Result<(), i32> {
        if self.data.0.is_null() || self.context.0.is_null() {
            return Err(sys::PCRE2_ERROR_NOMEMORY);
        }
        self.context.set_steps(steps);
        self.steps.set(steps);
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: it came from its create function, or is null, which free accepts.
        unsafe { sys::pcre2_jit_stack_free_8(self.stack) }
    }
}

/// The match data: the groups of a match, and the interpreter's memory.
pub(crate) struct MatchData(pub(crate) *mut sys::pcre2_match_data_8);

impl MatchData {
    pub(crate) fn new() -> MatchData {
        // SAFETY: creation has no preconditions; null (no memory) is checked before use.
        MatchData(unsafe { sys::pcre2_match_data_create_8(MAX_GROUPS as u32, ptr::null_mut()) })
    }

    /// Copies the offsets. Zero groups means that not all of them fit.
    fn report(&self, groups: usize, captures: &mut Captures) {
        let groups = if groups == 0 { MAX_GROUPS } else { groups.min(MAX_GROUPS) };
        captures.clear();
        // SAFETY: the vector of match data made for MAX_GROUPS pairs has 2 × MAX_GROUPS offsets,
        // and nothing writes to it while the slice lives.
        let offsets = unsafe {
            let vector = sys::pcre2_get_ovector_pointer_8(self.0);
            std::slice::from_raw_parts(vector, 2 * MAX_GROUPS)
        };
        for (index, pair) in offsets.chunks_exact(2).take(groups).enumerate() {
            if let [start, end] = *pair {
                captures.set(index, start, end);
            }
        }
    }
}

impl Drop for MatchData {
    fn drop(&mut self) {
        // SAFETY: it came from its create function, or is null, which free accepts.
        unsafe { sys::pcre2_match_data_free_8(self.0) }
    }
}

/// The match context: the limits of a match.
pub(crate) struct MatchContext(pub(crate) *mut sys::pcre2_match_context_8);

impl MatchContext {
    pub(crate) fn new(heap_limit_kib: u32) -> MatchContext {
        // SAFETY: creation has no preconditions; null (no memory) is checked before use.
        unsafe {
            let context = sys::pcre2_match_context_create_8(ptr::null_mut());
            if !context.is_null() {
                sys::pcre2_set_heap_limit_8(context, heap_limit_kib);
            }
            MatchContext(context)
        }
    }

    /// Sets how many steps a match may take from each place of its subject.
    pub(crate) fn set_steps(&self, steps: u32) {
        // SAFETY: the callers have checked that the context is not null.
        unsafe { sys::pcre2_set_match_limit_8(self.0, steps) };
    }
}

impl Drop for MatchContext {
    fn drop(&mut self) {
        // SAFETY: it came from its create function, or is null, which free accepts.
        unsafe { sys::pcre2_match_context_free_8(self.0) }
    }
}

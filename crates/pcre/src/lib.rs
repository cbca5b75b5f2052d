//! Regular expressions as in Apache's configuration: PCRE2 with limits, safely wrapped.
//!
//! A [`Regex`] is compiled once, when the configuration is read, and shared by all threads. A warm
//! match allocates nothing: the match data belongs to the thread. An expensive match is tried in
//! several ways with rising limits (see the `limits` module). If it stays open, the outcome is
//! [`Matched::Undecided`], which is never the same as a failed match.
//!
//! [`substitute`] fills `$0`–`$9` of a template, as Apache's `ap_pregsub`.
#![allow(unsafe_code)] // This crate is the binding to libpcre2.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod captures;
mod counted;
mod engine;
mod flags;
mod limits;
mod outcome;
mod prefix;
mod regex;
mod simple;
mod substitute;

pub use captures::{Captures, MAX_GROUPS};
pub use counted::Watch;
pub use engine::interpret;
pub use flags::Flags;
pub use limits::{
    HEAP_LIMIT_KIB, JIT_STACK_BYTES, JIT_STACK_FIRST_BYTES, LOOP_HEAP_LIMIT_KIB, LOOP_WORK,
    MATCH_LIMIT,
};
pub use outcome::{Later, Matched, Why};
pub use regex::{Error, Regex, compiled_bytes};
pub use substitute::{MAX_SUBSTITUTION_BYTES, TooLong, substitute};

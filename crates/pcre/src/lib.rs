//! Regular expressions as Apache's configuration means them: PCRE2 with limits, safely wrapped.
//!
//! A [`Regex`] is compiled once when the configuration is read and shared by every thread.
//! Matching a warm pattern allocates nothing: the match data belongs to the thread. A match that
//! costs much is made in several ways, each with more room (the module of limits says how); where
//! it stays open, the outcome says so ([`Matched::Undecided`]): it is never taken for "no".
//!
//! [`substitute`] fills `$0`–`$9` of a template, as Apache's `ap_pregsub` does.
#![allow(unsafe_code)] // The binding to libpcre2 is what this crate is for.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod captures;
mod counted;
mod engine;
mod flags;
mod limits;
mod outcome;
mod regex;
mod substitute;

pub use captures::{Captures, MAX_GROUPS};
pub use counted::Watch;
pub use flags::Flags;
pub use limits::{
    HEAP_LIMIT_KIB, JIT_STACK_BYTES, JIT_STACK_FIRST_BYTES, LOOP_HEAP_LIMIT_KIB, LOOP_WORK,
    MATCH_LIMIT,
};
pub use outcome::{Later, Matched, Why};
pub use regex::{Error, Regex, compiled_bytes};
pub use substitute::{MAX_SUBSTITUTION_BYTES, TooLong, substitute};

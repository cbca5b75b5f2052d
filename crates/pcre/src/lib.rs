//! Regular expressions as Apache's configuration means them: PCRE2 with limits, safely wrapped.
//!
//! A [`Regex`] is compiled once when the configuration is read and shared by every thread.
//! Matching a warm pattern allocates nothing: the match data belongs to the thread.
//! [`substitute`] fills `$0`–`$9` of a template, as Apache's `ap_pregsub` does.
#![allow(unsafe_code)] // The binding to libpcre2 is what this crate is for.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod captures;
mod engine;
mod flags;
mod regex;
mod substitute;

pub use captures::{Captures, MAX_GROUPS};
pub use engine::{DEPTH_LIMIT, HEAP_LIMIT_KIB, MATCH_LIMIT};
pub use flags::Flags;
pub use regex::{Error, Regex};
pub use substitute::{MAX_SUBSTITUTION_BYTES, TooLong, substitute};

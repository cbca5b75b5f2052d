//! Recordings of requests for `tamarack explain`: the server's own code runs, and a [`Recorder`]
//! notes its effects.
//!
//! An engine has a recorder only in that program. Hooks and filters are then bound inside others
//! that compare the request before and after ([`hook`], [`filter`]), and a merge of sections notes
//! what it merged; so a server pays nothing for most of a recording, not even a test.

mod event;
mod filter;
mod hook;
mod meter;
mod recorder;
mod state;
mod walk;

pub use event::{Event, HIDDEN, Kind};
pub use filter::record_all as record_filters;
pub(crate) use hook::RecordedHook;
pub use meter::Measured;
pub use recorder::{Begun, HtaccessFile, Recorder};
pub(crate) use walk::{Unread, directory_walk, section_walk};

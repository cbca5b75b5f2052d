//! Apache's `server/mpm`.

pub mod mpm_event;

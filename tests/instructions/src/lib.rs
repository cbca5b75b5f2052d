//! The number of instructions of a request, counted by callgrind: a guard that is independent of
//! the machine's load. The benchmarks are in benches/, the limits in [`counts`].

mod behind;
pub mod counts;
pub mod rig;
mod streams;

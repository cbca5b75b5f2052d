//! How many instructions a request takes, counted by callgrind: a guard that does not mind a busy
//! machine. The benchmarks are in benches/, what they may take in [`counts`].

pub mod counts;
pub mod rig;

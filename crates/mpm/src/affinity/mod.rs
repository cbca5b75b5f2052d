//! Which CPU runs what: the machine, the allowed part of it, and a plan that is applied and
//! adapted.
//!
//! [`Topology`] is what the machine has, [`Cpus`] the part that this server may use, and [`Plan`] a
//! pure function of both, of the shape and of the configured [`Affinity`]. [`mask`] applies it,
//! thread by thread. The supervisor itself is never pinned, so its children and programs (readers
//! of piped logs) start with the whole mask.

mod adapt;
pub mod cpu_set;
pub mod cpus;
pub mod mask;
mod mask_applier;
mod meter;
mod pin_policy;
mod placement;
pub mod plan;
mod pressure;
pub(crate) mod queues;
pub mod rebalance;
pub mod report;
pub mod setting;
mod steer;
#[cfg(test)]
pub(crate) mod tests;
pub mod topology;

pub(crate) use adapt::Serving;
pub use cpu_set::CpuSet;
pub use cpus::{Cpus, Roots};
pub(crate) use mask_applier::MaskApplier;
pub(crate) use placement::Placement;
pub use plan::{Place, Plan, Rule, Unit};
pub use setting::{Affinity, Setting};
pub use topology::{Cpu, Topology};

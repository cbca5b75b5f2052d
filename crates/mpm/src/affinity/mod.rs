//! Which CPU runs what: the machine, what of it is allowed, and a plan that is carried out and
//! followed.
//!
//! [`Topology`] is what the machine has, [`Cpus`] what this server may use of it, [`Plan`] a pure
//! function of both, of the shape and of the configuration's [`Affinity`]. [`mask`] carries it
//! out, thread by thread; the supervisor itself is never pinned, so that what it starts (readers of
//! piped logs, new children) begins with the whole mask.

mod adapt;
pub mod cpu_set;
pub mod cpus;
mod follower;
mod grip;
pub mod mask;
mod meter;
mod placement;
pub mod plan;
mod pressure;
pub(crate) mod queues;
pub mod relief;
pub mod report;
pub mod setting;
mod steer;
#[cfg(test)]
pub(crate) mod tests;
pub mod topology;

pub(crate) use adapt::Serving;
pub use cpu_set::CpuSet;
pub use cpus::{Cpus, Roots};
pub(crate) use follower::Follower;
pub(crate) use placement::Placement;
pub use plan::{Place, Plan, Rule, Unit};
pub use setting::{Affinity, Setting};
pub use topology::{Cpu, Topology};

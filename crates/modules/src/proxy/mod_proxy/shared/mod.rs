//! What all processes of the server share of workers and balancers: a region of words that is made
//! before the fork.

mod balancer_state;
mod child;
mod gauges;
mod lock;
mod persist;
mod region;
mod saved;
mod state;
mod words;

pub use balancer_state::{BalancerState, Changed};
pub use child::{ended, started};
pub use gauges::{AllGauges, Gauges};
pub use lock::Locked;
pub use persist::save;
pub use region::{share, take_lease};
pub use state::{Meters, NAME_BYTES, State};

/// The memory of a balancer, bytes.
pub const BALANCER_BYTES: usize = balancer_state::WORDS * size_of::<u64>();
/// The memory of a worker, bytes.
pub const WORKER_BYTES: usize = state::WORDS * size_of::<u64>();

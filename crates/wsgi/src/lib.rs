//! Memory that the loops of the server share with the workers of an application group (WSGI).
//!
//! A [`Region`] has *slots*. A loop fills a free slot with a request and queues it under a ticket;
//! an idle worker takes the one with the oldest ticket. Both then use the two streams of bytes of
//! the slot, one in each direction, as they would use a socket. What they mean is not known here.
//!
//! There is no other queue: each slot's state is one word, which is changed by comparing and
//! exchanging, and names the loop and the worker that it belongs to. A process may die between any
//! two instructions: what it had is found by its number.
//!
//! Each loop has a *lane*: the set of its slots in which something has happened, and a bell, which
//! workers ring once until the loop has looked. Each worker process has a place with the number of
//! its threads that sleep.
//!
//! The workers run an application: a loop takes nothing that it reads here for granted. It copies
//! before it looks, keeps its own counters, and indexes by nothing that it has read.

mod bell;
mod geometry;
mod region;
mod state;
mod stream;

pub use geometry::{DOWN_BYTES, Geometry, LANES_MAX, PROCESSES_MAX, SLOTS_MAX, UP_BYTES};
pub use region::{Known, Region};
pub use state::{Kind, State};
pub use stream::{Stream, Torn};

//! The built program, started as its users start it, and treated badly: restarts under load, killed
//! children, slow clients, full disks, no descriptors, files that change between two requests.
//!
//! Everything is on loopback, in folders under the temporary directory, on ports that nobody
//! uses. `TAMARACK_LONG=1` makes the long ones as long as they should be before a release.
#![allow(clippy::unwrap_used, clippy::panic)]

mod client;
#[path = "../../../mpm/tests/support/free_port.rs"]
mod free_port;
mod load;
mod site;

mod affinity;
mod descriptors;
mod dumps;
mod encores;
mod end;
mod freshness;
mod full;
mod gone;
mod handover;
mod idle;
mod interrupted;
mod killed;
mod limits;
mod listen;
mod logs;
mod metrics;
mod names;
mod notify;
mod openssl;
mod published;
mod repeated;
mod restart;
mod shapes;
mod slow;
mod stall;
mod start;
mod tls;
mod upgrade;

/// Whether the long tests are wanted long.
fn is_long() -> bool {
    std::env::var_os("TAMARACK_LONG").is_some()
}

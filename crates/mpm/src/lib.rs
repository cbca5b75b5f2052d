//! The supervisor, the shapes, the scoreboard and the signals: everything about processes, and
//! nothing about HTTP.
//!
//! [`run`] supervises a [`Program`]: reads the configuration as root, opens the listeners and logs,
//! forks the children, replaces those that die, and handles httpd's signals. The supervisor has one
//! thread, holds no connection and does no async work.
//!
//! [`order::send_to_running`] sends signals (httpd's `-k`), [`scoreboard::Scoreboard`] is the
//! shared memory that `mod_status` reads, and [`affinity::Plan`] determines the number of loops
//! through [`Shape`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod affinity;
pub mod child;
pub mod companion;
pub mod daemon;
mod descriptors;
pub mod listeners;
pub mod logfile;
pub mod notify;
pub mod order;
pub mod pidfile;
pub mod pipes;
pub mod privileges;
pub mod program;
pub mod reserve;
pub mod scoreboard;
pub mod secrets;
pub mod settings;
pub mod shape;
pub mod shared;
pub mod supervisor;

pub use affinity::Affinity;
pub use child::{Child, Control, ListeningSocket, LoopSpec, Order};
pub use companion::{Companion, Line};
pub use program::{Level, LoadFailure, Logs, Program, cause};
pub use reserve::Reserve;
pub use scoreboard::{LoopSlot, ProcessSlot, Scoreboard, Status};
pub use secrets::Secrets;
pub use settings::{AcceptFilter, Identity, ListenAddress, Listener, Mode, Settings, Spare};
pub use shape::Shape;
pub use shared::Shared;
pub use supervisor::{is_executed_by_server, run};

/// Exit status of a child that reports: starting another child is useless.
///
/// The supervisor stops if the first generation exits with it, and drops the new configuration if a
/// generation does that has not become ready. Apache's `APEXIT_CHILDFATAL`.
pub const CHILD_FATAL: i32 = 15;

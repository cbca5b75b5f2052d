//! The supervisor, the shapes, the scoreboard and the signals: everything about processes, and
//! nothing about HTTP.
//!
//! [`run`] takes a [`Program`] and supervises it: it reads the configuration as root, opens the
//! listeners and logs, forks the children, replaces those that die and obeys httpd's signals.
//! The supervisor has one thread, holds no connection and does no async work.
//!
//! Signals are sent by [`order::send_to_running`] (httpd's `-k`), the shared memory that
//! `mod_status` reads is [`scoreboard::Scoreboard`], and the number of loops comes from
//! [`affinity::Plan`] through [`Shape`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod affinity;
pub mod child;
pub mod daemon;
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
pub use child::{Child, Control, ListeningSocket, LoopSeat, Order};
pub use program::{Level, LoadFailure, Logs, Program};
pub use reserve::Reserve;
pub use scoreboard::{LoopSlot, ProcessSlot, Scoreboard, Status};
pub use secrets::Secrets;
pub use settings::{AcceptFilter, Identity, ListenAddress, Listener, Mode, Settings, Spare};
pub use shape::Shape;
pub use shared::Shared;
pub use supervisor::{is_executed_by_server, run};

/// Exit status of a child that says: starting another of me is useless, give up.
///
/// The supervisor stops when it comes from the first generation, and drops the new configuration
/// when it comes from a generation that has not become ready. Apache's `APEXIT_CHILDFATAL`.
pub const CHILD_FATAL: i32 = 15;

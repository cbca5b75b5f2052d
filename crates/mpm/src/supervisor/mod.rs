//! The supervisor.

use std::time::Duration;

use crate::program::Program;
use crate::settings::Mode;

/// A child that was told to stop and is still there after this long is killed.
pub const STOP_DEADLINE: Duration = Duration::from_secs(3);

/// Runs `program` until it is told to stop. Returns the exit status of the process.
///
/// To be called while the process has one thread.
pub fn run(program: &mut dyn Program, mode: Mode) -> i32 {
    let _ = (program, mode);
    1
}

//! The tests that are data: test files, the servers that they are put to, and what came back.
//!
//! The program `blackbox` runs the files; `compare` makes new ones.

pub mod answer;
pub mod client;
pub mod compare;
pub mod escape;
pub mod gaps;
pub mod parse;
pub mod place;
pub mod program;
pub mod render;
pub mod run;
pub mod stall;
pub mod testfile;
pub mod tls;
pub mod watcher;

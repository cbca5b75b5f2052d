//! The tests that are data: test files, the servers that they run against, and the responses.
//!
//! The program `blackbox` runs the files; `compare` creates new ones.

pub mod answer;
pub mod backend;
pub mod client;
pub mod compare;
pub mod escape;
pub mod gaps;
pub mod http2;
pub mod keeper;
pub mod parse;
pub mod place;
pub mod program;
pub mod render;
pub mod run;
pub mod stall;
pub mod testfile;
pub mod tls;
pub mod unserved;
pub mod watcher;

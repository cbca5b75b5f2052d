//! Requests and responses of the published smuggling classes, sent through the proxy.
//!
//! Each payload has its own connection, which the client half-closes once all is sent, and its own
//! tag, by which the backend knows it. The statuses are compared with those of the real Apache
//! (`requests_expected`). A strict parser reads what the backend receives, and counts the requests
//! in the client's bytes: the backend may not receive more.
//!
//! `cargo test -p tamarack --test smuggling -- record` asks the installed apache2 for the statuses.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod backend;
mod client;
mod expected;
mod payload;
mod requests;
mod responses;
mod setup;
mod strict;

use std::process::ExitCode;

use blackbox::watcher;

fn main() -> ExitCode {
    let Some(_watcher) = watcher::start().unwrap() else { return ExitCode::SUCCESS };
    let is_recording = std::env::args().skip(1).any(|word| word == "record");
    let mut faults = Vec::new();
    requests::run(is_recording, &mut faults);
    responses::run(is_recording, &mut faults);
    for fault in &faults {
        println!("{fault}");
    }
    println!("smuggling: {} faults", faults.len());
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

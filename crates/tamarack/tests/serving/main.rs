//! The built program, started as by its users, under adverse conditions: restarts under load,
//! killed children, slow clients, full disks, no descriptors, files that change between two
//! requests.
//!
//! Everything is on loopback, in folders under the temporary directory, and on unused ports.
//! `TAMARACK_LONG=1` extends the long tests to the length required before a release.
#![allow(clippy::unwrap_used, clippy::panic)]

mod backend;
mod browser;
mod checked;
mod client;
mod firefox;
#[path = "../../../mpm/tests/support/free_port.rs"]
mod free_port;
mod load;
mod memory;
mod site;
#[cfg(target_arch = "x86_64")]
mod spin;

mod affinity;
mod balanced;
mod coded;
mod credentials;
mod crowd;
mod departures;
mod descriptors;
mod digests;
mod dumps;
mod echoed;
mod end;
mod field_order;
mod forms;
mod freshness;
mod full;
mod gone;
mod h2spec;
mod handover;
mod heavy_filters;
mod hostile;
mod htaccess;
mod http2;
mod http2_attacks;
mod http2_bodies;
mod http2_browsers;
mod http2_push;
mod http2_records;
mod http2_timeouts;
mod http2_tunnels;
mod http2_turns;
mod http2_upgrade;
mod http2_withheld;
mod identity;
mod idle;
mod interrupted;
mod irregular;
mod killed;
mod large_directory;
mod layouts;
mod limited;
mod limits;
mod listen;
mod logins;
mod logs;
mod long_pages;
mod map_programs;
mod matching;
mod measured;
mod messages;
mod metrics;
mod mixed;
mod mortal;
mod names;
mod notify;
mod one_path;
mod one_watch;
mod openssl;
mod others;
mod persisted;
mod php;
mod php_full;
mod precompressed;
mod programs;
mod programs_gone;
mod programs_queue;
mod proxied;
mod proxied_tls;
mod published;
mod recursion;
mod repeated;
mod replaced;
mod restart;
mod rewriting;
mod shapes;
mod slow;
mod slow_pages;
mod slowed;
mod stall;
mod start;
mod surroundings;
mod system_calls;
mod tls;
mod tunnels;
mod unread;
mod upgrade;
mod variables;
mod worker_log;
mod wsgi;
mod wsgi_browser;
mod wsgi_faults;
mod wsgi_frameworks;
mod wsgi_free;
mod wsgi_hostile;
mod wsgi_seat;
mod wsgi_shown;
mod wsgi_versions;

/// Whether long tests are requested.
fn is_long() -> bool {
    std::env::var_os("TAMARACK_LONG").is_some()
}

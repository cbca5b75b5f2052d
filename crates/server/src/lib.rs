//! The core of Tamarack: the definition of a module, the way from configuration to a Plan, and the
//! life of a request ([`phases::process`]).
//!
//! Inside the crate, paths include the folder (`crate::config::host`); modules use the names below.

pub mod api;
pub mod config;
pub mod engine;
pub mod errorlog;
pub mod explain;
pub mod files;
pub mod log;
pub mod merge;
pub mod phases;
pub mod request;

pub use api::{directive, filter, hooks, missing, module, unprovided};
pub use config::{
    budget, build, canonical, context, core, host, registry, section, version, vhost, within,
};
pub use engine::{digest, plan};
pub use files::path;
pub use log::sinks;
pub use phases::{
    discard, errors, expr, handler, hostname, matching, other_method, process, redirect,
    subrequest, twin, walk,
};
pub use request::{
    body, connection_info, dump, etag, http2, passing, read_policy, request_body, tunnel,
    variant_key,
};

//! The heart of Tamarack: what a module is, how configuration becomes a Plan, and the life of a
//! request ([`process`]).

pub mod answer;
pub mod body;
pub mod build;
pub mod client;
pub mod core;
pub mod directive;
pub mod engine;
pub mod expr;
pub mod filter;
pub mod hooks;
pub mod host;
pub mod inlet;
pub mod log;
pub mod merge;
pub mod module;
pub mod path;
pub mod plan;
pub mod process;
pub mod request;
pub mod scope;
pub mod section;
pub mod slots;
pub mod target;
pub mod vhost;
pub mod walk;

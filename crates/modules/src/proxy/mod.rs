//! Proxying and balancing (`modules/proxy`).

pub mod mod_proxy;

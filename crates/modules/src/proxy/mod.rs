//! Proxying and balancing (`modules/proxy`).

pub mod mod_proxy;
pub mod mod_proxy_fcgi;
pub mod mod_proxy_http;

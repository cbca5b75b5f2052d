//! Apache's `modules/filters`.

pub mod mod_deflate;
pub mod mod_filter;
pub mod mod_reqtimeout;
pub mod mod_request;

//! Apache's `modules/http`.

pub mod http_core;
mod methods;
pub mod mod_mime;

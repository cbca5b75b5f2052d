//! Apache's `modules/http`.

pub mod http_core;
pub(crate) mod methods;
pub mod mod_mime;

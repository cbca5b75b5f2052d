//! Apache's `modules/http2`.

pub mod mod_http2;

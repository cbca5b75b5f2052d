//! Apache's `modules/http`.

pub mod mod_mime;

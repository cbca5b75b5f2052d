//! Apache's `modules/generators`.

pub mod mod_asis;
pub mod mod_autoindex;
pub mod mod_cgi;
pub mod mod_info;
pub mod mod_reflector;
pub mod mod_status;
pub mod mod_suexec;

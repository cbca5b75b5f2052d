//! Apache's `modules/aaa`.

pub mod mod_access_compat;
pub mod mod_auth_basic;
pub mod mod_authn_core;
pub mod mod_authn_file;
pub mod mod_authz_core;
pub mod mod_authz_groupfile;
pub mod mod_authz_host;
pub mod mod_authz_user;

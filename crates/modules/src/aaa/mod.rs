//! Apache's `modules/aaa`.
//!
//! [`provider`] defines what the modules offer each other. Authentication and authorisation happen
//! in Apache's phases: access_checker (mod_access_compat), access_checker_ex and auth_checker
//! (mod_authz_core with its providers), check_user_id (mod_auth_basic with its own).

pub mod expression;
pub mod line;
pub mod mod_access_compat;
pub mod mod_allowmethods;
pub mod mod_auth_basic;
pub mod mod_authn_core;
pub mod mod_authn_file;
pub mod mod_authz_core;
pub mod mod_authz_groupfile;
pub mod mod_authz_host;
pub mod mod_authz_user;
pub mod password;
pub mod provider;

//! Apache's `modules/aaa`.
//!
//! [`provider`] defines what the modules offer each other. Authentication and authorisation happen
//! in Apache's phases: access_checker (mod_access_compat), access_checker_ex and auth_checker
//! (mod_authz_core with its providers), check_user_id (mod_auth_basic with its own).

mod dbm;
pub mod expression;
mod found;
mod groups;
pub mod line;
pub mod mod_access_compat;
pub mod mod_allowmethods;
pub mod mod_auth_basic;
pub mod mod_auth_digest;
pub mod mod_auth_form;
pub mod mod_authn_anon;
pub mod mod_authn_core;
pub mod mod_authn_dbd;
pub mod mod_authn_dbm;
pub mod mod_authn_file;
pub mod mod_authn_socache;
pub mod mod_authnz_fcgi;
pub mod mod_authz_core;
pub mod mod_authz_dbd;
pub mod mod_authz_dbm;
pub mod mod_authz_groupfile;
pub mod mod_authz_host;
pub mod mod_authz_owner;
pub mod mod_authz_user;
pub mod password;
pub mod provider;

use server::module::{ErasedModule, module};

/// The modules of this family, in the order of [`crate::all`].
pub(super) fn modules() -> Vec<&'static dyn ErasedModule> {
    vec![
        module::<mod_access_compat::AccessCompat>(),
        module::<mod_allowmethods::Allowmethods>(),
        module::<mod_auth_basic::AuthBasic>(),
        module::<mod_auth_digest::AuthDigest>(),
        module::<mod_auth_form::AuthForm>(),
        module::<mod_authn_anon::AuthnAnon>(),
        module::<mod_authn_core::AuthnCore>(),
        module::<mod_authn_dbd::AuthnDbd>(),
        module::<mod_authn_dbm::AuthnDbm>(),
        module::<mod_authn_file::AuthnFile>(),
        module::<mod_authn_socache::AuthnSocache>(),
        module::<mod_authnz_fcgi::AuthnzFcgi>(),
        module::<mod_authz_core::AuthzCore>(),
        module::<mod_authz_dbd::AuthzDbd>(),
        module::<mod_authz_dbm::AuthzDbm>(),
        module::<mod_authz_groupfile::AuthzGroupfile>(),
        module::<mod_authz_host::AuthzHost>(),
        module::<mod_authz_owner::AuthzOwner>(),
        module::<mod_authz_user::AuthzUser>(),
    ]
}

//! Apache's `modules/metadata`.

pub mod mod_cern_meta;
pub mod mod_env;
pub mod mod_expires;
pub mod mod_headers;
pub mod mod_ident;
pub mod mod_mime_magic;
pub mod mod_remoteip;
pub mod mod_setenvif;
pub mod mod_unique_id;
pub mod mod_usertrack;
pub mod mod_version;

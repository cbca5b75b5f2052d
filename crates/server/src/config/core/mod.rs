//! The configuration of Apache's core, which the phases read. `crates/modules/src/core` has its
//! directives and hooks.

mod access;
mod dir_config;
mod file_etag;
mod options;
mod server_config;

pub use dir_config::{
    AllowOverride, CanonicalName, CoreDir, ErrorDocument, HandlerName, HostnameLookups, RangeLimit,
    ResourceLimit, Signature,
};
pub use file_etag::{EtagParts, FileEtag};
pub use options::{Links, OptionFlags, Options};
pub use server_config::{
    CoreServer, EncodedSlashes, Globals, MutexSetting, ServerName, Tokens, Trace,
};

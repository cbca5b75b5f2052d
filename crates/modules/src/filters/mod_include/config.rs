//! The configuration of mod_include.

use std::sync::Arc;

use server::merge::Setting;

server::config! {
    /// Per-host configuration. As in Apache's module nothing is merged: one tag in a virtual host,
    /// and the other is the default again.
    pub struct ServerConfig {
        /// `SSIStartTag`, `SSIEndTag`
        pub tags: Setting<Arc<Tags>>,
    }
}

/// What encloses an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tags {
    /// `SSIStartTag`; not empty.
    pub start: Vec<u8>,
    /// `SSIEndTag`; not empty.
    pub end: Vec<u8>,
}

impl Default for Tags {
    fn default() -> Tags {
        Tags { start: b"<!--#".to_vec(), end: b"-->".to_vec() }
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `SSIErrorMsg`
        pub error_message: Setting<Arc<[u8]>>,
        /// `SSITimeFormat`
        pub time_format: Setting<Arc<[u8]>>,
        /// `SSIUndefinedEcho`
        pub undefined_echo: Setting<Arc<[u8]>>,
        /// `XBitHack`
        pub xbithack: Setting<XBitHack>,
        /// `SSILastModified`
        pub last_modified: Setting<bool>,
        /// `SSIETag`
        pub etag: Setting<bool>,
        /// `SSILegacyExprParser`
        pub legacy_expressions: Setting<bool>,
    }
}

/// `XBitHack`: which HTML files are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XBitHack {
    /// None because of their mode.
    Off,
    /// Those that their owner can execute.
    On,
    /// The same; those that their group can execute have a `Last-Modified`.
    Full,
}

/// The default of `SSIErrorMsg`.
pub const ERROR_MESSAGE: &[u8] = b"[an error occurred while processing this directive]";
/// The default of `SSITimeFormat`.
pub const TIME_FORMAT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";
/// The default of `SSIUndefinedEcho`.
pub const UNDEFINED_ECHO: &[u8] = b"(none)";

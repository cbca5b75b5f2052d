//! What the core knows of a server or virtual host.

use std::sync::Arc;
use std::time::Duration;

use wire::HeadLimits;

use crate::merge::{Append, Own, Setting};
use crate::section::Section;
use crate::subrequest::RECURSION_LIMIT;

/// `ServerName [scheme://]name[:port]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerName {
    /// The scheme of self-referential URLs, where one was given.
    pub scheme: Option<String>,
    /// The name, lower case.
    pub name: Vec<u8>,
    /// The port of self-referential URLs, where one was given.
    pub port: Option<u16>,
}

/// `AllowEncodedSlashes`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EncodedSlashes {
    /// `%2F` is a 404.
    #[default]
    Off,
    /// `%2F` becomes a slash.
    On,
    /// `%2F` stays.
    NoDecode,
}

crate::config! {
    /// The core's per-server configuration.
    pub struct CoreServer {
        /// `ServerName`
        pub server_name: Own<Option<ServerName>>,
        /// `ServerAdmin`
        pub server_admin: Setting<Vec<u8>>,
        /// `ServerAlias`: lower case, with wildcards.
        pub server_aliases: Own<Vec<Vec<u8>>>,
        /// `ServerPath`
        pub server_path: Own<Option<Vec<u8>>>,
        /// `DocumentRoot`, without a slash at the end.
        pub document_root: Setting<Vec<u8>>,
        /// `<Directory>` and `<DirectoryMatch>`, in order of appearance.
        pub directories: Append<Arc<Section>>,
        /// `<Location>` and `<LocationMatch>`, in order of appearance.
        pub locations: Append<Arc<Section>>,
        /// `AccessFileName`
        pub access_file_names: Setting<Vec<Vec<u8>>>,
        /// `Timeout`
        pub timeout: Setting<Duration>,
        /// `KeepAlive`
        pub keep_alive: Setting<bool>,
        /// `KeepAliveTimeout`
        pub keep_alive_timeout: Setting<Duration>,
        /// `MaxKeepAliveRequests`; 0 for no limit.
        pub max_keep_alive_requests: Setting<u32>,
        /// `LimitRequestLine`, bytes.
        pub limit_request_line: Setting<usize>,
        /// `LimitRequestFields`; 0 for no limit.
        pub limit_request_fields: Setting<usize>,
        /// `LimitRequestFieldSize`, bytes.
        pub limit_request_field_size: Setting<usize>,
        /// `LimitInternalRecursion`: redirects, subrequests.
        pub limit_internal_recursion: Setting<(u16, u16)>,
        /// `MergeSlashes`
        pub merge_slashes: Setting<bool>,
        /// `AllowEncodedSlashes`
        pub allow_encoded_slashes: Setting<EncodedSlashes>,
        /// `HttpProtocolOptions Strict|Unsafe`
        pub protocol_strict: Setting<bool>,
        /// `HttpProtocolOptions RegisteredMethods|LenientMethods`
        pub protocol_registered_methods: Setting<bool>,
        /// `HttpProtocolOptions Allow0.9|Require1.0`
        pub protocol_allow_09: Setting<bool>,
    }
}

impl CoreServer {
    /// `Timeout`, by default 60 s.
    pub fn timeout(&self) -> Duration {
        self.timeout.or(Duration::from_secs(60))
    }

    /// `KeepAliveTimeout`, by default 5 s.
    pub fn keep_alive_timeout(&self) -> Duration {
        self.keep_alive_timeout.or(Duration::from_secs(5))
    }

    /// `LimitRequestLine`, `LimitRequestFieldSize`, `LimitRequestFields`.
    pub fn head_limits(&self) -> HeadLimits {
        let default = HeadLimits::default();
        HeadLimits {
            line_bytes: self.limit_request_line.or(default.line_bytes),
            field_bytes: self.limit_request_field_size.or(default.field_bytes),
            fields: self.limit_request_fields.or(default.fields),
        }
    }

    /// `HttpProtocolOptions Strict`
    pub fn strict_protocol(&self) -> bool {
        self.protocol_strict.or(true)
    }

    /// `HttpProtocolOptions RegisteredMethods`
    pub fn registered_methods(&self) -> bool {
        self.protocol_registered_methods.or(false)
    }

    /// `HttpProtocolOptions Allow0.9`
    pub fn allow_http09(&self) -> bool {
        self.protocol_allow_09.or(true)
    }

    /// `LimitInternalRecursion`, for internal redirects.
    pub fn max_internal_redirects(&self) -> u16 {
        self.limit_internal_recursion.or((RECURSION_LIMIT, RECURSION_LIMIT)).0
    }

    /// `LimitInternalRecursion`, for subrequests.
    pub fn max_subrequests(&self) -> u16 {
        self.limit_internal_recursion.or((RECURSION_LIMIT, RECURSION_LIMIT)).1
    }

    /// `AccessFileName`, by default `.htaccess`.
    pub fn access_file_names(&self) -> impl Iterator<Item = &[u8]> {
        const DEFAULT: &[u8] = b".htaccess";
        let names = self.access_file_names.get();
        let default = names.is_none().then_some(DEFAULT);
        names.into_iter().flatten().map(Vec::as_slice).chain(default)
    }
}

//! What the core knows of a server or virtual host.

use std::sync::Arc;
use std::time::Duration;

use crate::merge::{Append, Own, Setting};
use crate::section::Section;

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
    }
}

impl CoreServer {
    /// `AccessFileName`, by default `.htaccess`.
    pub fn access_file_names(&self) -> impl Iterator<Item = &[u8]> {
        const DEFAULT: &[u8] = b".htaccess";
        let names = self.access_file_names.get();
        let default = names.is_none().then_some(DEFAULT);
        names.into_iter().flatten().map(Vec::as_slice).chain(default)
    }
}

//! The core's configuration of a server or virtual host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wire::HeadLimits;

use crate::config::section::Section;
use crate::log::LogLevels;
use crate::log::format::Formats;
use crate::log::sinks::SinkId;
use crate::merge::{Append, Outermost, Overlay, Own, Setting};
use crate::phases::subrequest::RECURSION_LIMIT;

/// `ServerName [scheme://]name[:port]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerName {
    /// The scheme of self-referential URLs, if set.
    pub scheme: Option<String>,
    /// The name, lower case.
    pub name: Vec<u8>,
    /// The port of self-referential URLs, if set.
    pub port: Option<u16>,
}

/// `AllowEncodedSlashes`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EncodedSlashes {
    /// `%2F` makes the request a 404.
    #[default]
    Off,
    /// `%2F` becomes a slash.
    On,
    /// `%2F` stays as it is.
    NoDecode,
}

/// `TraceEnable`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Trace {
    /// TRACE without a body is allowed.
    #[default]
    On,
    /// TRACE is a 405.
    Off,
    /// TRACE may have a body, for testing.
    Extended,
}

/// `ServerTokens`: the contents of the Server field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tokens {
    /// `Tamarack`
    Product,
    /// `Tamarack/0`
    Major,
    /// `Tamarack/0.1`
    Minor,
    /// `Tamarack/0.1.0`
    Minimal,
    /// `Tamarack/0.1.0 (Unix)`
    Os,
    /// The same with the modules' additions.
    #[default]
    Full,
}

/// `Mutex`, for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutexSetting {
    /// Apache's name of the mechanism.
    pub mechanism: &'static str,
    /// The folder, if one is named.
    pub folder: Option<String>,
    /// `OmitPID`
    pub omit_pid: bool,
}

crate::config! {
    /// Settings of the whole process, which are allowed only outside of `<VirtualHost>`.
    pub struct Globals {
        /// `ServerTokens`
        pub server_tokens: Setting<Tokens>,
        /// `PidFile`, absolute.
        pub pid_file: Setting<PathBuf>,
        /// `ScoreBoardFile`
        pub scoreboard_file: Setting<PathBuf>,
        /// `DefaultRuntimeDir`, absolute.
        pub runtime_dir: Setting<PathBuf>,
        /// `CoreDumpDirectory`
        pub core_dump_directory: Setting<PathBuf>,
        /// `MaxConnectionsPerChild`; 0 for no limit.
        pub max_connections_per_child: Setting<u64>,
        /// `MaxMemFree`, KiB; 0 for no limit.
        pub max_mem_free_kib: Setting<u32>,
        /// `ThreadStackSize`, bytes.
        pub thread_stack_bytes: Setting<usize>,
        /// `EnableExceptionHook`
        pub exception_hook: Setting<bool>,
        /// `ExtendedStatus`
        pub extended_status: Setting<bool>,
        /// `SeeRequestTail`
        pub see_request_tail: Setting<bool>,
        /// `CPUAffinity`
        pub cpu_affinity: Setting<mpm::affinity::Setting>,
        /// `CPUAffinityAdapt`
        pub cpu_affinity_adapt: Setting<bool>,
        /// `AcceptFilter`, by protocol: whether the kernel waits for data.
        pub accept_filters: Overlay<Vec<u8>, Vec<u8>>,
        /// `Mutex`, by resource.
        pub mutexes: Overlay<Vec<u8>, MutexSetting>,
    }
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
        /// `DocumentRoot`, without a trailing slash.
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
        /// `ErrorLog`
        pub error_log: Setting<SinkId>,
        /// `ErrorLogFormat`
        pub error_log_formats: Formats,
        /// `LogLevel` outside of sections.
        pub log: LogLevels,
        /// `AllowEncodedSlashes`, which a virtual host does not inherit.
        pub allow_encoded_slashes: Own<EncodedSlashes>,
        /// `MergeSlashes`
        pub merge_slashes: Setting<bool>,
        /// `MergeTrailers`
        pub merge_trailers: Setting<bool>,
        /// `HttpProtocolOptions Strict|Unsafe`
        pub protocol_strict: Setting<bool>,
        /// `HttpProtocolOptions RegisteredMethods|LenientMethods`
        pub protocol_registered_methods: Setting<bool>,
        /// `HttpProtocolOptions Allow0.9|Require1.0`
        pub protocol_allow_09: Setting<bool>,
        /// `TraceEnable`
        pub trace_enable: Setting<Trace>,
        /// `StrictHostCheck`
        pub strict_host_check: Setting<bool>,
        /// `Protocol`
        pub protocol: Setting<Vec<u8>>,
        /// `Protocols`
        pub protocols: Setting<Vec<Vec<u8>>>,
        /// `ProtocolsHonorOrder`
        pub protocols_honor_order: Setting<bool>,
        /// `FlushMaxPipelined`; negative for no limit.
        pub flush_max_pipelined: Setting<i32>,
        /// `FlushMaxThreshold`, bytes.
        pub flush_max_threshold: Setting<u32>,
        /// Settings of the whole process.
        pub globals: Outermost<Arc<Globals>>,
    }
}

impl CoreServer {
    /// The settings of the whole process, for writing.
    pub fn globals_mut(&mut self) -> &mut Globals {
        Arc::make_mut(&mut self.globals.0)
    }

    /// Whether `Protocols` lists a protocol (`ap_is_allowed_protocol`).
    pub fn allows_protocol(&self, name: &[u8]) -> bool {
        self.protocols.get().is_some_and(|all| all.iter().any(|one| one == name))
    }

    /// The protocols that `Protocols` lists before HTTP/1.1 (`ap_get_protocol_upgrades`).
    pub fn upgrades(&self) -> Option<Box<[u8]>> {
        let names = self.protocols.get()?.iter().take_while(|name| *name != b"http/1.1");
        let names: Vec<&[u8]> = names.map(Vec::as_slice).collect();
        (!names.is_empty()).then(|| names.join(&b","[..]).into())
    }

    /// `Timeout`, by default 60 s.
    #[inline]
    pub fn timeout(&self) -> Duration {
        self.timeout.or(Duration::from_secs(60))
    }

    /// `KeepAliveTimeout`, by default 5 s.
    #[inline]
    pub fn keep_alive_timeout(&self) -> Duration {
        self.keep_alive_timeout.or(Duration::from_secs(5))
    }

    /// `LimitRequestLine`, `LimitRequestFieldSize`, `LimitRequestFields`.
    #[inline]
    pub fn head_limits(&self) -> HeadLimits {
        let default = HeadLimits::default();
        HeadLimits {
            line_bytes: self.limit_request_line.or(default.line_bytes),
            field_bytes: self.limit_request_field_size.or(default.field_bytes),
            fields: self.limit_request_fields.or(default.fields),
        }
    }

    /// `HttpProtocolOptions Strict`
    #[inline]
    pub fn strict_protocol(&self) -> bool {
        self.protocol_strict.or(true)
    }

    /// `HttpProtocolOptions RegisteredMethods`
    #[inline]
    pub fn registered_methods(&self) -> bool {
        self.protocol_registered_methods.or(false)
    }

    /// `HttpProtocolOptions Allow0.9`
    #[inline]
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

//! mod_proxy: forwards requests to other servers, by modules for their protocols.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy.html>

pub mod ahead;
mod alias;
mod assemble;
pub mod backend;
pub mod balancer;
pub mod balancing;
pub mod block;
pub mod busy;
pub mod canonical;
pub mod checks;
mod define;
mod detect;
mod detour;
pub mod failover;
pub mod fault;
pub mod forward;
pub mod growth;
mod interpolate;
pub mod late_log;
pub mod lbmethod;
mod mapping;
mod measured;
pub mod outgoing;
pub mod parts;
mod place;
pub mod pool;
mod protocol;
pub mod relay;
pub mod remote;
pub mod retry;
pub mod reverse;
mod rows;
pub mod scheme;
mod sections;
mod setters;
pub mod shared;
pub mod single;
pub mod spool;
pub mod status;
mod status_part;
pub mod storage;
pub mod target;
mod through;
pub mod tls;
pub mod translate;
pub mod unasked;
pub mod upload;
pub mod via;
pub mod worker;
mod worker_log;
pub mod workers;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pcre::Regex;
use rustix::io::Errno;
use server::directive::Row;
use server::hooks::{Hooks, Phase, Rank};
use server::log::Level;
use server::merge::{Append, Own, Setting};
use server::module::Module;
use server::request::Request;
use server::section::Section;

pub use assemble::{DEFAULT_METHOD, RUNTIME_DIR};
pub use define::Definitions;
pub use mapping::{From, Mapping, PathForm};
pub use remote::{Blocked, Direct};
use spool::Limits;
pub use target::Target;
use workers::Workers;

use crate::generators::mod_status::part::{self, PartProvider};

/// `mod_proxy.c`
pub struct Proxy;

/// `ProxyVia`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// `Via` is passed on.
    #[default]
    Off,
    /// This server is added to it.
    On,
    /// It is removed.
    Block,
    /// This server is added with its version.
    Full,
}

/// `ProxyBadHeader`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadHeader {
    /// The response is a 502.
    #[default]
    IsError,
    /// The line is left out.
    Ignore,
    /// The body begins there.
    StartBody,
}

/// `ProxyStatus`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// mod_status shows nothing.
    #[default]
    Off,
    /// It shows workers.
    On,
    /// It shows workers with all columns.
    Full,
}

/// `ProxyErrorOverride`: the statuses that get an error document of this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorOverride {
    /// Whether there are any.
    pub is_on: bool,
    /// If empty, all from 400 on.
    pub statuses: Vec<u16>,
}

/// `ProxyPassReverse` and the directives for cookies: what is replaced by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// The path here, or the cookie's value there.
    pub from: Vec<u8>,
    /// The URL there, or the cookie's value here.
    pub to: Vec<u8>,
    /// `interpolate`
    pub interpolates: bool,
}

/// `ProxyRemote` and `ProxyRemoteMatch`
#[derive(Clone)]
pub struct RemoteProxy {
    /// A scheme, a URL's beginning, or `*`.
    pub matches: Vec<u8>,
    /// `ProxyRemoteMatch`
    pub regex: Option<Regex>,
    /// Its scheme, in lower case.
    pub scheme: Vec<u8>,
    /// Its name.
    pub host: Vec<u8>,
    /// `None`: the scheme's own.
    pub port: Option<u16>,
    /// The value of Proxy-Authorization.
    pub credentials: Option<Vec<u8>>,
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `ProxyPass` and `ProxyPassMatch` outside of sections.
        pub mappings: Append<Mapping>,
        /// `<Proxy>`, `<ProxyMatch>`
        pub sections: Append<Arc<Section>>,
        /// What a host itself defines.
        pub definitions: Own<Definitions>,
        /// The workers of the host, its main server's included.
        pub workers: Own<Arc<Workers>>,
        /// Whether a mapping is compared with the path as sent.
        pub has_encoded: Setting<bool>,
        /// Whether any request may be proxied.
        pub may_proxy: Own<bool>,
        /// Whether the configuration mentions notes of connections to backends.
        pub has_notes: Own<bool>,
        /// `ProxyRemote`, `ProxyRemoteMatch`
        pub remotes: Append<RemoteProxy>,
        /// `NoProxy`
        pub direct: Append<Direct>,
        /// `ProxyBlock`
        pub blocked: Append<Blocked>,
        /// `ProxyRequests`
        pub requests: Setting<bool>,
        /// `ProxyVia`
        pub via: Setting<Via>,
        /// `ProxyTimeout`
        pub timeout: Setting<Duration>,
        /// `ProxyBadHeader`
        pub bad_header: Setting<BadHeader>,
        /// `ProxyMaxForwards`; negative: not set in requests.
        pub max_forwards: Setting<i32>,
        /// `ProxyIOBufferSize`, bytes; 0: the default.
        pub io_buffer: Setting<usize>,
        /// `ProxyReceiveBufferSize`, bytes; 0: the kernel's choice.
        pub receive_buffer: Setting<usize>,
        /// `ProxySpool`; `None`: no files.
        pub spool: Setting<Option<Limits>>,
        /// `ProxySourceAddress`
        pub source: Setting<IpAddr>,
        /// `ProxyDomain`
        pub domain: Setting<Vec<u8>>,
        /// `ProxyStatus`
        pub shown: Setting<Shown>,
        /// `ProxyPassInherit`
        pub inherits_mappings: Setting<bool>,
        /// `BalancerInherit`
        pub inherits_balancers: Setting<bool>,
        /// `BalancerGrowth`
        pub growth: Setting<u8>,
        /// `BalancerPersist`
        pub persists: Setting<bool>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ProxyPass` in a section.
        pub mapping: Setting<Mapping>,
        /// `ProxyPassReverse`
        pub reverse: Append<Reverse>,
        /// `ProxyPassReverseCookieDomain`
        pub cookie_domains: Append<Reverse>,
        /// `ProxyPassReverseCookiePath`
        pub cookie_paths: Append<Reverse>,
        /// `ProxyPreserveHost`
        pub preserves_host: Setting<bool>,
        /// `ProxyPassInterpolateEnv`
        pub interpolates: Setting<bool>,
        /// `ProxyAddHeaders`
        pub adds_headers: Setting<bool>,
        /// `Proxy100Continue`
        pub forwards_continue: Setting<bool>,
        /// `ProxyErrorOverride`
        pub error_override: Setting<ErrorOverride>,
    }
}

/// Logs a line of a request that names no client, as Apache does for workers.
#[track_caller]
pub fn log_of_server(
    request: &Request,
    level: Level,
    number: u32,
    error: Option<Errno>,
    text: fmt::Arguments<'_>,
) {
    let (server, host) = (&request.engine.server, &request.host);
    server.log_host_error(host, Proxy::FILE, level, number, error, text);
}

impl Module for Proxy {
    const NAME: &'static str = "proxy_module";
    const FILE: &'static str = "mod_proxy.c";
    type Server = Settings;
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Proxy>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        use storage::may_proxy;
        hooks.directives_read(assemble::note_use);
        hooks.post_config(assemble::workers);
        hooks.share(shared::share);
        hooks.logs_opened(worker_log::at_start);
        hooks.save(shared::save);
        hooks.child_started(shared::started);
        hooks.child_started(worker_log::by_child);
        hooks.child_ended(shared::ended);
        hooks.every_second(pool::every_second);
        hooks.provider::<PartProvider>(part::GROUP, "proxy", &status_part::Balancers);
        hooks.forwards(|settings| settings.requests.or(false));
        hooks.names_handlers(&["proxy-server", "proxy:"]);
        hooks.on(Phase::PostReadRequest, Rank::FIRST, detect::forwards, detect::detect).pure();
        hooks
            .on(Phase::PreTranslateName, Rank::MIDDLE, translate::maps_encoded, translate::before)
            .by_server()
            .pure();
        hooks
            .on(Phase::TranslateName, Rank::FIRST, translate::maps, translate::translate)
            .after(&["mod_rewrite.c"])
            .pure();
        hooks.on(Phase::MapToStorage, Rank::FIRST, may_proxy, storage::map_to_storage).pure();
        hooks
            .on(Phase::Fixups, Rank::FIRST, may_proxy, storage::fixup)
            .before(&["mod_rewrite.c"])
            .pure();
        hooks.on(Phase::Handler, Rank::FIRST, may_proxy, forward::handle).pure();
    }
}

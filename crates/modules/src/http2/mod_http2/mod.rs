//! mod_http2: HTTP/2.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_http2.html>. The connection speaks the
//! protocol ([`server::http2`]); this module configures it, and tells programs and logs of it.

mod hints;
mod rows;

use std::time::Duration;

use bstr::BString;
use conf::Span;
use server::build::Build;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, always};
use server::http2::{Http2, Http2Dir, PushPlace, Pushing, WarmUp};
use server::merge::{Append, Prepend, Setting};
use server::module::Module;
use server::registry::Registry;
use server::request::Request;

use crate::mpm::mpm_event::Event;
use crate::mpm::mpm_prefork::Prefork;

/// The default of `H2TLSWarmUpSize`.
const WARM_UP_BYTES: u64 = 1024 * 1024;

/// `mod_http2.c`
pub struct Http2Module;

impl Module for Http2Module {
    const NAME: &'static str = "http2_module";
    const FILE: &'static str = "mod_http2.c";
    type Server = ServerConfig;
    type Dir = DirConfig;
    const DIRECTIVES: &'static [server::directive::Row<Http2Module>] = &rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Http2Module>) {
        hooks.http2(policy);
        hooks.http2_dir(of_directory);
        hooks.post_config(check_mpm);
        hooks.on(Phase::Fixups, Rank::LAST, always, tell).pure();
        hooks.on(Phase::Fixups, Rank::LAST, hints::are_configured, hints::send).pure();
    }
}

server::config! {
    /// Per-host configuration.
    pub struct ServerConfig {
        /// `H2MaxSessionStreams`
        pub streams: Setting<u32>,
        /// `H2WindowSize`, bytes.
        pub window_bytes: Setting<u32>,
        /// `H2MaxDataFrameLen`, bytes; 0 for the protocol's limit.
        pub data_bytes: Setting<usize>,
        /// `H2Direct`
        pub direct: Setting<bool>,
        /// `H2Upgrade`
        pub upgrade: Setting<bool>,
        /// `H2StreamTimeout`
        pub stream_timeout: Setting<Duration>,
        /// `H2TLSWarmUpSize`, bytes.
        pub warm_up_bytes: Setting<u64>,
        /// `H2TLSCoolDownSecs`
        pub cool_down: Setting<Duration>,
        /// `H2ProxyRequests`
        pub proxy_requests: Setting<bool>,
        /// `H2Padding`
        pub padding_bits: Setting<u8>,
        /// `H2WebSockets`
        pub websockets: Setting<bool>,
        /// `H2Push`
        pub push: Setting<bool>,
        /// `H2PushDiarySize`
        pub push_diary: Setting<usize>,
        /// `H2PushPriority`; the first of a media type counts.
        pub push_places: Prepend<(Box<[u8]>, PushPlace)>,
        /// `H2PushResource`
        pub resources: Append<Resource>,
        /// `H2EarlyHint`
        pub early_hints: EarlyHints,
        /// `H2EarlyHints`
        pub has_early_hints: Setting<bool>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct DirConfig {
        /// `H2Upgrade`
        pub upgrade: Setting<bool>,
        /// `H2Push`
        pub push: Setting<bool>,
        /// `H2PushResource`
        pub resources: Append<Resource>,
        /// `H2EarlyHint`
        pub early_hints: EarlyHints,
    }
}

/// A response that a page needs (`H2PushResource`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    path: BString,
    is_critical: bool,
}

/// Fields of a response 103: the inner ones come first.
pub type EarlyHints = Prepend<(BString, BString)>;

fn policy(config: &ServerConfig, registry: &Registry) -> Option<Http2> {
    let default = Http2::default();
    is_supported(registry).then(|| Http2 {
        streams: config.streams.or(default.streams),
        window_bytes: config.window_bytes.or(default.window_bytes),
        data_bytes: config.data_bytes.or(default.data_bytes),
        direct: config.direct.get().copied(),
        stream_timeout: config.stream_timeout.get().copied(),
        warm_up: warm_up(config),
        is_forward_proxy: config.proxy_requests.or(default.is_forward_proxy),
        padding_bits: config.padding_bits.or(default.padding_bits),
        has_websockets: config.websockets.or(default.has_websockets),
        pushes: config.push.or(default.pushes),
        push_diary: config.push_diary.or(default.push_diary),
        push_places: config.push_places.to_vec(),
        has_early_hints: config.has_early_hints.or(default.has_early_hints),
    })
}

/// Without `H2TLSCoolDownSecs`, Apache's records are never small.
fn warm_up(config: &ServerConfig) -> Option<WarmUp> {
    let cool_down = config.cool_down.get().copied().filter(|time| !time.is_zero())?;
    let bytes = config.warm_up_bytes.or(WARM_UP_BYTES);
    (bytes > 0).then_some(WarmUp { bytes, cool_down })
}

fn of_directory(bound: Bound<'_, Http2Module>) -> Http2Dir {
    let pushes = bound.dir.push.get().or(bound.server.push.get());
    Http2Dir {
        upgrade: bound.dir.upgrade.get().or(bound.server.upgrade.get()).copied(),
        declines_pushes: pushes.is_some_and(|pushes| !pushes),
        hints: hints::lines(bound).map(Into::into),
    }
}

/// Whether the MPM can serve several requests of a connection at a time (`h2_mpm_supported`).
fn is_supported(registry: &Registry) -> bool {
    // Without LoadModule there are all of them, and event is the one in force.
    registry.slot_of::<Prefork>().is_none() || registry.slot_of::<Event>().is_some()
}

/// Warns that prefork has no HTTP/2 (`h2_post_config`).
fn check_mpm(build: &mut Build) {
    if !is_supported(&build.registry) {
        let text = "AH10034: The mpm module (prefork.c) is not supported by mod_http2. The mpm \
                    determines how things are processed in your server. HTTP/2 has more demands in \
                    this regard and the currently selected mpm will just not do. This is an \
                    advisory warning. Your server will continue to work, but the HTTP/2 protocol \
                    will be inactive.";
        build.warn(Span::default(), text);
    }
}

/// Sets the variables of HTTP/2 (`h2_h2_fixups`).
fn tell<'r>(_: Bound<'r, Http2Module>, request: &'r mut Request) -> Step<'r> {
    request.tell_http2();
    // A subrequest shares the connection, but its directory decides nothing for the response.
    if request.main.is_none() && request.connection.stream.is_some() {
        let pushing = request.connection.pushing.get();
        let is_declined = request.plan.http2.declines_pushes;
        request.connection.pushing.set(Pushing { is_declined, ..pushing });
    }
    Step::DECLINED
}

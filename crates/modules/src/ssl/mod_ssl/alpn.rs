//! The protocols that handshakes negotiate (ALPN), by `Protocols` and `ProtocolsHonorOrder`.

use std::sync::Arc;

use rustls::ServerConfig;
use server::build::Build;
use server::host::HostDraft;

use crate::core::Core;

/// The name of HTTP/1.1.
const HTTP1: &[u8] = b"http/1.1";

/// The name of HTTP/2.
const HTTP2: &[u8] = b"h2";

/// The protocols that a handshake offers. HTTP/1.1 is always among them: it needs no negotiation,
/// and a client that offers nothing else would be refused.
pub(super) fn offered(build: &Build, draft: &HostDraft) -> Vec<Vec<u8>> {
    let of = |draft: &HostDraft| {
        let core = build.server_config::<Core>(&draft.server);
        core.and_then(|core| core.protocols.get().cloned())
    };
    let listed = of(draft).or_else(|| of(&build.main)).unwrap_or_default();
    let has_http2 = build.registry.hooks.http2(&draft.server, &build.registry).is_some();
    let mut names: Vec<_> =
        listed.into_iter().filter(|name| name == HTTP1 || name == HTTP2 && has_http2).collect();
    if !names.iter().any(|name| name == HTTP1) {
        names.push(HTTP1.to_vec());
    }
    names
}

/// A configuration for each protocol.
pub(super) type ByProtocol = Vec<(Vec<u8>, Arc<ServerConfig>)>;

/// One for each protocol of each of `configs`, if the client's order counts.
pub(super) fn by_client<'c>(
    build: &Build,
    draft: &HostDraft,
    configs: impl Iterator<Item = &'c Arc<ServerConfig>>,
) -> Vec<(Arc<ServerConfig>, ByProtocol)> {
    let of = |draft: &HostDraft| {
        let core = build.server_config::<Core>(&draft.server);
        core.and_then(|core| core.protocols_honor_order.get().copied())
    };
    if of(draft).or_else(|| of(&build.main)).unwrap_or(true) {
        return Vec::new();
    }
    let with = |config: &Arc<ServerConfig>, name: &Vec<u8>| {
        let mut config = ServerConfig::clone(config);
        config.alpn_protocols = vec![name.clone()];
        (name.clone(), Arc::new(config))
    };
    let has_choice = |config: &&Arc<ServerConfig>| config.alpn_protocols.len() > 1;
    configs
        .filter(has_choice)
        .map(|config| {
            let names = config.alpn_protocols.iter();
            (config.clone(), names.map(|name| with(config, name)).collect())
        })
        .collect()
}

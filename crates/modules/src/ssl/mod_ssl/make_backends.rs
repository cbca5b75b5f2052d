//! Builds what the hosts use for backends, once the whole configuration is read
//! (`ssl_init_proxy_ctx`).

use std::sync::Arc;

use server::build::Build;
use server::merge::Merge;

use super::backends::Backend;
use super::config::{self, Backends};
use super::make::{draft, edit, report};
use super::{Ssl, backends};
use crate::proxy::mod_proxy::Proxy;

/// Builds what each host uses for backends, by its settings and those of its `<Proxy>` sections.
/// Hosts with the same settings share it.
pub(super) fn of_hosts(build: &mut Build, slot: usize) {
    let mut known: Vec<Arc<Backend>> = Vec::new();
    for index in 0..=build.hosts.len() {
        let mut made = Vec::new();
        let mut faults = Vec::new();
        for settings in settings_of(build, index, slot) {
            if let Some(backend) = known.iter().find(|one| one.settings == settings) {
                made.push(backend.clone());
                continue;
            }
            match backends::build(settings) {
                Ok(backend) => {
                    let backend = Arc::new(backend);
                    known.push(backend.clone());
                    made.push(backend);
                }
                Err(findings) => faults.extend(findings),
            }
        }
        if !faults.is_empty() {
            let server = build.server_config::<Ssl>(&draft(build, index).server).cloned();
            report(build, index, &server.unwrap_or_default(), &faults);
        } else if !made.is_empty()
            && let Some(server) = edit(build, index, slot)
        {
            server.backends.0 = made;
        }
    }
}

/// The settings for backends of a host and its `<Proxy>` sections, each once, that turn TLS on.
fn settings_of(build: &Build, index: usize, slot: usize) -> Vec<Backends> {
    let host = draft(build, index);
    let Some(outside) = host.dir.get::<config::Dir>(slot) else { return Vec::new() };
    let mut all = vec![outside.backends.clone()];
    let proxied = build.server_config::<Proxy>(&host.server);
    for section in proxied.into_iter().flat_map(|proxied| &proxied.sections.0) {
        let inside = section.dir.get::<config::Dir>(slot);
        let merged = inside.map(|dir| Merge::merge(&outside.backends, &dir.backends));
        all.extend(merged.filter(|merged| !all.contains(merged)));
    }
    all.retain(Backends::is_on);
    all
}

//! The sections for requests that another server responds to.
//!
//! Source: `proxy_walk` (modules/proxy/mod_proxy.c).

use std::sync::Arc;

use super::{enter, match_names};
use crate::config::section::{Matches, Section};
use crate::explain;
use crate::phases::matching::{Stop, certain};
use crate::request::Request;

/// Merges the sections that match the request's file name without its first `skipped` bytes: those
/// of which it has the path as its beginning, of which it fits the shell pattern, or which it
/// matches. Each merges with all before it.
///
/// # Errors
/// As [`locations`](super::locations).
pub fn proxied(
    request: &mut Request,
    sections: &[Arc<Section>],
    skipped: usize,
) -> Result<(), Stop> {
    if sections.is_empty() {
        return Ok(());
    }
    let name = request.resource.filename.get(skipped..).unwrap_or_default().to_vec();
    let base = request.layer.clone();
    let mut layer = base.clone();
    for section in sections {
        let matched = match &section.matches {
            Matches::Path(path) => name.starts_with(path),
            Matches::Wildcard(pattern) => {
                conf::fnmatch::fnmatch(pattern, &name, Default::default())
            }
            Matches::Regex(regex) => certain(match_names(regex, &name, request)?)?,
            Matches::If(_) | Matches::Always => false,
        };
        if matched {
            layer = request.engine.plans.merge(&layer, (&**section).into());
        }
    }
    enter(request, layer);
    if request.engine.recording().is_some() {
        explain::section_walk(request, "proxy", &name, sections, [&base, &request.layer]);
    }
    Ok(())
}

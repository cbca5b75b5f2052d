//! Checks the whole configuration for containers that can never grant access.
//!
//! Source: `authz_core_check_section`. As in Apache, `.htaccess` files are not checked.

use std::collections::HashSet;

use conf::{Diagnostic, Span};
use server::build::Build;
use server::core::CoreDir;
use server::module::{Config, Module};
use server::registry::Slots;
use server::section::Section;

use super::rule::{Kind, Rule};
use super::{AuthzCore, Dir};
use crate::core::Core;

/// Deepest nesting of sections that is checked.
const DEPTH_LIMIT: usize = 64;

pub(super) fn post_config(build: &mut Build) {
    let mut walk = Walk { build, seen: HashSet::new(), found: Vec::new() };
    for host in std::iter::once(&build.main).chain(&build.hosts) {
        let Some(core) = build.core_config(&host.server) else { continue };
        for section in core.directories.iter().chain(core.locations.iter()) {
            walk.section(section, 0);
        }
        walk.inner(&host.dir, 0);
    }
    let found = walk.found;
    let failed = !found.is_empty();
    for (span, message) in found {
        let (file, line) = build.sources.place(span);
        let found = Diagnostic { code: "AH01624", ..Diagnostic::without_place(message) };
        build.diagnostics.push(found.with_help(format!("in {file}, line {line}")));
    }
    if failed {
        let last = Diagnostic::without_place("Configuration check failed");
        build.diagnostics.push(Diagnostic { code: "AH00014", ..last });
    }
}

struct Walk<'b> {
    build: &'b Build,
    /// The sections already checked. Virtual hosts inherit those of the main server.
    seen: HashSet<u64>,
    found: Vec<(Span, String)>,
}

impl Walk<'_> {
    fn section(&mut self, section: &Section, depth: usize) {
        if depth > DEPTH_LIMIT || !self.seen.insert(section.id) {
            return;
        }
        if let Some(name) = self.own::<AuthzCore, Dir>(&section.dir).and_then(only_negative) {
            self.found.push((
                section.span,
                format!("{name} directive contains only negative authorization directives"),
            ));
        }
        self.inner(&section.dir, depth + 1);
    }

    /// Checks `<Files>` and `<If>` inside a section or a server.
    fn inner(&mut self, dir: &Slots, depth: usize) {
        let Some(core) = self.own::<Core, CoreDir>(dir) else { return };
        for section in core.files.iter().chain(core.ifs.iter()) {
            self.section(section, depth);
        }
    }

    fn own<'s, M: Module<Dir = T>, T: Config>(&self, slots: &'s Slots) -> Option<&'s T> {
        slots.get::<T>(self.build.registry.slot_of::<M>()?)
    }
}

fn only_negative(dir: &Dir) -> Option<String> {
    in_rule(dir.rules.as_deref()?)
}

fn in_rule(rule: &Rule) -> Option<String> {
    let Kind::Group(group) = &rule.kind else { return None };
    let inside = group.rules.iter().find_map(in_rule);
    inside.or_else(|| group.rules.iter().all(|inner| inner.negated).then(|| rule.text()))
}

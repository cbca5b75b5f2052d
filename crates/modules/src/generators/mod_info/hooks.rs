//! The hooks by phase, and the phases of each module.

use server::hooks::{HookTable, Phase, Startup};
use server::registry::Registry;

/// The phases that have a name in Apache's page, in its order.
const REQUEST: [(Phase, &str); 14] = [
    (Phase::PostReadRequest, "Post-Read Request"),
    (Phase::HeaderParser, "Header Parse"),
    (Phase::QuickHandler, "Quick Handler"),
    (Phase::PreTranslateName, "Pre-Translate Name"),
    (Phase::TranslateName, "Translate Name"),
    (Phase::MapToStorage, "Map to Storage"),
    (Phase::AccessCheckerEx, "Check Access"),
    (Phase::AccessChecker, "Check Access (legacy)"),
    (Phase::CheckUserId, "Verify User ID"),
    (Phase::AuthChecker, "Verify User Access"),
    (Phase::TypeChecker, "Check Type"),
    (Phase::Fixups, "Fixups"),
    (Phase::InsertFilter, "Insert Filters"),
    (Phase::Handler, "Content Handlers"),
];
const LATE: [(Phase, &str); 2] =
    [(Phase::LogTransaction, "Transaction Logging"), (Phase::InsertErrorFilter, "Insert Errors")];

const STARTUP: [(Startup, &str); 3] = [
    (Startup::PostConfig, "Post Configuration"),
    (Startup::OpenLogs, "Open Logs"),
    (Startup::ChildInit, "Child Init"),
];

fn phases() -> impl Iterator<Item = (Phase, &'static str)> {
    REQUEST.into_iter().chain(LATE)
}

/// Whether a module has a handler.
pub(super) fn has_handler(registry: &Registry, file: &str) -> bool {
    is_in(&registry.hooks, Phase::Handler, file)
}

fn is_in(hooks: &HookTable, phase: Phase, file: &str) -> bool {
    hooks.phase(phase).iter().any(|hook| hook.module == file)
}

/// The names of the phases in which a module has hooks.
pub(super) fn phases_of(registry: &Registry, file: &str) -> Vec<&'static str> {
    let own = phases().filter(|(phase, _)| is_in(&registry.hooks, *phase, file));
    own.map(|(_, name)| name).collect()
}

/// Writes all hooks. Links begin with `mark`.
pub(super) fn write(registry: &Registry, mark: char, out: &mut Vec<u8>) {
    put(out, "<h2><a name=\"startup_hooks\">Startup Hooks</a></h2>\n<dl>");
    for (kind, name) in STARTUP {
        let hooks = registry.hooks.startup().iter().filter(|(own, _)| *own == kind);
        // They run in the order of modules.
        phase(name, hooks.map(|(_, module)| (10, *module)), mark, out);
    }
    put(out, "</dl>\n<hr />\n<h2><a name=\"request_hooks\">Request Hooks</a></h2>\n<dl>");
    for (of, name) in phases() {
        let hooks = registry.hooks.phase(of).iter();
        phase(name, hooks.map(|hook| (hook.rank.0, hook.module)), mark, out);
    }
    put(out, "</dl>\n<hr />\n");
}

fn phase(
    name: &str,
    hooks: impl Iterator<Item = (i32, &'static str)>,
    mark: char,
    out: &mut Vec<u8>,
) {
    put(out, &format!("<dt><strong>{name}:</strong>\n <br /><tt>\n"));
    for (rank, file) in hooks {
        put(out, &format!("&nbsp;&nbsp; {rank:02} <a href=\"{mark}{file}\">{file}</a> <br/>"));
    }
    put(out, "\n  </tt>\n</dt>\n");
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

//! The page, in Apache's layout.
//!
//! Source: `display_info`, `show_server_settings` (modules/generators/mod_info.c).

use std::os::unix::ffi::OsStrExt;

use server::module::ErasedModule;
use server::registry::Registry;
use server::request::Request;
use wire::escape;

use super::listing::Listing;
use super::{Settings, hooks};
use crate::generators::mod_status::report::{built, server_version};
use crate::mpm;

const BEGIN: &str = "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n\
    \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n\
    <html xmlns=\"http://www.w3.org/1999/xhtml\">\n\
    <head>\n  <title>Server Information</title>\n</head>\n\
    <body><h1 style=\"text-align: center\">Apache Server Information</h1>\n";

const LINKS: &str = "<dl><dt><tt>Subpages:<br />\
    <a href=\"?config\">Configuration Files</a>, <a href=\"?server\">Server Settings</a>, \
    <a href=\"?list\">Module List</a>, <a href=\"?hooks\">Active Hooks</a>, \
    <a href=\"?providers\">Available Providers</a></tt></dt></dl><hr />\
    <dl><dt><tt>Sections:<br /><a href=\"#modules\">Loaded Modules</a>, \
    <a href=\"#server\">Server Settings</a>, <a href=\"#startup_hooks\">Startup Hooks</a>, \
    <a href=\"#request_hooks\">Request Hooks</a>, <a href=\"#providers\">Providers</a>\
    </tt></dt></dl><hr />";

/// Writes the part of the page that the query names, or all of it.
pub(super) fn write(
    settings: &Settings,
    request: &Request,
    query: Option<&[u8]>,
    signature: &[u8],
) -> Vec<u8> {
    let registry = &request.engine.server.registry;
    let modules = modules(registry);
    let is = |part: &str| query.is_some_and(|query| query.eq_ignore_ascii_case(part.as_bytes()));
    let has = |part: &str| query.is_none() || is(part);
    let mut out = Vec::with_capacity(64 * 1024);
    put(&mut out, BEGIN);
    if is("list") {
        list(&modules, &mut out);
    } else {
        if query.is_none() {
            put(&mut out, LINKS);
            links(&modules, &mut out);
        }
        if has("server") {
            server_settings(settings, request, &mut out);
        }
        if has("hooks") {
            hooks::write(registry, if query.is_none() { '#' } else { '?' }, &mut out);
        }
        if has("providers") {
            providers(registry, &mut out);
        }
        if is("config") {
            put(&mut out, "<dl><dt><strong>Configuration:</strong>\n");
            Listing::write(&settings.directives.0, None, &mut out);
            put(&mut out, "</dl><hr />");
        } else {
            for module in modules.iter().filter(|module| has(module.file())) {
                module_settings(settings, registry, *module, &mut out);
            }
        }
    }
    out.extend_from_slice(signature);
    put(&mut out, "</body></html>\n");
    out
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// The active modules by name, without those that are not implemented.
fn modules(registry: &Registry) -> Vec<&'static dyn ErasedModule> {
    let active = registry.modules().iter().filter(|module| module.missing().is_none());
    let mut modules: Vec<_> = active.copied().collect();
    modules.sort_by_key(|module| module.file());
    modules
}

fn list(modules: &[&'static dyn ErasedModule], out: &mut Vec<u8>) {
    put(out, "<dl><dt>Server Module List</dt>");
    for module in modules {
        put(out, &format!("<dd>{}</dd>", module.file()));
    }
    put(out, "</dl><hr />");
}

fn links(modules: &[&'static dyn ErasedModule], out: &mut Vec<u8>) {
    put(out, "<h2><a name=\"modules\">Loaded Modules</a></h2><dl><dt><tt>");
    for module in modules {
        let file = module.file();
        put(out, &format!("<a href=\"#{file}\">{file}</a>, "));
    }
    put(out, "</tt></dt></dl><hr />");
}

fn server_settings(settings: &Settings, request: &Request, out: &mut Vec<u8>) {
    put(out, "<h2><a name=\"server\">Server Settings</a></h2><dl>");
    for (name, value) in [("Version", server_version()), ("Built", built().to_owned())] {
        put(
            out,
            &format!(
                "<dt><strong>Server {name}:</strong> <font size=\"+1\"><tt>{value}</tt></font>\
                 </dt>\n"
            ),
        );
    }
    put(out, "<dt><strong>Hostname/port:</strong> <tt>");
    escape::html(out, request.server_name());
    put(out, &format!(":{}</tt></dt>\n", request.server_port()));
    let core = &request.host.core;
    let (timeout, keep_alive) = (core.timeout().as_secs(), core.keep_alive_timeout().as_secs());
    let server = &request.engine.server;
    let active = mpm::active(&server.registry, &server.main().server);
    let (mpm, is_threaded, is_forked) = match active.map(|(kind, _)| kind) {
        Some(mpm::Kind::Worker) => ("worker", true, true),
        Some(mpm::Kind::Prefork) => ("prefork", false, true),
        Some(mpm::Kind::Loop) => ("loop", false, false),
        Some(mpm::Kind::Event) | None => ("event", true, true),
    };
    let limit = request.engine.scoreboard.snapshot().process_limit;
    let yes = |is| if is { "yes" } else { "no" };
    put(
        out,
        &format!(
            "<dt><strong>Timeouts:</strong> <tt>connection: {timeout} &nbsp;&nbsp; \
             keep-alive: {keep_alive}</tt></dt><dt><strong>MPM Name:</strong> <tt>{mpm}</tt></dt>\n\
             <dt><strong>MPM Information:</strong> <tt>Max Daemons: {limit} Threaded: {} \
             Forked: {}</tt></dt>\n\
             <dt><strong>Server Architecture:</strong> <tt>{}-bit</tt></dt>\n",
            yes(is_threaded),
            yes(is_forked),
            usize::BITS,
        ),
    );
    put(out, "<dt><strong>Server Root:</strong> <tt>");
    escape::html(out, server.server_root.as_os_str().as_bytes());
    put(out, "</tt></dt>\n<dt><strong>Config File:</strong> <tt>");
    let directives = &settings.directives.0;
    if let Some(first) = directives.nodes.first() {
        escape::html(out, directives.sources.name(first.span.file));
    }
    put(out, "</tt></dt>\n</dl><hr />");
}

fn providers(registry: &Registry, out: &mut Vec<u8>) {
    put(out, "<h2><a name=\"providers\">Providers</a></h2>\n<dl>");
    let all = registry.hooks.provider_names();
    for group in all.chunk_by(|(before, _), (next, _)| before == next) {
        let Some((name, _)) = group.first() else { continue };
        put(out, &format!("<dt><strong>{name}</strong> (version <tt>0</tt>):\n <br />\n"));
        for (_, provider) in group {
            put(out, &format!("<tt>&nbsp;&nbsp;{provider}</tt><br/>"));
        }
        put(out, "\n</dt>\n");
    }
    put(out, "</dl>\n<hr />\n");
}

fn module_settings(
    settings: &Settings,
    registry: &Registry,
    module: &dyn ErasedModule,
    out: &mut Vec<u8>,
) {
    let file = module.file();
    let none = "<tt> <em>none</em></tt>";
    let or_none = |names: Vec<&str>| match names.is_empty() {
        true => none.to_owned(),
        false => names.iter().map(|name| format!("<tt>{name}</tt>")).collect::<Vec<_>>().join(", "),
    };
    let handlers = if hooks::has_handler(registry, file) { "<tt> <em>yes</em></tt>" } else { none };
    put(
        out,
        &format!(
            "<dl><dt><a name=\"{file}\"><strong>Module Name:</strong></a> <font size=\"+1\"><tt>\
             <a href=\"?{file}\">{file}</a></tt></font></dt>\n\
             <dt><strong>Content handlers:</strong> {handlers}</dt>\
             <dt><strong>Configuration Phase Participation:</strong>\n{}</dt>\
             <dt><strong>Request Phase Participation:</strong>\n{}</dt>\n",
            or_none(configurations(module)),
            or_none(hooks::phases_of(registry, file)),
        ),
    );
    directives(settings, module, out);
    let remark = settings.remarks.iter().find(|remark| remark.module == file.as_bytes());
    if let Some(remark) = remark {
        put(out, "<dt><strong>Additional Information:</strong>\n</dt><dd>");
        // It is HTML, as documented.
        out.extend_from_slice(&remark.html);
        put(out, "</dd>");
    }
    put(out, "</dl><hr />\n");
}

/// The configurations that a module creates.
fn configurations(module: &dyn ErasedModule) -> Vec<&'static str> {
    let (of_server, of_dir) = module.defaults();
    let mut names = Vec::new();
    if !of_dir.is::<()>() {
        names.extend(["Create Directory Config", "Merge Directory Configs"]);
    }
    if !of_server.is::<()>() {
        names.extend(["Create Server Config", "Merge Server Configs"]);
    }
    names
}

fn directives(settings: &Settings, module: &dyn ErasedModule, out: &mut Vec<u8>) {
    let rows = module.rows(0);
    if rows.is_empty() {
        return put(out, "<dt><strong>Module Directives:</strong> <tt>none</tt></dt>");
    }
    put(out, "<dt><strong>Module Directives:</strong></dt>");
    for row in &rows {
        let (begin, end) = if row.is_section { ("&lt;", "&gt;") } else { ("", "") };
        put(out, &format!("<dd><tt>{begin}{}{end} - <i>", row.name));
        escape::html(out, row.doc.as_bytes());
        put(out, "</i></tt></dd>\n");
    }
    put(out, "<dt><strong>Current Configuration:</strong></dt>\n");
    let names: Vec<String> = rows.iter().map(|row| row.name.to_ascii_lowercase()).collect();
    Listing::write(&settings.directives.0, Some(&names), out);
}

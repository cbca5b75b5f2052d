//! `exec`, which mod_cgi and mod_cgid provide.
//!
//! Source: `handle_exec`, `include_cgi`, `include_cmd` (modules/generators/mod_cgi.c)

use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::request::{FileKind, Request};
use server::subrequest;
use wire::Method;

use super::page::Page;
use super::parse::Element;
use super::substitute::Unset;
use super::{entity, include, variables};
use crate::generators::mod_cgi::command;

/// The longest command (`MAX_STRING_LEN`).
const COMMAND_BYTES_MAX: usize = 8191;

/// The media type of programs (`CGI_MAGIC_TYPE`).
const PROGRAM_TYPE: &[u8] = b"application/x-httpd-cgi";

/// Whether a module runs programs.
pub(super) fn is_available(request: &Request) -> bool {
    command::is_available(request)
}

/// `<!--#exec cgi|cmd="…" … -->`
pub(super) async fn exec(page: &mut Page<'_>, element: &Element) {
    if !page.begins(element, 1, (3195, "missing argument for exec element in")) {
        return;
    }
    if !page.may_execute {
        let text = format!("exec used but not allowed in {}", page.file());
        return page.refuse(1228, &text);
    }
    page.depends_on_request();
    for (at, (name, value)) in element.values().enumerate().skip(page.done_values) {
        let value = entity::decoded(value);
        let file = page.file();
        match name {
            b"cmd" => {
                let mut command = page.substitute(&value, Unset::Left);
                command.truncate(COMMAND_BYTES_MAX);
                if let Err(error) = run_command(page, &command).await {
                    let tag = "parameter \"cmd\" to tag exec in file";
                    let text = format!("execution failure for {tag} {file}: {error}");
                    return page.refuse(1229, &text);
                }
            }
            b"cgi" => {
                let uri = page.substituted(&value);
                if !run_program(page, &uri).await {
                    let text = format!("invalid CGI ref \"{}\" in {file}", Verbatim::new(&value));
                    return page.refuse(1230, &text);
                }
            }
            _ => {
                let name = Verbatim::new(name);
                let text = format!("unknown parameter \"{name}\" to tag exec in {file}");
                return page.refuse(1231, &text);
            }
        }
        if page.pause.is_some() {
            page.done_values = at + 1;
            return;
        }
    }
}

/// Includes what a shell command writes.
async fn run_command(page: &mut Page<'_>, command: &[u8]) -> std::io::Result<()> {
    add_variables(&mut page.request).await;
    variables::add_query(&mut page.request);
    let body = command::run(&page.request, command).await?;
    include::add(page, body).await;
    Ok(())
}

/// The path behind the page, escaped for a shell.
///
/// Source: `add_ssi_vars`
async fn add_variables(request: &mut Request) {
    use crate::util_script::shell_escaped;
    let path_info = request.resource.path_info.clone();
    if path_info.is_empty() {
        return;
    }
    request.env.set(b"PATH_INFO", &shell_escaped(&path_info));
    let mut uri = Vec::new();
    wire::escape::path(&mut uri, &path_info);
    let found = Box::pin(subrequest::lookup_uri(request, &uri, Method::GET)).await.resource;
    if !found.filename.is_empty() {
        let translated = [found.filename, found.path_info].concat();
        request.env.set(b"PATH_TRANSLATED", &translated);
    }
}

/// Includes what a program writes; whether it could run.
async fn run_program(page: &mut Page<'_>, uri: &[u8]) -> bool {
    let mut sub = subrequest::lookup_response(&mut page.request, uri).await;
    let has_own = !sub.resource.path_info.is_empty() || sub.own_query().is_some();
    if sub.response.status != 200 || has_own || sub.resource.file.kind != FileKind::Regular {
        return false;
    }
    // The program gets what the page was asked with.
    sub.resource.path_info.clone_from(&page.request.resource.path_info);
    sub.set_query(page.request.query().map(<[u8]>::to_vec));
    sub.response.content_type = Some(PROGRAM_TYPE.to_vec());
    let verdict = include::run(page, &mut sub).await;
    if let Verdict::Status(300..=399) = verdict
        && let Some(location) = sub.response.headers_out.get(b"Location")
    {
        let mut escaped = Vec::new();
        wire::escape::html(&mut escaped, location);
        let link = [b"<a href=\"".as_slice(), &escaped, b"\">", &escaped, b"</a>"].concat();
        page.out.put(&link);
    }
    true
}

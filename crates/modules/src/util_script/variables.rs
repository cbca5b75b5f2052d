//! The variables that describe a request to a program (RFC 3875 section 4.1), in Apache's order.
//!
//! Source: `ap_add_common_vars`, `ap_add_cgi_vars`.

use std::os::unix::ffi::OsStringExt;
use std::sync::LazyLock;

use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use server::{errors, hostname, subrequest};
use wire::table::Overlap;
use wire::{Method, Table};

use crate::metadata::mod_ident;

/// `PATH` of programs if the server has none (`DEFAULT_PATH`).
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin:/usr/ucb:/usr/bsd:/usr/local/bin";

/// Room for the variables of most requests, besides those of fields: pairs, and bytes.
const ROOM: (usize, usize) = (32, 1024);

/// The server's own variables that programs get.
static PATH: LazyLock<Vec<u8>> = LazyLock::new(|| {
    std::env::var_os("PATH").map_or_else(|| DEFAULT_PATH.to_vec(), OsStringExt::into_vec)
});
static LIBRARY_PATH: LazyLock<Option<Vec<u8>>> =
    LazyLock::new(|| std::env::var_os("LD_LIBRARY_PATH").map(OsStringExt::into_vec));

/// Adds the variables that any program gets to those of the request. A value that is computed
/// replaces one that was set, and keeps its place.
///
/// `M` is the module in whose name is logged.
pub(crate) async fn add_common<M: Module>(request: &mut Request) {
    let host = hostname::client_name(request).await.map(<[u8]>::to_vec);
    if mod_ident::is_unasked(request) {
        mod_ident::ask(request).await;
    }
    let mut added = match request.env.is_empty() {
        // It has the memory that an earlier request needed.
        true => std::mem::take(&mut request.env),
        false => Table::default(),
    };
    let fields = &request.head.headers_in;
    added.reserve(ROOM.0 + fields.len(), ROOM.1 + fields.capacity_bytes());
    add_fields::<M>(request, &mut added);
    add_server(request, &mut added);
    add_client(request, host.as_deref(), &mut added);
    add_redirect(request, &mut added);
    if request.env.is_empty() {
        request.env = added;
    } else {
        request.env.extend(&added);
        request.env.compress(Overlap::Set);
    }
}

/// Adds the variables of CGI, among them those about path and query.
pub(crate) async fn add_cgi(request: &mut Request) {
    let protocol = request.protocol_name().into_owned();
    let uri = match request.plan.core.cgi_current_uri.or(false) {
        true => request.resource.uri.clone(),
        false => original_uri(request).to_vec(),
    };
    let query = request.query().unwrap_or_default().to_vec();
    let Request { env, head, resource, .. } = request;
    env.set(b"GATEWAY_INTERFACE", b"CGI/1.1");
    env.set(b"SERVER_PROTOCOL", &protocol);
    env.set(b"REQUEST_METHOD", &head.method_name);
    env.set(b"QUERY_STRING", &query);
    env.set(b"REQUEST_URI", &uri);
    let path_info = resource.path_info.clone();
    let is_whole = protocol == b"INCLUDED" || path_info.is_empty();
    let end = match is_whole {
        true => resource.uri.len(),
        false => subrequest::path_info_at(&resource.uri, &path_info),
    };
    env.set(b"SCRIPT_NAME", resource.uri.get(..end).unwrap_or_default());
    if path_info.is_empty() {
        return;
    }
    env.set(b"PATH_INFO", &path_info);
    // The path was unescaped as a whole.
    let mut escaped = Vec::new();
    wire::escape::path(&mut escaped, &path_info);
    let found = Box::pin(subrequest::lookup_uri(request, &escaped, Method::GET)).await.resource;
    if !found.filename.is_empty() {
        let translated = [found.filename, found.path_info].concat();
        request.env.set(b"PATH_TRANSLATED", &translated);
    }
}

fn add_fields<M: Module>(request: &Request, added: &mut Table) {
    let passes = request.plan.core.cgi_pass_auth.or(false);
    let mut name = Vec::new();
    for (field, value) in request.head.headers_in.iter() {
        let is = |known: &[u8]| field.eq_ignore_ascii_case(known);
        if is(b"Content-Type") {
            added.add(b"CONTENT_TYPE", value);
        } else if is(b"Content-Length") {
            added.add(b"CONTENT_LENGTH", value);
        } else if is(b"Proxy") {
            // Many programs take HTTP_PROXY for the address of a proxy.
        } else if (is(b"Authorization") || is(b"Proxy-Authorization")) && !passes {
            // Programs and logs of processes are no place for passwords.
        } else if wire::variable::of_field(field, &mut name) {
            added.add(&name, value);
        } else {
            let field = Verbatim::new(field);
            let text = format_args!("Not exporting header with invalid name as envvar: {field}");
            request.log::<M>(Level::Trace1, 0, text);
        }
    }
    // A body that was kept can be read as one of a known length, whatever the fields say.
    if let Some(kept) = request.body_in.kept() {
        added.set(b"CONTENT_LENGTH", itoa::Buffer::new().format(kept.len()).as_bytes());
    }
}

fn add_server(request: &Request, added: &mut Table) {
    added.add(b"PATH", request.env.get(b"PATH").unwrap_or(&PATH));
    if let Some(path) = &*LIBRARY_PATH {
        added.add(b"LD_LIBRARY_PATH", path);
    }
    added.add(b"SERVER_SIGNATURE", &errors::signature(request, b""));
    added.add(b"SERVER_SOFTWARE", request.engine.server.software.as_bytes());
    let mut name = Vec::new();
    wire::escape::html(&mut name, &request.server_name_for_url());
    added.add(b"SERVER_NAME", &name);
    let mut address = Vec::with_capacity(wire::address::LONGEST);
    wire::address::write(&mut address, request.own_address().to_canonical());
    added.add(b"SERVER_ADDR", &address);
    let mut digits = itoa::Buffer::new();
    added.add(b"SERVER_PORT", digits.format(request.server_port()).as_bytes());
}

fn add_client(request: &Request, host: Option<&[u8]>, added: &mut Table) {
    let notes = &request.notes;
    if let Some(host) = host {
        added.add(b"REMOTE_HOST", host);
    }
    let mut address = Vec::with_capacity(wire::address::LONGEST);
    wire::address::write(&mut address, request.useragent_addr.ip().to_canonical());
    added.add(b"REMOTE_ADDR", &address);
    let root = request.document_root().unwrap_or_default();
    added.add(b"DOCUMENT_ROOT", root);
    added.add(b"REQUEST_SCHEME", request.scheme().as_bytes());
    added.add(b"CONTEXT_PREFIX", notes.get(b"CONTEXT_PREFIX").unwrap_or_default());
    added.add(b"CONTEXT_DOCUMENT_ROOT", notes.get(b"CONTEXT_DOCUMENT_ROOT").unwrap_or(root));
    let admin = request.host.core.server_admin.get();
    added.add(b"SERVER_ADMIN", admin.map_or(b"[no address given]", Vec::as_slice));
    let file = request.resource.filename.as_slice();
    let query = file.iter().position(|byte| *byte == b'?');
    let bare = query.filter(|_| notes.contains(b"proxy-noquery")).and_then(|at| file.get(..at));
    added.add(b"SCRIPT_FILENAME", bare.unwrap_or(file));
    let mut digits = itoa::Buffer::new();
    added.add(b"REMOTE_PORT", digits.format(request.connection.peer.port()).as_bytes());
    let mut earlier = std::iter::successors(request.prev.as_deref(), |prev| prev.prev.as_deref());
    if let Some(user) = &request.user {
        added.add(b"REMOTE_USER", user);
    } else if let Some(user) = earlier.find_map(|prev| prev.user.as_ref()) {
        added.add(b"REDIRECT_REMOTE_USER", user);
    }
    if let Some(user) = request.connection.logname.get() {
        added.add(b"REMOTE_IDENT", user);
    }
    if let Some(auth_type) = &request.auth_type {
        added.add(b"AUTH_TYPE", auth_type.as_bytes());
    }
}

fn add_redirect(request: &Request, added: &mut Table) {
    let Some(prev) = &request.prev else { return };
    let url = match request.plan.core.qualify_redirect_url.or(false) {
        true => prev.construct_url(&prev.head.unparsed_uri),
        false => prev.resource.uri.clone(),
    };
    added.add(b"REDIRECT_URL", &url);
    if let Some(query) = prev.query() {
        added.add(b"REDIRECT_QUERY_STRING", query);
    }
}

/// The target in the request line as received.
fn original_uri(request: &Request) -> &[u8] {
    let line = &request.original().head.request_line;
    let mut words = line.split(u8::is_ascii_whitespace).skip(1);
    words.find(|word| !word.is_empty()).unwrap_or_default()
}

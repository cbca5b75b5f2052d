//! The `SSL_…` variables in expressions, logs and the environment (`ssl_engine_vars.c`).

use std::time::{SystemTime, UNIX_EPOCH};

use conf::expr::Variable;
use rustls::CipherSuite;
use server::expr::{Extension, value_of};
use server::request::Request;
use tls::vars::{Connection, LIBRARY, Style, certificate, of_log_format};
use wire::escape;

use super::options::Options;
use super::{INTERFACE, Ssl, host_by_id, of_host};

/// The names for expressions: `%{SSL_…}`, `%{SSL:name}`, `word -in PeerExtList(oid)`.
pub const EXTENSION: Extension = Extension {
    variable: |name| {
        let is_ours = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("SSL_"));
        is_ours.then_some(VARIABLE)
    },
    function: |name| name.eq_ignore_ascii_case("SSL").then_some(VARIABLE),
    function_value: |request, _, name, out| append(request, &String::from_utf8_lossy(name), out),
    list: |name| name.eq_ignore_ascii_case("PeerExtList").then_some(0),
    list_contains: |request, _, oid, needle| peer_extension_has(request, oid, needle),
    ..Extension::NOTHING
};

/// The id of the function that looks a variable up.
const VARIABLE: u16 = 0;

fn append(request: &Request, name: &str, out: &mut Vec<u8>) -> bool {
    let value = lookup(request, name);
    out.extend_from_slice(value.as_deref().unwrap_or_default());
    value.is_some()
}

/// The value of a variable by its full name; `None` if there is none (`ssl_var_lookup`).
pub fn lookup(request: &Request, name: &str) -> Option<Vec<u8>> {
    let of_connection =
        connection(request).and_then(|client| client.lookup(name, style(request), now()));
    of_connection.or_else(|| of_request(request, name)).filter(|value| !value.is_empty())
}

/// The variables that mod_ssl has for plain connections, too.
fn of_request(request: &Request, name: &str) -> Option<Vec<u8>> {
    let is_env = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("ENV:"));
    if let Some(name) = name.get(4..).filter(|_| is_env) {
        return request.env.get(name.as_bytes()).map(<[u8]>::to_vec);
    }
    let name = name.to_ascii_uppercase();
    let header = |name: &str| request.head.headers_in.get(name.as_bytes()).map(<[u8]>::to_vec);
    match name.as_str() {
        "HTTPS" => return Some(b"off".to_vec()),
        "SSL_VERSION_INTERFACE" => return Some(INTERFACE.into()),
        "SSL_VERSION_LIBRARY" => return Some(LIBRARY.into()),
        _ => {}
    }
    if let Some(name) = name.strip_prefix("HTTP:") {
        return header(name);
    }
    let variable = Variable::by_name(&name).filter(|one| OF_REQUEST.contains(one))?;
    if let Some(name) = variable.header() {
        return header(name);
    }
    let mut value = Vec::new();
    value_of(request, variable, &mut value).then_some(value)
}

/// The core's variables that mod_ssl knows.
const OF_REQUEST: [Variable; 34] = [
    Variable::HttpAccept,
    Variable::HttpCookie,
    Variable::HttpForwarded,
    Variable::HttpHost,
    Variable::HttpProxyConnection,
    Variable::HttpReferer,
    Variable::HttpUserAgent,
    Variable::RequestMethod,
    Variable::RequestScheme,
    Variable::RequestUri,
    Variable::RequestFilename,
    Variable::ScriptFilename,
    Variable::PathInfo,
    Variable::QueryString,
    Variable::IsSubreq,
    Variable::TheRequest,
    Variable::RemoteAddr,
    Variable::RemoteHost,
    Variable::RemoteUser,
    Variable::RemoteIdent,
    Variable::ServerName,
    Variable::ServerPort,
    Variable::ServerAdmin,
    Variable::ServerProtocol,
    Variable::ServerSoftware,
    Variable::DocumentRoot,
    Variable::AuthType,
    Variable::ApiVersion,
    Variable::TimeYear,
    Variable::TimeMon,
    Variable::TimeDay,
    Variable::TimeHour,
    Variable::TimeMin,
    Variable::TimeSec,
];

/// `%{name}x`
pub fn log_variable(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    log(request, &String::from_utf8_lossy(name), out)
}

/// `%{name}c`, the older form.
pub fn log_older(request: &Request, name: &[u8], out: &mut Vec<u8>) -> bool {
    let name = of_log_format(&String::from_utf8_lossy(name));
    name.is_some_and(|name| log(request, name, out))
}

/// Clients choose what certificates say: it is escaped as their other texts are.
fn log(request: &Request, name: &str, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if !append(request, name, out) {
        return false;
    }
    escape::log_item_from(out, start);
    true
}

/// The connection's properties, if it uses TLS.
pub fn connection(request: &Request) -> Option<Connection<'_>> {
    let tls = request.connection.tls.as_deref()?;
    let server = &request.engine.server;
    // A configuration that is only read has no certificates: keys may need a pass phrase.
    let built = of_host(server, host_by_id(server, tls.host)?)?.built.0.as_ref();
    let peer = tls.peer.as_deref();
    Some(Connection {
        protocol: tls.protocol,
        suite: CipherSuite::from(tls.cipher_suite),
        resumed: tls.resumed,
        session_id: &tls.session_id,
        server_name: tls.server_name.as_deref(),
        server_chain: built.map_or(&[], |built| built.certificates.chain(tls.certificate)),
        client_chain: peer.map(|peer| peer.certificates.as_slice()).unwrap_or_default(),
        failure: peer.and_then(|peer| peer.failure.as_deref()),
        interface: INTERFACE,
    })
}

/// Whether the client has sent a certificate that the request's host trusts.
pub fn is_verified(request: &Request) -> bool {
    let peer = request.connection.tls.as_deref().and_then(|tls| tls.peer.as_deref());
    peer.is_some_and(|peer| peer.failure.is_none() && peer.depth <= depth(request))
}

/// The most issuers that the request's host allows above a client's certificate.
pub fn depth(request: &Request) -> usize {
    let of_section = request.dir_of::<Ssl>().and_then(|dir| dir.verify_depth.get());
    let of_host = of_host(&request.engine.server, &request.host);
    match of_section {
        Some(depth) => *depth,
        None => of_host.map_or(1, |own| own.verify_depth.or(1)),
    }
}

/// The format of names in certificates.
pub fn style(request: &Request) -> Style {
    let options = request.dir_of::<Ssl>().map(|dir| dir.options);
    match options.is_some_and(|options| options.has(Options::LEGACY_DN_STRING_FORMAT)) {
        true => Style::Legacy,
        false => Style::Rfc2253,
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn peer_extension_has(request: &Request, oid: &[u8], needle: &[u8]) -> bool {
    let peer = request.connection.tls.as_deref().and_then(|tls| tls.peer.as_deref());
    let leaf = peer.and_then(|peer| peer.certificates.first());
    let parsed = leaf.and_then(|leaf| tls::certs::parse(leaf).ok());
    parsed.is_some_and(|parsed| {
        let oid = String::from_utf8_lossy(oid);
        certificate::extension_values(&parsed, &oid).iter().any(|value| value == needle)
    })
}

//! The environment of expressions for a request.

use std::io::Write;
use std::net::IpAddr;

use conf::expr::{Env, Subject, Table, Variable};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pcre::{Captures, Later, Matched, Regex};

use super::extension::{Extension, Extensions, PAGE_VARIABLE};
use crate::phases::lookup;
use crate::request::{FileKind, Request};

/// The request side of an evaluation.
pub(super) struct RequestEnv<'r> {
    request: &'r mut Request,
    /// Headers that were read, for `Vary`.
    vary: Vec<Vec<u8>>,
    /// The names of the request's variables that were read, for a caller that knows what they
    /// depend on: everything else that is read then makes the response impure.
    pub(super) variables_read: Option<Vec<Vec<u8>>>,
}

impl<'r> RequestEnv<'r> {
    pub(super) fn new(request: &'r mut Request) -> RequestEnv<'r> {
        RequestEnv { request, vary: Vec::new(), variables_read: None }
    }

    /// Something is read that is no variable.
    fn reads_more(&mut self) {
        if self.variables_read.is_some() {
            self.request.depends.pure = false;
        }
    }

    fn page_variable(&mut self, name: &[u8], out: &mut Vec<u8>) -> bool {
        if let Some(read) = &mut self.variables_read {
            read.push(name.to_vec());
        }
        append(self.request.env.get(name), out)
    }

    /// Adds the headers that the value depends on to `Vary`.
    pub(super) fn finish(self, tell: bool) {
        for name in self.vary.iter().filter(|_| tell) {
            if !self.request.response.headers_out.contains_token(b"Vary", name) {
                self.request.response.headers_out.merge(b"Vary", name);
            }
        }
    }

    fn extension(&self, id: u32) -> Option<(std::sync::Arc<Extension>, u16)> {
        Extensions::of(&self.request.engine.server.registry).find(id)
    }
}

impl Env for RequestEnv<'_> {
    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) -> bool {
        if !is_of_path(variable) {
            self.reads_more();
        }
        if let Some(name) = variable.header() {
            return append(self.request.head.headers_in.get(name.as_bytes()), out);
        }
        value_of(self.request, variable, out)
    }

    fn lookup(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) -> bool {
        if !matches!(table, Table::RequestEnv) {
            self.reads_more();
        }
        let request = &*self.request;
        match table {
            Table::RequestHeader | Table::RequestHeaderNoVary => {
                append(request.head.headers_in.get(name), out)
            }
            Table::ResponseHeader if request.traffic.first_byte_us == 0 => {
                append(request.field_out(name), out)
            }
            // In the log, what is made when the head is written is there as well.
            Table::ResponseHeader => {
                let is_type = name.eq_ignore_ascii_case(b"Content-Type");
                let media_type = if is_type { request.media_type() } else { None };
                let sent = media_type.or_else(|| request.field_sent(name));
                append(sent.as_deref().or_else(|| request.field_out(name)), out)
            }
            Table::RequestEnv => self.page_variable(name, out),
            Table::Note => append(request.notes.get(name), out),
            Table::OsEnv | Table::Env => {
                use std::os::unix::ffi::{OsStrExt, OsStringExt};
                let name = std::ffi::OsStr::from_bytes(name);
                let value = std::env::var_os(name).map(OsStringExt::into_vec);
                append(value.as_deref(), out)
            }
        }
    }

    fn client_address(&mut self) -> Option<IpAddr> {
        self.reads_more();
        Some(self.request.useragent_addr.ip())
    }

    fn allowed(&mut self, subject: Subject, text: &[u8]) -> Result<bool, Later> {
        self.reads_more();
        let outcome = lookup::look_up(self.request, subject, text)?;
        Ok(outcome.is_some_and(|outcome| match subject {
            Subject::Url => outcome.status < 400,
            Subject::File => outcome.status < 300 && outcome.kind != FileKind::None,
        }))
    }

    fn vary(&mut self, header: &[u8]) {
        self.vary.push(header.to_vec());
    }

    fn matches(
        &mut self,
        regex: &Regex,
        subject: &[u8],
        captures: Option<&mut Captures>,
    ) -> Result<Matched, Later> {
        self.request.matches(regex, subject, captures)
    }

    fn is_undecided(&self, variable: &[u8]) -> bool {
        self.request.is_undecided(variable)
    }

    fn module_function(&mut self, id: u32, argument: &[u8], out: &mut Vec<u8>) -> bool {
        if id == PAGE_VARIABLE {
            return self.page_variable(argument, out);
        }
        self.reads_more();
        let found = self.extension(id);
        found.is_some_and(|(of, own)| (of.function_value)(self.request, own, argument, out))
    }

    fn module_list_contains(&mut self, id: u32, argument: &[u8], needle: &[u8]) -> bool {
        self.reads_more();
        let found = self.extension(id);
        found.is_some_and(|(of, own)| (of.list_contains)(self.request, own, argument, needle))
    }

    fn module_unary(&mut self, id: u32, argument: &[u8]) -> bool {
        self.reads_more();
        let found = self.extension(id);
        found.is_some_and(|(of, own)| (of.unary_value)(self.request, own, argument))
    }

    fn module_binary(&mut self, id: u32, left: &[u8], right: &[u8]) -> bool {
        self.reads_more();
        let found = self.extension(id);
        found.is_some_and(|(of, own)| (of.binary_value)(self.request, own, left, right))
    }
}

/// Whether a variable of a request depends on its path and its files only, or on what
/// [`Request::query`] notes.
fn is_of_path(variable: Variable) -> bool {
    matches!(
        variable,
        Variable::RequestUri
            | Variable::RequestFilename
            | Variable::ScriptFilename
            | Variable::PathInfo
            | Variable::QueryString
            | Variable::DocumentRoot
            | Variable::ServerAdmin
            | Variable::ServerSoftware
            | Variable::ApiVersion
            | Variable::LastModified
    )
}

/// Appends the value of a variable that is not a header field; whether it has one.
pub fn value_of(request: &Request, variable: Variable, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    about_request(request, variable, out)
        || about_server(request, variable, out)
        || about_client(request, variable, out)
        || about_time(request, variable, out)
        || out.len() > before
}

fn append(value: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

fn put(out: &mut Vec<u8>, value: std::fmt::Arguments<'_>) -> bool {
    out.write_fmt(value).is_ok()
}

fn about_request(request: &Request, variable: Variable, out: &mut Vec<u8>) -> bool {
    match variable {
        Variable::RequestMethod => append(Some(&request.head.method_name), out),
        Variable::RequestScheme => append(Some(request.scheme().as_bytes()), out),
        Variable::RequestUri => append(Some(&request.resource.uri), out),
        Variable::DocumentUri => {
            append(request.env.get(b"DOCUMENT_URI").or(Some(&request.resource.uri)), out)
        }
        Variable::RequestFilename | Variable::ScriptFilename => {
            append(Some(&request.resource.filename), out)
        }
        Variable::PathInfo => append(Some(&request.resource.path_info), out),
        Variable::QueryString => append(request.query(), out),
        Variable::IsSubreq => {
            put(out, format_args!("{}", if request.main.is_some() { "true" } else { "false" }))
        }
        Variable::TheRequest => append(Some(&request.head.request_line), out),
        Variable::ServerProtocol => append(Some(&request.protocol_name()), out),
        Variable::AuthType => append(request.auth_type.as_deref().map(str::as_bytes), out),
        Variable::ContentType => {
            let own = request.response.content_type.as_deref();
            append(own.or_else(|| request.given_type()), out)
        }
        Variable::Handler => append(request.handler.as_deref(), out),
        Variable::RequestStatus => put(out, format_args!("{}", request.response.status)),
        Variable::RequestLogId => append(request.log_id(), out),
        Variable::ContextPrefix => append(request.notes.get(b"CONTEXT_PREFIX"), out),
        Variable::ContextDocumentRoot => match request.notes.get(b"CONTEXT_DOCUMENT_ROOT") {
            Some(root) => append(Some(root), out),
            None => append(request.document_root(), out),
        },
        _ => false,
    }
}

fn about_server(request: &Request, variable: Variable, out: &mut Vec<u8>) -> bool {
    match variable {
        Variable::ServerName => append(Some(&request.server_name_for_url()), out),
        Variable::ServerPort => put(out, format_args!("{}", request.server_port())),
        Variable::ServerAdmin => {
            let own = request.host.core.server_admin.get().map(Vec::as_slice);
            append(own.or(Some(b"[no address given]")), out)
        }
        Variable::DocumentRoot => append(request.document_root(), out),
        Variable::ServerSoftware => append(Some(request.engine.server.banner.as_bytes()), out),
        // The module magic number of Apache 2.4.
        Variable::ApiVersion => append(Some(b"20120211"), out),
        _ => false,
    }
}

fn about_client(request: &Request, variable: Variable, out: &mut Vec<u8>) -> bool {
    let on_off = |on: bool| Some(if on { &b"on"[..] } else { b"off" });
    let client = &request.connection;
    match variable {
        Variable::RemoteAddr => {
            put(out, format_args!("{}", request.useragent_addr.ip().to_canonical()))
        }
        Variable::RemoteHost => match request.known_client_name() {
            Some(name) => append(Some(name), out),
            None => put(out, format_args!("{}", request.useragent_addr.ip().to_canonical())),
        },
        Variable::RemotePort => put(out, format_args!("{}", client.peer.port())),
        Variable::RemoteUser => append(request.user.as_deref(), out),
        Variable::RemoteIdent => append(client.logname.get().map(|name| name.as_slice()), out),
        Variable::ConnRemoteAddr => put(out, format_args!("{}", client.peer.ip().to_canonical())),
        Variable::ConnLogId => append(client.log_id.get().as_ref().map(|id| &id[..]), out),
        Variable::Https => append(on_off(client.tls.is_some()), out),
        Variable::Http2 => append(on_off(client.stream.is_some()), out),
        Variable::Ipv6 => append(on_off(client.peer.ip().to_canonical().is_ipv6()), out),
        _ => false,
    }
}

fn about_time(request: &Request, variable: Variable, out: &mut Vec<u8>) -> bool {
    let format = match variable {
        Variable::TimeYear => "%Y",
        Variable::TimeMon => "%m",
        Variable::TimeDay => "%d",
        Variable::TimeHour => "%H",
        Variable::TimeMin => "%M",
        Variable::TimeSec => "%S",
        Variable::TimeWday => "%w",
        Variable::Time | Variable::LastModified => "%Y%m%d%H%M%S",
        Variable::ScriptUser | Variable::ScriptGroup => {
            return owner(request, variable == Variable::ScriptUser, out);
        }
        _ => return false,
    };
    let time_us = match variable {
        Variable::LastModified => modified_us(request),
        _ => request.time_us,
    };
    let Ok(time) = Timestamp::from_microsecond(i64::try_from(time_us).unwrap_or(i64::MAX)) else {
        return false;
    };
    put(out, format_args!("{}", time.to_zoned(TimeZone::system()).strftime(format)))
}

/// The time that the handler has set (`ap_update_mtime`); before that, it is the epoch. A response
/// from the cache that has a file is the default handler's.
fn modified_us(request: &Request) -> u64 {
    let file = &request.resource.file;
    let is_of_file = request.given.is_some()
        && file.kind == FileKind::Regular
        && (wire::status::is_success(request.response.status) || request.response.status == 304);
    request.response.mtime_us.or(is_of_file.then_some(file.mtime_us)).unwrap_or(0)
}

fn owner(request: &Request, user: bool, out: &mut Vec<u8>) -> bool {
    if request.resource.file.kind == FileKind::None {
        return false;
    }
    let name = if user {
        let found = nix::unistd::User::from_uid(request.resource.file.uid.into());
        found.ok().flatten().map(|found| found.name)
    } else {
        let found = nix::unistd::Group::from_gid(request.resource.file.gid.into());
        found.ok().flatten().map(|found| found.name)
    };
    append(name.as_deref().map(str::as_bytes), out)
}

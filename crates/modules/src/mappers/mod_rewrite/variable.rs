//! The variables of test strings and substitutions, by name.
//!
//! Source: `lookup_variable`.

/// Deepest nesting of look-aheads; deeper ones are empty.
const LOOK_AHEAD_LIMIT: usize = 8;

/// `%{…}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// An unknown name.
    Nothing,
    /// `ENV:name`
    Env(Vec<u8>),
    /// `SSL:name`
    Ssl(Vec<u8>),
    /// `HTTP:name`, or one of the fields with names of their own.
    Field(Vec<u8>),
    /// `LA-U:…`, `LA-F:…`: a variable of a subrequest.
    LookAhead(Box<LookAhead>),
    /// `TIME` and its parts: a format of `strftime`.
    Time(&'static str),
    /// A property of the request or the server.
    Named(Plain),
}

/// A variable of a look-ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookAhead {
    /// `LA-F`: whether the path is a file.
    pub of_file: bool,
    /// The variable's name, for the log.
    pub name: Vec<u8>,
    /// The variable.
    pub variable: Variable,
}

/// Variables without an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// `API_VERSION`
    ApiVersion,
    /// `AUTH_TYPE`
    AuthType,
    /// `CONN_REMOTE_ADDR`
    ConnRemoteAddr,
    /// `CONTEXT_DOCUMENT_ROOT`
    ContextDocumentRoot,
    /// `CONTEXT_PREFIX`
    ContextPrefix,
    /// `DOCUMENT_ROOT`
    DocumentRoot,
    /// `HTTPS`
    Https,
    /// `IPV6`
    Ipv6,
    /// `IS_SUBREQ`
    IsSubreq,
    /// `PATH_INFO`
    PathInfo,
    /// `QUERY_STRING`
    QueryString,
    /// `REMOTE_ADDR`
    RemoteAddr,
    /// `REMOTE_HOST`
    RemoteHost,
    /// `REMOTE_IDENT`
    RemoteIdent,
    /// `REMOTE_PORT`
    RemotePort,
    /// `REMOTE_USER`
    RemoteUser,
    /// `REQUEST_FILENAME`, `SCRIPT_FILENAME`
    RequestFilename,
    /// `REQUEST_METHOD`
    RequestMethod,
    /// `REQUEST_SCHEME`
    RequestScheme,
    /// `REQUEST_URI`
    RequestUri,
    /// `SCRIPT_GROUP`
    ScriptGroup,
    /// `SCRIPT_USER`
    ScriptUser,
    /// `SERVER_ADDR`
    ServerAddr,
    /// `SERVER_ADMIN`
    ServerAdmin,
    /// `SERVER_NAME`
    ServerName,
    /// `SERVER_PORT`
    ServerPort,
    /// `SERVER_PROTOCOL`
    ServerProtocol,
    /// `SERVER_SOFTWARE`
    ServerSoftware,
    /// `THE_REQUEST`
    TheRequest,
}

impl Variable {
    /// Parses a variable's name, ignoring case.
    pub fn parse(name: &[u8]) -> Variable {
        parse(name, 0)
    }
}

fn parse(name: &[u8], depth: usize) -> Variable {
    if let Some((kind, argument)) = name.split_at_checked(4)
        && kind.ends_with(b":")
    {
        return match kind.to_ascii_uppercase().as_slice() {
            _ if argument.is_empty() => Variable::Nothing,
            b"ENV:" => Variable::Env(argument.to_vec()),
            b"SSL:" => Variable::Ssl(argument.to_vec()),
            _ => Variable::Nothing,
        };
    }
    if let Some((kind, argument)) = name.split_at_checked(5)
        && kind.ends_with(b":")
    {
        let look_ahead = |of_file| {
            let variable = parse(argument, depth + 1);
            Variable::LookAhead(Box::new(LookAhead { of_file, name: argument.to_vec(), variable }))
        };
        return match kind.to_ascii_uppercase().as_slice() {
            _ if argument.is_empty() || depth >= LOOK_AHEAD_LIMIT => Variable::Nothing,
            b"HTTP:" => Variable::Field(argument.to_vec()),
            b"LA-U:" => look_ahead(false),
            b"LA-F:" => look_ahead(true),
            _ => Variable::Nothing,
        };
    }
    let name = name.to_ascii_uppercase();
    if let Some((_, field)) = FIELDS.iter().find(|(known, _)| known.as_bytes() == name) {
        return Variable::Field(field.as_bytes().to_vec());
    }
    if let Some((_, format)) = TIMES.iter().find(|(known, _)| known.as_bytes() == name) {
        return Variable::Time(format);
    }
    let found = NAMES.iter().find(|(known, _)| known.as_bytes() == name);
    found.map_or(Variable::Nothing, |(_, name)| Variable::Named(*name))
}

/// The header fields with names of their own; others need `HTTP:`.
const FIELDS: [(&str, &str); 7] = [
    ("HTTP_ACCEPT", "Accept"),
    ("HTTP_COOKIE", "Cookie"),
    ("HTTP_FORWARDED", "Forwarded"),
    ("HTTP_HOST", "Host"),
    ("HTTP_PROXY_CONNECTION", "Proxy-Connection"),
    ("HTTP_REFERER", "Referer"),
    ("HTTP_USER_AGENT", "User-Agent"),
];

const TIMES: [(&str, &str); 8] = [
    ("TIME", "%Y%m%d%H%M%S"),
    ("TIME_DAY", "%d"),
    ("TIME_HOUR", "%H"),
    ("TIME_MIN", "%M"),
    ("TIME_MON", "%m"),
    ("TIME_SEC", "%S"),
    ("TIME_WDAY", "%w"),
    ("TIME_YEAR", "%Y"),
];

const NAMES: [(&str, Plain); 30] = [
    ("API_VERSION", Plain::ApiVersion),
    ("AUTH_TYPE", Plain::AuthType),
    ("CONN_REMOTE_ADDR", Plain::ConnRemoteAddr),
    ("CONTEXT_DOCUMENT_ROOT", Plain::ContextDocumentRoot),
    ("CONTEXT_PREFIX", Plain::ContextPrefix),
    ("DOCUMENT_ROOT", Plain::DocumentRoot),
    ("HTTPS", Plain::Https),
    ("IPV6", Plain::Ipv6),
    ("IS_SUBREQ", Plain::IsSubreq),
    ("PATH_INFO", Plain::PathInfo),
    ("QUERY_STRING", Plain::QueryString),
    ("REMOTE_ADDR", Plain::RemoteAddr),
    ("REMOTE_HOST", Plain::RemoteHost),
    ("REMOTE_IDENT", Plain::RemoteIdent),
    ("REMOTE_PORT", Plain::RemotePort),
    ("REMOTE_USER", Plain::RemoteUser),
    ("REQUEST_FILENAME", Plain::RequestFilename),
    ("REQUEST_METHOD", Plain::RequestMethod),
    ("REQUEST_SCHEME", Plain::RequestScheme),
    ("REQUEST_URI", Plain::RequestUri),
    ("SCRIPT_FILENAME", Plain::RequestFilename),
    ("SCRIPT_GROUP", Plain::ScriptGroup),
    ("SCRIPT_USER", Plain::ScriptUser),
    ("SERVER_ADDR", Plain::ServerAddr),
    ("SERVER_ADMIN", Plain::ServerAdmin),
    ("SERVER_NAME", Plain::ServerName),
    ("SERVER_PORT", Plain::ServerPort),
    ("SERVER_PROTOCOL", Plain::ServerProtocol),
    ("SERVER_SOFTWARE", Plain::ServerSoftware),
    ("THE_REQUEST", Plain::TheRequest),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case() {
        assert_eq!(Variable::parse(b"request_uri"), Variable::Named(Plain::RequestUri));
        assert_eq!(Variable::parse(b"Http_Host"), Variable::Field(b"Host".to_vec()));
        assert_eq!(Variable::parse(b"HTTP_ACCEPT_LANGUAGE"), Variable::Nothing);
        assert_eq!(Variable::parse(b""), Variable::Nothing);
    }

    #[test]
    fn some_take_an_argument() {
        assert_eq!(Variable::parse(b"env:Foo"), Variable::Env(b"Foo".to_vec()));
        assert_eq!(Variable::parse(b"http:X-y"), Variable::Field(b"X-y".to_vec()));
        assert_eq!(Variable::parse(b"ENV:"), Variable::Nothing);
        assert_eq!(Variable::parse(b"FOO:x"), Variable::Nothing);
        let variable = Variable::Named(Plain::RequestUri);
        let ahead = LookAhead { of_file: false, name: b"REQUEST_URI".to_vec(), variable };
        assert_eq!(Variable::parse(b"LA-U:REQUEST_URI"), Variable::LookAhead(Box::new(ahead)));
        let deep = [&b"LA-U:".repeat(10_000)[..], b"HTTPS"].concat();
        assert!(matches!(Variable::parse(&deep), Variable::LookAhead(_)));
    }
}

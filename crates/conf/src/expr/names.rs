//! The names in expressions: the core's own, and those that modules add.

/// Declares the core's variables with their names, so that the table can't diverge from the type.
macro_rules! variables {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A variable of the core, `%{NAME}`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Variable {
            $($(#[$doc])* $variant,)*
        }

        /// Every name of the core with its variable.
        const VARIABLES: &[(&str, Variable)] = &[$(($name, Variable::$variant),)*];
    };
}

variables! {
    /// `%{HTTP_ACCEPT}`; reading a header is reported to `Env::vary`.
    HttpAccept = "HTTP_ACCEPT",
    /// `%{HTTP_COOKIE}`
    HttpCookie = "HTTP_COOKIE",
    /// `%{HTTP_FORWARDED}`
    HttpForwarded = "HTTP_FORWARDED",
    /// `%{HTTP_HOST}`; never part of Vary.
    HttpHost = "HTTP_HOST",
    /// `%{HTTP_PROXY_CONNECTION}`
    HttpProxyConnection = "HTTP_PROXY_CONNECTION",
    /// `%{HTTP_REFERER}`
    HttpReferer = "HTTP_REFERER",
    /// `%{HTTP_USER_AGENT}`
    HttpUserAgent = "HTTP_USER_AGENT",
    /// The method.
    RequestMethod = "REQUEST_METHOD",
    /// `http` or `https`.
    RequestScheme = "REQUEST_SCHEME",
    /// The path, without the query.
    RequestUri = "REQUEST_URI",
    /// `DOCUMENT_URI` of the environment, or the path.
    DocumentUri = "DOCUMENT_URI",
    /// The file, once it is mapped.
    RequestFilename = "REQUEST_FILENAME",
    /// The same as `REQUEST_FILENAME`.
    ScriptFilename = "SCRIPT_FILENAME",
    /// Modification time of the file as `YYYYMMDDhhmmss`, local time.
    LastModified = "LAST_MODIFIED",
    /// Name of the file's owner.
    ScriptUser = "SCRIPT_USER",
    /// Name of the file's group.
    ScriptGroup = "SCRIPT_GROUP",
    /// The path after the file.
    PathInfo = "PATH_INFO",
    /// The query without `?`.
    QueryString = "QUERY_STRING",
    /// `true` in a subrequest, else `false`.
    IsSubreq = "IS_SUBREQ",
    /// The request line.
    TheRequest = "THE_REQUEST",
    /// The client's address.
    RemoteAddr = "REMOTE_ADDR",
    /// The client's port.
    RemotePort = "REMOTE_PORT",
    /// The client's name.
    RemoteHost = "REMOTE_HOST",
    /// The user, once authenticated.
    RemoteUser = "REMOTE_USER",
    /// The identd user name.
    RemoteIdent = "REMOTE_IDENT",
    /// The virtual host's name.
    ServerName = "SERVER_NAME",
    /// The virtual host's port.
    ServerPort = "SERVER_PORT",
    /// The virtual host's ServerAdmin.
    ServerAdmin = "SERVER_ADMIN",
    /// The protocol, such as `HTTP/1.1`.
    ServerProtocol = "SERVER_PROTOCOL",
    /// The virtual host's DocumentRoot.
    DocumentRoot = "DOCUMENT_ROOT",
    /// The authentication type, such as `Basic`.
    AuthType = "AUTH_TYPE",
    /// The response's type.
    ContentType = "CONTENT_TYPE",
    /// The handler's name.
    Handler = "HANDLER",
    /// `on` or `off`.
    Http2 = "HTTP2",
    /// `on` or `off`.
    Https = "HTTPS",
    /// `on` or `off`.
    Ipv6 = "IPV6",
    /// The response's status, once it is known.
    RequestStatus = "REQUEST_STATUS",
    /// The error log's id of the request.
    RequestLogId = "REQUEST_LOG_ID",
    /// The error log's id of the connection.
    ConnLogId = "CONN_LOG_ID",
    /// The peer's address.
    ConnRemoteAddr = "CONN_REMOTE_ADDR",
    /// The prefix that an Alias removed.
    ContextPrefix = "CONTEXT_PREFIX",
    /// The directory that an Alias inserted.
    ContextDocumentRoot = "CONTEXT_DOCUMENT_ROOT",
    /// Four digits, local time, as are the following ones.
    TimeYear = "TIME_YEAR",
    /// `01`–`12`
    TimeMon = "TIME_MON",
    /// `01`–`31`
    TimeDay = "TIME_DAY",
    /// `00`–`23`
    TimeHour = "TIME_HOUR",
    /// `00`–`59`
    TimeMin = "TIME_MIN",
    /// `00`–`60`
    TimeSec = "TIME_SEC",
    /// `0` is Sunday.
    TimeWday = "TIME_WDAY",
    /// `YYYYMMDDhhmmss`
    Time = "TIME",
    /// The value of the Server header.
    ServerSoftware = "SERVER_SOFTWARE",
    /// The module magic number's major part.
    ApiVersion = "API_VERSION",
}

impl Variable {
    /// The core's variable of this name, ignoring case.
    pub fn by_name(name: &str) -> Option<Variable> {
        let found = VARIABLES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, variable)| *variable)
    }

    /// The names of the core's variables, for suggestions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        VARIABLES.iter().map(|(name, _)| *name)
    }

    /// The request header that the variable stands for, if any.
    pub fn header(self) -> Option<&'static str> {
        Some(match self {
            Variable::HttpAccept => "Accept",
            Variable::HttpCookie => "Cookie",
            Variable::HttpForwarded => "Forwarded",
            Variable::HttpHost => "Host",
            Variable::HttpProxyConnection => "Proxy-Connection",
            Variable::HttpReferer => "Referer",
            Variable::HttpUserAgent => "User-Agent",
            _ => return None,
        })
    }
}

/// The tables in which functions look names up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// `req` and `http`: request headers, reported to `Env::vary`.
    RequestHeader,
    /// `req_novary`: request headers.
    RequestHeaderNoVary,
    /// `resp`: response headers, followed by those for errors.
    ResponseHeader,
    /// `reqenv`: the request's environment.
    RequestEnv,
    /// `osenv`: the process's environment.
    OsEnv,
    /// `note`
    Note,
    /// `env`: note, then reqenv, then osenv.
    Env,
}

/// The subject of `-F` and `-U`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// `-F`: a file.
    File,
    /// `-U` and `-A`: a URL.
    Url,
}

/// The names that active modules add to the core's. Each method returns an id, which is passed back
/// to `Env`.
///
/// Apache's equivalent is the `expr_lookup` hook. Names are passed as written; they are
/// case-insensitive, except for operators with one argument.
pub trait Names {
    /// `%{NAME}`: the function that computes the value; the name is its argument.
    fn variable(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }

    /// `name(word)` and `%{name:text}`
    fn function(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }

    /// `word -in name(word)`
    fn list_function(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }

    /// `-x word`
    fn unary(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }

    /// `word -xyz word`
    fn binary(&self, name: &str) -> Option<u32> {
        let _ = name;
        None
    }
}

/// Only the core's names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {}

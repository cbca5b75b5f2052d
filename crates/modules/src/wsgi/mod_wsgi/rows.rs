//! The directives.

use server::context::{Override, Places};
use server::directive::{Row, State, Takes, count_rows, join_rows};

use super::setters as set;
use super::{Wsgi, python};

/// All directives.
pub(super) const ROWS: &[Row<Wsgi>] = &join_rows::<Wsgi, { count_rows(GROUPS) }>(GROUPS);

const GROUPS: &[&[Row<Wsgi>]] = &[SCRIPTS, REQUESTS, AUTH, PYTHON, IDLE, REFUSED];

const fn host(
    name: &'static str,
    takes: Takes<Wsgi>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Wsgi> {
    Row::new(name, takes, syntax, doc)
}

const fn server(
    name: &'static str,
    takes: Takes<Wsgi>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Wsgi> {
    Row::new(name, takes, syntax, doc).standing(Places::SERVER, Override::NONE)
}

const fn dir(
    name: &'static str,
    takes: Takes<Wsgi>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Wsgi> {
    Row::new(name, takes, syntax, doc).standing(Places::NOT_HTACCESS, Override::NONE)
}

const fn file_info(
    name: &'static str,
    takes: Takes<Wsgi>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Wsgi> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

const fn auth(
    name: &'static str,
    takes: Takes<Wsgi>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Wsgi> {
    Row::new(name, takes, syntax, doc).standing(Places::PER_DIR, Override::AUTH_CONFIG)
}

const SCRIPTS: &[Row<Wsgi>] = &[
    host(
        "WSGIScriptAlias",
        Takes::Raw(set::script_alias),
        "URL-path file-path|directory-path [option=value ...]",
        "Maps a URL path to a WSGI script, or to a folder of them.",
    ),
    host(
        "WSGIScriptAliasMatch",
        Takes::Raw(set::script_alias_match),
        "regex file-path|directory-path [option=value ...]",
        "Maps URL paths that match a regular expression to WSGI scripts.",
    ),
    host(
        "WSGIDaemonProcess",
        Takes::Raw(set::daemon_process),
        "name [option=value ...]",
        "Defines a group of processes that run applications.",
    ),
    dir(
        "WSGIProcessGroup",
        Takes::One(set::process_group),
        "%{GLOBAL}|%{ENV:variable}|name",
        "Sets the process group that runs an application.",
    )
    .default("%{GLOBAL}"),
    dir(
        "WSGIApplicationGroup",
        Takes::One(set::application_group),
        "%{GLOBAL}|%{SERVER}|%{HOST}|%{RESOURCE}|%{ENV:variable}|name",
        "Sets the application group: applications of one share an interpreter.",
    )
    .default("%{RESOURCE}"),
    dir(
        "WSGIRestrictProcess",
        Takes::Raw(set::restrict_process),
        "name ...",
        "Limits the process groups that %{ENV:variable} may choose.",
    ),
    host(
        "WSGIImportScript",
        Takes::Raw(set::import_script),
        "file-path process-group=name application-group=name",
        "Loads a script when a process starts.",
    ),
    dir(
        "WSGIDispatchScript",
        Takes::Raw(set::dispatch_script),
        "file-path [application-group=name]",
        "Sets the script that chooses the groups and the callable object of a request.",
    ),
    dir(
        "WSGIHandlerScript",
        Takes::Raw(set::handler_script),
        "handler-name file-path [option=value ...]",
        "Defines a handler that a script implements, for SetHandler and AddHandler.",
    ),
];

const REQUESTS: &[Row<Wsgi>] = &[
    file_info(
        "WSGICallableObject",
        Takes::One(set::callable_object),
        "name|%{ENV:variable}",
        "Sets the name of the application in its script.",
    )
    .default("application"),
    file_info(
        "WSGIScriptReloading",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.reloading)),
        "On|Off",
        "Loads an application again when its script has changed.",
    )
    .default("On"),
    file_info(
        "WSGIPassAuthorization",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.pass_authorization)),
        "On|Off",
        "Passes the Authorization field to the application.",
    )
    .default("Off"),
    file_info(
        "WSGIChunkedRequest",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.chunked_request)),
        "On|Off",
        "Accepts request bodies without a length.",
    )
    .default("Off"),
    file_info(
        "WSGIMapHEADToGET",
        Takes::One(set::map_head_to_get),
        "On|Off|Auto",
        "Shows HEAD as GET to the application; Auto does if an output filter needs the content.",
    )
    .default("Auto"),
    file_info(
        "WSGIErrorOverride",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.error_override)),
        "On|Off",
        "Replaces error responses of an application in a daemon process by those of the server.",
    )
    .default("Off"),
    file_info(
        "WSGIEnableSendfile",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.sendfile)),
        "On|Off",
        "Sends files of wsgi.file_wrapper without reading them in Python.",
    )
    .default("Off"),
    file_info(
        "WSGIIgnoreActivity",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.ignore_activity)),
        "On|Off",
        "Does not count a request as activity for inactivity-timeout.",
    )
    .default("Off"),
    file_info(
        "WSGITrustedProxies",
        Takes::Raw(set::trusted_proxies),
        "address|network ...",
        "Sets the proxies whose header fields are trusted.",
    ),
    file_info(
        "WSGITrustedProxyHeaders",
        Takes::Raw(set::trusted_headers),
        "name ...",
        "Sets the header fields of trusted proxies that change environ.",
    ),
];

const AUTH: &[Row<Wsgi>] = &[
    auth(
        "WSGIAccessScript",
        Takes::Raw(set::access_script),
        "file-path [application-group=name]",
        "Sets the script that decides which hosts have access.",
    ),
    auth(
        "WSGIAuthUserScript",
        Takes::Raw(set::auth_user_script),
        "file-path [application-group=name]",
        "Sets the script that checks passwords, for the provider wsgi.",
    ),
    auth(
        "WSGIAuthGroupScript",
        Takes::Raw(set::auth_group_script),
        "file-path [application-group=name]",
        "Sets the script that lists a user's groups, for Require wsgi-group.",
    ),
    auth(
        "WSGIGroupAuthoritative",
        Takes::One(|cx, arg| set::flag(cx, arg, |dir| &mut dir.group_authoritative)),
        "On|Off",
        "Was of use with Apache 2.2.",
    )
    .default("On")
    .state(State::Accepted("Require lines decide, as in Apache 2.4")),
];

const PYTHON: &[Row<Wsgi>] = &[
    server(
        "WSGIPythonHome",
        Takes::One(python::home),
        "prefix|prefix:exec-prefix",
        "Sets the Python installation or virtual environment of embedded mode.",
    ),
    server(
        "WSGIPythonPath",
        Takes::One(|cx, arg| python::text(cx, arg, |python| &mut python.path)),
        "directory|directory-1:directory-2:...",
        "Adds folders to the module search path of embedded mode.",
    ),
    server(
        "WSGIPythonEggs",
        Takes::One(|cx, arg| python::text(cx, arg, |python| &mut python.eggs)),
        "directory",
        "Sets the folder of unpacked eggs of embedded mode.",
    ),
    server(
        "WSGIPythonOptimize",
        Takes::One(python::optimize),
        "0|1|2",
        "Sets how bytecode is optimized.",
    )
    .default("0"),
    server(
        "WSGIDontWriteBytecode",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.no_bytecode)),
        "On|Off",
        "Writes no files of bytecode.",
    )
    .default("Off"),
    server(
        "WSGIPythonWarnings",
        Takes::One(python::warnings),
        "action:message:category:module:line",
        "Controls Python's warnings; may be given several times.",
    ),
    server(
        "WSGIPythonHashSeed",
        Takes::One(python::hash_seed),
        "random|number",
        "Sets the seed of hashes.",
    ),
    server(
        "WSGISwitchInterval",
        Takes::One(python::switch_interval),
        "seconds",
        "Sets how long a thread runs before another one may.",
    ),
    server(
        "WSGIRestrictEmbedded",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.no_embedded)),
        "On|Off",
        "Runs applications in daemon processes only.",
    )
    .default("Off"),
    server(
        "WSGIRestrictStdin",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.no_stdin)),
        "On|Off",
        "Raises an error when an application uses standard input.",
    )
    .default("Off"),
    server(
        "WSGIRestrictStdout",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.no_stdout)),
        "On|Off",
        "Raises an error when an application uses standard output.",
    )
    .default("Off"),
    server(
        "WSGIRestrictSignal",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.no_signal)),
        "On|Off",
        "Ignores signal handlers of applications.",
    )
    .default("On"),
    server(
        "WSGIDestroyInterpreter",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.destroy)),
        "On|Off",
        "Runs exit functions of an application when its process ends.",
    )
    .default("On"),
    server(
        "WSGIInterpreterOptions",
        Takes::Section(python::section),
        "[process-group=name] [application-group=name]",
        "Encloses options of certain interpreters.",
    ),
    server(
        "WSGIPerInterpreterGIL",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.own_lock)),
        "On|Off",
        "Gives each application group a lock of its own.",
    )
    .default("Off")
    .state(State::Accepted("each application group has a process, and so a lock, of its own")),
    server(
        "WSGIFreeThreading",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.free_threading)),
        "On|Off",
        "Lets threads run at the same time, if the interpreter can.",
    )
    .default("Off"),
    server(
        "WSGISlowRequests",
        Takes::One(python::slow_requests),
        "seconds",
        "Logs requests that take longer.",
    ),
    server(
        "WSGIServerMetrics",
        Takes::One(|cx, arg| python::flag(cx, arg, |python| &mut python.metrics)),
        "On|Off",
        "Lets applications read the server's metrics.",
    )
    .default("Off")
    .state(State::Accepted("mod_status has them; mod_wsgi.server_metrics() returns None")),
];

/// Directives that Tamarack has no use for.
const IDLE: &[Row<Wsgi>] = &[
    idle_flag("WSGICaseSensitivity", "names of files are compared as they are"),
    idle(
        "WSGIAcceptMutex",
        Takes::One(set::accept_mutex),
        "default|method",
        "processes share a queue of the kernel",
    ),
    idle("WSGISocketPrefix", Takes::One(|_, _| Ok(())), "path", "sockets have no names"),
    idle_flag("WSGISocketRotation", "sockets have no names"),
    idle_flag("WSGIVerboseDebugging", "LogLevel wsgi:debug shows what happens"),
    idle_flag("WSGILazyInitialization", "an interpreter starts when it is needed"),
];

const fn idle_flag(name: &'static str, reason: &'static str) -> Row<Wsgi> {
    let check: Takes<Wsgi> =
        Takes::One(|cx, arg| set::on_or_off(cx.target.directive, arg).map(|_| ()));
    idle(name, check, "On|Off", reason)
}

const fn idle(
    name: &'static str,
    takes: Takes<Wsgi>,
    syntax: &'static str,
    reason: &'static str,
) -> Row<Wsgi> {
    server(name, takes, syntax, "Is accepted and has no effect.").state(State::Accepted(reason))
}

const REFUSED: &[Row<Wsgi>] = &[
    dir(
        "WSGIPassApacheRequest",
        Takes::One(set::refuse_if_on),
        "On|Off",
        "Would pass the request_rec of Apache to the application.",
    )
    .default("Off")
    .state(State::Refused("an application runs in its own process, and there is no request_rec")),
    refused("WSGITelemetryService", "address", METRICS),
    refused("WSGITelemetryOptions", "option ...", METRICS),
    refused("WSGIApplicationWrapper", "name", OLD),
    refused("WSGINewRelicConfigFile", "file-path", AGENT),
    refused("WSGINewRelicEnvironment", "name", AGENT),
    refused("WSGIUserAuthoritative", "On|Off", OLD),
];

const METRICS: &str = "mod_status has the metrics, also for Prometheus";
const OLD: &str = "mod_wsgi 6 does not have it any more";
const AGENT: &str = "newrelic-admin and its wrapper in the script do the same";

const fn refused(name: &'static str, syntax: &'static str, reason: &'static str) -> Row<Wsgi> {
    server(name, Takes::Each(set::refuse), syntax, "Is refused.").state(State::Refused(reason))
}

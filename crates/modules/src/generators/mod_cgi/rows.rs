//! The directives of mod_cgi and mod_cgid.

use conf::Arg;
use conf::values::{self, Unit};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};

use super::{Cgi, Cgid, Kind};
use crate::atoi::atol;

type Here<'a, 't, M> = Cx<'a, 't, M>;

/// `ScriptLogLength`, bytes.
pub(super) const LENGTH: i64 = 10_385_760;
/// `ScriptLogBuffer`, bytes.
pub(super) const BUFFER: usize = 1024;

pub(super) const CGI: &[Row<Cgi>] = &[
    log(),
    log_length(),
    log_buffer(),
    script_timeout("CGIScriptTimeout", |cx, arg| {
        set_timeout(cx, arg, "CGIScriptTimeout has wrong format")
    }),
];

pub(super) const CGID: &[Row<Cgid>] = &[
    log(),
    log_length(),
    log_buffer(),
    Row::<Cgid>::new(
        "ScriptSock",
        Takes::One(|_, _| Ok(())),
        "file-path",
        "the name of the socket to use for communication with the cgi daemon.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("cgisock")
    .state(State::Accepted("programs are started over a socket without a name")),
    script_timeout("CGIDScriptTimeout", |cx, arg| {
        set_timeout(cx, arg, "CGIDScriptTimeout has wrong format")
    }),
];

const fn log<M: Kind>() -> Row<M> {
    Row::<M>::new(
        "ScriptLog",
        Takes::One(|cx: &mut Here<'_, '_, M>, arg| {
            let path = cx.build().path(&arg.text);
            cx.server().log.path = Some(path);
            Ok(())
        }),
        "file-path",
        "the name of a log for script debugging info",
    )
    .standing(Places::HOST, Override::NONE)
}

const fn log_length<M: Kind>() -> Row<M> {
    Row::<M>::new(
        "ScriptLogLength",
        Takes::One(|cx: &mut Here<'_, '_, M>, arg| {
            cx.server().log.length = atol(&arg.text);
            Ok(())
        }),
        "bytes",
        "the maximum length (in bytes) of the script debug log",
    )
    .standing(Places::HOST, Override::NONE)
    .default("10385760")
}

const fn log_buffer<M: Kind>() -> Row<M> {
    Row::<M>::new(
        "ScriptLogBuffer",
        Takes::One(|cx: &mut Here<'_, '_, M>, arg| {
            cx.server().log.buffer = usize::try_from(atol(&arg.text)).unwrap_or(0);
            Ok(())
        }),
        "bytes",
        "the maximum size (in bytes) to record of a POST request",
    )
    .standing(Places::HOST, Override::NONE)
    .default("1024")
}

const fn script_timeout<M: Kind>(
    name: &'static str,
    set: fn(&mut Cx<'_, '_, M>, &Arg) -> Set,
) -> Row<M> {
    Row::<M>::new(
        name,
        Takes::One(set),
        "time[s|ms]",
        "The amount of time to wait between successful reads from the CGI script, in seconds.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Timeout")
}

fn set_timeout<M: Kind>(cx: &mut Here<'_, '_, M>, arg: &Arg, fault: &'static str) -> Set {
    let time = values::timeout(&arg.text, Unit::Seconds);
    let time = time.ok_or_else(|| Fault::new(fault).at(arg))?;
    cx.dir().timeout.set(time);
    Ok(())
}

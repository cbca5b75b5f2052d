//! The directives of the MPMs, defined once for all that share them.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::merge::Setting;

use super::{Kind, Mpm, Settings, listen};

/// A row of an MPM. All of them belong to the server configuration.
const fn row<M: Mpm>(
    name: &'static str,
    takes: Takes<M>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<M> {
    Row::new(name, takes, syntax, doc).standing(Places::SERVER, Override::NONE).default(default)
}

/// Joins two lists of rows; `N` is the sum of the lengths.
pub(super) const fn join<M: Mpm, const A: usize, const B: usize, const N: usize>(
    first: [Row<M>; A],
    second: [Row<M>; B],
) -> [Row<M>; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < A { first[at] } else { second[at - A] };
        at += 1;
    }
    all
}

/// The directives of every MPM.
pub(super) const fn common<M: Mpm>() -> [Row<M>; 7] {
    let sockets: [Row<M>; 6] = join(listening(), buffers());
    join(sockets, [graceful_shutdown()])
}

const fn listening<M: Mpm>() -> [Row<M>; 4] {
    [
        row(
            "Listen",
            Takes::Some { least: 0, most: usize::MAX, set: listen::set::<M> },
            "[IP-address:]portnumber [protocol]",
            "",
            "Sets an address and port to accept connections on.",
        ),
        row(
            "ListenBacklog",
            Takes::One(|cx, arg| {
                let backlog = positive("ListenBacklog", arg)?;
                cx.server().backlog.0.set(backlog);
                Ok(())
            }),
            "backlog",
            "511",
            "Sets the length of the queue of pending connections.",
        ),
        row(
            "ListenCoresBucketsRatio",
            Takes::One(|cx, arg| {
                let ratio = positive("ListenCoresBucketsRatio", arg)?;
                cx.server().buckets_ratio.0.set(ratio);
                Ok(())
            }),
            "ratio",
            "0",
            "Gives prefork and worker a listening socket for each group of this many CPUs; loops \
             always have their own.",
        ),
        row(
            "ListenTCPDeferAccept",
            Takes::One(|_, arg| positive("ListenTCPDeferAccept", arg).map(|_| ())),
            "integer",
            "30",
            "Sets how long the kernel waits for a connection's first bytes.",
        )
        .state(State::Accepted("only AcceptFilter sets the kernel's wait")),
    ]
}

const fn buffers<M: Mpm>() -> [Row<M>; 2] {
    [
        row(
            "SendBufferSize",
            Takes::One(|cx, arg| {
                let bytes = buffer_bytes("SendBufferSize", arg)?;
                cx.server().send_buffer_bytes.0.set(bytes);
                Ok(())
            }),
            "bytes",
            "0",
            "Sets the size of sockets' send buffers.",
        ),
        row(
            "ReceiveBufferSize",
            Takes::One(|cx, arg| {
                let bytes = buffer_bytes("ReceiveBufferSize", arg)?;
                cx.server().receive_buffer_bytes.0.set(bytes);
                Ok(())
            }),
            "bytes",
            "0",
            "Sets the size of sockets' receive buffers.",
        ),
    ]
}

const fn graceful_shutdown<M: Mpm>() -> Row<M> {
    row(
        "GracefulShutdownTimeout",
        Takes::One(|cx, arg| {
            let seconds = u32::try_from(number(arg)).unwrap_or(0);
            cx.server().graceful_shutdown_timeout_s.0.set(seconds);
            Ok(())
        }),
        "seconds",
        "0",
        "Sets how long a graceful stop waits for requests to end; 0 waits forever.",
    )
}

/// Numbers of processes: the directives of every MPM of Apache's.
pub(super) const fn processes<M: Mpm>() -> [Row<M>; 4] {
    [
        row(
            "StartServers",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.start_servers.0)),
            "number",
            match M::KIND {
                Kind::Prefork => "5",
                _ => "3",
            },
            "Sets the number of processes at startup.",
        ),
        row(
            "ServerLimit",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.server_limit.0)),
            "number",
            match M::KIND {
                Kind::Prefork => "256",
                _ => "16",
            },
            "Limits the number of processes.",
        ),
        row(
            "MaxRequestWorkers",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.max_request_workers.0)),
            "number",
            match M::KIND {
                Kind::Prefork => "256",
                _ => "400",
            },
            "Limits the number of simultaneous requests; further connections wait in the listen \
             queue.",
        ),
        row(
            "MaxClients",
            Takes::One(|cx, arg| {
                let number = match M::KIND {
                    Kind::Prefork => "AH00188",
                    Kind::Worker => "AH00324",
                    Kind::Event | Kind::Loop => "AH00521",
                };
                let text = "MaxClients is deprecated, use MaxRequestWorkers instead.";
                cx.warn(format!("{number}: {text}"));
                set(cx, arg, |settings| &mut settings.max_request_workers.0)
            }),
            "number",
            match M::KIND {
                Kind::Prefork => "256",
                _ => "400",
            },
            "The former name of MaxRequestWorkers.",
        ),
    ]
}

/// Idle processes: the directives of prefork.
pub(super) const fn spare_servers<M: Mpm>() -> [Row<M>; 2] {
    [
        row(
            "MinSpareServers",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.min_spare.0)),
            "number",
            "5",
            "Sets the minimum number of idle processes.",
        ),
        row(
            "MaxSpareServers",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.max_spare.0)),
            "number",
            "10",
            "Sets the maximum number of idle processes.",
        ),
    ]
}

/// Threads: the directives of the other MPMs.
pub(super) const fn threads<M: Mpm>() -> [Row<M>; 4] {
    [
        row(
            "ThreadsPerChild",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.threads_per_child.0)),
            "number",
            "25",
            match M::KIND {
                Kind::Worker => "Sets the number of threads per process.",
                _ => "Limits each process's threads for blocking work.",
            },
        ),
        row(
            "ThreadLimit",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.thread_limit.0)),
            "number",
            "64",
            "Limits ThreadsPerChild.",
        ),
        spare(
            "MinSpareThreads",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.min_spare.0)),
            "75",
            "Sets the minimum number of idle threads.",
        ),
        spare(
            "MaxSpareThreads",
            Takes::One(|cx, arg| set(cx, arg, |settings| &mut settings.max_spare.0)),
            "250",
            "Sets the maximum number of idle threads.",
        ),
    ]
}

const fn spare<M: Mpm>(
    name: &'static str,
    takes: Takes<M>,
    default: &'static str,
    doc: &'static str,
) -> Row<M> {
    let row = row(name, takes, "number", default, doc);
    match M::KIND {
        Kind::Event | Kind::Loop => row.state(State::Accepted(
            "a loop handles any number of connections, so there are no spare threads",
        )),
        Kind::Worker | Kind::Prefork => row,
    }
}

/// The directives of event alone.
pub(super) const fn asynchronous<M: Mpm>() -> [Row<M>; 1] {
    [row(
        "AsyncRequestWorkerFactor",
        Takes::One(async_factor),
        "factor",
        "2",
        "Sets how many connections with a request may be open in addition to MaxRequestWorkers, as \
         a multiple of it.",
    )]
}

fn set<M: Mpm>(
    cx: &mut Cx<'_, '_, M>,
    arg: &Arg,
    field: fn(&mut Settings) -> &mut Setting<i32>,
) -> Set {
    field(cx.server()).set(number(arg));
    Ok(())
}

/// Parses the number at the start of a word, as atoi: 0 if there is none.
fn number(arg: &Arg) -> i32 {
    let text = arg.text.to_string();
    let text = text.trim_start();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let value = digits.get(..end).unwrap_or_default();
    let value = match value {
        "" => 0,
        value => value.parse::<i32>().unwrap_or(i32::MAX),
    };
    if is_negative { -value } else { value }
}

fn positive(name: &str, arg: &Arg) -> Result<u32, Fault> {
    let wrong = || Fault::new(format!("{name} must be > 0")).at(arg);
    u32::try_from(number(arg)).ok().filter(|found| *found > 0).ok_or_else(wrong)
}

fn async_factor<M: Mpm>(cx: &mut Cx<'_, '_, M>, arg: &Arg) -> Set {
    /// The largest factor.
    const MOST: f64 = 100_000.0;
    let factor = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<f64>().ok());
    match factor {
        None => Err(Fault::new("error parsing value").at(arg)),
        Some(factor) if factor > 0.0 => {
            let thousandths = (factor.min(MOST) * 1000.0).round() as u32;
            cx.server().async_factor_thousandths.0.set(thousandths);
            Ok(())
        }
        Some(_) => {
            let fault = "AsyncRequestWorkerFactor argument must be a positive number";
            Err(Fault::new(fault).at(arg))
        }
    }
}

/// The smallest buffer in bytes.
const LEAST_BUFFER_BYTES: i32 = 512;

fn buffer_bytes(name: &str, arg: &Arg) -> Result<u32, Fault> {
    let bytes = number(arg);
    if bytes != 0 && bytes < LEAST_BUFFER_BYTES {
        let fault = format!("{name} must be >= 512 bytes, or 0 for system default.");
        return Err(Fault::new(fault).at(arg));
    }
    Ok(u32::try_from(bytes).unwrap_or(0))
}

//! mpm_event: how many processes and loops, and where they listen.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/event.html>

use std::net::{IpAddr, SocketAddr};

use conf::Arg;
use conf::values::{ListenAddress, VirtualHostName};
use server::build::Build;
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::hooks::Hooks;
use server::merge::{Outermost, Setting};
use server::module::Module;
use server::scope::{Override, Places};

/// `event.c`
pub struct Event;

/// One `Listen` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where; `None` is every address.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// The protocol: as named, else `https` for port 443 and `http` for others.
    pub protocol: String,
}

impl Listen {
    /// The socket's address, if the line names one.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.address.map(|address| SocketAddr::new(address, self.port))
    }
}

server::config! {
    /// What the MPM knows; all of it is of the process as a whole.
    pub struct Settings {
        /// `Listen`, in order.
        pub listen: Outermost<Vec<Listen>>,
        /// `ListenBacklog`
        pub backlog: Outermost<Setting<u32>>,
        /// `StartServers`
        pub start_servers: Outermost<Setting<u32>>,
        /// `ServerLimit`
        pub server_limit: Outermost<Setting<u32>>,
        /// `MinSpareThreads`
        pub min_spare_threads: Outermost<Setting<u32>>,
        /// `MaxSpareThreads`
        pub max_spare_threads: Outermost<Setting<u32>>,
        /// `ThreadsPerChild`
        pub threads_per_child: Outermost<Setting<u32>>,
        /// `ThreadLimit`
        pub thread_limit: Outermost<Setting<u32>>,
        /// `MaxRequestWorkers`
        pub max_request_workers: Outermost<Setting<u32>>,
        /// `GracefulShutdownTimeout`, seconds; 0 waits for ever.
        pub graceful_shutdown_timeout_s: Outermost<Setting<u32>>,
        /// `SendBufferSize`, bytes; 0 for the system's default.
        pub send_buffer_bytes: Outermost<Setting<u32>>,
        /// `ReceiveBufferSize`, bytes; 0 for the system's default.
        pub receive_buffer_bytes: Outermost<Setting<u32>>,
    }
}

impl Module for Event {
    const NAME: &'static str = "mpm_event_module";
    const FILE: &'static str = "event.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Event>] = &[
        row(
            "Listen",
            Takes::Some { least: 0, most: usize::MAX, set: listen },
            "[IP-address:]portnumber [protocol]",
            "",
            "Names an address and port that connections are accepted on.",
        ),
        row(
            "ListenBacklog",
            Takes::One(backlog),
            "backlog",
            "511",
            "Says how many connections may wait to be accepted.",
        ),
        row(
            "StartServers",
            Takes::One(|cx, arg| {
                let number = at_least_one(cx, arg, "AH00517", "StartServers");
                cx.server().start_servers.0.set(number);
                Ok(())
            }),
            "number",
            "3",
            "Named the number of processes that Apache starts with.",
        )
        .state(ONE_LOOP),
        row(
            "ServerLimit",
            Takes::One(|cx, arg| {
                let number = at_least_one(cx, arg, "AH00499", "ServerLimit");
                cx.server().server_limit.0.set(number);
                Ok(())
            }),
            "number",
            "16",
            "Limits the number of processes.",
        ),
        row(
            "ThreadLimit",
            Takes::One(|cx, arg| {
                let number = at_least_one(cx, arg, "AH00504", "ThreadLimit");
                cx.server().thread_limit.0.set(number);
                Ok(())
            }),
            "number",
            "64",
            "Limited ThreadsPerChild.",
        )
        .state(ONE_LOOP),
        row(
            "ThreadsPerChild",
            Takes::One(|cx, arg| {
                let number = at_least_one(cx, arg, "AH00509", "ThreadsPerChild");
                cx.server().threads_per_child.0.set(number);
                Ok(())
            }),
            "number",
            "25",
            "Named the number of threads in each of Apache's processes.",
        )
        .state(ONE_LOOP),
        row(
            "MinSpareThreads",
            Takes::One(|cx, arg| {
                let number = number(arg);
                cx.server().min_spare_threads.0.set(number);
                Ok(())
            }),
            "number",
            "75",
            "Named the fewest idle threads that Apache keeps.",
        )
        .state(ONE_LOOP),
        row(
            "MaxSpareThreads",
            Takes::One(|cx, arg| {
                let number = number(arg);
                cx.server().max_spare_threads.0.set(number);
                Ok(())
            }),
            "number",
            "250",
            "Named the most idle threads that Apache keeps.",
        )
        .state(ONE_LOOP),
        row(
            "MaxRequestWorkers",
            Takes::One(max_request_workers),
            "number",
            "400",
            "Limited the requests that Apache serves at the same time.",
        )
        .state(ONE_LOOP),
        row(
            "MaxClients",
            Takes::One(max_request_workers),
            "number",
            "400",
            "The old name of MaxRequestWorkers.",
        )
        .state(ONE_LOOP),
        row(
            "AsyncRequestWorkerFactor",
            Takes::One(async_factor),
            "factor",
            "2",
            "Said how many more connections than idle threads Apache accepts.",
        )
        .state(ONE_LOOP),
        row(
            "GracefulShutdownTimeout",
            Takes::One(|cx, arg| {
                let seconds = number(arg);
                cx.server().graceful_shutdown_timeout_s.0.set(seconds);
                Ok(())
            }),
            "seconds",
            "0",
            "Says how long a graceful stop waits for requests to end; 0 waits for ever.",
        ),
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
        )
        .state(State::Partial("read; the kernel's own sizes stay in force")),
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
        )
        .state(State::Partial("read; the kernel's own sizes stay in force")),
        row(
            "ListenCoresBucketsRatio",
            Takes::One(|_, arg| positive("ListenCoresBucketsRatio", arg).map(|_| ())),
            "ratio",
            "0",
            "Split Apache's listening sockets over groups of processes.",
        )
        .state(State::Accepted("every loop has a listening socket of its own")),
        row(
            "ListenTCPDeferAccept",
            Takes::One(|_, arg| positive("ListenTCPDeferAccept", arg).map(|_| ())),
            "integer",
            "30",
            "Said how long the kernel waits for a connection's first bytes.",
        )
        .state(State::Accepted("the kernel's wait is chosen by AcceptFilter alone")),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(check_listeners);
    }
}

const ONE_LOOP: State =
    State::Accepted("one loop per CPU serves any number of connections; threads are not counted");

const fn row(
    name: &'static str,
    takes: Takes<Event>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Event> {
    Row::new(name, takes, syntax, doc).standing(Places::SERVER, Override::NONE).default(default)
}

type Here<'a, 't> = Cx<'a, 't, Event>;

/// Source: `ap_set_listener` (server/listen.c).
fn listen(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let (Some(first), 1..=2) = (words.first(), words.len()) else {
        return Err("Listen requires 1 or 2 arguments.".into());
    };
    let parsed = ListenAddress::parse(&first.text).map_err(|why| Fault::new(why).at(first))?;
    let protocol = match words.get(1) {
        Some(word) => word.text.to_string().to_ascii_lowercase(),
        None if parsed.port == 443 => "https".to_owned(),
        None => "http".to_owned(),
    };
    let port = parsed.port;
    let addresses = match parsed.host {
        VirtualHostName::Any => vec![None],
        VirtualHostName::Ip(address) => vec![Some(address)],
        VirtualHostName::Name(name) => resolve(&name, first)?,
    };
    let all = &mut cx.server().listen.0;
    for address in addresses {
        let line = Listen { address, port, protocol: protocol.clone() };
        if all.iter().any(|known| known.address == address && known.port == port) {
            let text = &first.text;
            let twice = format!("Cannot define multiple Listeners on the same IP:port {text}");
            return Err(Fault::new(twice).at(first));
        }
        all.push(line);
    }
    Ok(())
}

fn resolve(name: &str, arg: &Arg) -> Result<Vec<Option<IpAddr>>, Fault> {
    use std::net::ToSocketAddrs;
    let found = (name, 0).to_socket_addrs().map_err(|_| {
        Fault::new(format!("alloc_listener: failed to set up sockaddr for {name}")).at(arg)
    })?;
    let mut addresses: Vec<Option<IpAddr>> = found.map(|address| Some(address.ip())).collect();
    addresses.dedup();
    Ok(addresses)
}

fn check_listeners(build: &mut Build) {
    let none = build
        .server_config::<Event>(&build.main.server)
        .is_none_or(|settings| settings.listen.0.is_empty());
    if none && build.for_real {
        build.error_without_place("AH00072: no listening sockets available, shutting down");
    }
}

fn number(arg: &Arg) -> u32 {
    let digits = arg.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(arg.text.get(..digits).unwrap_or_default()).unwrap_or("");
    digits.parse().unwrap_or(if digits.is_empty() { 0 } else { u32::MAX })
}

fn at_least_one(cx: &mut Here<'_, '_>, arg: &Arg, code: &str, name: &str) -> u32 {
    let found = number(arg);
    if found == 0 {
        cx.warn(format!("{code}: WARNING: {name} of 0 not allowed, increasing to 1."));
    }
    found.max(1)
}

fn positive(name: &str, arg: &Arg) -> Result<u32, Fault> {
    let found = number(arg);
    let wrong = || Fault::new(format!("{name} must be > 0")).at(arg);
    (found > 0).then_some(found).ok_or_else(wrong)
}

fn backlog(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let backlog = positive("ListenBacklog", arg)?;
    cx.server().backlog.0.set(backlog);
    Ok(())
}

fn max_request_workers(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if cx.target.directive == "MaxClients" {
        cx.warn("AH00513: MaxClients is deprecated, use MaxRequestWorkers instead.");
    }
    let number = number(arg);
    cx.server().max_request_workers.0.set(number);
    Ok(())
}

fn async_factor(_: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let factor = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<f64>().ok());
    match factor {
        None => Err(Fault::new("error parsing value").at(arg)),
        Some(factor) if factor > 0.0 => Ok(()),
        Some(_) => {
            let fault = "AsyncRequestWorkerFactor argument must be a positive number";
            Err(Fault::new(fault).at(arg))
        }
    }
}

/// The least that a buffer may have, in bytes.
const LEAST_BUFFER_BYTES: u32 = 512;

fn buffer_bytes(name: &str, arg: &Arg) -> Result<u32, Fault> {
    let bytes = number(arg);
    if bytes > 0 && bytes < LEAST_BUFFER_BYTES {
        let fault = format!("{name} must be >= 512 bytes, or 0 for system default.");
        return Err(Fault::new(fault).at(arg));
    }
    Ok(bytes)
}

//! The directives.

use server::context::{Override, Places};
use server::directive::{Row, Set, State, Takes};

use super::setters::{
    Here, bad_header, block, cookie, direct, domain, error_override, growth, io_buffer,
    max_forwards, pass, pass_reverse, proxy_timeout, receive_buffer, remote, shown, source, spool,
    via,
};
use super::{Proxy, sections};

const fn of_dir(
    name: &'static str,
    set: fn(&mut Here<'_, '_>, bool) -> Set,
    doc: &'static str,
) -> Row<Proxy> {
    Row::new(name, Takes::Flag(set), "On|Off", doc).standing(Places::NOT_HTACCESS, Override::NONE)
}

const fn of_host(
    name: &'static str,
    set: fn(&mut Here<'_, '_>, bool) -> Set,
    doc: &'static str,
) -> Row<Proxy> {
    Row::new(name, Takes::Flag(set), "On|Off", doc)
}

const fn reverse(
    name: &'static str,
    takes: Takes<Proxy>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Proxy> {
    Row::new(name, takes, syntax, doc).standing(Places::NOT_HTACCESS, Override::NONE)
}

const NO_BALANCERS: State =
    State::Accepted("balancers are not added while the server runs, nor by Apache");

pub(super) const ROWS: &[Row<Proxy>] = &[
    Row::new(
        "Proxy",
        Takes::Section(|cx, raw, nodes| sections::section(cx, raw, nodes, false)),
        "URL|wildcard [key=value ...]",
        "Encloses directives for requests that are forwarded to URLs with a beginning.",
    ),
    Row::new(
        "ProxyMatch",
        Takes::Section(|cx, raw, nodes| sections::section(cx, raw, nodes, true)),
        "regex",
        "Encloses directives for requests that are forwarded to URLs that match a regular \
         expression.",
    ),
    Row::new(
        "BalancerMember",
        Takes::Some { least: 0, most: usize::MAX, set: sections::member },
        "[balancerurl] url [key=value [key=value ...]]",
        "Adds a server to a balancer.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    Row::new(
        "ProxySet",
        Takes::Some { least: 0, most: usize::MAX, set: sections::set },
        "[url] key=value [key=value ...]",
        "Sets parameters of a server or a balancer.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    Row::new(
        "ProxySourceAddress",
        Takes::One(source),
        "address",
        "The own address of connections to other servers.",
    ),
    Row::new(
        "ProxyPass",
        Takes::Some { least: 0, most: usize::MAX, set: |cx, args| pass(cx, args, false) },
        "[path] !|url [key=value [key=value ...]] [nocanon] [interpolate] [noquery]",
        "Maps a part of the URL space to another server. Beside Apache's keys there is \
         `maxtotal`: the most connections to it of all processes together (`max` is that of each).",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    Row::new(
        "ProxyPassMatch",
        Takes::Some { least: 0, most: usize::MAX, set: |cx, args| pass(cx, args, true) },
        "[regex] !|url [key=value [key=value ...]]",
        "Maps URL paths that match a regular expression to another server.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    reverse(
        "ProxyPassReverse",
        Takes::Some { least: 1, most: 3, set: pass_reverse },
        "[path] url [interpolate]",
        "Replaces another server's URL in the header fields of its responses.",
    ),
    reverse(
        "ProxyPassReverseCookieDomain",
        Takes::Some {
            least: 2,
            most: 3,
            set: |cx, args| cookie(cx, args, |cx, entry| cx.dir().cookie_domains.push(entry)),
        },
        "internal-domain public-domain [interpolate]",
        "Replaces the domain in Set-Cookie fields of responses.",
    ),
    reverse(
        "ProxyPassReverseCookiePath",
        Takes::Some {
            least: 2,
            most: 3,
            set: |cx, args| cookie(cx, args, |cx, entry| cx.dir().cookie_paths.push(entry)),
        },
        "internal-path public-path [interpolate]",
        "Replaces the path in Set-Cookie fields of responses.",
    ),
    of_host(
        "ProxyRequests",
        |cx, on| {
            cx.server().requests.set(on);
            Ok(())
        },
        "Forwards requests for any URL.",
    )
    .default("Off"),
    of_host(
        "ProxyPassInherit",
        |cx, on| {
            cx.server().inherits_mappings.set(on);
            Ok(())
        },
        "Whether virtual hosts inherit ProxyPass lines.",
    )
    .default("On"),
    of_host(
        "BalancerInherit",
        |cx, on| {
            cx.server().inherits_balancers.set(on);
            Ok(())
        },
        "Whether virtual hosts inherit balancers.",
    )
    .default("On"),
    of_host(
        "BalancerPersist",
        |cx, on| {
            cx.server().persists.set(on);
            Ok(())
        },
        "Keeps changes by balancer-manager over restarts, and while the server does not run in a \
         file below DefaultRuntimeDir. What is kept of a balancer or a member counts instead of \
         what the configuration says.",
    )
    .default("Off"),
    of_dir(
        "ProxyPreserveHost",
        |cx, on| {
            cx.dir().preserves_host.set(on);
            Ok(())
        },
        "Passes the client's Host field on.",
    )
    .default("Off"),
    of_dir(
        "ProxyPassInterpolateEnv",
        |cx, on| {
            cx.dir().interpolates.set(on);
            Ok(())
        },
        "Expands variables in lines marked `interpolate`.",
    )
    .default("Off"),
    of_dir(
        "ProxyAddHeaders",
        |cx, on| {
            cx.dir().adds_headers.set(on);
            Ok(())
        },
        "Adds X-Forwarded fields to requests.",
    )
    .default("On"),
    of_dir(
        "Proxy100Continue",
        |cx, on| {
            cx.dir().forwards_continue.set(on);
            Ok(())
        },
        "Passes the client's `Expect: 100-continue` on.",
    )
    .default("On"),
    Row::new("ProxyVia", Takes::One(via), "On|Off|Full|Block", "What happens to the Via field.")
        .default("Off"),
    Row::new(
        "ProxyTimeout",
        Takes::One(proxy_timeout),
        "seconds",
        "The limit of each wait for another server.",
    ),
    Row::new(
        "ProxyBadHeader",
        Takes::One(bad_header),
        "IsError|Ignore|StartBody",
        "What happens to a malformed line in a response's head.",
    )
    .default("IsError"),
    Row::new("ProxyStatus", Takes::One(shown), "Off|On|Full", "Whether mod_status shows workers.")
        .default("Off"),
    Row::new(
        "ProxyErrorOverride",
        Takes::Some { least: 1, most: usize::MAX, set: error_override },
        "Off|On [code ...]",
        "Replaces error pages of other servers by this server's.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Off"),
    Row::new(
        "ProxyMaxForwards",
        Takes::One(max_forwards),
        "number",
        "The most proxies on a request's way.",
    )
    .default("-1"),
    Row::new("ProxyIOBufferSize", Takes::One(io_buffer), "bytes", "The size of buffers for data.")
        .default("8192"),
    Row::new(
        "ProxySpool",
        Takes::Some { least: 1, most: 2, set: spool },
        "bytes [bytes-of-process]",
        "Writes what a slow client has not taken yet of a response to an unnamed file, so that the \
         connection to the other server is free for other requests: at most so many bytes of one \
         response, and of all responses of a process at the same time. Without it, or with 0, 64 \
         KiB of a response are received ahead of its client, in memory.",
    )
    .default("0 1G"),
    Row::new(
        "ProxyReceiveBufferSize",
        Takes::One(receive_buffer),
        "bytes",
        "The size of the kernel's receive buffers.",
    )
    .default("0"),
    Row::new(
        "ProxyDomain",
        Takes::One(domain),
        "Domain",
        "The domain of names without one in forwarded requests.",
    ),
    Row::new(
        "BalancerGrowth",
        Takes::One(growth),
        "#",
        "How many members may be added to each balancer.",
    )
    .default("5")
    .state(NO_BALANCERS),
    Row::new(
        "ProxyRemote",
        Takes::Some { least: 2, most: 3, set: |cx, args| remote(cx, args, false) },
        "match remote-server [user:pass]",
        "A proxy that handles some requests.",
    ),
    Row::new(
        "ProxyRemoteMatch",
        Takes::Some { least: 2, most: 3, set: |cx, args| remote(cx, args, true) },
        "regex remote-server [user:pass]",
        "A proxy that handles requests that match a regular expression.",
    ),
    Row::new(
        "ProxyBlock",
        Takes::Each(block),
        "*|word|host|domain [word|host|domain] ...",
        "Hosts for which requests are refused.",
    ),
    Row::new(
        "NoProxy",
        Takes::Each(direct),
        "host [host] ...",
        "Hosts that are reached without the remote proxy.",
    ),
];

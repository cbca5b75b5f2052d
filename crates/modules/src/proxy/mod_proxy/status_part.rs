//! Balancers and their members on the pages of mod_status (`ProxyStatus`).
//!
//! Source: `proxy_status_hook`.

use bstr::BStr;
use server::request::Request;
use wire::escape;

use super::workers::{Balancer, Worker, Workers};
use super::{Proxy, Settings, Shown, measured};
use crate::generators::mod_autoindex::text::size;
use crate::generators::mod_status::live::json::Json;
use crate::generators::mod_status::metrics::{Exposition, Kind};
use crate::generators::mod_status::part::Part;

/// Adds them.
pub(super) struct Balancers;

/// The columns of members.
const COLUMNS: &str = "<th>Sch</th><th>Host</th><th>Stat</th><th>Route</th><th>Redir</th>\
                       <th>F</th><th>Set</th><th>Acc</th><th>Busy</th><th>Wr</th><th>Rd</th>";

/// What the columns mean.
const KEY: &str = "<hr /><table>\n<tr><th>SSes</th><td>Sticky session name</td></tr>\n\
                   <tr><th>Timeout</th><td>Balancer Timeout</td></tr>\n\
                   <tr><th>Sch</th><td>Connection scheme</td></tr>\n\
                   <tr><th>Host</th><td>Backend Hostname</td></tr>\n\
                   <tr><th>Stat</th><td>Worker status</td></tr>\n\
                   <tr><th>Route</th><td>Session Route</td></tr>\n\
                   <tr><th>Redir</th><td>Session Route Redirection</td></tr>\n\
                   <tr><th>F</th><td>Load Balancer Factor</td></tr>\n\
                   <tr><th>Acc</th><td>Number of uses</td></tr>\n\
                   <tr><th>Wr</th><td>Number of bytes transferred</td></tr>\n\
                   <tr><th>Rd</th><td>Number of bytes read</td></tr>\n</table>";

impl Part for Balancers {
    fn page(&self, request: &Request, out: &mut Vec<u8>) {
        let Some(workers) = shown(request) else { return };
        for balancer in &workers.balancers {
            put(out, b"<hr />\n<h1>Proxy LoadBalancer Status for ");
            put(out, &balancer.name);
            put(out, b"</h1>\n\n");
            write_settings(balancer, out);
            put(out, format!("\n\n<table border=\"0\"><tr>{COLUMNS}</tr>\n").as_bytes());
            balancer.members().for_each(|member| write_row(member, out));
            put(out, b"</table>\n");
        }
        put(out, KEY.as_bytes());
    }

    fn auto(&self, request: &Request, out: &mut Vec<u8>) {
        let Some(workers) = shown(request) else { return };
        for (number, balancer) in workers.balancers.iter().enumerate() {
            let of = format!("ProxyBalancer[{number}]");
            let name = BStr::new(&balancer.name);
            put(out, format!("{of}Name: {name}\n").as_bytes());
            for (number, member) in balancer.members().enumerate() {
                let (of, state) = (format!("{of}Worker[{number}]"), &member.state);
                let (name, status) = (BStr::new(&member.name), state.status().words());
                let (elected, busy) = (state.elected(), state.busy());
                let (sent, read) = (state.transferred() >> 10, state.read() >> 10);
                let lines = format!(
                    "{of}Name: {name}\n{of}Status: {status}\n{of}Elected: {elected}\n\
                     {of}Busy: {busy}\n{of}Sent: {sent}K\n{of}Rcvd: {read}K\n"
                );
                put(out, lines.as_bytes());
            }
        }
    }

    fn live(&self, request: &Request, out: &mut Json) {
        measured::write_json(request, out);
    }

    fn metrics(&self, request: &Request, page: &mut Exposition) {
        measured::write_metrics(request, page);
        let members = members(request);
        if members.is_empty() {
            return;
        }
        for (name, kind, help, value) in FAMILIES {
            page.family(name, *kind, help);
            for (host, balancer, member) in &members {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (balancer, name) = (text(&balancer.name), text(&member.name));
                let labels = [("host", host.as_str()), ("balancer", &balancer), ("member", &name)];
                page.sample(&labels, value(member));
            }
        }
    }
}

/// A family with a sample for each member.
type Family = (&'static str, Kind, &'static str, fn(&Worker) -> u64);

const FAMILIES: &[Family] = &[
    (
        "tamarack_proxy_member_requests",
        Kind::Counter,
        "Requests that members of balancers were chosen for.",
        |member| member.state.elected(),
    ),
    ("tamarack_proxy_member_busy", Kind::Gauge, "Requests in progress.", |member| {
        member.state.busy()
    }),
    ("tamarack_proxy_member_sent_bytes", Kind::Counter, "Bytes sent to members.", |member| {
        member.state.transferred()
    }),
    (
        "tamarack_proxy_member_received_bytes",
        Kind::Counter,
        "Bytes of bodies received from members.",
        |member| member.state.read(),
    ),
    (
        "tamarack_proxy_member_errors",
        Kind::Counter,
        "How often a member failed, so that it was left alone for a while.",
        |member| member.state.errors(),
    ),
    ("tamarack_proxy_member_usable", Kind::Gauge, "1 if requests may go to it.", |member| {
        member.state.status().is_usable().into()
    }),
];

/// The members of all balancers, each once, with the label of the first host that has it.
fn members(request: &Request) -> Vec<(String, &Balancer, &Worker)> {
    let server = &request.engine.server;
    let Some(slot) = server.registry.slot_of::<Proxy>() else { return Vec::new() };
    let mut all: Vec<(String, &Balancer, &Worker)> = Vec::new();
    for host in &server.hosts {
        let label = String::from_utf8_lossy(&host.label()).into_owned();
        let settings = host.server.get::<Settings>(slot);
        for balancer in settings.into_iter().flat_map(|settings| &settings.workers.0.balancers) {
            if all.iter().any(|(_, known, _)| known.number == balancer.number) {
                continue;
            }
            all.extend(balancer.members().map(|member| (label.clone(), &**balancer, &**member)));
        }
    }
    all
}

/// The workers of the request's host, if its page shows them.
fn shown(request: &Request) -> Option<&Workers> {
    let slot = request.engine.server.registry.slot_of::<Proxy>()?;
    let settings = request.host.server.get::<Settings>(slot)?;
    let workers = &*settings.workers.0;
    let is_shown = settings.shown.or(Shown::Off) != Shown::Off && !workers.balancers.is_empty();
    is_shown.then_some(workers)
}

fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
}

fn write_settings(balancer: &Balancer, out: &mut Vec<u8>) {
    let current = balancer.state.current();
    let head = "<th>SSes</th><th>Timeout</th><th>Method</th>";
    put(out, format!("\n\n<table border=\"0\"><tr>{head}</tr>\n<tr>").as_bytes());
    match &current.sticky {
        None => put(out, b"<td> - </td>"),
        Some((cookie, path)) if cookie == path => {
            put(out, &[b"<td>", &cookie[..], b"</td>"].concat());
        }
        Some((cookie, path)) => {
            put(out, &[b"<td>", &cookie[..], b" | ", path, b"</td>"].concat());
        }
    }
    let timeout_s = current.timeout.map_or(0, |timeout| timeout.as_secs());
    let method = balancer.methods.get(current.method).map_or("", |(name, _)| name);
    let rest = format!("<td>{timeout_s}</td><td>{method}</td>\n</table>\n\n");
    put(out, rest.as_bytes());
}

fn write_row(member: &Worker, out: &mut Vec<u8>) {
    let state = &member.state;
    put(out, b"<tr>\n<td>");
    escape::html(out, &member.target.scheme);
    put(out, b"</td><td>");
    escape::html(out, &member.target.host);
    let status = state.status().words();
    put(out, format!("</td><td>{status}</td><td>").as_bytes());
    put(out, &member.route());
    put(out, b"</td><td>");
    put(out, &member.redirect());
    let factor = f64::from(state.load_factor()) / 100.0;
    let (set, elected, busy) = (state.lbset(), state.elected(), state.busy());
    let (sent, read) = (size(Some(state.transferred())), size(Some(state.read())));
    let rest = format!(
        "</td><td>{factor:.2}</td><td>{set}</td><td>{elected}</td><td>{busy}</td><td>{sent}</td>\
         <td>{read}</td>\n</tr>\n"
    );
    put(out, rest.as_bytes());
}

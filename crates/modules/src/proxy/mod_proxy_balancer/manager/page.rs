//! The page with all balancers, and a form. Source: `balancer_display_page`.

use super::html::{
    attempts, factor, method, put, put_escaped, put_name, put_sticky, put_url, short_name,
};
use super::{Shown, edit, identity};
use crate::generators::mod_autoindex::text::size;
use crate::generators::mod_status::report::{built, server_version};
use crate::proxy::mod_proxy::checks::Method;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};

const HEAD: &str = "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
\"http://www.w3.org/TR/html4/strict.dtd\">
<html><head><title>Balancer Manager</title>
<style type='text/css'>
table {
 border-width: 1px;
 border-spacing: 3px;
 border-style: solid;
 border-color: gray;
 border-collapse: collapse;
 background-color: white;
 text-align: center;
}
th {
 border-width: 1px;
 padding: 2px;
 border-style: dotted;
 border-color: gray;
 background-color: lightgray;
 text-align: center;
}
td {
 border-width: 1px;
 padding: 2px;
 border-style: dotted;
 border-color: gray;
 background-color: white;
 text-align: center;
}
</style>
</head>
<body><h1>Load Balancer Manager for ";

const BALANCER_COLUMNS: &str = "\n\n<table><tr><th>MaxMembers</th><th>StickySession</th>\
<th>DisableFailover</th><th>Timeout</th><th>FailoverAttempts</th><th>Method</th><th>Path</th>\
<th>Active</th></tr>\n<tr>";

const WORKER_COLUMNS: &str = "\n\n<table><tr><th>Worker URL</th><th>Route</th><th>RouteRedir</th>\
<th>Factor</th><th>Set</th><th>Status</th><th>Elected</th><th>Busy</th><th>Load</th><th>To</th>\
<th>From</th>";

const CHECK_COLUMNS: &str = "<th>HC Method</th><th>HC Interval</th><th>Passes</th><th>Fails</th>\
<th>HC uri</th><th>HC Expr</th>";

pub(super) fn write(shown: &Shown<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, HEAD);
    put_escaped(&mut out, shown.request.server_name());
    write_facts(shown, &mut out);
    let id = identity::of(shown.request);
    for balancer in shown.balancers() {
        write_balancer(shown, &id, balancer, &mut out);
        put(&mut out, WORKER_COLUMNS);
        if shown.conditions.is_some() {
            put(&mut out, CHECK_COLUMNS);
        }
        put(&mut out, "</tr>\n");
        for member in balancer.members() {
            write_worker(shown, balancer, member, &mut out);
        }
        put(&mut out, "</table>\n");
    }
    put(&mut out, "<hr />\n");
    write_conditions(shown, &mut out);
    match (shown.balancer, shown.worker) {
        (Some(balancer), Some(worker)) => edit::worker(shown, balancer, worker, &mut out),
        (Some(balancer), None) => edit::balancer(shown, balancer, &mut out),
        _ => {}
    }
    put(&mut out, server::errors::signature(shown.request, b""));
    put(&mut out, "</body></html>\n");
    out
}

fn write_facts(shown: &Shown<'_>, out: &mut Vec<u8>) {
    let settings = shown.settings;
    let not = |is_on: bool| if is_on { "" } else { "NOT " };
    let (version, built) = (server_version(), built());
    put(out, format!("</h1>\n\n<dl><dt>Server Version: {version}</dt>\n"));
    put(out, format!("<dt>Server Built: {built}</dt>\n"));
    let persists = not(settings.persists.or(false));
    put(out, format!("<dt>Balancer changes will {persists}be persisted on restart.</dt>"));
    let inherits = not(settings.inherits_balancers.or(true));
    put(out, format!("<dt>Balancers are {inherits}inherited from main server.</dt>"));
    let inherits = not(settings.inherits_mappings.or(true));
    put(out, format!("<dt>ProxyPass settings are {inherits}inherited from main server.</dt>"));
    put(out, "</dl>\n");
}

/// The link to a form.
fn link(shown: &Shown<'_>, balancer: &Balancer, worker: Option<&Worker>, out: &mut Vec<u8>) {
    put(out, "<a href=\"");
    put_url(out, &shown.request.resource.uri);
    put(out, "?b=");
    put_escaped(out, short_name(balancer));
    if let Some(worker) = worker {
        put(out, "&amp;w=");
        put_url(out, &worker.name);
    }
    put(out, "&amp;nonce=");
    put_escaped(out, &balancer.state.nonce());
    put(out, "\">");
}

fn write_balancer(shown: &Shown<'_>, id: &str, balancer: &Balancer, out: &mut Vec<u8>) {
    let current = balancer.state.current();
    put(out, "<hr />\n<h3>LoadBalancer Status for ");
    link(shown, balancer, None, out);
    put_escaped(out, &balancer.name);
    let own = identity::of_balancer(id, short_name(balancer));
    put(out, format!("</a> [{own}]</h3>\n{BALANCER_COLUMNS}"));
    let (places, used) = balancer.places();
    put(out, format!("<td>{places} [{used} Used]</td>\n<td>"));
    match current.sticky {
        Some(_) => put_sticky(out, &current, "|"),
        None => put(out, " (None) "),
    }
    let forced = if current.no_failover { "On" } else { "Off" };
    let timeout = current.timeout.unwrap_or_default().as_secs();
    let ((attempts, _), method) = (attempts(balancer, &current), method(balancer, &current));
    put(out, format!("</td><td>{forced}</td>\n<td>{timeout}</td><td>{attempts}</td>\n"));
    put(out, format!("<td>{method}</td>\n<td>"));
    put_escaped(out, &balancer.path);
    put(out, "</td>\n<td>Yes</td>\n</tr>\n</table>\n<br />");
}

fn write_worker(shown: &Shown<'_>, balancer: &Balancer, worker: &Worker, out: &mut Vec<u8>) {
    let state = &worker.state;
    put(out, "<tr>\n<td>");
    link(shown, balancer, Some(worker), out);
    let (open, close) = if worker.target.socket.is_some() { ("<i>", "</i>") } else { ("", "") };
    put(out, open);
    put_name(out, worker);
    put(out, format!("{close}</a></td><td>"));
    put_escaped(out, &worker.route());
    put(out, "</td><td>");
    put_escaped(out, &worker.redirect());
    let (factor, set, words) = (factor(worker), state.lbset(), state.status().words());
    put(out, format!("</td><td>{factor}</td><td>{set}</td><td>{words}</td>"));
    let (elected, busy, balance) = (state.elected(), state.busy(), state.lbstatus());
    put(out, format!("<td>{elected}</td><td>{busy}</td><td>{balance}</td>"));
    let (to, from) = (size(Some(state.transferred())), size(Some(state.read())));
    put(out, format!("<td>{to}</td><td>{from}"));
    if shown.conditions.is_some() {
        let method = Method::of_number(state.check_method()).name();
        let interval = state.check_interval_us() / 1000;
        let ((passes, fails), (passed, failed)) = (state.checks_needed(), state.checks());
        put(out, format!("</td><td>{method}</td><td>{interval}ms</td>"));
        put(out, format!("<td>{passes} ({passed})</td><td>{fails} ({failed})</td><td>"));
        put_escaped(out, &state.check_uri());
        put(out, "</td><td>");
        put_escaped(out, &state.check_condition());
    }
    put(out, "</td></tr>\n");
}

/// The conditions of health checks (`hc_show_exprs`).
fn write_conditions(shown: &Shown<'_>, out: &mut Vec<u8>) {
    let Some(conditions @ [_, ..]) = shown.conditions else { return };
    put(
        out,
        "\n\n<table><tr><th colspan='2'>Health check cond. expressions:</th></tr>\n\
         <tr><th>Expr name</th><th>Expression</th></tr>\n",
    );
    for condition in conditions {
        put(out, "<tr><td>");
        put_escaped(out, &condition.name);
        put(out, "</td><td>");
        put_escaped(out, &condition.text);
        put(out, "</td></tr>\n");
    }
    put(out, "</table><hr/>\n");
}

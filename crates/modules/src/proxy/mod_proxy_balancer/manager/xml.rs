//! The state of balancers as XML. Source: `balancer_display_page`.

use super::Shown;
use super::html::{attempts, factor, method, put, put_escaped, put_name};
use crate::proxy::mod_proxy::worker::{Flush, Parameters};
use crate::proxy::mod_proxy::workers::{Balancer, Worker};

pub(super) fn write(shown: &Shown<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    put(
        &mut out,
        "<?xml version='1.0' encoding='UTF-8' ?>\n\
         <httpd:manager xmlns:httpd='http://httpd.apache.org'>\n  <httpd:balancers>\n",
    );
    for balancer in shown.balancers() {
        write_balancer(shown, balancer, &mut out);
    }
    put(&mut out, "  </httpd:balancers>\n</httpd:manager>");
    out
}

fn on(is_on: bool) -> &'static str {
    if is_on { "On" } else { "Off" }
}

fn write_balancer(shown: &Shown<'_>, balancer: &Balancer, out: &mut Vec<u8>) {
    let current = balancer.state.current();
    put(out, "    <httpd:balancer>\n      <httpd:name>");
    put_escaped(out, &balancer.name);
    put(out, "</httpd:name>\n      <httpd:nonce>");
    put_escaped(out, &balancer.state.nonce());
    put(out, "</httpd:nonce>\n");
    if let Some((cookie, _)) = &current.sticky {
        put(out, "      <httpd:stickysession>");
        put_escaped(out, cookie);
        let forced = on(current.no_failover);
        put(out, "</httpd:stickysession>\n");
        put(out, format!("      <httpd:nofailover>{forced}</httpd:nofailover>\n"));
    }
    let timeout = current.timeout.unwrap_or_default().as_secs();
    // As in Apache, no line ends here.
    put(out, format!("      <httpd:timeout>{timeout}</httpd:timeout>"));
    if let (attempts, true) = attempts(balancer, &current) {
        put(out, format!("      <httpd:maxattempts>{attempts}</httpd:maxattempts>\n"));
    }
    let method = method(balancer, &current);
    put(out, format!("      <httpd:lbmethod>{method}</httpd:lbmethod>\n"));
    if current.sticky.is_some() {
        let delimits = on(balancer.parameters.semicolon_delimits.unwrap_or(false));
        put(out, format!("      <httpd:scolonpathdelim>{delimits}</httpd:scolonpathdelim>\n"));
    }
    put(out, "      <httpd:workers>\n");
    for member in balancer.members() {
        put(out, "        <httpd:worker>\n");
        write_parameters(shown, member, out);
        write_state(member, out);
        write_rest(member, out);
        put(out, "        </httpd:worker>\n");
    }
    put(out, "      </httpd:workers>\n    </httpd:balancer>\n");
}

fn element(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    put(out, format!("          <httpd:{name}>{value}</httpd:{name}>\n"));
}

fn escaped(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    put(out, format!("          <httpd:{name}>"));
    put_escaped(out, value);
    put(out, format!("</httpd:{name}>\n"));
}

fn write_parameters(shown: &Shown<'_>, worker: &Worker, out: &mut Vec<u8>) {
    let parameters = &worker.parameters;
    put(out, "          <httpd:name>");
    put_name(out, worker);
    put(out, "</httpd:name>\n");
    escaped(out, "scheme", &worker.target.scheme);
    escaped(out, "hostname", &worker.target.host);
    element(out, "loadfactor", factor(worker));
    element(out, "port", worker.target.port_number());
    let (min, smax, max) = shown.connections(parameters);
    element(out, "min", min);
    element(out, "smax", smax);
    element(out, "max", max);
    element(out, "ttl", parameters.ttl.unwrap_or_default().as_secs());
    if let Some(timeout) = parameters.timeout {
        element(out, "timeout", timeout.as_secs());
    }
    if let Some(acquire) = parameters.acquire {
        element(out, "acquire", acquire.as_millis());
    }
    if let Some(bytes) = parameters.receive_buffer {
        element(out, "recv_buffer_size", bytes);
    }
    if let Some(bytes) = parameters.io_buffer {
        element(out, "io_buffer_size", bytes);
    }
    if let Some(keeps) = parameters.keep_alive {
        element(out, "keepalive", on(keeps));
    }
}

fn write_state(worker: &Worker, out: &mut Vec<u8>) {
    let state = &worker.state;
    element(out, "status", state.status().words());
    let failed = state.failed_at_us();
    if failed > 0 {
        let date = wire::date::format((failed / 1_000_000) as i64);
        escaped(out, "error_time", &date);
    }
    element(out, "retries", state.retries());
    element(out, "lbstatus", state.lbstatus());
    element(out, "loadfactor", factor(worker));
    element(out, "transferred", state.transferred());
    element(out, "read", state.read());
    element(out, "elected", state.elected());
    escaped(out, "route", &worker.route());
    escaped(out, "redirect", &worker.redirect());
    element(out, "busy", state.busy());
    element(out, "lbset", state.lbset());
}

fn write_rest(worker: &Worker, out: &mut Vec<u8>) {
    let parameters = &worker.parameters;
    if worker.target.scheme == b"ajp" {
        let flush = parameters.flush.unwrap_or_default();
        let name = match flush {
            Flush::Off => "Off",
            Flush::On => "On",
            Flush::Auto => "Auto",
        };
        element(out, "flushpackets", name);
        if flush == Flush::Auto {
            element(out, "flushwait", flush_wait(parameters));
        }
        if let Some(ping) = parameters.ping {
            let ping = ping.as_millis();
            put(out, format!("          <httpd:ping>{ping}</httpd:ping>"));
        }
    }
    if let Some(disabled) = parameters.disable_reuse {
        let disabled = on(disabled);
        put(out, format!("      <httpd:disablereuse>{disabled}</httpd:disablereuse>\n"));
    }
    if let Some(timeout) = parameters.connection_timeout {
        element(out, "connectiontimeout", timeout.as_millis());
    }
    if let Some(retry) = parameters.retry {
        element(out, "retry", retry.as_secs());
    }
}

/// Milliseconds, as in Apache's page those of a packet's wait in µs.
fn flush_wait(parameters: &Parameters) -> u128 {
    const FLUSH_WAIT_US: u128 = 10_000;
    parameters.flush_wait.map_or(FLUSH_WAIT_US, |wait| wait.as_micros())
}

impl Shown<'_> {
    /// `min`, `smax` and `max` (`ap_proxy_initialize_worker`).
    fn connections(&self, parameters: &Parameters) -> (u32, u32, u32) {
        let max = parameters.max.filter(|max| *max > 0).unwrap_or(self.threads);
        let smax = parameters.smax.map_or(max, |smax| smax.min(max));
        (parameters.min.unwrap_or(0).min(smax), smax, max)
    }
}

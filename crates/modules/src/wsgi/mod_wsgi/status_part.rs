//! Process groups on the pages of mod_status.

use bstr::BStr;
use server::request::Request;
use wire::escape;

use super::counts::{Counts, REASONS, State};
use super::runtime::{self, Group};
use crate::generators::mod_status::live::json::Json;
use crate::generators::mod_status::metrics::{Exposition, Kind, seconds};
use crate::generators::mod_status::part::{Asking, Part};

/// Adds them.
pub(super) struct Groups;

/// What the companion has answered, by the number of the group.
struct Answer(Vec<State>);

/// A group on a page.
struct Shown {
    /// Empty for embedded mode.
    name: String,
    state: State,
    requests: u64,
    time_us: u64,
    refused: u64,
}

impl Shown {
    fn label(&self) -> &str {
        if self.name.is_empty() { "embedded mode" } else { &self.name }
    }

    /// The reasons for which processes were replaced, with their numbers.
    fn replaced(&self) -> impl Iterator<Item = (&'static str, u64)> {
        REASONS.iter().map(|(_, name)| *name).zip(self.state.replaced)
    }
}

/// The groups that have done anything, and all that are named.
fn shown(request: &Request) -> Vec<Shown> {
    let Some(runtime) = runtime::of(request) else { return Vec::new() };
    let states = request.kept::<Answer>().map(|answer| answer.0.as_slice()).unwrap_or_default();
    let one = |(group, at): (&Group, usize)| {
        let count = |of: fn(Counts) -> u64| group.counts.map_or(0, of);
        Shown {
            name: BStr::new(group.name()).to_string(),
            state: states.get(at).cloned().unwrap_or_default(),
            requests: count(Counts::requests),
            time_us: count(Counts::time_us),
            refused: count(Counts::refused),
        }
    };
    let is_used = |one: &Shown| {
        !one.name.is_empty() || one.state.processes > 0 || one.requests + one.refused > 0
    };
    runtime.groups.iter().zip(0..).map(one).filter(is_used).collect()
}

impl Part for Groups {
    fn ask<'r>(&self, request: &'r mut Request) -> Option<Asking<'r>> {
        // An explanation asks no other process.
        if request.engine.recorder.is_some() {
            return None;
        }
        let handle = runtime::handle_of(request)?;
        handle.get()?;
        Some(Box::pin(async move {
            let Some(runtime) = handle.get() else { return };
            let states = runtime.states().await;
            request.keep(Answer(states));
        }))
    }

    fn page(&self, request: &Request, out: &mut Vec<u8>) {
        let groups = shown(request);
        if groups.is_empty() {
            return;
        }
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        put("<hr />\n<h2>Python applications</h2>\n<table rules=\"all\" cellpadding=\"1%\">\n\
             <tr><th>Process group</th><th>Processes</th><th>Threads</th><th>Busy</th>\
             <th>Waiting</th><th>Requests</th><th>ms</th><th>Refused</th><th>Replaced</th></tr>\n");
        for one in &groups {
            let mut name = Vec::new();
            escape::html(&mut name, one.label().as_bytes());
            let State { processes, threads, busy, waiting, .. } = &one.state;
            let busy = busy.map_or("-".to_owned(), |busy| busy.to_string());
            let mean_ms = one.time_us.checked_div(one.requests).unwrap_or(0) / 1000;
            let replaced: Vec<String> = one
                .replaced()
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| format!("{reason} {count}"))
                .collect();
            put(&format!(
                "<tr><td>{}</td><td>{processes}</td><td>{threads}</td><td>{busy}</td>\
                 <td>{waiting}</td><td>{}</td><td>{mean_ms}</td><td>{}</td><td>{}</td></tr>\n",
                String::from_utf8_lossy(&name),
                one.requests,
                one.refused,
                replaced.join(", ")
            ));
        }
        put("</table>\n");
    }

    fn auto(&self, request: &Request, out: &mut Vec<u8>) {
        for (number, one) in shown(request).iter().enumerate() {
            let of = format!("WSGIGroup[{number}]");
            let mut line = |name: &str, value: &dyn std::fmt::Display| {
                out.extend_from_slice(format!("{of}{name}: {value}\n").as_bytes());
            };
            line("Name", &one.label());
            line("Processes", &one.state.processes);
            line("Threads", &one.state.threads);
            if let Some(busy) = one.state.busy {
                line("Busy", &busy);
            }
            line("Waiting", &one.state.waiting);
            line("Requests", &one.requests);
            line("Seconds", &seconds(one.time_us));
            line("Refused", &one.refused);
            line("Replaced", &one.state.replaced.iter().sum::<u64>());
        }
    }

    fn live(&self, request: &Request, out: &mut Json) {
        out.key("python");
        out.open('[');
        for one in shown(request) {
            out.item();
            out.open('{');
            out.text("name", one.label().as_bytes());
            for (name, value) in [
                ("processes", one.state.processes),
                ("threads", one.state.threads),
                ("waiting", one.state.waiting),
                ("requests", one.requests),
                ("time_us", one.time_us),
                ("refused", one.refused),
            ] {
                out.number(name, value);
            }
            if let Some(busy) = one.state.busy {
                out.number("busy", busy);
            }
            out.key("replaced");
            out.open('{');
            for (reason, count) in one.replaced() {
                out.number(reason, count);
            }
            out.close('}');
            out.close('}');
        }
        out.close(']');
    }

    fn metrics(&self, request: &Request, page: &mut Exposition) {
        let groups = shown(request);
        if groups.is_empty() {
            return;
        }
        for (name, kind, help, value) in FAMILIES {
            page.family(name, *kind, help);
            for one in &groups {
                if let Some(value) = value(one) {
                    page.sample(&[("group", one.label())], value);
                }
            }
        }
        let help = "Processes that were replaced, by the reason.";
        page.family("tamarack_wsgi_replaced", Kind::Counter, help);
        for one in &groups {
            for (reason, count) in one.replaced() {
                page.sample(&[("group", one.label()), ("reason", reason)], count);
            }
        }
    }
}

/// A family with a sample for each group, unless it has no value.
type Family = (&'static str, Kind, &'static str, fn(&Shown) -> Option<String>);

const FAMILIES: &[Family] = &[
    ("tamarack_wsgi_processes", Kind::Gauge, "Processes of a process group.", |one| {
        Some(one.state.processes.to_string())
    }),
    ("tamarack_wsgi_threads", Kind::Gauge, "Threads that take requests.", |one| {
        Some(one.state.threads.to_string())
    }),
    ("tamarack_wsgi_busy_threads", Kind::Gauge, "Threads with a request.", |one| {
        one.state.busy.map(|busy| busy.to_string())
    }),
    ("tamarack_wsgi_waiting_requests", Kind::Gauge, "Requests that wait for a thread.", |one| {
        Some(one.state.waiting.to_string())
    }),
    ("tamarack_wsgi_requests", Kind::Counter, "Requests that a thread took.", |one| {
        Some(one.requests.to_string())
    }),
    (
        "tamarack_wsgi_request_seconds",
        Kind::Counter,
        "The time of these requests, from when they were queued to the end of the application.",
        |one| Some(seconds(one.time_us)),
    ),
    ("tamarack_wsgi_refused", Kind::Counter, "Requests that no thread took.", |one| {
        Some(one.refused.to_string())
    }),
];

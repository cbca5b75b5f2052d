//! What metrics and the live page show of every worker: its connections, how long they and its
//! responses take, and what failed.

use server::request::Request;

use super::scheme::Exchange;
use super::shared::{AllGauges, Gauges, Meters};
use super::workers::{Balancer, Worker};
use super::{Proxy, Settings};
use crate::generators::mod_status::live::json::Json;
use crate::generators::mod_status::metrics::{Exposition, Kind, seconds};

/// A worker with its numbers.
struct Measured<'s> {
    /// The label of the first host that has it.
    host: String,
    balancer: Option<&'s Balancer>,
    worker: &'s Worker,
    gauges: Gauges,
    meters: Meters,
}

/// A family with a sample for each worker.
type Family = (&'static str, Kind, &'static str, fn(&Measured<'_>) -> String);

const FAMILIES: &[Family] = &[
    (
        "tamarack_proxy_worker_requests",
        Kind::Counter,
        "Requests that were to be forwarded to a worker.",
        |measured| measured.worker.state.elected().to_string(),
    ),
    (
        "tamarack_proxy_worker_failures",
        Kind::Counter,
        "Requests that got no response of a worker.",
        |measured| measured.meters.failures.to_string(),
    ),
    (
        "tamarack_proxy_worker_repeats",
        Kind::Counter,
        "Requests that were sent again, since a kept connection had ended.",
        |measured| measured.meters.repeats.to_string(),
    ),
    (
        "tamarack_proxy_worker_waiting",
        Kind::Gauge,
        "Requests that waited for a connection within the last second.",
        |measured| measured.gauges.waiting.to_string(),
    ),
    (
        "tamarack_proxy_worker_connects",
        Kind::Counter,
        "Connections that were opened.",
        |measured| measured.meters.connects.to_string(),
    ),
    (
        "tamarack_proxy_worker_connect_seconds",
        Kind::Counter,
        "The time that this took.",
        |measured| seconds(measured.meters.connect_us),
    ),
    ("tamarack_proxy_worker_responses", Kind::Counter, "Responses that began.", |measured| {
        measured.meters.responses.to_string()
    }),
    (
        "tamarack_proxy_worker_response_seconds",
        Kind::Counter,
        "The time until they began, from when the requests were sent.",
        |measured| seconds(measured.meters.response_us),
    ),
];

/// Writes the families.
pub(super) fn write_metrics(request: &Request, page: &mut Exposition) {
    let all = workers(request);
    if all.is_empty() {
        return;
    }
    for (name, kind, help, value) in FAMILIES {
        page.family(name, *kind, help);
        for measured in &all {
            let [host, balancer, worker] = measured.labels();
            let labels = [("host", &*host), ("balancer", &*balancer), ("worker", &*worker)];
            page.sample(&labels, value(measured));
        }
    }
    let help = "Open connections, as of the last second.";
    page.family("tamarack_proxy_worker_connections", Kind::Gauge, help);
    for measured in &all {
        let [host, balancer, worker] = measured.labels();
        let Gauges { open, idle, .. } = measured.gauges;
        for (state, count) in [("busy", open.saturating_sub(idle)), ("idle", idle)] {
            let of = [("host", &*host), ("balancer", &*balancer), ("worker", &*worker)];
            page.sample(&[of[0], of[1], of[2], ("state", state)], count);
        }
    }
}

/// Writes the list `workers`.
pub(super) fn write_json(request: &Request, out: &mut Json) {
    let all = workers(request);
    if all.is_empty() {
        return;
    }
    out.key("workers");
    out.open('[');
    for measured in &all {
        let (state, meters, gauges) = (&measured.worker.state, measured.meters, measured.gauges);
        let [host, balancer, worker] = measured.labels();
        out.item();
        out.open('{');
        out.text("host", host.as_bytes());
        out.text("balancer", balancer.as_bytes());
        out.text("name", worker.as_bytes());
        out.text("status", state.status().words().trim().as_bytes());
        for (name, value) in [
            ("usable", state.status().is_usable().into()),
            ("requests", state.elected()),
            ("failures", meters.failures),
            ("repeats", meters.repeats),
            ("errors", state.errors()),
            ("busy", gauges.open.saturating_sub(gauges.idle)),
            ("idle", gauges.idle),
            ("waiting", gauges.waiting),
            ("connects", meters.connects),
            ("connect_us", meters.connect_us),
            ("responses", meters.responses),
            ("response_us", meters.response_us),
        ] {
            out.number(name, value);
        }
        out.close('}');
    }
    out.close(']');
}

impl Exchange<'_> {
    /// The time of the loop's turn, µs, if metrics are configured.
    pub fn moment_us(&self) -> Option<u64> {
        let engine = &self.request.engine;
        engine.server.counts_hosts.then(|| engine.handle.clock().now_us())
    }

    /// Counts a response that has begun, to a request that was sent at this moment.
    pub fn count_response(&self, sent_us: Option<u64>) {
        if let (Some(sent), Some(now)) = (sent_us, self.moment_us()) {
            self.worker.state.count_response(now.saturating_sub(sent));
        }
    }

    /// Counts a request that is sent again on a new connection.
    pub fn count_repeat(&self) {
        if self.request.engine.server.counts_hosts {
            self.worker.state.count_repeat();
        }
    }
}

impl Measured<'_> {
    /// Host, balancer and worker.
    fn labels(&self) -> [String; 3] {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let balancer = self.balancer.map(|balancer| text(&balancer.name));
        [self.host.clone(), balancer.unwrap_or_default(), text(&self.worker.name)]
    }
}

/// The workers of all hosts, each once: those of no balancer first.
fn workers(request: &Request) -> Vec<Measured<'_>> {
    let server = &request.engine.server;
    let Some(slot) = server.registry.slot_of::<Proxy>() else { return Vec::new() };
    let mut all: Vec<Measured<'_>> = Vec::new();
    let gauges = AllGauges::of(server);
    for host in &server.hosts {
        let label = String::from_utf8_lossy(&host.label()).into_owned();
        let Some(settings) = host.server.get::<Settings>(slot) else { continue };
        let workers = &settings.workers.0;
        let own = workers.own.iter().map(|worker| (None, &**worker));
        let members = workers
            .balancers
            .iter()
            .flat_map(|balancer| balancer.members().map(|member| (Some(&**balancer), &**member)));
        for (balancer, worker) in own.chain(members) {
            if all.iter().any(|known| known.worker.number == worker.number) {
                continue;
            }
            all.push(Measured {
                host: label.clone(),
                balancer,
                worker,
                gauges: gauges.of_worker(worker.number),
                meters: worker.state.meters(),
            });
        }
    }
    all
}

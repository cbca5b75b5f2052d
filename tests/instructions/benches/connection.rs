//! Responses that are made from what is kept of a path, of a file of 1 KiB over one keep-alive
//! connection, from the receive to the send, through the real engine. The cost of one such request
//! is the difference of the two counts by the difference of their requests.
#![allow(missing_docs, clippy::expect_used)]

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use instructions::counts::{
    CONNECTION_BROWSER, CONNECTION_FEW, CONNECTION_FOLDER, CONNECTION_LOGGED, CONNECTION_MANY,
    CONNECTION_MISSING, CONNECTION_NOT_MODIFIED, CONNECTION_QUERY, CONNECTION_RANGE,
    CONNECTION_UNKNOWN, CONNECTION_UNLIKE, CONNECTION_UNLOGGED, FEW, HOST_UNKNOWN, MANY, PROXIED,
    RESPONDER, RULES_FILE, RULES_PAGE, RULES_REDIRECT, RULES_UNKNOWN, STREAMS, server_limit,
};
use instructions::rig::{Heads, Rig, Served};

fn at_most(stored: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.hard_limits([(EventKind::Ir, server_limit(stored))]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

fn rig(requests: u32, heads: Heads) -> Rig {
    Rig::new(requests, heads).expect("a server can be made")
}

fn finish(served: Served) {
    let received = served.finish().expect("every request is answered");
    println!("{received} bytes received");
}

#[library_benchmark(setup = rig, teardown = finish)]
#[bench::few(args = (FEW, Heads::Same), config = at_most(CONNECTION_FEW))]
#[bench::many(args = (MANY, Heads::Same), config = at_most(CONNECTION_MANY))]
#[bench::unlike(args = (MANY, Heads::Unlike), config = at_most(CONNECTION_UNLIKE))]
#[bench::query(args = (MANY, Heads::Query), config = at_most(CONNECTION_QUERY))]
#[bench::range(args = (MANY, Heads::Range), config = at_most(CONNECTION_RANGE))]
#[bench::not_modified(args = (MANY, Heads::NotModified), config = at_most(CONNECTION_NOT_MODIFIED))]
#[bench::missing(args = (MANY, Heads::Missing), config = at_most(CONNECTION_MISSING))]
#[bench::folder(args = (MANY, Heads::Folder), config = at_most(CONNECTION_FOLDER))]
#[bench::unknown(args = (MANY, Heads::Unknown), config = at_most(CONNECTION_UNKNOWN))]
#[bench::rules_file(args = (MANY, Heads::RulesFile), config = at_most(RULES_FILE))]
#[bench::rules_redirect(args = (MANY, Heads::RulesRedirect), config = at_most(RULES_REDIRECT))]
#[bench::rules_page(args = (MANY, Heads::RulesPage), config = at_most(RULES_PAGE))]
#[bench::rules_unknown(args = (MANY, Heads::RulesUnknown), config = at_most(RULES_UNKNOWN))]
#[bench::browser(args = (MANY, Heads::Browser), config = at_most(CONNECTION_BROWSER))]
#[bench::logged(args = (MANY, Heads::Logged), config = at_most(CONNECTION_LOGGED))]
#[bench::unlogged(args = (MANY, Heads::Unlogged), config = at_most(CONNECTION_UNLOGGED))]
#[bench::host_unknown(args = (MANY, Heads::HostUnknown), config = at_most(HOST_UNKNOWN))]
#[bench::proxied(args = (MANY, Heads::Proxied), config = at_most(PROXIED))]
#[bench::responder(args = (MANY, Heads::Responder), config = at_most(RESPONDER))]
#[bench::streams(args = (MANY, Heads::Streams), config = at_most(STREAMS))]
fn keep_alive(rig: Rig) -> Served {
    rig.serve().expect("the loop runs")
}

library_benchmark_group!(name = connection, benchmarks = keep_alive);
main!(library_benchmark_groups = connection);

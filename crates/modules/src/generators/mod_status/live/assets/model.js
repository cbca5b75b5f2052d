// What the page knows: samples of the server's counters, and rates made of two of them.
"use strict";

const CLASS_NAMES = ["1xx", "2xx", "3xx", "4xx", "5xx"];
// As many seconds as the longest span of the charts.
const POINTS_MAX = 900;
// A latency needs some requests to be one: those of the last seconds are taken together.
const LATENCY_WINDOW = 5;

// The value below which the part `q` of what is in the buckets lies, in microseconds.
function quantile(buckets, bounds, q) {
  const all = buckets.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let rest = q * all;
  for (let at = 0; at < buckets.length; at++) {
    if (rest <= buckets[at] && buckets[at] > 0) {
      const low = at === 0 ? 0 : bounds[at - 1];
      const high = at < bounds.length ? bounds[at] : bounds[bounds.length - 1];
      return low + (high - low) * (rest / buckets[at]);
    }
    rest -= buckets[at];
  }
  return bounds[bounds.length - 1];
}

// How much more there is of a counter; one that began anew counts from 0.
function grown(now, before) {
  return now >= before ? now - before : now;
}

function added(lists, length) {
  const sums = new Array(length).fill(0);
  for (const list of lists) list.forEach((value, at) => { sums[at] += value; });
  return sums;
}

class Model {
  constructor() {
    this.samples = [];
    this.loops = new Map();
    this.times = [];
    this.series = { rate: [[], [], [], []], latency: [[], [], []], connections: [[], [], [], []] };
    this.busy = new Map();
    this.now = null;
  }

  // Takes a sample; the page shows rates from the second one on.
  take(sample) {
    const last = this.samples[this.samples.length - 1];
    if (last && sample.now <= last.now) return false;
    this.samples.push(sample);
    if (this.samples.length > LATENCY_WINDOW + 1) this.samples.shift();
    this.takeLoops(sample);
    if (!last) {
      this.now = this.summary(sample, null);
      return true;
    }
    this.now = this.summary(sample, last);
    this.append(sample);
    return true;
  }

  loopsOf(sample) {
    return sample.processes.flatMap((process) => process.loops.map((seen, index) =>
      ({ ...seen, process, index, key: `${process.slot}.${index}@${process.pid}` })));
  }

  // A loop publishes once a second, by its own clock: its rates are by that.
  takeLoops(sample) {
    const living = new Map();
    for (const seen of this.loopsOf(sample)) {
      const known = this.loops.get(seen.key);
      const state = known || { busy: null, wait: null, rate: null, moves: 0, seen };
      const us = known ? seen.heartbeat - known.seen.heartbeat : 0;
      if (us > 0) {
        state.busy = Math.min(1, grown(seen.busy_us, known.seen.busy_us) / us);
        state.wait = Math.min(1, grown(seen.run_delay_us, known.seen.run_delay_us) / us);
        state.beat = seen;
      }
      if (known) {
        const s = (sample.now - this.before) / 1000;
        state.rate = s > 0 ? grown(seen.requests, known.last.requests) / s : state.rate;
      }
      if (us !== 0 || !known) state.seen = seen;
      state.last = seen;
      living.set(seen.key, state);
    }
    this.before = sample.now;
    this.loops = living;
  }

  summary(sample, last) {
    const loops = this.loopsOf(sample);
    const sum = (name) => loops.reduce((all, seen) => all + seen[name], 0);
    const connections = ["writing", "reading", "keep_alive", "closing"].map(sum);
    const summary = { sample, connections, open: sum("connections"), rate: null,
      http2: sum("http2"), streams: sum("streams"), hosts: [] };
    const oldest = this.samples[0];
    summary.workers = this.workersNow(sample, oldest, (sample.now - oldest.now) / 1000);
    if (!last) {
      summary.hosts = sample.hosts.map((host) => this.hostNow(host, null, sample, 1));
      return summary;
    }
    const seconds = (sample.now - last.now) / 1000;
    summary.rate = grown(sample.requests, last.requests) / seconds;
    const first = this.samples[0];
    const window = (sample.now - first.now) / 1000;
    summary.cpu = grown(sample.cpu_us, first.cpu_us) / (window * 1e6);
    const before = new Map(last.hosts.map((host) => [host.host, host]));
    const early = new Map(first.hosts.map((host) => [host.host, host]));
    const zero = { classes: [0, 0, 0, 0, 0], buckets: [], bytes: 0 };
    const deltas = sample.hosts.map((host) => {
      const past = before.get(host.host) || zero;
      return host.classes.map((count, at) => grown(count, past.classes[at]) / seconds);
    });
    summary.classes = added(deltas, CLASS_NAMES.length);
    summary.hosts = sample.hosts.map((host) =>
      this.hostNow(host, early.get(host.host) || zero, sample, window));
    const buckets = added(summary.hosts.map((host) => host.window), sample.bounds_us.length + 1);
    summary.latency = [.5, .9, .99].map((q) => quantile(buckets, sample.bounds_us, q));
    return summary;
  }

  hostNow(host, past, sample, window) {
    const buckets = host.buckets.map((count, at) =>
      (past ? grown(count, past.buckets[at] || 0) : 0));
    const requests = buckets.reduce((sum, count) => sum + count, 0);
    return {
      name: host.host,
      window: buckets,
      rate: past ? requests / window : null,
      p50: quantile(buckets, sample.bounds_us, .5),
      p99: quantile(buckets, sample.bounds_us, .99),
      client: host.classes[3],
      server: host.classes[4],
      sent: past ? grown(host.bytes, past.bytes) / window : null,
      all: host.classes.reduce((sum, count) => sum + count, 0),
    };
  }

  // Rates and means are those of the last seconds.
  workersNow(sample, first, window) {
    const key = (worker) => `${worker.host} ${worker.balancer} ${worker.name}`;
    const early = new Map((first.workers || []).map((worker) => [key(worker), worker]));
    return (sample.workers || []).map((worker) => {
      const past = early.get(key(worker));
      const more = (name) => (past ? grown(worker[name], past[name]) : 0);
      const mean = (sum, count) => (more(count) > 0 ? more(sum) / more(count) : null);
      return {
        ...worker,
        rate: past && window > 0 ? more("requests") / window : null,
        connect: mean("connect_us", "connects"),
        first_byte: mean("response_us", "responses"),
        failing: more("failures") > 0,
      };
    });
  }

  append(sample) {
    const now = this.now;
    const push = (list, value) => {
      list.push(value);
      if (list.length > POINTS_MAX) list.shift();
    };
    push(this.times, sample.now / 1000);
    const counted = sample.hosts.length > 0;
    const [informal, fine, moved, client, server] = now.classes;
    const rates = counted ? [informal + fine, moved, client, server] : [now.rate, 0, 0, 0];
    rates.forEach((value, at) => push(this.series.rate[at], value));
    now.latency.forEach((us, at) => push(this.series.latency[at], us === null ? null : us / 1000));
    now.connections.forEach((count, at) => push(this.series.connections[at], count));
    for (const [key, state] of this.loops) {
      if (!this.busy.has(key)) {
        this.busy.set(key, new Array(this.times.length - 1).fill(null));
      }
      push(this.busy.get(key), state.busy === null ? null : state.busy * 100);
    }
    for (const [key, list] of this.busy) {
      if (!this.loops.has(key)) push(list, null);
      if (list.every((value) => value === null)) this.busy.delete(key);
    }
  }
}

// What is not a chart: loops, hosts, generations, counters.
"use strict";

// More loops than this are shown as letters alone.
const LOOP_ROWS_MAX = 24;
const JOURNAL_LINES_MAX = 50;

const LETTERS = {
  ".": "no process", S: "starting", _: "waiting", R: "reading a request", W: "answering",
  K: "keep-alive", D: "DNS look-up", C: "closing", L: "logging", G: "gracefully finishing",
  I: "idle clean-up",
};

const WORDS = {
  crashed: "crashed", replaced: "replaced", hung: "hung", fork_failed: "fork failed",
  shape_full: "shape full", companion_replaced: "companions replaced", pinned: "pinned", widened: "widened", returned: "returned",
  replanned: "planned anew", steered: "steered", avoided: "avoided", readmitted: "readmitted",
  handing: "began to hand over", moving: "moved some",
  log_lines_dropped: "log lines dropped", migrations: "CPU migrations",
  handed_over: "handed over", taken_over: "taken over", moved: "idle moved",
};

const BAD = new Set(["crashed", "hung", "fork_failed", "shape_full", "log_lines_dropped",
  "companion_replaced"]);

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function put(id, text) {
  const place = document.getElementById(id);
  if (place.textContent !== text) place.textContent = text;
}

function plural(count, word, many = `${word}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? word : many}`;
}

function lasting(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [days, hours] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24];
  const minutes = Math.floor(seconds / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

function size(bytes) {
  if (bytes === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1024;
  return `${bytes.toFixed(at && bytes < 100 ? 1 : 0)} ${units[at]}`;
}

function showTiles(now) {
  const { sample } = now;
  put("rate", shortNumber(now.rate));
  put("rate-more", `${plural(sample.requests, "request")} · ${size(sample.bytes)} sent`);
  const [p50, p90, p99] = now.latency || [null, null, null];
  const [value, unit] = shortTime(p99 === null ? null : p99 / 1000).split(" ");
  put("p99", value);
  put("p99-unit", unit || "");
  const ms = (us) => shortTime(us === null ? null : us / 1000);
  put("p99-more", sample.hosts.length ? `p50 ${ms(p50)} · p90 ${ms(p90)}` : "not counted by host");
  put("open", shortNumber(now.open));
  const [writing, reading, kept] = now.connections;
  const http2 = now.http2 > 0 ? ` · HTTP/2: ${now.http2}, ${plural(now.streams, "request")}` : "";
  put("open-more", `${writing + reading} active · ${kept} keep-alive${http2}`);
  put("cpu", now.cpu === undefined ? "–" : shortNumber(now.cpu * 100));
  put("cpu-more", `of ${plural(sample.cpus, "CPU")} · ${shortTime(sample.cpu_us / 1000)} used`);
  const errors = now.classes ? now.classes[4] : null;
  const failed = sample.hosts.reduce((sum, host) => sum + host.classes[4], 0);
  put("errors", sample.hosts.length ? shortNumber(errors) : "–");
  put("errors-more", `${plural(failed, "error")} since the start`);
  document.getElementById("errors-tile").classList.toggle("bad", errors > 0);
}

function showHead(now) {
  const { sample } = now;
  const loops = sample.processes.reduce((sum, process) => sum + process.loops.length, 0);
  const word = { prefork: null, worker: "thread" }[sample.shape];
  const parts = [sample.shape, plural(sample.processes.length, "process", "processes")];
  if (word !== null) parts.push(plural(loops, word || "loop"));
  parts.push(`generation ${sample.generation}`, `up ${lasting(sample.now - sample.started)}`);
  put("server", sample.server || "Tamarack");
  put("facts", parts.join(" · "));
  put("version", `Tamarack ${sample.version}.`);
  document.title = `${now.rate === null ? "" : `${shortNumber(now.rate)}/s · `}${sample.server}`;
  const plain = { prefork: "process", worker: "thread" }[sample.shape] || "loop";
  const many = plain === "process" ? "Processes" : `${plain[0].toUpperCase()}${plain.slice(1)}s`;
  put("loops-title", many);
  put("busy-title", `How busy the ${many.toLowerCase()} are`);
}

function cpuText(seen) {
  if (seen.cpu === undefined && seen.pinned === undefined) return null;
  return `CPU ${seen.cpu ?? seen.pinned}`;
}

function placeChip(seen) {
  const text = cpuText(seen);
  if (text === null) return element("span", "chip none", "CPU unknown");
  if (seen.widened) {
    const chip = element("span", "chip warn", `${text} · widened`);
    chip.title = `Pinned to CPU ${seen.pinned}, which somebody else uses: it may leave it for now`;
    return chip;
  }
  const isPinned = seen.pinned !== undefined;
  const chip = element("span", isPinned ? "chip good" : "chip", isPinned ? `${text} · pinned` : text);
  chip.title = isPinned ? `Pinned to CPU ${seen.pinned}` : "Not pinned";
  return chip;
}

function letterBadge(seen, title) {
  const badge = element("span", `letter ${seen.letter}`, seen.letter);
  badge.title = title || LETTERS[seen.letter] || "";
  return badge;
}

function numberCell(value, unit, className) {
  const cell = element("div", `number ${className}`, value, " ");
  cell.append(element("span", "", unit));
  return cell;
}

function loopRow(state) {
  const seen = state.last;
  const bar = element("div", "bar");
  const [busy, wait] = [state.busy ?? 0, state.wait ?? 0];
  const [done, waited] = [element("i"), element("i", "wait")];
  done.style.width = `${busy * 100}%`;
  waited.style.left = `${busy * 100}%`;
  waited.style.width = `${Math.min(wait, 1 - busy) * 100}%`;
  bar.append(done, waited);
  bar.title = "Green: working. Red: waiting for a CPU that somebody else has.";
  const name = element("div", "", letterBadge(seen), `${seen.process.slot}.${seen.index}`);
  name.title = `process ${seen.process.pid}, loop ${seen.index}: ${LETTERS[seen.letter] || ""}`;
  const percent = state.busy === null ? "–" : `${Math.round(busy * 100)} %`;
  return element("div", "loop", name, element("div", "", placeChip(seen)), bar,
    numberCell(percent, "", "percent"),
    numberCell(shortNumber(state.rate), "req/s", "side"),
    numberCell(shortNumber(seen.connections), "conns", "side"),
    numberCell(`${Math.round(wait * 100)} %`, "waited", "extra side"),
    numberCell(shortNumber(seen.migrations), "moves", "extra side"));
}

function showLoops(model) {
  const states = [...model.loops.values()];
  const { sample } = model.now;
  showCpus(states, sample.cpus, sample.shape === "prefork" ? ["process", "processes"]
    : sample.shape === "worker" ? ["thread"] : ["loop"]);
  const place = document.getElementById("loops");
  put("loops-more", states.length > LOOP_ROWS_MAX ? letterCounts(states) : "");
  if (states.length <= LOOP_ROWS_MAX) {
    place.className = "";
    place.replaceChildren(...states.map(loopRow));
    return;
  }
  place.className = "grid";
  place.replaceChildren(...states.map((state) => {
    const { last: seen, busy } = state;
    const title = [`${seen.process.slot}.${seen.index} (pid ${seen.process.pid})`,
      LETTERS[seen.letter], cpuText(seen), plural(seen.requests, "request"),
      busy === null ? null : `${Math.round(busy * 100)} % busy`];
    return letterBadge(seen, title.filter(Boolean).join(" · "));
  }));
}

function letterCounts(states) {
  const counts = new Map();
  for (const { last } of states) counts.set(last.letter, (counts.get(last.letter) || 0) + 1);
  return [...counts].map(([letter, count]) => `${count} ${LETTERS[letter]}`).join(" · ");
}

// Which loops ran where last; nothing where nobody tells.
function showCpus(states, cpus, words) {
  const place = document.getElementById("cpus");
  const known = states.filter((state) => state.last.cpu !== undefined);
  if (!known.length) return place.replaceChildren();
  const count = Math.max(cpus, ...known.map((state) => state.last.cpu + 1));
  const on = Array.from({ length: count }, () => []);
  for (const { last } of known) on[last.cpu].push(`${last.process.slot}.${last.index}`);
  place.replaceChildren(...on.map((loops, cpu) => {
    const cell = element("div", loops.length ? "cpu used" : "cpu", `CPU ${cpu} `);
    const shown = loops.length > 4 ? plural(loops.length, ...words) : loops.join(" ");
    cell.append(element("b", "", shown || "–"));
    return cell;
  }));
}

function showHosts(now) {
  const body = document.querySelector("#hosts tbody");
  const hosts = [...now.hosts].sort((a, b) => (b.rate || 0) - (a.rate || 0) || b.all - a.all);
  put("hosts-more", hosts.length ? `${plural(hosts.length, "host")}, the busiest first`
    : "Nothing is counted by host: no SetHandler of the server's own files names this page.");
  body.replaceChildren(...hosts.slice(0, 50).map((host) => {
    const ms = (us) => shortTime(us === null ? null : us / 1000);
    const texts = [host.name, shortNumber(host.rate), ms(host.p50), ms(host.p99),
      shortNumber(host.client), shortNumber(host.server), size(host.sent), shortNumber(host.all)];
    const row = element("tr", "", ...texts.map((text) => element("td", "", text)));
    if (host.server > 0) row.children[5].className = "bad";
    if (!host.rate) row.children[1].className = "none";
    return row;
  }));
}

function workerRow(worker) {
  const ms = (us) => shortTime(us === null ? null : us / 1000);
  const state = element("span", worker.usable ? "chip good" : "chip warn", worker.status);
  const texts = [shortNumber(worker.rate), shortNumber(worker.busy), shortNumber(worker.idle),
    shortNumber(worker.waiting), ms(worker.connect), ms(worker.first_byte),
    shortNumber(worker.failures), shortNumber(worker.repeats), shortNumber(worker.requests)];
  const name = element("td", "", worker.name);
  if (worker.balancer) name.append(" ", element("span", "quiet", worker.balancer));
  const row = element("tr", "", name, element("td", "", state),
    ...texts.map((text) => element("td", "", text)));
  if (worker.failing) row.children[8].className = "bad";
  if (worker.waiting > 0) row.children[5].className = "bad";
  if (!worker.rate) row.children[2].className = "none";
  return row;
}

// Where nothing is proxied there is no such card.
function showWorkers(now) {
  const { workers } = now;
  document.getElementById("workers-card").hidden = workers.length === 0;
  const failed = workers.filter((worker) => !worker.usable).length;
  put("workers-more", `${plural(workers.length, "backend")}${failed ? `, ${failed} left alone` : ""}`);
  document.querySelector("#workers tbody").replaceChildren(...workers.slice(0, 100).map(workerRow));
}

// Where no program is started there is no such card.
function showCompanions(now) {
  const { companions, programs } = now.sample;
  document.getElementById("companions-card").hidden = companions.length === 0;
  const texts = [`${programs.programs_started.toLocaleString("en")} started`];
  if (programs.programs_failed) texts.push(`${programs.programs_failed} could not be started`);
  if (programs.programs_refused) texts.push(`${programs.programs_refused} refused`);
  put("companions-more", texts.join(" · "));
  document.querySelector("#companions tbody").replaceChildren(...companions.map((one) => {
    const cells = [one.name, one.pid, one.generation, one.running, one.waiting];
    return element("tr", "", ...cells.map((text) => element("td", "", `${text}`)));
  }));
}

// Where no Python application is configured there is no such card.
function showPython(now) {
  const groups = now.sample.python || [];
  document.getElementById("python-card").hidden = groups.length === 0;
  document.querySelector("#python tbody").replaceChildren(...groups.map((one) => {
    const replaced = Object.entries(one.replaced).filter(([, count]) => count > 0);
    const mean = one.requests ? `${(one.time_us / one.requests / 1000).toFixed(1)} ms` : "–";
    const cells = [one.name, one.processes, one.threads, one.busy ?? "–", one.waiting, mean,
      one.requests, one.refused, replaced.map(([reason, count]) => `${reason} ${count}`).join(", ")];
    return element("tr", "", ...cells.map((text) => element("td", "", `${text}`)));
  }));
}

function showGenerations(now) {
  const { sample } = now;
  const all = new Map();
  for (const process of sample.processes) {
    if (!all.has(process.generation)) all.set(process.generation, []);
    all.get(process.generation).push(process);
  }
  const rows = [...all].sort((a, b) => b[0] - a[0]).map(([number, processes]) => {
    const isCurrent = number === sample.generation;
    const since = Math.min(...processes.map((process) => process.started));
    const open = processes.flatMap((process) => process.loops)
      .reduce((sum, seen) => sum + seen.connections, 0);
    const states = new Set(processes.map((process) => process.state));
    const line = element("div", "line", element("b", "", `Generation ${number}`),
      element("span", isCurrent ? "chip good" : "chip warn", [...states].join(", ")),
      element("span", "quiet", `${plural(processes.length, "process", "processes")}, ` +
        `${plural(open, "connection")}, for ${lasting(sample.now - since)}`));
    const pids = processes.slice(0, 16).map((process) => process.pid).join(" ");
    const more = processes.length > 16 ? ` and ${processes.length - 16} more` : "";
    return element("li", "", line, element("div", "quiet", `pid ${pids}${more}`));
  });
  document.getElementById("generations").replaceChildren(...rows);
}

function countersOf(sample) {
  const { log_lines_dropped, migrations, handed_over, taken_over, moved } = sample;
  const went = { handed_over, taken_over, moved };
  return { ...sample.events, ...sample.decisions, ...went, migrations, log_lines_dropped };
}

function showCounters(now) {
  const items = Object.entries(countersOf(now.sample)).map(([name, count]) => {
    const item = element("li", "", WORDS[name] || name);
    item.append(element("b", "", count.toLocaleString("en")));
    if (count === 0) item.className = "zero";
    else if (BAD.has(name)) item.className = "bad";
    else if (name in now.sample.decisions) item.className = "good";
    return item;
  });
  document.getElementById("counters").replaceChildren(...items);
}

// What has changed between two samples is told with its time.
function writeJournal(sample, last) {
  const place = document.getElementById("journal");
  const lines = [];
  if (last && sample.generation !== last.generation) {
    lines.push(`generation ${sample.generation} serves`);
  }
  if (last) {
    const before = countersOf(last);
    for (const [name, count] of Object.entries(countersOf(sample))) {
      const more = count - before[name];
      if (more > 0 && name !== "migrations") lines.push(`${WORDS[name]} +${more.toLocaleString("en")}`);
    }
  }
  const before = new Map((last?.workers || []).map((worker) => [worker.name, worker.usable]));
  for (const { name, usable } of last ? sample.workers || [] : []) {
    if (before.has(name) && before.get(name) !== usable) {
      lines.push(`${name} ${usable ? "is back" : "is left alone"}`);
    }
  }
  for (const text of lines) {
    place.prepend(element("li", "", element("time", "", clockText(sample.now / 1000)), text));
  }
  while (place.children.length > JOURNAL_LINES_MAX) place.lastChild.remove();
}

function showAll(model) {
  const { now } = model;
  showHead(now);
  showTiles(now);
  showLoops(model);
  showHosts(now);
  showWorkers(now);
  showCompanions(now);
  showPython(now);
  showGenerations(now);
  showCounters(now);
}

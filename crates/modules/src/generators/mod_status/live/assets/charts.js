// The four charts, drawn by uPlot.
"use strict";

const AXIS_FONT = "11px system-ui, sans-serif";
// More loops than this are drawn as their mean and their busiest.
const LOOP_LINES_MAX = 8;
// Charts show this many seconds at least.
const SPAN_MIN = 30;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(size >= 1e7 ? 0 : 1)}M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(size >= 1e5 ? 0 : 1)}k`;
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 10 ? 1 : 2);
}

function shortTime(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms >= 10000 ? 0 : 1)} s`;
  if (ms >= 1) return `${Number(ms.toFixed(ms >= 100 ? 0 : 1))} ms`;
  return `${Math.round(ms * 1000)} µs`;
}

// A chart with a legend of its own, whose numbers follow the cursor.
class Chart {
  constructor(id, options) {
    this.place = document.getElementById(`plot-${id}`);
    this.legend = document.getElementById(`legend-${id}`);
    this.options = options;
    this.names = "";
    this.plot = null;
    this.rows = [];
    new ResizeObserver(() => this.resize()).observe(this.place);
  }

  resize() {
    if (this.plot) this.plot.setSize({ width: this.place.clientWidth, height: this.place.clientHeight });
  }

  // `lines`: [{ name, colour, values }], the lowest of a stack first.
  draw(times, span, lines) {
    const names = lines.map((line) => line.name + line.colour).join();
    if (this.names !== names || !this.plot) this.build(lines, names);
    this.rows = lines.map((line) => line.values);
    const end = times.length ? times[times.length - 1] : Date.now() / 1000;
    const data = [times];
    if (this.options.stacked) {
      const sums = new Array(times.length).fill(0);
      for (const row of this.rows) {
        data.push(row.map((value, at) => { sums[at] += value || 0; return sums[at]; }));
      }
      // The sum of all lies under the others.
      data.splice(1, data.length - 1, ...data.slice(1).reverse());
    } else {
      data.push(...this.rows);
    }
    this.plot.setData(data, false);
    // A page that was just opened has little to show: the charts begin at its first number.
    const begin = times.length ? Math.min(times[0], end - SPAN_MIN) : end - span;
    this.plot.setScale("x", { min: Math.max(end - span, begin), max: end });
    this.tell(this.plot.cursor.idx);
  }

  build(lines, names) {
    if (this.plot) this.plot.destroy();
    this.names = names;
    this.legend.replaceChildren();
    this.values = lines.map((line) => {
      const item = document.createElement("li");
      const mark = document.createElement("i");
      mark.style.background = colour(line.colour);
      const value = document.createElement("b");
      item.append(mark, line.name, " ", value);
      this.legend.append(item);
      return value;
    });
    const stacked = this.options.stacked;
    const drawn = stacked ? [...lines].reverse() : lines;
    const series = drawn.map((line) => ({
      stroke: colour(line.colour),
      width: stacked ? 1 : 1.75,
      fill: stacked ? this.fill(line.colour) : undefined,
      points: { show: false },
      spanGaps: !stacked,
    }));
    this.plot = new uPlot(this.setup([{}, ...series]), [[]].concat(drawn.map(() => [])), this.place);
    this.plot.over.addEventListener("mouseleave", () => this.tell(null));
  }

  // Over the card, so that a stack's layers do not shine through each other.
  fill(name) {
    return `color-mix(in srgb, ${colour(name)} 42%, ${colour("card")})`;
  }

  setup(series) {
    const axis = {
      stroke: colour("quiet"),
      font: AXIS_FONT,
      grid: { stroke: colour("grid"), width: 1 },
      ticks: { show: false },
    };
    return {
      width: this.place.clientWidth,
      height: this.place.clientHeight,
      padding: [8, 6, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: "time" }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: this.options.scale },
      series,
      axes: [
        { ...axis, grid: { show: false }, size: 26, space: 70, values: (_, all) => all.map(clockText) },
        { ...axis, size: 52, space: 34, ...this.options.axis,
          values: (_, all) => all.map((value) => (value === null ? null : this.options.show(value))) },
      ],
      hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
    };
  }

  tell(index) {
    (this.values || []).forEach((place, at) => {
      const row = this.rows[at] || [];
      const chosen = index === null || index === undefined ? row.length - 1 : index;
      place.textContent = this.options.show(row[chosen] ?? null);
    });
  }

  forget() {
    this.names = "";
  }
}

function clockText(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

const zeroBased = (least) => ({
  range: (_, low, high) => [0, Math.max(least, (high || 0) * 1.08)],
});

class Charts {
  constructor() {
    this.rate = new Chart("rate", { stacked: true, scale: zeroBased(5), show: shortNumber });
    this.latency = new Chart("latency", {
      show: shortTime,
      scale: {
        distr: 3,
        range: (_, low, high) => [Math.min(low || .01, .05), Math.max(high || 1, 1)],
      },
      axis: { size: 58, splits: (_, at, low, high) => decades(low, high) },
    });
    this.connections = new Chart("connections",
      { stacked: true, scale: zeroBased(4), show: shortNumber });
    this.busy = new Chart("busy",
      { scale: { range: () => [0, 100] }, show: (v) => (v === null ? "–" : `${Math.round(v)} %`) });
  }

  draw(model, span) {
    const { times, series } = model;
    const counted = model.now.sample.hosts.length > 0;
    const classes = counted ? [["2xx", "accent"], ["3xx", "blue"], ["4xx", "gold"], ["5xx", "red"]]
      : [["all", "accent"]];
    this.rate.draw(times, span, named(classes, series.rate));
    this.latency.draw(times, span,
      named([["p50", "accent"], ["p90", "gold"], ["p99", "red"]], series.latency));
    this.connections.draw(times, span, named(
      [["writing", "accent"], ["reading", "blue"], ["keep-alive", "slate"], ["closing", "gold"]],
      series.connections));
    this.busy.draw(times, span, busyLines(model));
  }

  // Colours are read anew when the scheme changes.
  forget() {
    for (const chart of [this.rate, this.latency, this.connections, this.busy]) chart.forget();
  }
}

// The powers of ten within.
function decades(low, high) {
  const all = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.0001; power++) {
    all.push(10 ** power);
  }
  return all;
}

function named(names, rows) {
  return names.map(([name, of], at) => ({ name, colour: of, values: rows[at] }));
}

function busyLines(model) {
  const rows = [...model.busy.entries()];
  const hues = ["accent", "blue", "gold", "violet", "red", "slate"];
  if (rows.length <= LOOP_LINES_MAX) {
    return rows.map(([key, values], at) =>
      ({ name: key.split("@")[0], colour: hues[at % hues.length], values }));
  }
  const mean = [];
  const most = [];
  model.times.forEach((_, at) => {
    const seen = rows.map(([, values]) => values[at]).filter((value) => value !== null);
    mean.push(seen.length ? seen.reduce((sum, value) => sum + value, 0) / seen.length : null);
    most.push(seen.length ? Math.max(...seen) : null);
  });
  return [{ name: "mean", colour: "accent", values: mean },
    { name: "busiest", colour: "gold", values: most }];
}

"""report.html: one file without external requests, light and dark, for phone and desktop."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib import resources
from typing import Any

import vl_convert

from tamarack_lab.results import Experiment, Results

from . import charts, tables, targets
from .charts import Chart
from .figures import filled, floors
from .findings import findings
from .markup import attribute, embedded, facts, folded, listing, table, text
from .metrics import MEANINGS, percent
from .theme import DASHES, SHAPES, Look, Scheme, config, looks, tokens

# Nothing may be fetched: the policy lets the browser enforce it for every library. Vega compiles
# its expressions, hence unsafe-eval.
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
          "style-src 'unsafe-inline'; img-src data: blob:")
# This many sentences open an experiment; the others are folded behind their number.
OPEN_FINDINGS = 3


def page(results: Results) -> str:
    """The whole report."""
    drawn = looks(results)
    gathered: dict[str, dict[str, Any]] = {}
    sections = "\n".join(_experiment(results, one, drawn, gathered)
                         for one in results.experiments)
    title = f"Lab report: {results.environment.cpu}"
    body = f"{_first_screen(results)}\n{sections}\n{_environment(results)}"
    return document(title, body, gathered)


def document(title: str, body: str, gathered: dict[str, dict[str, Any]]) -> str:
    """An HTML document around the body, with style, script and drawing library inside."""
    data = embedded({"charts": gathered, "config": config(),
                     "tokens": {scheme: tokens(scheme) for scheme in SCHEMES}})
    library = _library() if gathered else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{attribute(POLICY)}">
<title>{escape(title)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<main>
{body}
</main>
<noscript><p>The drawings need a script; the tables hold all figures without it.</p></noscript>
<script type="application/json" id="data">{data}</script>
<script>{library}</script>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; bundling takes seconds."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _first_screen(results: Results) -> str:
    good, bad, missing = filled(results)
    machine = results.environment
    kind = "quick" if results.quick else "full"
    ends = "the range" if results.quick else "bootstrap 95 % intervals"
    left_out = [f"{one.name}: {line}" for one in results.experiments for line in one.left_out]
    most = "" if results.finished else "up to "
    scope = escape(f"{kind.capitalize()} run: {most}{results.starts} fresh starts per cell, "
                   f"{lengths(results)}; medians with {ends}.")
    if left_out:
        scope += folded(f"{len(left_out)} left out", listing(left_out))
    cells = f"{good} with figures, {bad} marked with their reason"
    cells += f", {missing} not run" if missing else ""
    pairs = [
        ("Run", escape(", ".join(one.name for one in results.experiments))
         + f"<br><small>{results.started:%Y-%m-%d %H:%M} UTC, commit "
           f"{escape(machine.commit[:12])}"
           f"{'' if results.finished else ', unfinished'}</small>"),
        ("Machine", f"{escape(machine.cpu)}<br><small>{machine.cpus} CPUs, {machine.cores} cores, "
         f"{machine.memory_bytes / 2**30:.0f} GiB, {escape(machine.virtual)}, "
         f"{escape(machine.system)}, Linux {escape(machine.kernel)}</small>"),
        ("Load", escape(results.load.text)),
        ("Headline", escape(results.headline_reason)),
        ("Scope", scope),
        ("Cells", f"{escape(cells)}{_meter(good, good + bad + missing)}"),
        ("Noise floor", _floors(results)),
    ]
    links = "".join(f'<a href="#{attribute(one.name)}">{escape(one.title)}</a>'
                    for one in results.experiments)
    return (f'<header><p class="kicker">Published web server benchmarks, run again</p>'
            f"<h1>{escape(machine.cpu)}</h1>{_unfinished(results)}{facts(pairs)}"
            f'<nav aria-label="Experiments">{links}</nav></header>')


def lengths(results: Results) -> str:
    """The length of a start, once for all experiments or for each."""
    each: dict[float, list[str]] = {}
    for one in results.experiments:
        each.setdefault(one.seconds or results.seconds, []).append(one.name)
    if len(each) < 2:
        return f"{next(iter(each), results.seconds):g} s each"
    return "each " + "; ".join(f"{seconds:g} s in {', '.join(names)}"
                               for seconds, names in each.items())


def _unfinished(results: Results) -> str:
    """A banner over a run that was interrupted; empty for a complete run."""
    if results.finished:
        return ""
    planned = sum(max(one.planned, len(one.cells)) for one in results.experiments)
    short = sum(len(cell.samples) < results.starts for one in results.experiments
                for cell in one.cells if cell.status == "ok")
    missing = planned - sum(len(one.cells) for one in results.experiments)
    return (f'<p class="unfinished"><strong>Unfinished run.</strong> {missing} of {planned} cells '
            f"were not run, {short} have fewer than {results.starts} starts. The same command "
            "goes on with it.</p>")


def _meter(part: int, whole: int) -> str:
    share = part / whole if whole else 0.0
    return (f'<span class="meter" role="img" aria-label="{percent(share)} filled">'
            f'<span style="width:{share * 100:.1f}%"></span></span>')


def _floors(results: Results) -> str:
    found = floors(results)
    if not found:
        return "No A/A run: differences can't be told from noise here."
    rows = "".join(
        f"<li><span>{escape(name)}</span> <b>±{percent(floor)}</b> "
        f"<small>{escape(MEANINGS[metric].title)}</small></li>" for name, metric, floor in found)
    return f'<ul class="floors">{rows}</ul><small>A/A: the same server measured twice.</small>'


def _experiment(
    results: Results, one: Experiment, drawn: dict[str, Look],
    gathered: dict[str, dict[str, Any]]
) -> str:
    quick = results.quick
    found = charts.of(one, drawn, quick)
    for at, chart in enumerate(found):
        gathered[_id(one, at)] = {"spec": chart.spec, "canvas": chart.canvas}
    said = findings(one, quick)
    ghz = results.environment.mhz_max / 1000 if results.environment.mhz_max else None
    parts = [f"<h2>{escape(one.title)}</h2>",
             f'<p class="about"><code>{escape(one.name)}</code> {escape(one.about)}</p>',
             listing(said[:OPEN_FINDINGS], "findings") if said else ""]
    parts += _drawings(one, found, drawn)
    if said[OPEN_FINDINGS:]:
        more = said[OPEN_FINDINGS:]
        parts.append(folded(f"{len(more)} more findings", listing(more, "findings")))
    behind = [("Targets", targets.section(one)),
              ("Ratios here beside the published ones", tables.ratios(one, quick)),
              ("Published beside measured", tables.published(one, quick)),
              ("How long people wait", tables.shares(one, quick)),
              ("Efficiency per core and per GHz", tables.efficiency(one, ghz)),
              ("Marked cells", tables.marked(one)),
              (f"All {len(one.cells)} cells", tables.cells(one, quick))]
    parts += [folded(title, html) for title, html in behind if html]
    if one.left_out:
        parts.append(folded(f"Left out: {len(one.left_out)}", listing(one.left_out)))
    return f'<section id="{attribute(one.name)}">{"".join(parts)}</section>'


# The headings of the kinds of charts above their grids.
KINDS = {
    "twins": "Throughput and latency, server by server",
    "scatter": "Response time against time, request by request",
    "spread": "Every fresh start",
    "cores": "Efficiency",
    "percentiles": "Latency under a fixed rate of arrivals",
    "affinity": "Affinity off, by hand, the server's own",
    "bars": "Side by side",
}
PER_SERVER = ("twins", "scatter")


def _drawings(one: Experiment, found: list[Chart], drawn: dict[str, Look]) -> list[str]:
    """The charts, each kind in a grid of its own."""
    kinds: dict[str, list[tuple[str, Chart]]] = {}
    for at, chart in enumerate(found):
        kinds.setdefault(chart.kind.split("-")[0], []).append((_id(one, at), chart))
    parts = []
    for kind, named in kinds.items():
        if kind == "spread":
            parts.append(folded("Every fresh start: box plots", _grid(kind, named)))
            continue
        key = dict.fromkeys(label for _, chart in named for label in chart.key)
        head = f"Against {one.x}" if kind == "curves" else KINDS[kind]
        parts.append(f"<h3>{escape(head)}</h3>{_key(key, drawn)}{_places(kind, named)}")
    return parts


def _places(kind: str, named: list[tuple[str, Chart]]) -> str:
    """One grid, or, if each place has a chart per server, one for each place, folded."""
    places: dict[str, list[tuple[str, Chart]]] = {}
    for name, chart in named:
        places.setdefault(chart.place, []).append((name, chart))
    if kind not in PER_SERVER or len(places) == 1:
        return _grid(kind, named)
    return "".join(folded(place, _grid(kind, some), opened=at == 0)
                   for at, (place, some) in enumerate(places.items()))


def _grid(kind: str, named: list[tuple[str, Chart]]) -> str:
    inside = "".join(_figure(name, chart) for name, chart in named)
    return f'<div class="grid {kind}">{inside}</div>'


def _figure(name: str, chart: Chart) -> str:
    place = f" <small>{escape(chart.place)}</small>" if chart.place else ""
    return (f"<figure><h4>{escape(chart.title)}{place}</h4>"
            f'<div class="chart" id="{name}" role="img" '
            f'aria-label="{attribute(chart.alternative)}" style="min-height:{chart.height}px">'
            f"</div><figcaption>{escape(chart.caption)}</figcaption></figure>")


def _id(one: Experiment, at: int) -> str:
    return f"chart-{attribute(one.name)}-{at}"


def _key(labels: dict[str, None], drawn: dict[str, Look]) -> str:
    """The key of the lines, in HTML so that it wraps on a phone."""
    items = "".join(f"<li>{_swatch(drawn[label])}{escape(label)}</li>" for label in labels)
    return f'<ul class="key" aria-label="Key">{items}</ul>' if items else ""


OUTLINES = {
    "circle": '<circle cx="18" cy="7" r="4.2"/>',
    "square": '<rect x="14.2" y="3.2" width="7.6" height="7.6"/>',
    "diamond": '<path d="M18 1.6 23.4 7 18 12.4 12.6 7Z"/>',
    "triangle-up": '<path d="M18 2.2 23 11H13Z"/>',
    "triangle-down": '<path d="M18 11.8 13 3H23Z"/>',
    "cross": '<path d="M16.4 2.4h3.2v3h3v3.2h-3v3h-3.2v-3h-3V5.4h3Z"/>',
}
assert set(OUTLINES) == set(SHAPES)


def _swatch(look: Look) -> str:
    dash = " ".join(map(str, look.dash)) if look.dash in DASHES else ""
    return (f'<svg class="swatch hue{look.hue}" width="36" height="14" viewBox="0 0 36 14" '
            f'aria-hidden="true"><path class="line" d="M0 7H36" stroke-dasharray="{dash}"/>'
            f"{OUTLINES[look.shape]}</svg>")


def _environment(results: Results) -> str:
    machine = results.environment
    rows = [[text(name), text(version), text(machine.tls.get(name, "")),
             text(machine.flags.get(name, ""))]
            for name, version in machine.servers.items()]
    mhz = f"{machine.mhz_max:.0f} MHz" if machine.mhz_max else "unknown"
    pairs = [
        ("Command", f"<code>lab/run {escape(' '.join(results.command))}</code>"),
        ("CPU", escape(f"governor {machine.governor}, at most {mhz}")),
        ("Server on CPUs", escape(_numbers(results.load.server_cpus))),
        ("Load on CPUs", escape(_numbers(results.load.load_cpus)
                                or ", ".join(results.load.hosts))),
        ("Tools", escape("; ".join(f"{k}: {v}" for k, v in machine.tools.items()))),
        ("Mitigations", escape("; ".join(f"{k}: {v}" for k, v in machine.mitigations.items()))),
        ("Kernel settings", escape("; ".join(f"{k} = {v}" for k, v in machine.sysctls.items()))),
        ("Limits", escape("; ".join(f"{k} = {v}" for k, v in machine.limits.items()))),
        ("Lab", escape(f"{machine.lab}, commit {machine.commit}")),
    ]
    versions = table("Servers", ["server", "version", "TLS", "compile flags"], rows) if rows else ""
    notes = folded(f"What the run said: {len(results.notes)} lines",
                   listing(results.notes)) if results.notes else ""
    return (f'<section id="environment"><h2>The machine, in full</h2>{facts(pairs)}{versions}'
            f"{notes}<p>Raw: results.json, cells.csv and samples.csv beside this page.</p>"
            "</section>")


def _numbers(cpus: list[int]) -> str:
    return ", ".join(map(str, cpus))

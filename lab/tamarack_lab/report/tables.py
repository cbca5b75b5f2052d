"""The report's tables: cells, published figures, ratios, shares of slow answers, marked cells."""

from __future__ import annotations

from tamarack_lab import statistics
from tamarack_lab.results import Cell, Experiment, Metric, Published

from .charts.cores import AXIS
from .figures import (
    RatioRow, interval_of, load_busy, load_was_limit, place_of, plain, published_rows, ratio_rows)
from .markup import NOTHING, Field, attribute, figure, table, text
from .metrics import MEANINGS, number, percent, values, written

MIDDLES: tuple[Metric, ...] = ("latency_median_us", "latency_mean_us")
SHARES: tuple[Metric, ...] = ("share_over_100ms", "share_over_1s", "share_over_10s")


def cells(experiment: Experiment, quick: bool) -> str:
    """Every cell: the medians of all metrics, the headline with its interval, the load's CPUs."""
    metrics = [metric for metric in dict.fromkeys((experiment.headline, *experiment.metrics))
               if any(values(cell, metric) for cell in experiment.cells)]
    heads = ["server", *experiment.axes, *(_head(metric) for metric in metrics), "load busy",
             "starts"]
    rows = []
    for cell in experiment.cells:
        row = [text(cell.label), *(_axis(cell, axis) for axis in experiment.axes)]
        row += [_measured(cell, metric, quick, metric == experiment.headline)
                for metric in metrics]
        rows.append([*row, _load(cell), _starts(cell)])
    ends = "range of the starts" if quick else "bootstrap 95 % interval"
    return table(f"Every cell: medians; in brackets the {ends}", heads, rows)


def published(experiment: Experiment, quick: bool) -> str:
    """Published figures beside those measured here; empty without any.

    Absolute figures belong to their machines, so each is also set against the first of its kind:
    those ratios may be compared.
    """
    rows, firsts = [], _firsts(experiment, quick)
    for row in published_rows(experiment, quick):
        there, metric = row.published, row.published.metric
        base = firsts.get((there.machine, metric))
        fields = [text(there.label), text(there.study), text(there.machine),
                  figure(written(there.value, metric), there.value, _unit(metric))]
        here = row.measured
        if here is None:
            fields.append(Field(f'<span class="none">{_why_not(row.cell, there)}</span>', None))
        else:
            fields.append(figure(written(here.median, metric), here.median, _unit(metric)))
        if base is None or here is None:
            fields += [NOTHING, NOTHING]
        else:
            of_there, of_here = there.value / base[0], here.median / base[1]
            fields += [figure(f"{number(of_there)} · {number(of_here)}", of_here),
                       figure(number(of_here / of_there), of_here / of_there)]
        rows.append(fields)
    if not rows:
        return ""
    return table("Published beside measured", [
        "what", "study", "there, on", "there", "here", "of the first: there · here",
        "ratio of ratios"], rows)


def ratios(experiment: Experiment, quick: bool) -> str:
    """Ratios here and there, and how they compare; empty without any."""
    rows = []
    for row in ratio_rows(experiment, quick):
        here = row.measured
        fields = [text(row.ratio.label.rstrip(",")), text(row.label), text(row.place),
                  figure(said(row, here.median), here.median,
                         f"[{said(row, here.low)} – {said(row, here.high)}]"
                         + ("" if row.noise is None else ", within the noise")
                         + (", the load tool was the limit" if row.limited else ""))]
        fields.append(figure(said(row, row.by_cpu.median), row.by_cpu.median)
                      if row.by_cpu else NOTHING)
        there = [f"{said(row, value)} ({machine})"
                 for machine, value in row.ratio.published.items()]
        fields.append(text("; ".join(there) or "not published"))
        compared = [plain(row.ratio, here.median) / plain(row.ratio, value)
                    for value in row.ratio.published.values() if plain(row.ratio, value)]
        fields.append(figure(" · ".join(number(one) for one in compared), compared[0])
                      if compared else NOTHING)
        rows.append(fields)
    if not rows:
        return ""
    return table("Ratios here beside the published ones", [
        "ratio", "server", "where", "here", "here by CPU time", "there", "ratio of ratios"], rows)


def said(row: RatioRow, value: float) -> str:
    """A ratio in its form's terms: "23 %", "6.3 times"."""
    return f"{value:.2f} times" if row.ratio.form == "times" else f"{value * 100:.1f} %"


def shares(experiment: Experiment, quick: bool) -> str:
    """How the answers were spread: median, mean, deviation, the shares over the thresholds.

    Empty unless requests were kept one by one.
    """
    rows = []
    for cell in experiment.cells:
        latencies = [sample.latency for sample in cell.samples if sample.latency]
        if cell.status == "marked" or not any(sample.timeline_ms for sample in cell.samples):
            continue
        row = [text(cell.label), *(_axis(cell, axis) for axis in experiment.axes)]
        for metric in MIDDLES:
            row.append(_measured(cell, metric, quick, False))
        deviations = [one.stdev_us for one in latencies if one.stdev_us is not None]
        worst = max(deviations, default=None)
        row.append(figure(written(worst, "latency_mean_us"), worst) if worst else NOTHING)
        for metric in SHARES:
            row.append(_measured(cell, metric, quick, False))
        rows.append(row)
    if not rows:
        return ""
    return table("How long people wait", [
        "server", *experiment.axes, "median", "mean", "largest deviation", "over 100 ms",
        "over 1 s", "over 10 s"], rows)


def efficiency(experiment: Experiment, ghz: float | None) -> str:
    """Throughput per core and per GHz, here and published; empty off the CPU axis."""
    if experiment.x != AXIS:
        return ""
    rows = []
    for cell in experiment.cells:
        rate, count = values(cell, "requests_per_s"), cell.axes.get(AXIS)
        if not rate or not isinstance(count, int):
            continue
        middle = statistics.interval(rate).median
        rows.append([text(cell.label), text(place_of(cell, AXIS)), *_per(middle, count, ghz)])
    for there in experiment.published:
        count = there.cell.get(AXIS)
        if there.metric == "requests_per_s" and isinstance(count, int):
            rows.append([text(f"{there.study}: {there.label}"), text(f"on {there.machine}"),
                         *_per(there.value, count, _ghz(there))])
    heads = ["server", "where", "CPUs", "requests/s", "per core", "per core and GHz"]
    return table("Efficiency per core and per GHz", heads, rows) if rows else ""


def marked(experiment: Experiment) -> str:
    """The cells without a figure and why; empty when all have one."""
    rows = [[text(cell.label), text(place_of(cell)),
             text(cell.reason)] for cell in experiment.cells if cell.status == "marked"]
    return table("Marked cells: never averaged in", ["server", "where", "reason"],
                 rows) if rows else ""


def _per(rate: float, count: int, ghz: float | None) -> list[Field]:
    each = rate / count
    return [figure(str(count), count), figure(number(rate), rate), figure(number(each), each),
            figure(number(each / ghz), each / ghz) if ghz else NOTHING]


def _ghz(there: Published) -> float | None:
    """The clock that the study names: "E5310 1.6 GHz"."""
    words = f"{there.label} {there.machine}".replace("GHz", " GHz ").split()
    for before, word in zip(words, words[1:], strict=False):
        if word.strip(",;)") == "GHz":
            try:
                return float(before)
            except ValueError:
                return None
    return None


def _firsts(
    experiment: Experiment, quick: bool
) -> dict[tuple[str, Metric], tuple[float, float]]:
    found: dict[tuple[str, Metric], tuple[float, float]] = {}
    for row in published_rows(experiment, quick):
        there = row.published
        if row.measured and row.measured.median > 0 and there.value > 0:
            found.setdefault((there.machine, there.metric), (there.value, row.measured.median))
    return found


def _why_not(cell: Cell | None, there: Published) -> str:
    if cell is None:
        return "not run here"
    return "marked" if cell.status == "marked" else "not measured"


def _head(metric: Metric) -> str:
    unit = _unit(metric)
    return f"{MEANINGS[metric].title}{', ' + unit if unit else ''}"


def _unit(metric: Metric) -> str:
    """The unit where the figure does not carry it."""
    unit = MEANINGS[metric].unit
    return "" if unit in ("µs", "%", "bytes") else unit


def _axis(cell: Cell, axis: str) -> Field:
    value = cell.axes.get(axis, "")
    if isinstance(value, (int, float)):
        return figure(f"{value:g}", float(value))
    return text(value)


def _measured(cell: Cell, metric: Metric, quick: bool, ends: bool) -> Field:
    if cell.status == "marked":
        why = attribute(cell.reason)
        return Field(f'<span class="mark" title="{why}">marked</span>', None, figure=True)
    found = interval_of(cell, metric, quick)
    if found is None:
        return NOTHING
    note = f"[{written(found.low, metric)} – {written(found.high, metric)}]" if ends else ""
    return figure(written(found.median, metric), found.median, note)


def _load(cell: Cell) -> Field:
    """How busy the load's CPUs were: at 100 % the figures may be the tool's own."""
    share = load_busy(cell)
    if share is None:
        return NOTHING
    return figure(percent(share), share, "the limit" if load_was_limit(cell) else "")


def _starts(cell: Cell) -> Field:
    if cell.status == "marked":
        return Field('<span class="mark">marked</span>', None, figure=True)
    return figure(str(len(cell.samples)), len(cell.samples))

"""The distribution of an open loop's latencies: median, p90, p99, p99.9 and the maximum."""

from __future__ import annotations

from tamarack_lab import statistics
from tamarack_lab.results import Cell, Experiment, Latency

from ..figures import floor_of, place_of
from ..metrics import duration
from ..theme import Look, series
from .chart import (
    DURATION, Chart, Row, decades, floor_words, interval_words, limit_words, listed, spec)

HEIGHT = 260
MAXIMUM = "longest"
STEPS = (("50", "median"), ("90", "p90"), ("99", "p99"), ("99.9", "p99.9"), ("", MAXIMUM))


def percentiles(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """A chart for each place of an experiment whose latencies count from the time they were due."""
    places: dict[str, list[Cell]] = {}
    for cell in experiment.cells:
        if cell.status == "ok" and any(s.latency and s.latency.corrected for s in cell.samples):
            places.setdefault(place_of(cell), []).append(cell)
    return [_chart(experiment, place, cells, drawn, quick) for place, cells in places.items()]


def _chart(
    experiment: Experiment, place: str, cells: list[Cell], drawn: dict[str, Look], quick: bool
) -> Chart:
    floor = floor_of(experiment, "latency_p99_us")
    rows = [row for cell in cells for row in _rows(cell, floor or 0.0, quick)]
    labels = list(dict.fromkeys(row["label"] for row in rows))
    alternative = f"Latency, {place}: " + listed(
        [{**row, "label": f"{row['label']} {row['step']}"} for row in rows
         if row["step"] in ("median", "p99.9", MAXIMUM)])
    y = {"type": "quantitative", "scale": {"type": "log"}}
    ticks = decades(min(row["low"] for row in rows), max(row["high"] for row in rows))
    layers = [
        {"mark": {"type": "area", "opacity": 0.16},
         "encoding": {"y": {**y, "field": "band_low", "title": "latency: less is better",
                            "axis": {"labelExpr": DURATION, "values": ticks}},
                      "y2": {"field": "band_high"}}},
        {"mark": {"type": "rule", "strokeWidth": 1.5},
         "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "line"},
         "encoding": {"y": {**y, "field": "median"},
                      "strokeDash": {"field": "label", "type": "nominal", "legend": None,
                                     "scale": series(labels, drawn, "strokeDash")}}},
        {"mark": {"type": "point", "opacity": 1},
         "encoding": {"y": {**y, "field": "median"},
                      "tooltip": [{"field": "label", "title": "server"},
                                  {"field": "step", "title": "percentile"},
                                  {"field": "text", "title": "latency"},
                                  {"field": "ends", "title": "from"}],
                      "shape": {"field": "label", "type": "nominal", "legend": None,
                                "scale": series(labels, drawn, "shape")}}},
    ]
    drawing = spec(
        HEIGHT, alternative, data={"values": rows}, layer=layers,
        encoding={"x": {"field": "step", "type": "ordinal", "title": None,
                        "sort": [name for _, name in STEPS], "axis": {"labelAngle": 0}},
                  "color": {"field": "label", "type": "nominal", "legend": None,
                            "scale": series(labels, drawn, "color")}})
    caption = ("Open loop: each request counts from when it was due, so waiting is not hidden. "
               f"{interval_words(quick)} {floor_words(experiment, 'latency_p99_us', cells)}"
               f"{limit_words(cells)}")
    return Chart("percentiles", "Latency by percentile", place, caption, alternative, drawing,
                 key=tuple(labels), height=HEIGHT + 40)


def _rows(cell: Cell, floor: float, quick: bool) -> list[Row]:
    latencies = [sample.latency for sample in cell.samples if sample.latency]
    rows = []
    for percentile, name in STEPS:
        taken = [value for one in latencies if (value := _at(one, percentile))]
        if not taken:
            continue
        found = statistics.interval(taken, quick)
        rows.append({
            "label": cell.label, "step": name, "median": found.median, "low": found.low,
            "high": found.high, "band_low": found.median / (1 + floor),
            "band_high": found.median * (1 + floor), "text": duration(found.median),
            "ends": f"{duration(found.low)} to {duration(found.high)}"})
    return rows


def _at(latency: Latency, percentile: str) -> float | None:
    value = latency.percentiles_us.get(percentile) if percentile else latency.max_us
    return value if value and value > 0 else None

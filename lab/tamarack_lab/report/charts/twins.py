"""Throughput and latency of one server against the running axis, in one plot with two axes."""

from __future__ import annotations

from typing import Any

from tamarack_lab.results import Cell, Experiment, Metric

from ..figures import groups
from ..metrics import percent
from ..theme import Look
from .chart import (
    DURATION, Chart, Row, Spec, decades, floor_of, floor_words, interval_words, limit_words, point,
    spec)
from .curves import across

HEIGHT = 210
LATENCIES: tuple[tuple[Metric, str], ...] = (
    ("latency_mean_us", "mean"), ("latency_max_us", "maximum"))


def twins(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """A small chart for each server of each group, all of a group on the same scales."""
    if not experiment.x:
        return []
    found = []
    for place, cells in groups(experiment):
        if len({cell.axes.get(experiment.x) for cell in cells}) == 1:
            continue
        rows = {cell_label: _rows(experiment, cells, cell_label, quick)
                for cell_label in dict.fromkeys(cell.label for cell in cells)}
        latest = [row for one in rows.values() for row in one[1]]
        rates = [row for one in rows.values() for row in one[0]]
        if not latest or not rates:
            continue
        limits = _limits(rates, latest)
        found += [_chart(experiment, place, [cell for cell in cells if cell.label == label], one,
                         limits, quick) for label, one in rows.items() if one[0] and one[1]]
    return found


def _rows(
    experiment: Experiment, cells: list[Cell], label: str, quick: bool
) -> tuple[list[Row], list[Row]]:
    own = [cell for cell in cells if cell.label == label]
    floor = floor_of(experiment, "requests_per_s")
    rates = [row for cell in own if (row := point(cell, "requests_per_s", floor, quick))]
    latencies = []
    for metric, name in LATENCIES:
        around = floor_of(experiment, metric)
        for cell in own:
            row = point(cell, metric, around, quick)
            if row and row["low"] > 0:
                latencies.append({**row, "which": name})
    return rates, latencies


def _limits(rates: list[Row], latencies: list[Row]) -> tuple[list[float], list[float]]:
    highest = max(row["high"] for row in rates)
    return ([0.0, highest * 1.05], [min(row["low"] for row in latencies) / 1.3,
                                    max(row["high"] for row in latencies) * 1.3])


def _chart(
    experiment: Experiment, place: str, cells: list[Cell], rows: tuple[list[Row], list[Row]],
    limits: tuple[list[float], list[float]], quick: bool
) -> Chart:
    rates, latencies = rows
    label = cells[0].label
    best = max(rates, key=lambda row: float(row["median"]))
    longest = max(latencies, key=lambda row: float(row["median"]))
    assert experiment.x is not None
    alternative = (
        f"{label}, {place or experiment.title}: most {best['text']} requests/s at "
        f"{experiment.x} {best[f'x_{experiment.x}']}; longest answer {longest['text']} at "
        f"{experiment.x} {longest[f'x_{experiment.x}']}.")
    caption = (f"Solid: throughput, left. Dashed: mean latency; dotted: the longest; right, "
               f"logarithmic. {interval_words(quick)} "
               f"{floor_words(experiment, 'requests_per_s', cells)}{_bands(experiment)}"
               f"{limit_words(cells)}")
    return Chart("twins", label, place, caption, alternative,
                 _drawing(rates, latencies, experiment.x, limits, alternative),
                 height=HEIGHT + 50)


def _bands(experiment: Experiment) -> str:
    """The width of the latency bands, which has noise floors of its own."""
    found = [f"{name} ±{percent(floor)}" for metric, name in LATENCIES
             if (floor := floor_of(experiment, metric))]
    return f" Bands of latency: {', '.join(found)}." if found else ""


def _drawing(
    rates: list[Row], latencies: list[Row], x: str, limits: tuple[list[float], list[float]],
    alternative: str
) -> Spec:
    left: dict[str, Any] = {"type": "quantitative", "scale": {"domain": limits[0], "nice": False}}
    right: dict[str, Any] = {"type": "quantitative",
                             "scale": {"type": "log", "domain": limits[1], "nice": False}}
    place = across(rates, x)
    which = {"field": "which", "type": "nominal", "legend": None,
             "scale": {"domain": [name for _, name in LATENCIES], "range": [[5, 3], [1, 3]]}}
    rate_axis = {"format": "~s", "tickCount": 4, "titleColor": "token:rate"}
    time_axis = {"labelExpr": DURATION, "values": decades(*limits[1]), "grid": False,
                 "titleColor": "token:time",
                 "orient": "right"}
    tip = [{"field": f"x_{x}", "title": x}]
    rate = {"data": {"values": rates}, "layer": [
        _band(left, "token:rate", "requests/s", rate_axis), _whisker(left, "token:rate"),
        {"mark": {"type": "line", "color": "token:rate", "point": {"color": "token:rate"}},
         "encoding": {"y": {**left, "field": "median"},
                      "tooltip": [*tip, {"field": "text", "title": "requests/s"}]}}],
        "encoding": {"x": place}}
    time = {"data": {"values": latencies}, "layer": [
        _band(right, "token:time", "latency", time_axis), _whisker(right, "token:time"),
        {"mark": {"type": "line", "color": "token:time", "point": {"color": "token:time"}},
         "encoding": {"y": {**right, "field": "median"}, "strokeDash": which,
                      "tooltip": [*tip, {"field": "which", "title": "latency"},
                                  {"field": "text", "title": "took"}]}}],
        "encoding": {"x": place, "detail": {"field": "which"}}}
    return spec(HEIGHT, alternative, layer=[rate, time],
                resolve={"scale": {"y": "independent"}})


def _band(side: Spec, colour: str, title: str, axis: Spec) -> Spec:
    return {"mark": {"type": "area", "opacity": 0.14, "color": colour, "clip": True},
            "encoding": {"y": {**side, "field": "band_low", "title": title, "axis": axis},
                         "y2": {"field": "band_high"}}}


def _whisker(side: Spec, colour: str) -> Spec:
    return {"mark": {"type": "rule", "strokeWidth": 1.5, "color": colour},
            "encoding": {"y": {**side, "field": "low"}, "y2": {"field": "high"}}}

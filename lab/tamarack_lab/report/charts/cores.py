"""The gain from more CPUs: the efficiency per core, next to the published one."""

from __future__ import annotations

from collections.abc import Sequence

from tamarack_lab import statistics
from tamarack_lab.results import Cell, Experiment, Published

from ..figures import floor_of, groups
from ..metrics import percent, values
from ..theme import Look, series
from .chart import PLAIN, Chart, Row, floor_words, interval_words, limit_words, spec

HEIGHT = 240
# The running axis that makes an experiment one of cores.
AXIS = "cpus"


def cores(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """Efficiency per core for each group of an experiment that runs along the CPUs."""
    if experiment.x != AXIS:
        return []
    there = published_rows(experiment.published)
    found = (_chart(experiment, place, cells, there, drawn, quick)
             for place, cells in groups(experiment))
    return [chart for chart in found if chart]


def efficiencies(experiment: Experiment, cells: list[Cell], quick: bool) -> list[Row]:
    """For each server and number of CPUs the throughput divided by that many times that of one
    CPU."""
    floor = floor_of(experiment, "requests_per_s") or 0.0
    rows = []
    for cell in cells:
        count = cell.axes.get(AXIS)
        alone = next((values(one, "requests_per_s") for one in cells
                      if one.label == cell.label and one.axes.get(AXIS) == 1), [])
        rate = values(cell, "requests_per_s")
        if not isinstance(count, int) or not rate or not alone or min(alone) <= 0 or count < 1:
            continue
        found = statistics.ratio(rate, alone, quick)
        share = found.median / count
        rows.append({
            "label": cell.label, "cpus": count, "median": share, "low": found.low / count,
            "high": found.high / count, "band_low": share / (1 + floor),
            "band_high": share * (1 + floor), "text": percent(share), "there": "here"})
    return rows


def published_rows(published: Sequence[Published]) -> list[Row]:
    """The same from published figures, each relative to the one-CPU figure of the same machine
    type.

    The study names processors by model: E5310 figures are compared with one core of an E5310.
    """
    ones = [one for one in published
            if one.metric == "requests_per_s" and one.cell.get(AXIS) == 1]
    rows = []
    for figure in published:
        count = figure.cell.get(AXIS)
        if figure.metric != "requests_per_s" or not isinstance(count, int) or count < 1:
            continue
        alike = [one for one in ones if _model(one) & _model(figure)] or ones[:1]
        if not alike:
            continue
        share = figure.value / (count * alike[0].value)
        rows.append({"label": f"published, {figure.label}", "cpus": count, "median": share,
                     "text": percent(share), "there": figure.study})
    return rows


def _model(figure: Published) -> set[str]:
    """The words with a number in them, which name processors."""
    words = f"{figure.label} {figure.machine}".replace(",", " ").split()
    return {word for word in words if sum(letter.isdigit() for letter in word) >= 3}


def _chart(
    experiment: Experiment, place: str, cells: list[Cell], there: list[Row],
    drawn: dict[str, Look], quick: bool
) -> Chart | None:
    rows = efficiencies(experiment, cells, quick)
    if not rows:
        return None
    labels = list(dict.fromkeys(row["label"] for row in rows))
    most = max(row["cpus"] for row in [*rows, *there])
    alternative = f"Efficiency per core, {place or experiment.title}: " + "; ".join(
        f"{row['label']} {row['text']} on {row['cpus']} CPUs" for row in [*rows, *there])
    top = max(1.2, *(1.1 * row["high"] for row in rows))
    ticks = sorted({row["cpus"] for row in [*rows, *there]})
    x = {"field": "cpus", "type": "quantitative", "title": "CPUs",
         "scale": {"type": "log", "base": 2, "domain": [0.9, most * 1.1], "nice": False},
         "axis": {"values": ticks, "grid": False, "labelExpr": PLAIN}}
    y = {"type": "quantitative", "scale": {"domain": [0, top], "clamp": True}}
    colour = {"field": "label", "type": "nominal", "legend": None,
              "scale": series(labels, drawn, "color")}
    tip = [{"field": "label", "title": "server"}, {"field": "cpus", "title": "CPUs"},
           {"field": "text", "title": "efficiency"}]
    layers = [
        {"data": {"values": [{"y": 1.0}]}, "mark": {"type": "rule", "strokeDash": [2, 3]},
         "encoding": {"y": {**y, "field": "y", "title": "throughput per core, of one core's",
                            "axis": {"format": "~%", "tickCount": 5}}}},
        {"data": {"values": there},
         "mark": {"type": "point", "shape": "stroke", "size": 260, "strokeWidth": 2.5,
                  "filled": False, "color": "token:muted", "opacity": 1},
         "encoding": {"x": x, "y": {**y, "field": "median"}, "tooltip": tip}},
        {"data": {"values": rows}, "encoding": {"x": x, "color": colour}, "layer": [
            {"mark": {"type": "area", "opacity": 0.16},
             "encoding": {"y": {**y, "field": "band_low"}, "y2": {"field": "band_high"}}},
            {"mark": {"type": "rule", "strokeWidth": 1.5},
             "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
            {"mark": {"type": "line"},
             "encoding": {"y": {**y, "field": "median"},
                          "strokeDash": {"field": "label", "type": "nominal", "legend": None,
                                         "scale": series(labels, drawn, "strokeDash")}}},
            {"mark": {"type": "point", "opacity": 1},
             "encoding": {"y": {**y, "field": "median"}, "tooltip": tip,
                          "shape": {"field": "label", "type": "nominal", "legend": None,
                                    "scale": series(labels, drawn, "shape")}}}]},
    ]
    published = " Grey strokes: published." if there else ""
    caption = (f"100 %: as many times the throughput as CPUs.{published} {interval_words(quick)} "
               f"{floor_words(experiment, 'requests_per_s', cells)}{limit_words(cells)}")
    return Chart("cores", "Efficiency per core", place, caption, alternative,
                 spec(HEIGHT, alternative, layer=layers), key=tuple(labels), height=HEIGHT + 50)

"""All servers along the experiment's running axis: headline, throughput, latency."""

from __future__ import annotations

from typing import Any

from tamarack_lab.results import Cell, Experiment, Metric

from ..figures import groups
from ..metrics import MEANINGS
from ..theme import Look, series
from .bars import bar_chart
from .chart import (
    PLAIN, Chart, Row, Spec, axis, axis_title, floor_of, floor_words, interval_words, limit_words,
    point, spec, tooltip)

HEIGHT = 280
# From this ratio of the largest to the smallest place, the axis is logarithmic.
WIDE = 16


def curves(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """For each group a chart of the headline and one of throughput; bars if there is only one
    point."""
    metrics = dict.fromkeys((experiment.headline, "requests_per_s"))
    found = []
    for place, cells in groups(experiment):
        if len({cell.axes.get(experiment.x or "") for cell in cells}) == 1:
            single = bar_chart(experiment, place, cells, drawn, quick)
            found += [single] if single else []
            continue
        for metric in metrics:
            chart = curve(experiment, place, cells, metric, drawn, quick)
            if chart:
                found.append(chart)
    return found


def curve(
    experiment: Experiment, place: str, cells: list[Cell], metric: Metric,
    drawn: dict[str, Look], quick: bool
) -> Chart | None:
    """One metric of all servers along the axis; None if nothing was measured."""
    assert experiment.x is not None
    floor = floor_of(experiment, metric)
    rows = [row for cell in cells if (row := point(cell, metric, floor, quick))]
    if not rows:
        return None
    labels = list(dict.fromkeys(row["label"] for row in rows))
    title = f"{MEANINGS[metric].title} against {experiment.x}"
    alternative = told(experiment, place, metric, rows)
    caption = (f"{interval_words(quick)} {floor_words(experiment, metric, cells)}"
               f"{limit_words(cells)}")
    return Chart("curves-" + metric, title, place, caption, alternative,
                 drawing(rows, labels, experiment.x, metric, drawn, alternative),
                 key=tuple(labels), height=HEIGHT + 50)


def told(experiment: Experiment, place: str, metric: Metric, rows: list[Row]) -> str:
    """A description of the chart, for readers who can't see it."""
    labels = list(dict.fromkeys(row["label"] for row in rows))
    return (f"{MEANINGS[metric].title} against {experiment.x}, {place or experiment.title}: "
            f"{_ends(rows, labels, experiment.x or '')}.")


def drawing(
    rows: list[Row], labels: list[str], x: str, metric: Metric, drawn: dict[str, Look],
    alternative: str, legend: Spec | None = None
) -> Spec:
    """Lines with their shapes and dashes, the band of the noise floor around each."""
    colour = {"field": "label", "type": "nominal", "legend": legend, "title": None,
              "scale": series(labels, drawn, "color")}
    upright = {"type": "quantitative", "scale": {"zero": True}}
    return spec(
        HEIGHT, alternative, data={"values": rows},
        encoding={"x": across(rows, x), "color": colour},
        layer=[
            {"mark": {"type": "area", "opacity": 0.16, "line": False},
             "encoding": {"y": {**upright, "field": "band_low", "title": axis_title(metric),
                                "axis": axis(metric)},
                          "y2": {"field": "band_high"}}},
            {"mark": {"type": "rule", "strokeWidth": 1.5},
             "encoding": {"y": {**upright, "field": "low"}, "y2": {"field": "high"}}},
            {"mark": {"type": "line"},
             "encoding": {"y": {**upright, "field": "median"},
                          "strokeDash": {"field": "label", "type": "nominal", "legend": legend,
                                         "title": None,
                                         "scale": series(labels, drawn, "strokeDash")}}},
            {"mark": {"type": "point", "opacity": 1},
             "encoding": {"y": {**upright, "field": "median"},
                          "shape": {"field": "label", "type": "nominal", "legend": legend,
                                    "title": None, "scale": series(labels, drawn, "shape")},
                          "tooltip": tooltip(metric, x)}},
        ])


def across(rows: list[Row], x: str) -> Spec:
    """The running axis: logarithmic if it is wide, by name if it has names."""
    places = sorted({row[f"x_{x}"] for row in rows}, key=str)
    base: dict[str, Any] = {"field": f"x_{x}", "title": x}
    if any(isinstance(place, str) for place in places):
        return {**base, "type": "ordinal", "sort": None, "axis": {"labelAngle": 0}}
    numbers = sorted(float(place) for place in places)
    wide = numbers[0] > 0 and numbers[-1] / numbers[0] >= WIDE
    return {**base, "type": "quantitative",
            "scale": {"type": "log", "base": 2} if wide else {"zero": False, "padding": 12},
            "axis": {"values": numbers, "grid": False, "labelOverlap": True, "labelExpr": PLAIN}}


def _ends(rows: list[Row], labels: list[str], x: str) -> str:
    """First and last figure of each line, in words."""
    words = []
    for label in labels:
        line = [row for row in rows if row["label"] == label]
        first, last = line[0], line[-1]
        words.append(f"{label} {first['text']} at {first[f'x_{x}']}, "
                     f"{last['text']} at {last[f'x_{x}']}")
    return "; ".join(words)

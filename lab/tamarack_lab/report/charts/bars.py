"""One bar per server: the headline of every group of an experiment without a running axis."""

from __future__ import annotations

from tamarack_lab.results import Cell, Experiment, Metric

from ..figures import groups
from ..metrics import MEANINGS
from ..theme import Look, series
from .chart import (
    Chart, Row, Spec, axis, axis_title, floor_of, floor_words, interval_words, limit_words, listed,
    metric_for, point, spec, tooltip)

STEP = 30
# Room for the figure behind the longest bar.
ROOM = 1.5
# "webfs (one process)" takes two lines.
TWO_LINES = (
    r"length(datum.label) > 18 ? split(replace(datum.label, ' (', '\n('), '\n') : datum.label")


def bars(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """A chart for each group, fastest server first."""
    found = (bar_chart(experiment, place, cells, drawn, quick)
             for place, cells in groups(experiment))
    return [chart for chart in found if chart]


def bar_chart(
    experiment: Experiment, place: str, cells: list[Cell], drawn: dict[str, Look], quick: bool
) -> Chart | None:
    """The chart of one group; None where nothing was measured."""
    metric = metric_for(experiment, cells, quick)
    if metric is None:
        return None
    rows = ranked(experiment, cells, metric, quick)
    title = MEANINGS[metric].title
    alternative = told(experiment, place, metric, rows)
    caption = (f"{interval_words(quick)} {floor_words(experiment, metric, cells)}"
               f"{limit_words(cells)}")
    return Chart("bars", title, place, caption, alternative,
                 drawing(rows, metric, drawn, alternative), height=STEP * len(rows) + 50)


def told(experiment: Experiment, place: str, metric: Metric, rows: list[Row]) -> str:
    """A description of the chart, for readers who can't see it."""
    return f"{MEANINGS[metric].title}, {place or experiment.title}: {listed(rows)}."


def ranked(
    experiment: Experiment, cells: list[Cell], metric: Metric, quick: bool
) -> list[Row]:
    """A row for each cell that has the metric, the best first."""
    floor = floor_of(experiment, metric)
    rows = [row for cell in cells if (row := point(cell, metric, floor, quick))]
    return sorted(rows, key=lambda row: float(row["median"]),
                  reverse=MEANINGS[metric].more_is_better)


def drawing(
    rows: list[Row], metric: Metric, drawn: dict[str, Look], alternative: str,
    name: str = "label"
) -> Spec:
    """Bars from zero, the noise floor and the interval at their ends, the figure next to them."""
    labels = list(dict.fromkeys(row["label"] for row in rows))
    most = max(max(row["high"], row["band_high"]) for row in rows)
    scale = {"domain": [0, most * ROOM], "nice": False}
    across = {"type": "quantitative", "scale": scale}
    return spec(
        STEP * len(rows), alternative, data={"values": rows},
        encoding={"y": {"field": name, "type": "nominal", "title": None,
                        "sort": [row[name] for row in rows],
                        "axis": {"labelExpr": TWO_LINES, "labelLimit": 160, "labelFontSize": 12,
                                 "labelColor": "token:ink", "labelLineHeight": 13}},
                  "tooltip": tooltip(metric)},
        layer=[
            {"mark": {"type": "bar", "height": 14, "cornerRadiusEnd": 2},
             "encoding": {"x": {**across, "field": "median", "title": axis_title(metric),
                                "axis": axis(metric)},
                          "color": {"field": "label", "type": "nominal", "legend": None,
                                    "scale": series(labels, drawn, "color")}}},
            {"mark": {"type": "bar", "height": 22, "opacity": 0.4, "color": "token:band"},
             "encoding": {"x": {**across, "field": "band_low"}, "x2": {"field": "band_high"}}},
            {"mark": {"type": "rule", "strokeWidth": 2, "color": "token:ink"},
             "encoding": {"x": {**across, "field": "low"}, "x2": {"field": "high"}}},
            {"transform": [{"calculate": "max(datum.high, datum.band_high)", "as": "end"}],
             "mark": {"type": "text", "align": "left", "dx": 6, "color": "token:ink"},
             "encoding": {"x": {**across, "field": "end"}, "text": {"field": "text"}}},
        ])

"""Box plots: every fresh start of every cell, so that a median hides nothing."""

from __future__ import annotations

from statistics import median

from tamarack_lab.results import Cell, Experiment, Metric

from ..figures import floor_of, groups
from ..metrics import MEANINGS, values, written
from ..theme import Look, series
from .chart import Chart, Row, axis, axis_title, floor_words, limit_words, metric_for, spec

STEP = 24
# Quartiles of fewer starts would be the starts themselves.
FEWEST_FOR_BOX = 5


def spreads(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """A chart for each group, closed until it is opened."""
    found = (_chart(experiment, place, cells, drawn, quick)
             for place, cells in groups(experiment))
    return [chart for chart in found if chart]


def _chart(
    experiment: Experiment, place: str, cells: list[Cell], drawn: dict[str, Look], quick: bool
) -> Chart | None:
    metric = metric_for(experiment, cells, quick)
    if metric is None:
        return None
    floor = floor_of(experiment, metric) or 0.0
    rows = [row for cell in cells for row in _rows(cell, experiment.x, metric)]
    bands = [_band(cell, experiment.x, metric, floor) for cell in cells if values(cell, metric)]
    names = list(dict.fromkeys(row["name"] for row in rows))
    labels = list(dict.fromkeys(row["label"] for row in rows))
    alternative = (f"Every start, {MEANINGS[metric].title}, {place or experiment.title}: "
                   + "; ".join(f"{band['name']} {band['text']}" for band in bands))
    x = {"type": "quantitative", "scale": {"zero": False, "padding": 10}}
    colour = {"field": "label", "type": "nominal", "legend": None,
              "scale": series(labels, drawn, "color")}
    boxed = max(sum(row["name"] == name for row in rows) for name in names) >= FEWEST_FOR_BOX
    layers = [
        {"data": {"values": bands},
         "mark": {"type": "bar", "height": 18, "color": "token:band", "opacity": 0.3},
         "encoding": {"x": {**x, "field": "band_low", "title": axis_title(metric),
                            "axis": axis(metric)}, "x2": {"field": "band_high"}}},
        *([{"mark": {"type": "boxplot", "size": 12, "extent": "min-max", "opacity": 0.75,
                     "median": {"color": "token:ink"}},
            "encoding": {"x": {**x, "field": "value"}, "color": colour}}] if boxed else []),
        {"mark": {"type": "point", "size": 22, "opacity": 0.9, "filled": not boxed},
         "encoding": {"x": {**x, "field": "value"}, "color": colour,
                      "tooltip": [{"field": "name", "title": "cell"},
                                  {"field": "start", "title": "start"},
                                  {"field": "text", "title": MEANINGS[metric].title}]}},
    ]
    drawing = spec(
        STEP * len(names), alternative, data={"values": rows}, layer=layers,
        encoding={"y": {"field": "name", "type": "nominal", "sort": names, "title": None,
                        "axis": {"labelLimit": 210, "labelColor": "token:ink"}}})
    what = ("Box: quartiles; its line: the median; whiskers: least and most; each start a ring."
            if boxed else "Each start a dot.")
    return Chart("spread", f"Every start: {MEANINGS[metric].title}", place,
                 f"{what} {floor_words(experiment, metric, cells)}{limit_words(cells)}",
                 alternative, drawing, folded=True, height=STEP * len(names) + 50)


def _name(cell: Cell, x: str | None) -> str:
    return f"{cell.label} · {cell.axes[x]}" if x in cell.axes else cell.label


def _rows(cell: Cell, x: str | None, metric: Metric) -> list[Row]:
    return [{"name": _name(cell, x), "label": cell.label, "value": value, "start": at + 1,
             "text": written(value, metric)} for at, value in enumerate(values(cell, metric))]


def _band(cell: Cell, x: str | None, metric: Metric, floor: float) -> Row:
    middle = median(values(cell, metric))
    return {"name": _name(cell, x), "band_low": middle / (1 + floor),
            "band_high": middle * (1 + floor), "text": written(middle, metric)}

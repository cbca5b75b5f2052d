"""Pictures for a README: a group of an experiment as SVG, light and dark, without a script."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import vl_convert

from tamarack_lab.results import Cell, Experiment, Results

from .charts.bars import drawing as bars_of
from .charts.bars import ranked
from .charts.bars import told as bars_told
from .charts.chart import floor_of, floor_words, limit_words, metric_for, point
from .charts.curves import drawing as curves_of
from .charts.curves import told as curves_told
from .figures import groups
from .metrics import MEANINGS
from .page import SCHEMES
from .theme import config, looks, painted

WIDTH = 720
# Letters of a subtitle that have room in it.
WRAP = 108
# Labels are measured without the reader's font: room for a wider one.
MARGIN = {"left": 28, "top": 12, "right": 16, "bottom": 12}
# Those of a legend, too.
WIDE = {**MARGIN, "right": 36}


def pictures(results: Results, folder: Path) -> list[Path]:
    """Writes NAME-light.svg and NAME-dark.svg for each experiment; the files written."""
    written = []
    for experiment in results.experiments:
        spec = picture(results, experiment)
        if spec is None:
            continue
        for scheme in SCHEMES:
            file = folder / f"{experiment.name}-{scheme}.svg"
            file.write_text(vl_convert.vegalite_to_svg(painted(spec, scheme)) + "\n")
            written.append(file)
    return written


def picture(results: Results, experiment: Experiment, place: str | None = None) -> Any:
    """The specification of one group (the first with figures, or the named one)."""
    for where, cells in groups(experiment):
        if place not in (None, where):
            continue
        drawn = _group(results, experiment, where, cells)
        if drawn is not None:
            return drawn
    return None


def _group(results: Results, experiment: Experiment, where: str, cells: list[Cell]) -> Any:
    metric = metric_for(experiment, cells, results.quick)
    if metric is None:
        return None
    look = looks(results)
    if experiment.x is None:
        rows = ranked(experiment, cells, metric, results.quick)
        spec = bars_of(rows, metric, look, bars_told(experiment, where, metric, rows))
    else:
        floor = floor_of(experiment, metric)
        rows = [row for cell in cells
                if (row := point(cell, metric, floor, results.quick)) is not None]
        labels = list(dict.fromkeys(row["label"] for row in rows))
        legend = {"orient": "right", "symbolSize": 90, "symbolOpacity": 1, "labelLimit": 230}
        words = curves_told(experiment, where, metric, rows)
        spec = curves_of(rows, labels, experiment.x, metric, look, words, legend)
    cut = "" if results.finished else ", unfinished run"
    along = f" against {experiment.x}" if experiment.x else ""
    title = {"text": f"{MEANINGS[metric].title}{along}" + (f": {where}" if where else ""),
             "subtitle": [f"{results.environment.cpu}, {results.started:%Y-%m-%d}. "
                          f"{'Range' if results.quick else '95 % interval'} of "
                          f"{results.starts} starts{cut}.", *textwrap.wrap(
                              floor_words(experiment, metric, cells) + limit_words(cells), WRAP)],
             "offset": 14}
    return {**spec, "width": WIDTH if experiment.x is None else WIDTH - 210, "title": title,
            "autosize": {"type": "pad"}, "padding": MARGIN if experiment.x is None else WIDE,
            "config": config()}

"""Affinity side by side: each server off, pinned by hand and by itself, metric by metric."""

from __future__ import annotations

from tamarack_lab.results import Experiment, Metric

from ..metrics import MEANINGS
from ..theme import Look
from .bars import STEP, drawing
from .chart import Chart, Row, floor_of, floor_words, interval_words, limit_words, listed, point

AXIS = "affinity"
METRICS: tuple[Metric, ...] = (
    "requests_per_s", "cpu_us_per_request", "migrations_per_100k", "context_switches_per_request")


def affinity(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """A chart per metric for an experiment about affinity; its cells in the file's order."""
    if AXIS not in experiment.axes:
        return []
    found = []
    for metric in METRICS:
        rows = _rows(experiment, metric, quick)
        if not rows or not any(row["median"] for row in rows):
            continue
        title = MEANINGS[metric].title
        alternative = f"{title} by affinity: " + listed(
            [{**row, "label": row["name"]} for row in rows])
        found.append(Chart(
            "affinity", title, "", f"{interval_words(quick)} {floor_words(experiment, metric)}"
            f"{limit_words(experiment.cells)}",
            alternative, drawing(rows, metric, drawn, alternative, "name"),
            height=STEP * len(rows) + 50))
    return found


def _rows(experiment: Experiment, metric: Metric, quick: bool) -> list[Row]:
    floor = floor_of(experiment, metric)
    return [{**row, "name": f"{cell.label}, {cell.axes[AXIS]}"} for cell in experiment.cells
            if (row := point(cell, metric, floor, quick))]

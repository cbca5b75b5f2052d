"""cells.csv and samples.csv: what other programs go on with."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from tamarack_lab import reading
from tamarack_lab.results import Experiment, Metric, Results, Value

from .figures import floor_of, interval_of
from .metrics import MEANINGS

CELL_HEADS = ["experiment", "key", "server", "label", "tool", "status", "reason", "axis", "metric",
              "median", "low", "high", "interval", "starts", "noise_floor"]


def write(results: Results, folder: Path) -> list[Path]:
    """Writes both files; the files written. Nothing marked has a figure in cells.csv."""
    cells, starts = folder / "cells.csv", folder / "samples.csv"
    _write(cells, CELL_HEADS, (row for one in results.experiments
                               for row in _cells(one, results.quick)))
    metrics: list[Metric] = list(MEANINGS)
    heads = ["experiment", "key", "server", "status", "start", "order", "at", "duration_s",
             "requests", "errors", "wrong_bytes", "complaint", *metrics, "server_busy",
             "load_busy", "rss_bytes"]
    _write(starts, heads, (row for one in results.experiments for row in _samples(one, metrics)))
    return [cells, starts]


def _cells(one: Experiment, quick: bool) -> Iterable[list[Value | None]]:
    """One row per cell and metric; a marked cell has one row, without a metric."""
    for cell in one.cells:
        axes = " ".join(f"{name}={value}" for name, value in cell.axes.items())
        start: list[Value | None] = [one.name, cell.key, cell.server, cell.label, cell.tool,
                                     cell.status, cell.reason, axes]
        found = [(metric, taken) for metric in MEANINGS
                 if (taken := interval_of(cell, metric, quick))]
        if not found:
            yield [*start, *[None] * 7]
        for metric, taken in found:
            yield [*start, metric, taken.median, taken.low, taken.high, taken.kind, taken.count,
                   floor_of(one, metric)]


def _samples(one: Experiment, metrics: Sequence[Metric]) -> Iterable[list[Value | None]]:
    for cell in one.cells:
        for sample in cell.samples:
            taken = [reading.value(sample, metric) for metric in metrics]
            yield [one.name, cell.key, cell.server, cell.status, sample.start, sample.order,
                   sample.at.isoformat(), sample.duration_s, sample.requests, sample.errors,
                   sample.wrong_bytes, sample.complaint, *taken, sample.server_busy,
                   sample.load_busy, sample.rss_bytes]


def _write(file: Path, heads: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(["" if value is None else _short(value) for value in row] for row in rows)


def _short(value: Value) -> Value:
    """Six digits are more than any measurement here has."""
    return float(f"{value:.6g}") if isinstance(value, float) else value

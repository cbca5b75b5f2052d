"""Puts a committed result into the README: its table and pictures come from lab/results alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tamarack_lab.results import Cell, Experiment, Metric, Results

from .charts.chart import metric_for
from .figures import floor_of, groups, interval_of
from .metrics import MEANINGS, number, percent
from .svg import pictures

BEGIN, END = "<!-- lab:begin -->", "<!-- lab:end -->"
TABLE = "peers"
PICTURES = ("peers", "p3-concurrency")


class PublishError(Exception):
    """What keeps a result from being published, in one line."""


def publish(results: Results, folder: Path, readme: Path) -> list[Path]:
    """Writes the pictures beside the result and the section of the README; the files written."""
    files = pictures(results, folder)
    text = readme.read_text(encoding="utf-8")
    found = re.search(f"{re.escape(BEGIN)}.*?{re.escape(END)}", text, re.DOTALL)
    if found is None:
        raise PublishError(f"{readme}: no {BEGIN} … {END}")
    home = os.path.relpath(folder, readme.parent)
    content = f"{BEGIN}\n{section(results, home)}\n{END}"
    readme.write_text(text[:found.start()] + content + text[found.end():], encoding="utf-8")
    return [*files, readme]


def section(results: Results, home: str) -> str:
    """The Markdown between the markers; `home` is the result's folder, seen from the README."""
    named = {one.name: one for one in results.experiments}
    parts = [_picture(named[name], home) for name in PICTURES if name in named]
    if TABLE in named:
        parts.append(table(named[TABLE], results.quick))
    parts.append(_source(results, home, named.get(TABLE)))
    return "\n\n".join(parts)


def table(experiment: Experiment, quick: bool) -> str:
    """A row for each server, a column for each place: medians of what the place is judged by."""
    columns: list[tuple[str, list[Cell], Metric]] = [
        (place, cells, metric) for place, cells in groups(experiment)
        if (metric := metric_for(experiment, cells, quick)) is not None]
    labels = list(dict.fromkeys(cell.label for cell in experiment.cells))
    heads = [f"{place}, {MEANINGS[metric].unit}" for place, _, metric in columns]
    lines = [f"| {' | '.join(['', *heads])} |", "|---" + "|--:" * len(columns) + "|"]
    for label in labels:
        fields = [_figure(label, cells, metric, quick) for _, cells, metric in columns]
        if any(field not in ("–", "✗") for field in fields):
            lines.append(f"| {' | '.join([label, *fields])} |")
    return "\n".join(lines)


def _figure(label: str, cells: list[Cell], metric: Metric, quick: bool) -> str:
    cell = next((cell for cell in cells if cell.label == label), None)
    if cell is None:
        return "–"
    found = interval_of(cell, metric, quick)
    return number(found.median) if found else "✗"


def _picture(experiment: Experiment, home: str) -> str:
    light, dark = (f"{home}/{experiment.name}-{scheme}.svg" for scheme in ("light", "dark"))
    return (f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img alt="{experiment.title}" src="{light}"></picture>')


def _source(results: Results, home: str, peers: Experiment | None) -> str:
    machine = results.environment
    floor = floor_of(peers, peers.headline) if peers else None
    noise = f"; noise floor ±{percent(floor)}" if floor is not None else ""
    kind = "quick run, " if results.quick else ""
    unit = ("Times are CPU time per request. "
            if peers and peers.headline == "cpu_us_per_request" else "")
    return (f"{unit}{results.started:%Y-%m-%d}, {machine.cpu}, {machine.cpus} CPUs; {kind}medians "
            f"of {results.starts} fresh starts{noise}. ✗: marked, with its reason in the report; "
            f"–: not measured. [Report]({home}/report.html), "
            f"[raw results]({home}/results.json).")

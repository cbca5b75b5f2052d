"""Puts a committed result into the pages of the project: figures come from lab/results alone.

docs/measuring.md has the one table of figures, with everything that was measured, and the README
quotes some of it: both are written together, from one result. The table of targets may come from
another one: a run of the target rows alone leaves the figures as they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from tamarack_lab.results import Cell, Experiment, Metric, Results

from .charts.chart import metric_for
from .figures import floor_from, floor_owners, groups, interval_of, load_was_limit
from .metrics import MEANINGS, lower, percent, written
from .svg import picture, pictures
from .targets import judge

# Marks in the README: one picture for its first screen, and the section.
PICTURE, SECTION = "lab-picture", "lab"
# Marks in docs/measuring.md.
FIGURES, TARGETS = "lab-figures", "lab-targets"
TABLE = "peers"
# Experiments whose figures are in the one table.
TABLES = ("peers", "site", "loops")
# The first one present goes to the first screen.
PICTURES = ("peers", "p3-concurrency")
# Servers that are bounds: no choice for a reader of the README.
BOUNDS = ("floor", "floor-threads", "floor-processes")


class PublishError(Exception):
    """Why a result can't be published, in one line."""


def publish(results: Results, folder: Path, readme: Path, measuring: Path) -> list[Path]:
    """Writes the parts of the README and of docs/measuring.md for which the result has figures,
    and the pictures next to the result; returns the files written."""
    if results.finished is None:
        raise PublishError(f"{folder}: the run is unfinished: lab/run {' '.join(results.command)} "
                           "goes on with it")
    parts = []
    if compares := any(one.name == TABLE for one in results.experiments):
        parts += [(readme, PICTURE, _picture_of(results, _home(folder, readme), 0)),
                  (readme, SECTION, section(results, _home(folder, readme))),
                  (measuring, FIGURES, figures(results, _home(folder, measuring)))]
    if verdicts := targets(results, _home(folder, measuring)):
        parts.append((measuring, TARGETS, verdicts))
    if not parts:
        raise PublishError(f"{folder}: neither {TABLE} nor a judged target is in this result")
    texts: dict[Path, str] = {}
    for page, name, content in parts:
        text = texts.get(page) or page.read_text(encoding="utf-8")
        texts[page] = _replaced(text, name, content, page)
    files = pictures(results, folder) if compares else []
    for page, text in texts.items():
        page.write_text(text, encoding="utf-8")
    return [*files, *texts]


def _home(folder: Path, page: Path) -> str:
    """The result's folder, relative to a page."""
    return os.path.relpath(folder, page.parent)


def _replaced(text: str, name: str, content: str, page: Path) -> str:
    begin, end = (f"<!-- {name}:{side} -->" for side in ("begin", "end"))
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", text, re.DOTALL)
    if found is None:
        raise PublishError(f"{page}: no {begin} … {end}")
    return f"{text[:found.start()]}{begin}\n{content}\n{end}{text[found.end():]}"


def figures(results: Results, home: str) -> str:
    """The Markdown of all tables."""
    named = {one.name: one for one in results.experiments}
    parts = []
    for experiment in (named[name] for name in TABLES if name in named):
        parts += [f"**{experiment.title}**", table(experiment, results.quick, turns=True),
                  _reading(results, experiment, _columns(experiment, results.quick))]
    return "\n\n".join(filter(None, [*parts, _source(results, home)]))


def targets(results: Results, home: str) -> str:
    """The Markdown of the targets that were judged, a row each; empty if none was."""
    verdicts = [one for experiment in results.experiments for one in judge(experiment)]
    rows = [f"| {one.what} | {one.limit} | {one.shown} | {one.state} |"
            for one in verdicts if one.measured]
    if not rows:
        return ""
    head = ["| target | limit | measured | |", "|---|--:|--:|---|"]
    return "\n".join([*head, *rows, "", _source(results, home)])


def section(results: Results, home: str) -> str:
    """The Markdown of the section; `home` is the result's folder, seen from the README."""
    parts = []
    for experiment in results.experiments:
        if experiment.name == TABLE:
            shown = _quoted(experiment)
            parts += [table(shown, results.quick),
                      _reading(results, experiment, _columns(shown, results.quick))]
    return "\n\n".join(filter(None, [*parts, _picture_of(results, home, 1),
                                     _source(results, home)]))


def _picture_of(results: Results, home: str, position: int) -> str:
    """Of those that a README shows the first, the second."""
    named = {one.name: one for one in results.experiments}
    there = [named[name] for name in PICTURES if name in named][position:]
    return _picture(results, there[0], home) if there else ""


# A place, its cells and what they are judged by.
Column = tuple[str, list[Cell], Metric]


def _quoted(experiment: Experiment) -> Experiment:
    """What the README shows of it: the places that the file names, in the file's order."""
    cells = [cell for cell in experiment.cells if cell.server not in BOUNDS and (
        not experiment.quoted or cell.axes.get("scenario") in experiment.quoted)]
    order = {scenario: at for at, scenario in enumerate(experiment.quoted)}
    cells.sort(key=lambda cell: order.get(str(cell.axes.get("scenario")), 0))
    return experiment.model_copy(update={"cells": cells})


def table(experiment: Experiment, quick: bool, turns: bool = False) -> str:
    """Medians of what each place is judged by: a row for each server and a column for each place.

    One that `turns` has it the other way round where the places are more.
    """
    columns = _columns(experiment, quick)
    labels = list(dict.fromkeys(cell.label for cell in experiment.cells))
    heads = [f"{place}, {MEANINGS[metric].unit}" for place, _, metric in columns]
    rows = [[_figure(label, cells, metric, quick) for _, cells, metric in columns]
            for label in labels]
    kept = [(label, row) for label, row in zip(labels, rows, strict=True)
            if any(field not in ("–", "✗") for field in row)]
    if turns and len(columns) > len(kept):
        turned = zip(*(row for _, row in kept), strict=True)
        return _lines([label for label, _ in kept], zip(heads, turned, strict=True))
    return _lines(heads, kept)


def _lines(heads: list[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    lines = [f"| {' | '.join(['', *heads])} |", "|---" + "|--:" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join([name, *fields])} |" for name, fields in rows)])


def _columns(experiment: Experiment, quick: bool) -> list[Column]:
    """The places, and the memory that the first of them takes."""
    columns: list[Column] = [
        (place, cells, metric) for place, cells in groups(experiment)
        if (metric := metric_for(experiment, cells, quick)) is not None]
    memory: list[Column] = [
        (f"memory under {place}", cells, "pss_bytes") for place, cells, _ in columns
        if any(interval_of(cell, "pss_bytes", quick) for cell in cells)]
    return [*columns, *memory[:1]]


def _figure(label: str, cells: list[Cell], metric: Metric, quick: bool) -> str:
    cell = next((cell for cell in cells if cell.label == label), None)
    if cell is None:
        return "–"
    found = interval_of(cell, metric, quick)
    if found is None:
        return "✗"
    return written(found.median, metric).removesuffix(f" {MEANINGS[metric].unit}")


def _picture(results: Results, experiment: Experiment, home: str) -> str:
    light, dark = (f"{home}/{experiment.name}-{scheme}.svg" for scheme in ("light", "dark"))
    drawn = picture(results, experiment)
    words = drawn["description"] if drawn else experiment.title
    return (f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img alt="{escape(words)}" src="{light}"></picture>')


def _reading(results: Results, experiment: Experiment, columns: list[Column]) -> str:
    """How the table is to be read: which way is better, under which load, beside which noise."""
    return " ".join(filter(None, (_ways([metric for _, _, metric in columns]), _loads(
        results, columns), _noise(experiment), _limited(experiment))))


def _ways(metrics: list[Metric]) -> str:
    meanings = [MEANINGS[one] for one in metrics]
    more = list(dict.fromkeys(one.unit for one in meanings if one.more_is_better))
    unit = "µs are CPU time per request. " if "cpu_us_per_request" in metrics else ""
    if not more:
        return f"{unit}Less is better in every column."
    if all(one.more_is_better for one in meanings):
        return f"{unit}More is better in every column."
    return f"{unit}More is better in {', '.join(more)}, less in the other columns."


def _loads(results: Results, columns: list[Column]) -> str:
    """The load of each column, said once for those that share it, and where it came from."""
    places: dict[str, list[str]] = {}
    for place, cells, metric in columns:
        load = next((cell.load for cell in cells if cell.load), "")
        if load and metric != "pss_bytes":
            places.setdefault(load, []).append(place)
    each = [load if len(places) == 1 else f"{', '.join(some)}: {load}"
            for load, some in places.items()]
    return f"Load {results.load.text}{'; ' if each else ''}{'; '.join(each)}."


def _noise(experiment: Experiment) -> str:
    floor = floor_from(experiment, experiment.headline)
    if floor is None:
        return "No A/A run tells the noise floor."
    return (f"Noise floor of {lower(MEANINGS[floor.metric].title)} ±{percent(floor.value)}, by "
            f"the A/A run of {floor_owners(experiment, floor)}.")


def _limited(experiment: Experiment) -> str:
    """Throughput is the load tool's where its CPUs were the limit; CPU time is not."""
    if experiment.headline != "requests_per_s":
        return ""
    limited = [f"{cell.label}, {place}" for place, cells in groups(experiment) for cell in cells
               if load_was_limit(cell)]
    return f"The load tool was the limit of {'; '.join(limited)}." if limited else ""


def _source(results: Results, home: str) -> str:
    """Machine, date, how often and how long, and where everything else stands."""
    machine = results.environment
    kind = "quick run, " if results.quick else ""
    named = [one for one in results.experiments if one.name in (*TABLES, *PICTURES)] \
        or results.experiments
    lengths = sorted({one.seconds or results.seconds for one in named} or {results.seconds})
    seconds = " or ".join(f"{length:g}" for length in lengths)
    return (f"{results.started:%Y-%m-%d}, {machine.cpu}, {machine.cpus} CPUs; {kind}medians of "
            f"{results.starts} fresh starts of {seconds} s. ✗: marked, with its reason in the "
            f"report; –: not measured. [Report]({home}/report.html), "
            f"[raw results]({home}/results.json).")

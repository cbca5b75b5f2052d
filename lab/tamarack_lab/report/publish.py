"""Puts a committed result into the README: its table and pictures come from lab/results alone."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path

from tamarack_lab.results import Cell, Experiment, Metric, Results

from .charts.chart import metric_for
from .figures import floor_from, floor_owners, groups, interval_of, load_was_limit
from .metrics import MEANINGS, lower, percent, written
from .svg import picture, pictures

# Marks in the README: one picture for its first screen, and the section.
PICTURE, SECTION = "lab-picture", "lab"
TABLE = "peers"
# The first that there is goes to the first screen.
PICTURES = ("peers", "p3-concurrency")


class PublishError(Exception):
    """What keeps a result from being published, in one line."""


def publish(results: Results, folder: Path, readme: Path) -> list[Path]:
    """Writes the pictures beside the result and both parts of the README; the files written."""
    if results.finished is None:
        raise PublishError(f"{folder}: the run is unfinished: lab/run {' '.join(results.command)} "
                           "goes on with it")
    home = os.path.relpath(folder, readme.parent)
    text = readme.read_text(encoding="utf-8")
    for name, content in (
            (PICTURE, _picture_of(results, home, 0)), (SECTION, section(results, home))):
        text = _replaced(text, name, content, readme)
    files = pictures(results, folder)
    readme.write_text(text, encoding="utf-8")
    return [*files, readme]


def _replaced(text: str, name: str, content: str, readme: Path) -> str:
    begin, end = (f"<!-- {name}:{side} -->" for side in ("begin", "end"))
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", text, re.DOTALL)
    if found is None:
        raise PublishError(f"{readme}: no {begin} … {end}")
    return f"{text[:found.start()]}{begin}\n{content}\n{end}{text[found.end():]}"


def section(results: Results, home: str) -> str:
    """The Markdown of the section; `home` is the result's folder, seen from the README."""
    parts = []
    for experiment in results.experiments:
        if experiment.name == TABLE:
            parts += [table(experiment, results.quick), _reading(results, experiment)]
    return "\n\n".join(filter(None, [*parts, _picture_of(results, home, 1),
                                     _source(results, home)]))


def _picture_of(results: Results, home: str, position: int) -> str:
    """Of those that a README shows the first, the second."""
    named = {one.name: one for one in results.experiments}
    there = [named[name] for name in PICTURES if name in named][position:]
    return _picture(results, there[0], home) if there else ""


# A place, its cells and what they are judged by.
Column = tuple[str, list[Cell], Metric]


def table(experiment: Experiment, quick: bool) -> str:
    """A row for each server, a column for each place: medians of what the place is judged by."""
    columns = _columns(experiment, quick)
    labels = list(dict.fromkeys(cell.label for cell in experiment.cells))
    heads = [f"{place}, {MEANINGS[metric].unit}" for place, _, metric in columns]
    lines = [f"| {' | '.join(['', *heads])} |", "|---" + "|--:" * len(columns) + "|"]
    for label in labels:
        fields = [_figure(label, cells, metric, quick) for _, cells, metric in columns]
        if any(field not in ("–", "✗") for field in fields):
            lines.append(f"| {' | '.join([label, *fields])} |")
    return "\n".join(lines)


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


def _reading(results: Results, experiment: Experiment) -> str:
    """How the table is to be read: which way is better, under which load, beside which noise."""
    columns = _columns(experiment, results.quick)
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
    named = [one for one in results.experiments if one.name in (TABLE, *PICTURES)]
    lengths = sorted({one.seconds or results.seconds for one in named} or {results.seconds})
    seconds = " or ".join(f"{length:g}" for length in lengths)
    return (f"{results.started:%Y-%m-%d}, {machine.cpu}, {machine.cpus} CPUs; {kind}medians of "
            f"{results.starts} fresh starts of {seconds} s. ✗: marked, with its reason in the "
            f"report; –: not measured. [Report]({home}/report.html), "
            f"[raw results]({home}/results.json).")

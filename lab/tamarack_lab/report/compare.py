"""What changed between two runs beyond the noise.

Each cell present in both runs is compared by its experiment's headline. A change counts if it is
larger than the noise floor of both runs' A/A cells and than the scatter of equal cells between
the runs, and if its Mann–Whitney test is significant after Holm's correction over all questions.
In addition each server is tested over all its cells at once, because three starts of one cell
can't be significant. A change common to all families of servers is due to the machine (another
clock, another neighbour) and is taken out first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from tamarack_lab import statistics
from tamarack_lab.results import Cell, Experiment, Metric, Results
from tamarack_lab.statistics import Interval

from .charts.chart import metric_for
from .figures import floor_of, place_of
from .metrics import MEANINGS, values

Verdict = Literal["worse", "better", "same"]

# Of a hundred comparisons of equals, one may report a change.
ALPHA = 0.01
# The machine's own drift shows only if at least this many families of servers agree.
FAMILIES_FOR_DRIFT = 3
# Fewer cells don't show how far they scatter.
CELLS_FOR_SCATTER = 8
# This many standard deviations of that scatter still count as noise.
DEVIATIONS = 3.0
# A machine's clock and neighbours affect these; they don't affect memory.
OF_THE_MACHINE: tuple[Metric, ...] = ("cpu_us_per_request", "requests_per_s")
POOLED = "all cells"


@dataclass(frozen=True)
class Change:
    """One question: a cell, or all cells of a server."""

    experiment: str
    key: str
    server: str
    label: str
    place: str
    metric: Metric
    # Medians; None for a server as a whole.
    before: float | None
    after: float | None
    # After over before, the machine's drift taken out.
    ratio: Interval
    floor: float
    p: float
    # After Holm's correction over all questions.
    corrected: float = 1.0
    verdict: Verdict = "same"


@dataclass(frozen=True)
class Mark:
    """A cell that has a figure in only one of the runs."""

    experiment: str
    label: str
    place: str
    # "broken": marked in the later run; "mended": with a figure in the later run.
    what: Literal["broken", "mended"]
    reason: str


@dataclass(frozen=True)
class Comparison:
    """The whole result of `--compare`."""

    before: Results
    after: Results
    changes: list[Change]
    marks: list[Mark]
    # The change common to all families, as a ratio; empty if there are too few to know.
    drift: dict[Metric, float]
    # How far equal cells lie apart between these runs, relative: smaller changes don't count.
    scatter: dict[Metric, float]
    # Cells that only one of the runs has.
    unmatched: int
    # The relative standard deviation of one start, and the fewest starts of any cell.
    spread: float
    starts: int
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything changed beyond the noise, or gained or lost its figure."""
        return bool(self.marks) or any(one.verdict != "same" for one in self.changes)

    @property
    def worse(self) -> bool:
        """Whether something got worse; the exit status."""
        return (any(one.verdict == "worse" for one in self.changes)
                or any(mark.what == "broken" for mark in self.marks))


@dataclass(frozen=True)
class _Pair:
    experiment: str
    cell: Cell
    metric: Metric
    first: list[float]
    second: list[float]
    floor: float

    @property
    def family(self) -> str:
        return self.cell.server.split("-")[0]

    @property
    def log_ratio(self) -> float:
        return math.log(median(self.second) / median(self.first))


def compare(before: Results, after: Results) -> Comparison:
    """Compares two runs; the first is the baseline."""
    pairs, marks, unmatched = _matched(before, after)
    drift = _drift(pairs)
    quick = before.quick or after.quick
    scatter = _scatter(pairs)
    level = [replace(pair, second=[value / drift.get(pair.metric, 1.0) for value in pair.second],
                     floor=max(pair.floor, scatter.get(pair.metric, 0.0)))
             for pair in pairs]
    changes = [_of_cell(pair, fixed, quick) for pair, fixed in zip(pairs, level, strict=True)]
    changes += _of_servers(level)
    judged = _judged(changes)
    groups = [group for pair in pairs for group in (pair.first, pair.second)]
    return Comparison(
        before, after, judged, marks, drift, scatter, unmatched,
        spread=statistics.relative_spread(groups),
        starts=min((len(group) for group in groups), default=0),
        warnings=_warnings(before, after, pairs))


def _matched(before: Results, after: Results) -> tuple[list[_Pair], list[Mark], int]:
    pairs: list[_Pair] = []
    marks: list[Mark] = []
    unmatched = 0
    later = {one.name: one for one in after.experiments}
    for experiment in before.experiments:
        other = later.pop(experiment.name, None)
        theirs = {cell.key: cell for cell in other.cells} if other else {}
        for cell in experiment.cells:
            twin = theirs.pop(cell.key, None)
            if other is None or twin is None:
                unmatched += 1
            elif cell.status != twin.status:
                marks.append(_mark(experiment, cell, twin))
            elif pair := _pair(experiment, other, cell, twin):
                pairs.append(pair)
        unmatched += len(theirs)
    return pairs, marks, unmatched + sum(len(one.cells) for one in later.values())


def _mark(experiment: Experiment, cell: Cell, twin: Cell) -> Mark:
    broken = twin.status == "marked"
    return Mark(experiment.name, cell.label, place_of(cell), "broken" if broken else "mended",
                twin.reason if broken else cell.reason)


def _pair(experiment: Experiment, other: Experiment, cell: Cell, twin: Cell) -> _Pair | None:
    metric = metric_for(experiment, [cell], True)
    if metric is None:
        return None
    first, second = values(cell, metric), values(twin, metric)
    if not first or not second or min(first) <= 0 or min(second) <= 0:
        return None
    floor = max(floor_of(experiment, metric) or 0.0, floor_of(other, metric) or 0.0)
    return _Pair(experiment.name, twin, metric, first, second, floor)


def _drift(pairs: Sequence[_Pair]) -> dict[Metric, float]:
    """The median of the families' medians: a change in one family does not move it."""
    found: dict[Metric, float] = {}
    for metric in OF_THE_MACHINE:
        families: dict[str, list[float]] = {}
        for pair in pairs:
            if pair.metric == metric:
                families.setdefault(pair.family, []).append(pair.log_ratio)
        if len(families) >= FAMILIES_FOR_DRIFT:
            found[metric] = math.exp(median(median(ratios) for ratios in families.values()))
    return found


def _scatter(pairs: Sequence[_Pair]) -> dict[Metric, float]:
    """How far the cells of a family differ from their median, if most of them are equal.

    The A/A cells are measured minutes apart; two runs lie further apart than that, and differ by
    more than an A/A run can show.
    """
    found: dict[Metric, float] = {}
    for metric in dict.fromkeys(pair.metric for pair in pairs):
        families: dict[str, list[float]] = {}
        for pair in pairs:
            if pair.metric == metric:
                families.setdefault(pair.family, []).append(math.exp(pair.log_ratio))
        if sum(len(ratios) - 1 for ratios in families.values()) >= CELLS_FOR_SCATTER:
            spread = statistics.relative_spread(list(families.values()))
            found[metric] = math.expm1(DEVIATIONS * spread)
    return found


def _of_cell(pair: _Pair, fixed: _Pair, quick: bool) -> Change:
    return Change(
        pair.experiment, pair.cell.key, pair.cell.server, pair.cell.label, place_of(pair.cell),
        pair.metric, median(pair.first), median(pair.second),
        statistics.ratio(fixed.second, fixed.first, quick), fixed.floor,
        statistics.p_value(fixed.first, fixed.second))


def _of_servers(pairs: Sequence[_Pair]) -> list[Change]:
    """A change for each server and metric with more than one cell."""
    servers: dict[tuple[str, Metric], list[_Pair]] = {}
    for pair in pairs:
        servers.setdefault((pair.cell.label, pair.metric), []).append(pair)
    found = []
    for (label, metric), own in servers.items():
        if len(own) < 2:
            continue
        ratios = [math.exp(pair.log_ratio) for pair in own]
        strata = [(pair.first, pair.second) for pair in own]
        found.append(Change(
            POOLED, f"server={own[0].cell.server}", own[0].cell.server, label,
            f"{len(own)} cells", metric, None, None,
            Interval(statistics.geometric_mean(ratios), min(ratios), max(ratios), "range",
                     len(own)),
            median(pair.floor for pair in own), statistics.pooled_p_value(strata)))
    return found


def _judged(changes: Sequence[Change]) -> list[Change]:
    corrected = statistics.holm([change.p for change in changes])
    return [replace(change, corrected=p, verdict=_verdict(change, p))
            for change, p in zip(changes, corrected, strict=True)]


def _verdict(change: Change, corrected: float) -> Verdict:
    size = abs(math.log(change.ratio.median))
    if corrected >= ALPHA or size <= math.log1p(change.floor):
        return "same"
    better = (change.ratio.median > 1) == MEANINGS[change.metric].more_is_better
    return "better" if better else "worse"


def _warnings(before: Results, after: Results, pairs: Sequence[_Pair]) -> list[str]:
    lines = []
    if before.environment.cpu != after.environment.cpu:
        lines.append(f"Different machines: {before.environment.cpu}, then "
                     f"{after.environment.cpu}. Ratios between servers may still be compared.")
    if before.load.kind != after.load.kind:
        lines.append(f"The load came another way: {before.load.kind}, then {after.load.kind}.")
    if (before.quick, before.seconds) != (after.quick, after.seconds):
        lines.append(f"Cells of {before.seconds:g} s, then of {after.seconds:g} s.")
    if any(pair.floor == 0 for pair in pairs):
        lines.append("Some cells have no A/A run: only the test judges them.")
    if not pairs:
        lines.append("No cell has figures in both runs: nothing can be compared.")
    return lines

"""Whether a run reaches the targets: the median over its rounds decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table

from tamarack_lab import reading, statistics
from tamarack_lab.results import Cell, Experiment, Metric, Results, Target
from tamarack_lab.statistics import Interval

from .figures import matching, place_of
from .markup import NOTHING, figure, table, text
from .metrics import MEANINGS, lower, percent, written

# Fewer rounds judge nothing.
ROUNDS_MIN = 10
State = Literal["met", "MISSED", "open"]


@dataclass(frozen=True)
class Verdict:
    """One target of one run."""

    experiment: str
    what: str
    limit: str
    # The median over the rounds with its interval; None where a side has no figure.
    measured: Interval | None
    shown: str
    state: State
    # Why it is open, or missed without a figure.
    why: str = ""


def judge(experiment: Experiment) -> list[Verdict]:
    """Every target whose cells are in the run."""
    found = []
    for target in experiment.targets:
        of = next(iter(matching(experiment, target.of)), None)
        to = next(iter(matching(experiment, target.to)), None) if target.to else None
        above = next(iter(matching(experiment, target.above)), None) if target.above else None
        are_there = (to is not None or not target.to) and (above is not None or not target.above)
        if of is not None and are_there:
            found.append(_verdict(experiment, target, of, to, above))
    return found


def show_targets(results: Results, console: Console) -> int:
    """Prints the targets; how many are missed."""
    verdicts = [one for experiment in results.experiments for one in judge(experiment)]
    if verdicts:
        shown = Table(box=None, pad_edge=False)
        for name in ("target", "limit", "measured", ""):
            shown.add_column(name)
        for one in verdicts:
            shown.add_row(one.what, one.limit, one.shown, _said(one))
        console.print(shown, markup=False)
    return sum(one.state == "MISSED" for one in verdicts)


def section(experiment: Experiment) -> str:
    """The table of the report; empty without targets."""
    rows = [[text(one.what), text(one.limit),
             figure(one.shown, one.measured.median) if one.measured else NOTHING,
             text(_said(one))] for one in judge(experiment)]
    return table("Targets", ["target", "limit", "measured", "verdict"], rows) if rows else ""


def _said(one: Verdict) -> str:
    return f"{one.state}: {one.why}" if one.why else one.state


def _verdict(experiment: Experiment, target: Target, of: Cell, to: Cell | None,
             above: Cell | None) -> Verdict:
    what, limit = _words(target, of, to, above), _limit(target)
    for cell, state in ((of, "MISSED"), (above, "MISSED"), (to, "open")):
        if cell is not None and cell.status == "marked":
            # A figure of ours with errors proves nothing; without a peer nothing is judged.
            absent = cell.reason.startswith("absent:") or not cell.samples and state == "open"
            judged: State = "MISSED" if state == "MISSED" and not absent else "open"
            return Verdict(experiment.name, what, limit, None, "–", judged,
                           f"{cell.label} is marked")
    rounds = _rounds(target, of, to, above)
    if not rounds:
        return Verdict(experiment.name, what, limit, None, "–", "open", "not measured")
    found = statistics.interval(rounds)
    shown = f"{_figure(target, found.median)} ({_figure(target, found.low)} to " \
            f"{_figure(target, found.high)})"
    if len(rounds) < ROUNDS_MIN:
        return Verdict(experiment.name, what, limit, found, shown, "open",
                       f"{len(rounds)} of {ROUNDS_MIN} rounds")
    return Verdict(experiment.name, what, limit, found, shown,
                   "met" if _is_met(target, found.median) else "MISSED")


def _rounds(target: Target, of: Cell, to: Cell | None, above: Cell | None) -> list[float]:
    """A value of each round: what the machine did meanwhile, it did to both sides."""
    ours, theirs = _by_start(of, target.metric), _by_start(to, target.metric) if to else {}
    if above:
        base = _by_start(above, target.metric)
        ours = {start: ours[start] - base[start] for start in ours.keys() & base.keys()}
    if target.form == "value":
        return list(ours.values())
    both = [(ours[start], theirs[start]) for start in sorted(ours.keys() & theirs.keys())]
    if target.form == "difference":
        return [mine - other for mine, other in both]
    return [mine / other for mine, other in both if other > 0]


def _by_start(cell: Cell, metric: Metric) -> dict[int, float]:
    taken = {sample.start: reading.value(sample, metric) for sample in cell.samples}
    return {start: value for start, value in taken.items() if value is not None}


def _is_met(target: Target, median: float) -> bool:
    if target.most is not None:
        return median <= target.most
    return target.least is not None and median >= target.least


def _words(target: Target, of: Cell, to: Cell | None, above: Cell | None) -> str:
    """ "mixed site: Tamarack event / nginx"."""
    metric = "" if target.metric == "cpu_us_per_request" else \
        f", {lower(MEANINGS[target.metric].title)}"
    other = f" {'/' if target.form == 'ratio' else '−'} {_other(of, to)}" if to else ""
    more = f", above {_other(of, above)}" if above else ""
    return f"{place_of(of)}: {of.label}{more}{other}{metric}"


def _other(of: Cell, to: Cell) -> str:
    """In what the other cell differs: its server, its place."""
    label = [to.label] if to.server != of.server else []
    return ", ".join(label + [str(value) if axis == "scenario" else f"{axis} {value}"
                              for axis, value in to.axes.items() if of.axes.get(axis) != value])


def _limit(target: Target) -> str:
    if target.most is not None:
        return f"≤ {_figure(target, target.most)}"
    return f"≥ {_figure(target, target.least or 0.0)}"


def _figure(target: Target, value: float) -> str:
    if target.form == "ratio":
        return f"{value:.2f}"
    if MEANINGS[target.metric].unit == "%":
        return percent(value)
    return written(value, target.metric) if value >= 0 else f"−{written(-value, target.metric)}"

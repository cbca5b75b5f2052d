"""Runs experiments: what is missing is marked, the rest is measured in shuffled rounds."""

from __future__ import annotations

import os
import random
import statistics
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from . import experiment as experiments
from . import packages, reading
from .cpus import FEW
from .errors import Absent, LabError
from .journal import Journal
from .load import TOOLS
from .load.side import Side
from .measure import Stage, sample
from .plan import Plan, Planned
from .progress import Progress
from .results import (
    Cell, Environment, Experiment, LoadSide, Metric, NoiseFloor, Results, Sample, write)
from .servers import Server

# Reasons with this prefix mark a row that waits for a feature: not a fault of this run.
EXPECTED = "absent:"
SEED = 20
# The share of the CPUs' time in a start above which it is reported.
STEAL_SAID = 0.01
# Most letters of an unforeseen error.
MOST_SAID = 200


@dataclass
class Run:
    """A run: its plans, samples, and marks."""

    plans: list[Plan]
    journal: Journal
    environment: Environment
    load_side: LoadSide
    headline_reason: str
    command: list[str]
    quick: bool
    starts: int
    folder: Path
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    # (experiment, key) → why there is no figure.
    marks: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Prints a line once, and keeps it for the report."""
        if line not in self.notes:
            self.notes.append(line)
            self.say(line)


@dataclass(frozen=True)
class Task:
    """One start of a cell."""

    cell: Planned
    start: int
    order: int


def install(plans: list[Plan], kinds: dict[str, type[Server]], load: Side,
            say: Callable[[str], None]) -> list[str]:
    """Installs the packages of servers and tools; returns a line for each that is still missing."""
    used = {cell.server: kinds[cell.server] for plan in plans for cell in plan.cells}
    wanted: list[str] = []
    for kind in used.values():
        if not kind.path() and kind.packages:
            wanted += kind.packages
    for plan in plans:
        for cell in plan.cells:
            wanted += _missing_modules(used[cell.server], cell)
    if not load.where():
        for name in {cell.tool for plan in plans for cell in plan.cells}:
            tool = TOOLS.get(name)
            if tool and tool.missing(load):
                wanted += tool.packages
    for program, package in (("openssl", "openssl"), ("taskset", "util-linux")):
        wanted += [] if packages.which(program) else [package]
    lines = packages.install(wanted, say)
    for kind in used.values():
        try:
            kind.prepare()
        except Absent as error:
            lines.append(str(error))
    return lines


def measure(run: Run, stage: Stage, progress: Progress) -> None:
    """Measures everything that is not in the journal yet."""
    total = 0.0
    for line in run.journal.lifted:
        run.note(line)
    for (name, key), reason in run.journal.marks.items():
        run.marks[name, key] = reason
        run.note(f"{name}: {key}: {reason}")
    for plan in run.plans:
        _mark_missing(run, plan, stage)
        total += sum(_cost_s(task, plan) for task in _open_tasks(run, plan))
    starts = sum(len(_open_tasks(run, plan)) for plan in run.plans)
    progress.begin(total, starts)
    stage.tls, stage.note = run.environment.tls, run.note
    for plan in run.plans:
        progress.experiment(plan.spec.name)
        stage.seconds, stage.warm_up_s = plan.spec.seconds, plan.spec.warm_up_s
        for task in _open_tasks(run, plan):
            _one(run, plan, task, stage, progress)
        write(results(run, finished=False), run.folder)
    _note_steal(run)
    progress.end()


def retry(run: Run) -> None:
    """Removes earlier marks; those cells begin again, with all their starts."""
    reasons = dict(run.journal.marks)
    for plan in run.plans:
        for cell in plan.cells:
            place = (plan.spec.name, cell.key)
            if place not in reasons and (reason := errors_in(_samples(run, cell))):
                reasons[place] = reason
    run.journal.lift(reasons)


def results(run: Run, finished: bool) -> Results:
    """The results so far."""
    return Results(
        started=run.journal.started, finished=datetime.now(UTC) if finished else None,
        command=shareable(run.command), quick=run.quick, starts=run.starts,
        seconds=run.journal.header["seconds"], load=run.load_side,
        headline_reason=run.headline_reason, environment=run.environment,
        experiments=[_experiment(run, plan) for plan in run.plans], notes=run.notes)


def shareable(command: list[str]) -> list[str]:
    """Replaces absolute paths by names: the location of a file on this machine is private."""
    return [Path(word).name if word.startswith("/") else word for word in command]


def _note_steal(run: Run) -> None:
    shares = [one.steal for kept in run.journal.samples.values() for one in kept.values()
              if one.steal is not None]
    if shares and max(shares) >= STEAL_SAID:
        run.note(f"The hypervisor gave {statistics.median(shares):.1%} of these CPUs' time to "
                 f"others (median of the starts), and up to {max(shares):.1%}.")


def _mark_missing(run: Run, plan: Plan, stage: Stage) -> None:
    """Marks cells whose server or tool is missing: a line for each reason, not for each cell."""
    for cell in plan.cells:
        kind, tool = stage.kinds[cell.server], stage.tool(cell.tool)
        waits = next(filter(None, map(kind.lacks, cell.needs)), "")
        reason = kind.absent() or waits or tool.missing(stage.load)
        if not reason and (lacking := _missing_modules(kind, cell)):
            reason = f"{kind.label} lacks a module: apt-get install {' '.join(lacking)}"
        if not reason and len(stage.site.pages[cell.page]) > 1 and not tool.many_pages:
            reason = f"{tool.name} asks for one page only"
        if reason:
            run.marks[plan.spec.name, cell.key] = reason
            run.note(reason)


def _missing_modules(kind: type[Server], cell: Planned) -> list[str]:
    return [package for need in cell.needs if (package := kind.missing_module(need))]


def _open_tasks(run: Run, plan: Plan) -> list[Task]:
    """Rounds of fresh starts: in each all cells, including the A/A twins, in shuffled order."""
    name = plan.spec.name
    tasks: list[Task] = []
    for start in range(run.starts):
        # The same order when the run is continued.
        chance = random.Random(f"{SEED} {run.journal.header['started']} {name} {start}")
        cells = [*plan.cells, *plan.twins]
        chance.shuffle(cells)
        tasks += [Task(cell, start, start * len(cells) + place)
                  for place, cell in enumerate(cells)]
    return [task for task in tasks if (name, task.cell.key) not in run.marks
            and not run.journal.has(name, task.cell.key, task.cell.twin, task.start)]


def _one(run: Run, plan: Plan, task: Task, stage: Stage, progress: Progress) -> None:
    cell, name = task.cell, plan.spec.name
    cost = _cost_s(task, plan)
    if (name, cell.key) in run.marks:
        progress.done(cost)
        return
    progress.now(f"{cell.label} {' '.join(map(str, cell.axes.values()))}"
                 f"{' A/A' if cell.twin else ''}")
    try:
        made = sample(cell, task.start, task.order, stage)
    except LabError as error:
        _mark(run, name, cell, str(error))
    except Exception as error:
        # A tool's output that its parser does not know, or a program that can't be run, is one
        # cell's fault, and must not end a run of hours.
        _mark(run, name, cell, _told(error))
    else:
        run.journal.add(name, cell.key, cell.twin, made)
    progress.done(cost)


def _mark(run: Run, name: str, cell: Planned, reason: str) -> None:
    run.marks[name, cell.key] = reason
    run.journal.mark(name, cell.key, reason)
    run.note(f"{name}: {cell.key}: {reason}")


def _told(error: Exception) -> str:
    """An unforeseen error in one line, with its origin."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    said = " ".join(str(error).split())[:MOST_SAID]
    return f"the lab failed: {type(error).__name__}: {said}{place}"


def _cost_s(task: Task, plan: Plan) -> float:
    return task.cell.cost_s(plan.spec.seconds, plan.spec.warm_up_s)


def _experiment(run: Run, plan: Plan) -> Experiment:
    spec = plan.spec
    cells = [made for planned in plan.cells if (made := _cell(run, planned)) is not None]
    good = {cell.key for cell in cells if cell.status == "ok"}
    floors = [floor for twin in plan.twins if twin.key in good
              for metric in dict.fromkeys((plan.headline, *spec.metrics))
              if (floor := _floor(run, metric, twin)) is not None]
    return Experiment(
        name=spec.name, title=spec.title, about=spec.about.strip(), x=spec.x, axes=spec.axes,
        headline=plan.headline, metrics=spec.metrics, seconds=spec.seconds,
        planned=len(plan.cells), cells=cells, floors=floors, published=spec.published,
        ratios=spec.ratios, targets=spec.targets, quoted=spec.quoted, left_out=list(plan.left_out))


def _cell(run: Run, planned: Planned) -> Cell | None:
    """None if nothing is known of it."""
    samples = _samples(run, planned)
    reason = run.marks.get((planned.experiment, planned.key), "") or errors_in(samples)
    if not samples and not reason:
        return None
    return Cell(key=planned.key, server=planned.server, label=planned.label, axes=planned.axes,
                tool=planned.tool, load=planned.load, status="marked" if reason else "ok",
                reason=reason, samples=samples)


def errors_in(samples: list[Sample]) -> str:
    """Why a cell with these samples must be marked; empty if it is clean."""
    bad = [one for one in samples if one.errors or one.wrong_bytes]
    if not bad:
        return ""
    said = next((one.complaint for one in bad if one.complaint), "")
    errors, wrong = sum(one.errors for one in bad), sum(one.wrong_bytes for one in bad)
    parts = [f"{errors} errors"] if errors else []
    parts += [f"{wrong} wrong answers"] if wrong else []
    return (f"{' and '.join(parts)} in {len(bad)} of {len(samples)} starts"
            f"{f' ({said})' if said else ''}")


def _floor(run: Run, metric: Metric, twin: Planned) -> NoiseFloor | None:
    """None if a start has no such figure, or an error spoils one of the two measurements."""
    pair = [_samples(run, twin, twin=False), _samples(run, twin, twin=True)]
    if any(errors_in(given) for given in pair):
        return None
    first, second = ([reading.value(one, metric) for one in given] for given in pair)
    kept = [[value for value in values if value is not None] for values in (first, second)]
    if not all(kept):
        return None
    return NoiseFloor(key=twin.key, metric=metric, first=kept[0], second=kept[1])


def _samples(run: Run, planned: Planned, twin: bool = False) -> list[Sample]:
    kept = run.journal.samples.get((planned.experiment, planned.key, twin), {})
    return [kept[start] for start in sorted(kept)]


def filled(made: Results) -> tuple[int, int, int]:
    """The numbers of cells with a figure, marked for a fault, and planned."""
    cells = [cell for one in made.experiments for cell in one.cells]
    good = sum(1 for cell in cells if cell.status == "ok")
    faults = sum(1 for cell in cells
                 if cell.status == "marked" and not cell.reason.startswith(EXPECTED))
    return good, faults, sum(one.planned for one in made.experiments)


def default_folder() -> Path:
    """lab/results/DATE-TIME-CPU."""
    from .machine import short_name

    stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M")
    return experiments.FOLDER.parent / "results" / f"{stamp}-{short_name()}"


def headline_reason(cpus: int, remote: bool) -> str:
    """The headline metric, and the reason."""
    if remote:
        return "requests/s: the load comes from other machines" if cpus >= FEW else \
            f"CPU time per request: with {cpus} CPUs requests/s say little about larger machines"
    if cpus < FEW:
        return (f"CPU time per request: with {cpus} CPUs, fewer than {FEW}, the load tool's CPU "
                "and not the server's is often the limit of requests/s")
    return "requests/s: the machine has CPUs enough for server and load"


def cpu_count() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))

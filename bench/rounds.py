"""Interleaved rounds: in each, every cell of a scenario runs once, in shuffled order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import intervals, proc
from .intervals import Interval
from .scenarios import Scenario
from .servers import Server
from .site import Site

WARM_UP_S = 1.0
CELL_OVERHEAD_S = 0.15


@dataclass(frozen=True)
class Sample:
    """One run of one cell."""

    cpu_us: float
    requests: int
    errors: int
    server_busy: float
    client_busy: float
    p99_us: int
    complaint: str = ""


@dataclass
class Cell:
    """All runs of one server in one setup."""

    scenario: str
    server: str
    variant: str
    samples: list[Sample] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """Errors over all rounds; a cell that has any proves nothing."""
        return sum(sample.errors for sample in self.samples)

    @property
    def cpu_us(self) -> Interval:
        """CPU time per request."""
        return intervals.of([sample.cpu_us for sample in self.samples])

    def busy(self) -> tuple[float, float]:
        """Mean busy shares of the server's CPU and of the client's."""
        count = max(1, len(self.samples))
        return (sum(sample.server_busy for sample in self.samples) / count,
                sum(sample.client_busy for sample in self.samples) / count)


@dataclass(frozen=True)
class Plan:
    """How long and where."""

    rounds: int
    seconds: float
    server_cpu: int
    client_cpu: int
    progress: Callable[[str, float], None]
    complain: Callable[[str], None]


def run(scenario: Scenario, wanted: set[str], site: Site, plan: Plan) -> list[Cell]:
    """Starts every cell's server, measures them in turn, stops them."""
    started: list[tuple[Server, Cell]] = []
    try:
        for kind, variant in scenario.cells(wanted):
            folder = site.root / f"{scenario.name}-{kind.name}-{variant.name or 'only'}"
            both = f"{plan.server_cpu},{plan.client_cpu}"
            cpu = both if scenario.shares_cpus else plan.server_cpu
            server = kind(site, variant.setup, folder, cpu)
            if _start(server, scenario, plan):
                started.append((server, Cell(scenario.name, kind.name, variant.name)))
        for number in range(plan.rounds):
            order = started[:]
            random.shuffle(order)
            for server, cell in order:
                what = f"{scenario.name} {number + 1}/{plan.rounds} {cell.server} {cell.variant}"
                plan.progress(what, plan.seconds + CELL_OVERHEAD_S)
                cell.samples.append(_measure(scenario, server, plan))
    finally:
        for server, _ in started:
            server.stop()
    return [cell for _, cell in started]


def _start(server: Server, scenario: Scenario, plan: Plan) -> bool:
    try:
        server.start()
        server.check(scenario.path)
        plan.progress(f"{scenario.name} warm-up {server.name}", WARM_UP_S)
        scenario.run(plan.client_cpu, server, scenario.path, WARM_UP_S)
        return True
    except (OSError, RuntimeError) as error:
        server.stop()
        plan.complain(f"{scenario.name}: {server.name} is left out: {error}")
        return False


def _measure(scenario: Scenario, server: Server, plan: Plan) -> Sample:
    cpus = (plan.server_cpu, plan.client_cpu)
    ticks = [proc.cpu_ticks(cpu) for cpu in cpus]
    before = proc.process_ns(server.pid)
    load = scenario.run(plan.client_cpu, server, scenario.path, plan.seconds)
    after = proc.process_ns(server.pid)
    busy = [proc.busy_share(old, proc.cpu_ticks(cpu))
            for old, cpu in zip(ticks, cpus, strict=True)]
    # A process that ended took its last slice along: the sum would be too small.
    ended = proc.ended(before, after)
    why = [load.complaint or f"load {load.errors}"] if load.errors else []
    why += [f"processes of the server that ended {ended}"] if ended else []
    if why:
        plan.complain(f"{scenario.name}: {server.name}: errors: {', '.join(why)}")
    errors = load.errors + ended
    spent_us = proc.spent_ns(before, after) / 1000
    return Sample(spent_us / max(1, load.requests), load.requests, errors, busy[0], busy[1],
                  load.p99_us, ", ".join(why))


def results_folder() -> Path:
    """Where raw results are kept."""
    return Path(__file__).parent / "results"

"""python3 -m bench: runs the scenarios, prints the tables, keeps the raw results."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from . import affinity, idle, report, rounds, site, targets
from .rounds import CELL_OVERHEAD_S, WARM_UP_S, Cell, Plan
from .scenarios import AFFINITY, IDLE, IDLE_SERVERS, NAMES, SCENARIOS
from .servers import KINDS

ROUNDS_MIN = 10


class Clock:
    """Says what runs now and how long the rest will take."""

    def __init__(self, total_s: float) -> None:
        self._total = total_s
        self._done = 0.0
        self._started = time.monotonic()

    def progress(self, what: str, cost_s: float) -> None:
        """Prints one line; on a terminal it overwrites the last."""
        elapsed = time.monotonic() - self._started
        pace = elapsed / self._done if self._done > 5 else 1.0
        left = max(0.0, self._total - self._done) * max(1.0, pace)
        self._done += cost_s
        text = f"[{int(left // 60)}:{int(left % 60):02} left] {what}"
        if sys.stderr.isatty():
            print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
        elif "1/" in what or "warm-up" in what or what.startswith(IDLE):
            print(text, file=sys.stderr, flush=True)

    @staticmethod
    def complain(text: str) -> None:
        """A problem that leaves something out of the tables."""
        print(f"\n{text}", file=sys.stderr, flush=True)


def main() -> int:
    """Returns the exit status: 1 when nothing could be measured or a target is missed."""
    options = _options()
    wanted = set(options.servers.split(","))
    names = options.scenario.split(",")
    cpus = sorted(os.sched_getaffinity(0))
    if missing := _missing(len(cpus)):
        print(missing, file=sys.stderr)
        return 1
    for kind in KINDS:
        if kind.name in wanted and not kind.path():
            print(f"{kind.name} is skipped: {kind.program} is not there", file=sys.stderr)
    clock = Clock(_duration_s(names, wanted, options))
    plan = Plan(options.rounds, options.seconds, cpus[0], cpus[1],
                clock.progress, clock.complain)
    with tempfile.TemporaryDirectory(prefix="tamarack-bench-") as folder:
        served = site.make(Path(folder))
        cells: list[Cell] = []
        for scenario in SCENARIOS:
            if scenario.name in names:
                cells += rounds.run(scenario, wanted, served, plan)
        memories = idle.run(wanted, served, plan) if IDLE in names else []
        rows: list[affinity.Row] = []
        if AFFINITY in names:
            shared = affinity.Plan(options.rounds, options.seconds, (cpus[0], cpus[1]),
                                   clock.progress, clock.complain)
            rows = affinity.run(wanted, served, shared)
    judged = targets.judge(cells, memories) + affinity.judge(rows)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(report.cells(cells), report.memory(memories), report.affinity(affinity.lines(rows)),
          report.verdicts(judged), sep="\n")
    if cells or memories or rows:
        path = report.save(cells, memories, judged, vars(options), affinity.as_json(rows))
        print(f"\nraw results: {path}")
    return 0 if (cells or memories or rows) and all(one.met for one in judged) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN,
                        help="interleaved rounds of each scenario (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0,
                        help="load per cell and round, whole seconds (default %(default)s)")
    parser.add_argument("--scenario", default=",".join(NAMES),
                        help="comma-separated, of: %(default)s")
    parser.add_argument("--servers", default=",".join(kind.name for kind in KINDS),
                        help="comma-separated, of: %(default)s")
    options = parser.parse_args()
    for given, known in ((options.scenario, NAMES),
                         (options.servers, [kind.name for kind in KINDS])):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if options.rounds < ROUNDS_MIN:
        print(f"fewer than {ROUNDS_MIN} rounds: the intervals say little", file=sys.stderr)
    return options


def _missing(cpus: int) -> str:
    tools = [tool for tool in ("wrk", "openssl", "taskset") if not shutil.which(tool)]
    if tools:
        return f"needed and not there: {', '.join(tools)} (apt-get install wrk openssl util-linux)"
    return "" if cpus > 1 else "two CPUs are needed: one for the server, one for the load"


def _duration_s(names: list[str], wanted: set[str], options: argparse.Namespace) -> float:
    total = 0.0
    for scenario in SCENARIOS:
        if scenario.name in names:
            each = WARM_UP_S + options.rounds * (options.seconds + CELL_OVERHEAD_S)
            total += len(scenario.cells(wanted)) * each
    if IDLE in names:
        count = sum(1 for kind in KINDS
                    if kind.name in wanted and kind.name in IDLE_SERVERS and kind.path())
        total += count * (idle.duration_s(False) + idle.duration_s(True))
    if AFFINITY in names:
        total += affinity.duration_s(options.rounds, options.seconds)
    return total


if __name__ == "__main__":
    sys.exit(main())

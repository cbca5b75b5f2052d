"""The lab's own tool (lab/load/hammer.c): compares every body, and has an open loop."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import compiled
from ..errors import Absent, LabError
from ..histogram import Histogram
from . import heads
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint, together

SOURCE = Path(__file__).parent.parent.parent / "load" / "hammer.c"
ERRORS = ("connect", "read", "status", "timeout")


class Hammer(Tool):
    """Closed loop for a time, several pages in random order; a process per load CPU."""

    name = "hammer"
    program = "cc"
    packages = ("gcc", "libc6-dev")
    many_pages = True
    any_traffic = True

    def missing(self, side: Side) -> str:
        """It is compiled here and copied there."""
        try:
            compiled.program(SOURCE, "-lm")
        except Absent as error:
            return str(error)
        return ""

    def version(self, side: Side) -> str:
        """It belongs to the lab."""
        return "lab/load/hammer.c"

    def run_one(self, order: Order, side: Side) -> Count:
        """One process per requested thread; their histograms are merged."""
        program = side.put(compiled.program(SOURCE, "-lm"))
        parts = max(1, min(order.threads, order.clients))
        with ThreadPoolExecutor(parts) as pool:
            return together(list(pool.map(
                lambda number: self._run_process(order.share(number, parts), program, side),
                range(parts))))

    def arguments(self, order: Order) -> list[str]:
        """The arguments that distinguish this kind of load."""
        return ["-d", f"{order.seconds:g}"]

    def _run_process(self, order: Order, program: str, side: Side) -> Count:
        if order.scheme != "http":
            raise LabError(f"{self.name} has no TLS")
        if any(kind.sends for kind in order.traffic.kinds):
            raise LabError(f"{self.name} sends no bodies")
        command = [program, order.host, str(order.port), "-c", str(order.clients),
                   "-s", str(order.seed), *(["-k"] if order.keep_alive else []),
                   *(["-t"] if order.timeline else []), *self.arguments(order),
                   side.put(heads.file(order))]
        output = side.run(command, order.seconds + 4 * REQUEST_TIMEOUT_S)
        try:
            return count(json.loads(output), order)
        except ValueError:
            raise LabError("hammer printed no figures") from None


class Open(Hammer):
    """Open loop at a rate; latencies begin when a request is due."""

    name = "open"

    def arguments(self, order: Order) -> list[str]:
        """The rate, unless the peak is being determined."""
        rate = ["-r", str(max(1, round(order.rate)))] if order.rate else []
        return [*super().arguments(order), *rate]


class Users(Hammer):
    """A number of users with a number of requests each, all of which are kept for the scatter
    plot."""

    name = "users"

    def arguments(self, order: Order) -> list[str]:
        """A number each, or a time without one (in the warm-up)."""
        each = order.requests_each
        return ["-n", str(each)] if each else super().arguments(order)

    def run_one(self, order: Order, side: Side) -> Count:
        """One process: users are few."""
        return super().run_one(replace(order, threads=1), side)


def count(said: dict[str, Any], order: Order) -> Count:
    """hammer's JSON."""
    counted = {kind: int(said[kind]) for kind in ERRORS}
    kept = Histogram.of_pairs([(int(bound), int(number)) for bound, number in said["histogram"]],
                              float(said["mean_us"]), float(said["max_us"]))
    over = {100: int(said["over_100ms"]), 1000: int(said["over_1s"]),
            10_000: int(said["over_10s"])}
    line = [(float(at), float(took)) for at, took in said["timeline"]] or None
    return Count(int(said["requests"]), float(said["duration_s"]), sum(counted.values()),
                 int(said["wrong"]), complaint(counted), int(said["bytes"]), kept,
                 float(said["stdev_us"]), over=over, corrected=order.rate is not None,
                 timeline_ms=line, statuses={
                     int(status): int(number) for status, number in said["statuses"].items()})

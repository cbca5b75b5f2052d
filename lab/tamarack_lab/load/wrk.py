"""wrk: the closed loop of most published figures."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import LabError
from ..histogram import Histogram
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint

SCRIPT = Path(__file__).parent / "wrk.lua"
ERRORS = ("connect", "read", "write", "status", "timeout")


class Wrk(Tool):
    """Keep-alive connections, one thread per load CPU unless told."""

    name = "wrk"
    program = "wrk"
    packages = ("wrk",)
    many_pages = True

    def version(self, side: Side) -> str:
        """Without its copyright."""
        return side.first_line([self.program, "-v"]).split(" Copyright")[0]

    def run_one(self, order: Order, side: Side) -> Count:
        """One run. wrk knows whole seconds."""
        threads = min(order.threads, order.clients)
        output = side.run(
            ["wrk", f"-t{threads}", f"-c{order.clients}", f"-d{max(1, round(order.seconds))}s",
             "--timeout", f"{REQUEST_TIMEOUT_S}s", "-s", side.put(SCRIPT),
             order.url(order.pages[0]), "--", str(order.seed),
             "keep" if order.keep_alive else "close", *(page.path for page in order.pages)],
            order.seconds + REQUEST_TIMEOUT_S)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise LabError("wrk printed no figures")
        return count(json.loads(lines[-1]), order)


def count(said: dict[str, float], order: Order) -> Count:
    """What wrk.lua printed. Bytes below what the bodies alone take are wrong bytes."""
    requests = int(said["requests"])
    counted = {kind: int(said[kind]) for kind in ERRORS}
    least = min((page.length for page in order.pages), default=0)
    wrong = int(least > 0 and said["bytes"] < requests * least)
    return Count(
        requests, said["duration_us"] / 1e6, sum(counted.values()), wrong, complaint(counted),
        int(said["bytes"]), _histogram(said, requests), said["stdev_us"])


def _histogram(said: dict[str, float], requests: int) -> Histogram:
    """From percentiles: between two of them lie as many answers as their difference says."""
    kept = Histogram()
    points: list[list[float]] = said["percentiles"]  # type: ignore[assignment]
    before = 0
    for percent, value in points:
        until = int(requests * percent / 100)
        kept.record(value, max(0, until - before))
        before = max(before, until)
    kept.record(said["max_us"], requests - before)
    # wrk's own mean is exact.
    kept.sum_us = said["mean_us"] * kept.total
    return kept

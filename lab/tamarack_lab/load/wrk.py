"""wrk: the closed loop of most published figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import LabError
from ..histogram import Histogram
from . import heads
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint, wrong_sum

SCRIPT = Path(__file__).parent / "wrk.lua"
ERRORS = ("connect", "read", "write", "status", "timeout")
# Latencies whose count differs more from the number of requests are not shown.
LOST_MAX = 0.01


class Wrk(Tool):
    """Keep-alive connections, by default one thread per load CPU."""

    name = "wrk"
    program = "wrk"
    packages = ("wrk",)
    many_pages = True
    sums_bytes = True
    any_traffic = True

    def version(self, side: Side) -> str:
        """Without its copyright."""
        return side.first_line([self.program, "-v"]).split(" Copyright")[0]

    def run_one(self, order: Order, side: Side) -> Count:
        """One run. wrk supports only whole seconds."""
        threads = min(order.threads, order.clients)
        output = side.run(
            ["wrk", f"-t{threads}", f"-c{order.clients}", f"-d{max(1, round(order.seconds))}s",
             "--timeout", f"{REQUEST_TIMEOUT_S}s", "-s", side.put(SCRIPT),
             order.url(order.pages[0]), "--", str(order.seed), str(order.clients),
             "count" if order.counting else "fast", side.put(heads.file(order))],
            order.seconds + REQUEST_TIMEOUT_S)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise LabError("wrk printed no figures")
        return count(json.loads(lines[-1]), order)


def count(said: dict[str, Any], order: Order) -> Count:
    """What wrk.lua printed."""
    requests, received = int(said["requests"]), int(said["bytes"])
    counted = {kind: int(said[kind]) for kind in ERRORS if kind != "status"}
    # A head that never changes is sent without being counted.
    asked = [int(one) for one in said["asked"]] or [requests + order.clients]
    # At the end each connection may have a request in progress; one is created when wrk starts.
    under_way = order.clients + order.threads + sum(counted.values())
    statuses = {int(status): int(number) for status, number in said["statuses"].items()}
    counted |= unexpected(order, asked, under_way, statuses, int(said["status"]))
    made = Count(requests, said["duration_us"] / 1e6, sum(counted.values()),
                 int(wrong_sum(order, asked, requests, received)), complaint(counted), received,
                 statuses=statuses)
    # If wrk's correction can't be undone, no latency is better than a synthetic one.
    if abs(int(said["counted"]) - requests) <= requests * LOST_MAX:
        made.histogram = Histogram.of_pairs(
            said["histogram"], float(said["mean_us"]), float(said["max_us"]))
        made.stdev_us = float(said["stdev_us"])
        made.over = {100: int(said["over_100ms"]), 1000: int(said["over_1s"]),
                     10_000: int(said["over_10s"])}
    return made


def unexpected(order: Order, asked: list[int], under_way: int, statuses: dict[int, int],
               over_399: int) -> dict[str, int]:
    """How many responses had an unexpected status, by the difference.

    If statuses are not counted individually, wrk still counts those over 399.
    """
    wanted: dict[int, int] = {}
    for kind, number in zip(order.traffic.kinds, asked, strict=True):
        wanted[kind.status] = wanted.get(kind.status, 0) + number
    if not statuses:
        wanted = {400: sum(number for status, number in wanted.items() if status > 399)}
        statuses = {400: over_399}
    found = {}
    for status in sorted({*wanted, *statuses}):
        name = "over 399" if status == 400 else str(status)
        more = statuses.get(status, 0) - wanted.get(status, 0)
        if more > 0:
            found[f"unexpected status {name}:"] = more
        elif -more > under_way:
            found[f"missing status {name}:"] = -more
    return found

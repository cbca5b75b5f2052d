"""ab, ApacheBench, the tool of the older studies. One thread, HTTP/1.0."""

from __future__ import annotations

import re

from ..errors import LabError
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint

# ab keeps a record of every request: room for those of a run.
REQUESTS_MAX = 400_000
COMPLETE = re.compile(r"^Complete requests:\s+(\d+)", re.MULTILINE)
TOOK = re.compile(r"^Time taken for tests:\s+([\d.]+)", re.MULTILINE)
KINDS = re.compile(r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)")
NON_2XX = re.compile(r"^Non-2xx responses:\s+(\d+)", re.MULTILINE)
# Of the first response; the others are compared with it.
LENGTH = re.compile(r"^Document Length:\s+(\d+) bytes", re.MULTILINE)
BYTES = re.compile(r"^Total transferred:\s+(\d+)", re.MULTILINE)
TOTAL = re.compile(r"^Total:\s+(\d+)\s+(\d+)\s+([\d.]+)\s+(\d+)\s+(\d+)", re.MULTILINE)
MEAN_MS = re.compile(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)", re.MULTILINE)


class Ab(Tool):
    """A new connection per request unless keep_alive."""

    name = "ab"
    program = "ab"
    packages = ("apache2-utils",)

    def version(self, side: Side) -> str:
        """Without its copyright."""
        line = side.first_line([self.program, "-V"])
        return line.removeprefix("This is ").split(" <")[0]

    def run_one(self, order: Order, side: Side) -> Count:
        """One run, by time or by number."""
        table = side.scratch("ab.csv")
        amount = ["-n", str(order.requests)] if order.requests else \
            ["-t", str(max(1, round(order.seconds))), "-n", str(REQUESTS_MAX)]
        # -l: bodies may differ in length.
        differing = ["-l"] if order.pages[0].length < 0 else []
        output = side.run(
            ["ab", "-q", "-r", *differing, "-d", "-s", str(REQUEST_TIMEOUT_S), *amount,
             "-c", str(order.clients), *(["-k"] if order.keep_alive else []), "-e", table,
             order.url(order.pages[0])], order.seconds + 10 * REQUEST_TIMEOUT_S)
        return count(output, side.take(table), order)


def count(output: str, table: str, order: Order) -> Count:
    """What ab printed, and its table of percentiles (-e)."""
    complete, took = COMPLETE.search(output), TOOK.search(output)
    if not complete or not took or float(took[1]) <= 0:
        raise LabError("ab printed no figures")
    kinds = KINDS.search(output)
    counted = dict(zip(("connect", "receive", "length", "exception"),
                       map(int, kinds.groups() if kinds else ()), strict=False))
    other = NON_2XX.search(output)
    counted["status"] = int(other[1]) if other else 0
    requests, sent = int(complete[1]), BYTES.search(output)
    # A response with another status also has another length: it is an error, and counts once.
    wrong = max(0, counted.pop("length", 0) - counted["status"])
    first, wanted = LENGTH.search(output), order.pages[0].length
    if wanted >= 0 and (not first or int(first[1]) != wanted):
        wrong = requests
    good = max(0, requests - sum(counted.values()))
    total, mean = TOTAL.search(output), MEAN_MS.search(output)
    return Count(
        good, float(took[1]), sum(counted.values()), wrong, complaint(counted),
        int(sent[1]) if sent else 0, None, float(total[3]) * 1000 if total else None,
        _percentiles(table), float(mean[1]) * 1000 if mean else 0.0,
        float(total[5]) * 1000 if total else 0.0)


def _percentiles(table: str) -> dict[str, float]:
    """50, 90 and 99 in µs. ab's table has whole per cents only, so 99.9 is omitted."""
    rows = dict(line.split(",", 1) for line in table.splitlines()[1:] if "," in line)
    return {key: float(rows[key]) * 1000 for key in ("50", "90", "99") if key in rows}

"""h2load, in HTTP/1.1: a second tool with keep-alive."""

from __future__ import annotations

import re

from ..errors import LabError
from ..histogram import Histogram
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint, counted_over

FINISHED = re.compile(r"^finished in ([\d.]+)(ms|s|us),", re.MULTILINE)
REQUESTS = re.compile(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout")
# All bytes, and those of bodies.
TRAFFIC = re.compile(r"^traffic: .*?\((\d+)\) total.*?\((\d+)\) data", re.MULTILINE)
STATUS = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", re.MULTILINE)
UNIT = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


class H2load(Tool):
    """Keep-alive, several pages in turn."""

    name = "h2load"
    program = "h2load"
    packages = ("nghttp2-client",)

    def version(self, side: Side) -> str:
        """Of its library."""
        return side.first_line([self.program, "--version"])

    def run_one(self, order: Order, side: Side) -> Count:
        """One run by time; its log has every request."""
        log = side.scratch("h2load.log")
        threads = min(order.threads, order.clients)
        output = side.run(
            ["h2load", "--h1", f"-t{threads}", f"-c{order.clients}",
             f"-D{max(1, round(order.seconds))}", f"--log-file={log}",
             f"--connection-active-timeout={REQUEST_TIMEOUT_S}", order.url(order.pages[0])],
            order.seconds + REQUEST_TIMEOUT_S)
        return count(output, side.take(log), order)


def count(output: str, log: str, order: Order) -> Count:
    """What h2load printed, and its log: start µs, status, duration µs by line."""
    took, requests = FINISHED.search(output), REQUESTS.search(output)
    if not took or not requests:
        raise LabError("h2load printed no figures")
    status = STATUS.search(output)
    counted = {"failed": int(requests[2]), "timeout": int(requests[4]),
               "status": sum(int(status[i]) for i in (2, 3, 4)) if status else 0}
    kept, took_us = Histogram(), []
    for line in log.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == "200":
            took_us.append(int(words[2]))
            kept.record(took_us[-1])
    traffic = TRAFFIC.search(output)
    received = int(traffic[1]) if traffic else None
    good, length = int(requests[1]), order.pages[0].length
    # Bodies of all responses, and of those cut off at the end.
    wrong = int(length >= 0 and traffic is not None and not
                good * length <= int(traffic[2]) <= (good + order.clients) * length)
    return Count(good, float(took[1]) * UNIT[took[2]], sum(counted.values()), wrong,
                 complaint(counted), received, kept if kept.total else None,
                 over=counted_over(took_us))

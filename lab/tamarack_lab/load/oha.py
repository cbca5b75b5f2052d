"""oha: optional, if installed by cargo."""

from __future__ import annotations

import json
from typing import Any

from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint


class Oha(Tool):
    """Closed loop, or open with its own correction of latencies."""

    name = "oha"
    program = "oha"

    def missing(self, side: Side) -> str:
        """No package has it."""
        return "" if side.has(self.program) else f"oha is missing{side.where()}: cargo install oha"

    def version(self, side: Side) -> str:
        """Its own."""
        return side.first_line([self.program, "--version"])

    def run_one(self, order: Order, side: Side) -> Count:
        """One run."""
        rate = ["-q", str(round(order.rate)), "--latency-correction"] if order.rate else []
        output = side.run(
            ["oha", "--no-tui", "--output-format", "json", "-c", str(order.clients),
             "-z", f"{order.seconds:g}s", "-t", f"{REQUEST_TIMEOUT_S}s",
             *([] if order.keep_alive else ["--disable-keepalive"]), *rate, "--insecure",
             order.url(order.pages[0])], order.seconds + REQUEST_TIMEOUT_S)
        return count(json.loads(output), order)


def count(said: dict[str, Any], order: Order) -> Count:
    """oha's JSON. Requests that were cut off at the end are not errors."""
    summary, latencies = said["summary"], said["latencyPercentiles"]
    codes = {int(code): int(number) for code, number in said["statusCodeDistribution"].items()}
    counted = {kind: int(number) for kind, number in said["errorDistribution"].items()
               if "deadline" not in kind}
    counted["status"] = sum(number for code, number in codes.items() if code != 200)
    good, least = codes.get(200, 0), order.pages[0].length
    received = int(summary["totalData"] or 0)
    percentiles = {key: float(latencies[f"p{key}"]) * 1e6 for key in ("50", "90", "99", "99.9")
                   if latencies.get(f"p{key}") is not None}
    return Count(good, float(summary["total"]), sum(counted.values()),
                 int(least > 0 and received < good * least), complaint(counted), received, None,
                 None, percentiles, float(summary["average"]) * 1e6,
                 float(summary["slowest"]) * 1e6, corrected=order.rate is not None)

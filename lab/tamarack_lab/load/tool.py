"""A load tool: runs an order, and returns its counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ..histogram import Histogram, merged
from ..results import Latency
from ..site import Page
from ..traffic import SAME, Traffic, Validators
from .side import Side

# Longer than any response should take, so that a hang is an error and not the end of the run.
REQUEST_TIMEOUT_S = 30
# Noticeable, disruptive, given up.
LIMITS_MS = (100, 1000, 10_000)
# The difference in length between the heads of correct responses.
HEAD_SLACK_BYTES = 8


@dataclass(frozen=True)
class Order:
    """The requested load of a server."""

    scheme: str
    host: str
    port: int
    pages: tuple[Page, ...]
    clients: int
    seconds: float
    threads: int = 1
    keep_alive: bool = True
    # Requests at a time on each connection (HTTP/2).
    streams: int = 1
    # Requests in total, requests of each client, requests per second: if not a time.
    requests: int | None = None
    requests_each: int | None = None
    rate: float | None = None
    # Idle connections to open.
    connections: int = 0
    timeline: bool = False
    seed: int = 1
    # The kinds of requests, and the validators of conditional ones.
    traffic: Traffic = SAME
    validators: Validators = Validators()
    # Count every response's status, which costs the load time (in the warm-up).
    counting: bool = False
    # The least and the most bytes of a whole response, head and body, by the traffic's kind; empty:
    # not known.
    answer_bytes: tuple[tuple[int, int], ...] = ()

    def url(self, page: Page) -> str:
        """The URL for a tool."""
        return f"{self.scheme}://{self.host}:{self.port}{page.path}"

    def share(self, number: int, parts: int) -> Order:
        """The part of one of several load machines."""
        def split(whole: int) -> int:
            return whole // parts + (number < whole % parts)
        return replace(
            self, clients=max(1, split(self.clients)), seed=self.seed + number * 1000,
            requests=None if self.requests is None else max(1, split(self.requests)),
            rate=None if self.rate is None else self.rate / parts)


@dataclass
class Count:
    """The counts of a tool."""

    requests: int
    duration_s: float
    errors: int = 0
    wrong_bytes: int = 0
    complaint: str = ""
    bytes: int | None = None
    histogram: Histogram | None = None
    stdev_us: float | None = None
    # Percentiles by the tool, if it has no histogram.
    percentiles_us: dict[str, float] = field(default_factory=dict)
    mean_us: float = 0.0
    max_us: float = 0.0
    over: dict[int, int] = field(default_factory=dict)
    corrected: bool = False
    timeline_ms: list[tuple[float, float]] | None = None
    # Responses by status, if they were counted.
    statuses: dict[int, int] = field(default_factory=dict)

    def latency(self) -> Latency | None:
        """For the results."""
        if self.requests == 0:
            return None
        shares = {limit: count / self.requests for limit, count in self.over.items()}
        if self.histogram and self.histogram.total:
            kept = self.histogram
            for limit in LIMITS_MS:
                shares.setdefault(limit, kept.share_over(limit * 1000))
            return Latency(
                count=kept.total, mean_us=kept.mean_us(), stdev_us=self.stdev_us,
                max_us=kept.maximum_us, histogram=kept.pairs(), corrected=self.corrected,
                percentiles_us={str(q): kept.percentile(q) for q in (50, 90, 99, 99.9)},
                over_100ms=shares[100], over_1s=shares[1000], over_10s=shares[10_000])
        if not self.percentiles_us:
            return None
        return Latency(count=self.requests, mean_us=self.mean_us, stdev_us=self.stdev_us,
                       max_us=self.max_us, percentiles_us=self.percentiles_us,
                       corrected=self.corrected, over_100ms=shares.get(100),
                       over_1s=shares.get(1000), over_10s=shares.get(10_000))


def together(counts: list[Count]) -> Count:
    """The sum over load machines: histograms are merged, durations are the longest."""
    if len(counts) == 1:
        return counts[0]
    whole = Count(sum(count.requests for count in counts),
                  max(count.duration_s for count in counts))
    whole.errors = sum(count.errors for count in counts)
    whole.wrong_bytes = sum(count.wrong_bytes for count in counts)
    whole.complaint = "; ".join(count.complaint for count in counts if count.complaint)
    whole.corrected = any(count.corrected for count in counts)
    whole.stdev_us = _deviation(counts)
    if all(count.over for count in counts):
        whole.over = {limit: sum(count.over[limit] for count in counts)
                      for limit in counts[0].over}
    if all(count.bytes is not None for count in counts):
        whole.bytes = sum(count.bytes or 0 for count in counts)
    kept = [count.histogram for count in counts if count.histogram]
    if len(kept) == len(counts):
        whole.histogram = merged(kept)
    for status in {status for count in counts for status in count.statuses}:
        whole.statuses[status] = sum(count.statuses.get(status, 0) for count in counts)
    lines = [point for count in counts for point in count.timeline_ms or []]
    whole.timeline_ms = sorted(lines) or None
    return whole


def _deviation(counts: list[Count]) -> float | None:
    """The deviation of all responses together: squares add up."""
    requests = sum(count.requests for count in counts)
    total = squares = 0.0
    for count in counts:
        if count.stdev_us is None or count.histogram is None:
            return None
        mean = count.histogram.mean_us()
        total += mean * count.requests
        squares += (count.stdev_us ** 2 + mean ** 2) * count.requests
    if not requests:
        return None
    return math.sqrt(max(0.0, squares / requests - (total / requests) ** 2))


class Tool:
    """A load tool."""

    name: ClassVar[str] = ""
    program: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    # Whether it supports several pages.
    many_pages: ClassVar[bool] = False
    # Whether it compares only the total of bytes with those of whole responses.
    sums_bytes: ClassVar[bool] = False
    # Whether it can send heads of which no two are alike.
    any_traffic: ClassVar[bool] = False
    # False: it takes seconds to start, during which the server's idle CPU time would be counted.
    starts_at_once: ClassVar[bool] = True

    def missing(self, side: Side) -> str:
        """Why it can't run there, in one line; empty if it can."""
        if side.has(self.program):
            return ""
        return f"{self.name} is missing{side.where()}: apt-get install {' '.join(self.packages)}"

    def version(self, side: Side) -> str:
        """Its name and version."""
        return side.first_line([self.program, "-v"])

    def run(self, order: Order, side: Side) -> Count:
        """Runs it on every load machine with its share, and adds up."""
        return together(side.everywhere(
            lambda one, number, parts: self.run_one(order.share(number, parts), one)))

    def run_one(self, order: Order, side: Side) -> Count:
        """Runs it on one machine."""
        raise NotImplementedError


def wrong_sum(order: Order, asked: Sequence[int], answered: int, received: int) -> bool:
    """Whether this many bytes can't be the correct responses to these numbers of requests by kind.

    Those in progress at the end may have any part of theirs. Heads differ by some bytes:
    `Keep-Alive: max=99` is shorter than its predecessors.
    """
    if not order.answer_bytes:
        return False
    pairs = list(zip(asked, order.answer_bytes, strict=True))
    largest = max(most for _, most in order.answer_bytes) + HEAD_SLACK_BYTES
    least = sum(count * (ends[0] - HEAD_SLACK_BYTES) for count, ends in pairs) \
        - (sum(asked) - answered) * largest
    most = sum(count * (ends[1] + HEAD_SLACK_BYTES) for count, ends in pairs)
    return not least <= received <= most


def counted_over(took_us: Sequence[float]) -> dict[int, int]:
    """How many took longer than 0.1, 1 and 10 s, by the limit in milliseconds: from the rows
    themselves, because a histogram's bucket can extend over a limit."""
    return {limit: sum(1 for took in took_us if took > limit * 1000) for limit in LIMITS_MS}


def complaint(counted: dict[str, int]) -> str:
    """Errors by kind, in one line."""
    return ", ".join(f"{kind} {count}" for kind, count in counted.items() if count)

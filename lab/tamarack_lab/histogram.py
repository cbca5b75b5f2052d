"""Latencies as counts in buckets: the sum of several load hosts needs no samples.

A bucket is named by its upper bound in microseconds. Those created here are exact below 128 µs
and then have 64 steps per power of two, so that a percentile is known to 1.6 % from a
microsecond to hours; maximum, count and mean are exact. Histograms of other tools may have other
bounds: merging adds counts of equal bounds and keeps the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# The number of leading bits of a latency that are kept.
KEPT_BITS = 7


@dataclass
class Histogram:
    """Counts by the upper bound of their bucket, in microseconds."""

    counts: dict[int, int] = field(default_factory=dict)
    total: int = 0
    sum_us: float = 0.0
    maximum_us: float = 0.0

    def record(self, latency_us: float, count: int = 1) -> None:
        """Adds a number of responses of one latency."""
        if not math.isfinite(latency_us) or latency_us < 0 or count < 0:
            raise ValueError(f"not a latency: {latency_us}, {count} times")
        if count == 0:
            return
        bound = upper_bound(latency_us)
        self.counts[bound] = self.counts.get(bound, 0) + count
        self.total += count
        self.sum_us += latency_us * count
        self.maximum_us = max(self.maximum_us, latency_us)

    def percentile(self, percent: float) -> float:
        """The latency that this per cent of the responses did not exceed; 0.0 if empty."""
        if not 0 <= percent <= 100:
            raise ValueError(f"not a percentage: {percent}")
        wanted = max(1, math.ceil(self.total * percent / 100))
        seen = 0
        for bound in sorted(self.counts):
            seen += self.counts[bound]
            if seen >= wanted:
                return min(float(bound), self.maximum_us)
        return 0.0

    def mean_us(self) -> float:
        """The mean, exact; 0.0 when empty."""
        return self.sum_us / self.total if self.total else 0.0

    def share_over(self, limit_us: float) -> float:
        """The share of responses slower than the limit, 0 to 1: those in buckets entirely above
        it."""
        if not self.total:
            return 0.0
        return sum(count for bound, count in self.counts.items()
                   if bound - _step(bound) >= limit_us) / self.total

    def pairs(self) -> list[tuple[int, int]]:
        """[upper bound in µs, count], ascending, as in results.json."""
        return sorted(self.counts.items())

    @classmethod
    def of_pairs(
        cls, pairs: Sequence[tuple[int, int]], mean_us: float, maximum_us: float
    ) -> Histogram:
        """The histogram of `pairs`, with the exact mean and maximum stored with it."""
        counts: dict[int, int] = {}
        for bound, count in pairs:
            if bound < 0 or count < 0:
                raise ValueError(f"not a bucket: {bound} µs, {count} times")
            counts[bound] = counts.get(bound, 0) + count
        total = sum(counts.values())
        return cls(counts, total, mean_us * total, maximum_us)


def merged(parts: Iterable[Histogram]) -> Histogram:
    """The histogram of all responses of all load hosts."""
    whole = Histogram()
    for part in parts:
        for bound, count in part.counts.items():
            whole.counts[bound] = whole.counts.get(bound, 0) + count
        whole.total += part.total
        whole.sum_us += part.sum_us
        whole.maximum_us = max(whole.maximum_us, part.maximum_us)
    return whole


def upper_bound(latency_us: float) -> int:
    """The bucket's bound: the least number with seven leading bits that is not below."""
    whole = max(1, math.ceil(latency_us))
    step = _step(whole)
    return -(-whole // step) * step


def _step(whole: int) -> int:
    """The width of the bucket for this latency."""
    return 1 << max(0, (whole - 1).bit_length() - KEPT_BITS)

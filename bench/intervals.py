"""Medians with bootstrap intervals."""

from __future__ import annotations

import random
import statistics
from dataclasses import asdict, dataclass

RESAMPLES = 4000
SEED = 20


@dataclass(frozen=True)
class Interval:
    """A median and the ends of its 95 % interval."""

    median: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """For the raw results."""
        return {key: round(value, 6) for key, value in asdict(self).items()}


def of(values: list[float]) -> Interval:
    """The median of the values, with a percentile bootstrap of the median."""
    if not values:
        raise ValueError("no values")
    chance = random.Random(SEED)
    medians = sorted(
        statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    low = medians[round(0.025 * (RESAMPLES - 1))]
    high = medians[round(0.975 * (RESAMPLES - 1))]
    return Interval(statistics.median(values), low, high)

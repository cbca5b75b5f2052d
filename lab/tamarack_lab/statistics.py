"""The lab's arithmetic: medians with intervals, the A/A noise floor, tests, Holm's correction.

Everything here is deterministic: resampling is seeded, so the same results give the same report.
Effects are ratios (1.10 is ten per cent more); noise floors are relative (0.02 is two per cent).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Kind = Literal["bootstrap", "range"]

SEED = 20
RESAMPLES = 4000
CONFIDENCE = 0.95
# Below this many starts the bootstrap only repeats the samples: the range is used instead.
FEWEST_FOR_INTERVAL = 5
# The normal approximation can't reach the small p-values that Holm requires over many cells.
MOST_FOR_EXACT = 40
# The numbers of starts among which a power of four in five is searched.
POWER = 0.8
STARTS = tuple(range(3, 41))
EFFECTS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)


@dataclass(frozen=True)
class Interval:
    """A median and its two ends: a bootstrap 95 % interval, or the range of a few samples."""

    median: float
    low: float
    high: float
    kind: Kind
    count: int


def interval(samples: Sequence[float], quick: bool = False) -> Interval:
    """The median with its interval; for quick runs, and fewer than five samples, the range."""
    return _interval(tuple(samples), quick)


@lru_cache(maxsize=20_000)
def _interval(samples: tuple[float, ...], quick: bool) -> Interval:
    values = _finite(samples)
    middle = float(np.median(values))
    if quick or len(values) < FEWEST_FOR_INTERVAL:
        return Interval(middle, float(values.min()), float(values.max()), "range", len(values))
    low, high = np.quantile(_medians(values), _tails())
    return Interval(middle, float(low), float(high), "bootstrap", len(values))


def ratio(over: Sequence[float], under: Sequence[float], quick: bool = False) -> Interval:
    """The ratio of two medians with its interval (for few samples: its widest bounds)."""
    above, below = _positive(over), _positive(under)
    middle = float(np.median(above) / np.median(below))
    count = min(len(above), len(below))
    if quick or count < FEWEST_FOR_INTERVAL:
        low, high = above.min() / below.max(), above.max() / below.min()
        return Interval(middle, float(low), float(high), "range", count)
    low, high = np.quantile(_medians(above, SEED) / _medians(below, SEED + 1), _tails())
    return Interval(middle, float(low), float(high), "bootstrap", count)


def noise_floor(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """How far two medians of the same thing lie apart by chance alone, relative.

    Each pair is one A/A cell: the same server measured twice, interleaved. The observed
    difference is one draw, so the spread around the pairs' medians is resampled too; the larger
    of the two counts. 0.0 without a pair.
    """
    given = tuple((tuple(a), tuple(b)) for a, b in pairs if len(a) and len(b))
    return _noise_floor(given) if given else 0.0


@lru_cache(maxsize=256)
def _noise_floor(pairs: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]) -> float:
    used = [(_positive(a), _positive(b)) for a, b in pairs]
    seen = max(abs(math.log(float(np.median(a) / np.median(b)))) for a, b in used)
    spread = np.concatenate([_residuals(np.concatenate(pair)) for pair in used])
    starts = min(min(len(a), len(b)) for a, b in used)
    drawn = np.random.default_rng(SEED).choice(spread, size=(2, RESAMPLES, starts))
    apart = np.abs(np.median(drawn[0], axis=1) - np.median(drawn[1], axis=1))
    return float(math.expm1(max(seen, float(np.quantile(apart, CONFIDENCE)))))


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Mann–Whitney, two-sided: the chance of so large a shift between equals. 1.0 when empty."""
    a, b = _finite(first), _finite(second)
    if not len(a) or not len(b) or np.unique(np.concatenate([a, b])).size == 1:
        return 1.0
    tied = np.unique(np.concatenate([a, b])).size < len(a) + len(b)
    large = max(len(a), len(b)) > MOST_FOR_EXACT
    method: Literal["asymptotic", "exact"] = "asymptotic" if tied or large else "exact"
    return float(stats.mannwhitneyu(a, b, alternative="two-sided", method=method).pvalue)


def pooled_p_value(strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The same question over several cells at once: van Elteren's stratified rank test.

    The ranks stay inside their cell, so that cells of different size and unit may be pooled. In
    three starts of many cells it finds changes that no single cell of three starts can show.
    """
    shift, variance = 0.0, 0.0
    for first, second in strata:
        a, b = _finite(first), _finite(second)
        if not len(a) or not len(b):
            continue
        total = len(a) + len(b)
        ranks = stats.rankdata(np.concatenate([a, b]))
        weight = 1.0 / (total + 1)
        shift += weight * (float(ranks[: len(a)].sum()) - len(a) * (total + 1) / 2)
        variance += weight**2 * len(a) * len(b) * float(ranks.var(ddof=1)) / total
    if variance == 0.0:
        return 1.0
    return float(2 * stats.norm.sf(abs(shift) / math.sqrt(variance)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: each p adjusted for the number of questions."""
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return corrected


def share_over(samples: Sequence[float], limit: float) -> float:
    """The share of samples above the limit, 0 to 1."""
    values = _finite(samples)
    return float((values > limit).mean()) if len(values) else 0.0


def geometric_mean(ratios: Sequence[float]) -> float:
    """The median of ratios; 1.0 without one."""
    return float(np.exp(np.log(_positive(ratios)).mean())) if ratios else 1.0


def starts_needed(effect: float, spread: float, cells: int, alpha: float) -> int | None:
    """Fresh starts per cell that find an effect (0.10) four times of five; None if 40 are too few.

    The spread is the relative standard deviation of one start; the cells share alpha by Holm.
    """
    at = bisect_left(STARTS, POWER, key=lambda starts: power_of(
        effect, spread, starts, cells, alpha))
    return STARTS[at] if at < len(STARTS) else None


def least_found(spread: float, starts: int, cells: int, alpha: float) -> float | None:
    """The smallest effect that this many starts find that often; None: not even a doubling."""
    at = bisect_left(EFFECTS, POWER, key=lambda effect: power_of(
        effect, spread, starts, cells, alpha))
    return EFFECTS[at] if at < len(EFFECTS) else None


@lru_cache(maxsize=1024)
def power_of(effect: float, spread: float, starts: int, cells: int, alpha: float) -> float:
    """How often Mann–Whitney finds a shift of one cell when cells share alpha by Holm."""
    rounds = 400
    chance = np.random.default_rng(SEED)
    plain = chance.normal(0.0, spread, size=(rounds, starts))
    shifted = chance.normal(math.log1p(effect), spread, size=(rounds, starts))
    result = stats.mannwhitneyu(
        plain, shifted, axis=1, alternative="two-sided", method="exact")
    return float((np.asarray(result.pvalue) * cells <= alpha).mean())


def relative_spread(groups: Sequence[Sequence[float]]) -> float:
    """The standard deviation of one start around its cell's median, robust, relative."""
    used = [_positive(group) for group in groups if len(group) > 1]
    if not used:
        return 0.0
    rest = np.concatenate([_residuals(values) for values in used])
    return float(1.4826 * np.median(np.abs(rest)))


def _residuals(values: Floats) -> Floats:
    """Logarithms around their median, widened for the degree of freedom that the median took."""
    logs = np.log(values)
    widen = math.sqrt(len(values) / max(1, len(values) - 1))
    centred: Floats = (logs - np.median(logs)) * widen
    return centred


def _medians(values: Floats, seed: int = SEED) -> Floats:
    drawn = np.random.default_rng(seed).choice(values, size=(RESAMPLES, len(values)))
    medians: Floats = np.median(drawn, axis=1)
    return medians


def _tails() -> list[float]:
    return [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]


def _finite(samples: Sequence[float]) -> Floats:
    values: Floats = np.asarray(samples, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a sample is not a number")
    return values


def _positive(samples: Sequence[float]) -> Floats:
    values = _finite(samples)
    if not len(values) or values.min() <= 0:
        raise ValueError("ratios need samples above zero")
    return values

"""Latency histograms: percentiles, and hosts merged as if one had measured all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tamarack_lab.histogram import Histogram, merged, upper_bound


def recorded(values: list[float]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram


def latencies(seed: int, count: int) -> list[float]:
    return [float(v) for v in np.random.default_rng(seed).lognormal(6.0, 1.0, count)]


@pytest.mark.parametrize("percent", [50, 90, 99, 99.9])
def test_percentiles_are_within_a_bucket_of_the_samples(percent: float) -> None:
    values = latencies(1, 20_000)
    exact = float(np.percentile(values, percent, method="inverted_cdf"))
    assert recorded(values).percentile(percent) == pytest.approx(exact, rel=0.016)


def test_merging_hosts_is_recording_all_on_one() -> None:
    one, other = latencies(2, 5000), [50 * value for value in latencies(3, 800)]
    together = merged([recorded(one), recorded(other)])
    alone = recorded(one + other)
    assert together.counts == alone.counts
    assert together.total == 5800
    assert together.maximum_us == max(other)
    assert together.mean_us() == pytest.approx(float(np.mean(one + other)))
    # The mean of the hosts' percentiles is something else: that is why they are merged so.
    naive = (recorded(one).percentile(99) + recorded(other).percentile(99)) / 2
    assert abs(together.percentile(99) - naive) / naive > 0.1


def test_the_highest_percentile_is_the_maximum_and_empty_is_nought() -> None:
    assert recorded([3.0, 700.5]).percentile(100) == 700.5
    assert Histogram().percentile(99) == 0.0
    assert Histogram().mean_us() == 0.0
    assert Histogram().share_over(5) == 0.0


def test_shares_over_a_limit() -> None:
    assert recorded([50.0, 150.0, 1500.0, 20.0]).share_over(100) == 0.5


def test_what_may_be_under_the_limit_is_not_over_it() -> None:
    # 99.5 ms and 100.2 ms share a bucket whose bound is over 100 ms.
    assert recorded([99_500.0, 99_500.0, 101_000.0, 250_000.0]).share_over(100_000) == 0.5


def test_pairs_go_there_and_back() -> None:
    histogram = recorded(latencies(4, 100))
    pairs = json.loads(json.dumps(histogram.pairs()))
    again = Histogram.of_pairs(pairs, histogram.mean_us(), histogram.maximum_us)
    assert (again.counts, again.total) == (histogram.counts, 100)
    assert again.percentile(99) == histogram.percentile(99)
    with pytest.raises(ValueError, match="not a bucket"):
        Histogram.of_pairs([(5, -1)], 1.0, 1.0)


@pytest.mark.parametrize("latency", [0.0, 0.5, 1.0, 127.0, 128.0, 129.0, 4097.3, 9e9])
def test_a_bound_is_never_below_and_at_most_a_64th_above(latency: float) -> None:
    bound = upper_bound(latency)
    assert latency <= bound <= max(1.0, latency + 1, latency * (1 + 1 / 64))
    assert upper_bound(bound) == bound


@pytest.mark.parametrize("latency", [-1.0, float("nan"), float("inf")])
def test_what_is_no_latency_is_refused(latency: float) -> None:
    with pytest.raises(ValueError, match="not a latency"):
        Histogram().record(latency)

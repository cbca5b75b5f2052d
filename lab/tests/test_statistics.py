"""Intervals, floors, tests and corrections, against values known otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tamarack_lab import statistics


def draws(seed: int, count: int, middle: float = 10.0, spread: float = 0.02) -> list[float]:
    chance = np.random.default_rng(seed)
    return [float(value) for value in middle * np.exp(chance.normal(0.0, spread, count))]


def test_an_interval_holds_the_median_and_is_repeatable() -> None:
    samples = draws(1, 10)
    first, again = statistics.interval(samples), statistics.interval(samples)
    assert first == again
    assert first.kind == "bootstrap"
    assert first.low < first.median < first.high
    assert min(samples) <= first.low and first.high <= max(samples)


def test_a_bootstrap_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(200):
        found = statistics.interval(draws(seed, 20))
        covered += found.low <= 10.0 <= found.high
    assert 178 <= covered <= 199


@pytest.mark.parametrize(("count", "quick"), [(3, False), (3, True), (10, True)])
def test_few_samples_give_their_range(count: int, quick: bool) -> None:
    samples = draws(2, count)
    found = statistics.interval(samples, quick=quick)
    assert (found.kind, found.low, found.high) == ("range", min(samples), max(samples))


def test_a_sample_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        statistics.interval([1.0, math.nan, 2.0])
    with pytest.raises(ValueError, match="above zero"):
        statistics.ratio([1.0, 2.0], [0.0, 1.0])


def test_a_ratio_of_medians_covers_what_was_put_in() -> None:
    found = statistics.ratio(draws(3, 12, 11.0), draws(4, 12, 10.0))
    assert found.low < 1.1 < found.high
    assert 1.06 < found.median < 1.14


def test_the_floor_grows_with_the_noise_and_is_nought_without_a_pair() -> None:
    quiet = statistics.noise_floor([(draws(5, 10), draws(6, 10))])
    loud = statistics.noise_floor([(draws(5, 10, spread=0.1), draws(6, 10, spread=0.1))])
    assert 0.005 < quiet < 0.06
    assert loud > 2 * quiet
    assert statistics.noise_floor([]) == 0.0


def test_the_floor_is_never_below_the_difference_that_was_seen() -> None:
    assert statistics.noise_floor([([10.0] * 5, [12.0] * 5)]) >= 0.2 - 1e-9


def test_holm_is_what_the_textbook_says() -> None:
    # Holm 1979 by hand: sorted 0.01·4, 0.02·3, 0.03·2, 0.04·1, made monotone.
    assert statistics.holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert statistics.holm([0.9, 0.6]) == pytest.approx([1.0, 1.0])
    assert statistics.holm([]) == []


def test_complete_separation_has_the_exact_chance() -> None:
    low, high = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    assert statistics.p_value(low, high) == pytest.approx(2 / 20)
    assert statistics.p_value([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert statistics.p_value([], [1.0]) == 1.0


def test_pooling_finds_in_many_small_cells_what_none_shows_alone() -> None:
    # Six cells of quite different size, three starts each, ten per cent apart.
    cells = [(draws(seed, 3, 10.0**seed), draws(seed + 50, 3, 1.1 * 10.0**seed))
             for seed in range(6)]
    assert min(statistics.p_value(a, b) for a, b in cells) >= 0.1 - 1e-9
    assert statistics.pooled_p_value(cells) < 0.001


def test_pooling_holds_its_level() -> None:
    false = 0
    for seed in range(200):
        cells = [(draws(1000 + 20 * seed + at, 3), draws(9000 + 20 * seed + at, 3))
                 for at in range(6)]
        false += statistics.pooled_p_value(cells) < 0.05
    assert false <= 20


def test_ten_starts_find_ten_per_cent_in_quiet_cells_and_not_in_loud_ones() -> None:
    needed = statistics.starts_needed(0.10, spread=0.03, cells=60, alpha=0.05)
    assert needed is not None and needed <= 10
    assert statistics.power_of(0.10, 0.15, 10, 60, 0.05) < 0.3
    assert statistics.starts_needed(0.10, spread=0.5, cells=60, alpha=0.05) is None


def test_spread_and_shares() -> None:
    groups = [draws(seed, 40, 3.0**seed, 0.05) for seed in range(5)]
    assert statistics.relative_spread(groups) == pytest.approx(0.05, rel=0.25)
    assert statistics.share_over([50, 150, 1500, 20], 100) == 0.5
    assert statistics.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)

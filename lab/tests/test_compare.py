"""--compare: an injected slowdown is found, two runs of the same build show nothing."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tamarack_lab import statistics
from tamarack_lab.report import build_comparison, compare
from tamarack_lab.report.compare import ALPHA
from tamarack_lab.report.compare_text import text
from tamarack_lab.results import (
    Cell, Environment, Experiment, LoadSide, NoiseFloor, Results, Sample, Value)

COSTS_US = {"apache-event": 51.0, "apache-prefork": 48.0, "nginx": 12.0, "h2o": 10.0,
            "lighttpd": 14.0, "caddy": 30.0, "tamarack-event": 8.0, "tamarack-loop": 8.2}
SCENARIOS = {"small file": 1.0, "100 KiB file": 2.5, "TLS": 1.3, "log": 1.1}
# How much one start of one server varies: what quiet machines show.
SPREAD = 0.02
BEGAN = datetime(2026, 11, 21, tzinfo=UTC)


def run(seed: int, starts: int = 10, slower: dict[str, float] | None = None, drift: float = 1.0,
        spread: float = SPREAD, quick: bool = False) -> Results:
    """An invented run of 8 servers in 4 scenarios, with an A/A pair; `slower` by server."""
    chance = np.random.default_rng(seed)

    def draw(middle: float) -> list[float]:
        return [float(one) for one in middle * np.exp(chance.normal(0, spread, starts))]

    cells = []
    for server, cost in COSTS_US.items():
        for scenario, factor in SCENARIOS.items():
            middle = cost * factor * drift * (slower or {}).get(server, 1.0)
            axes: dict[str, Value] = {"scenario": scenario}
            cells.append(Cell(
                key=f"server={server} scenario={scenario}", server=server, label=server,
                axes=axes, tool="wrk", status="ok",
                samples=[Sample(start=at, order=at, at=BEGAN, duration_s=1, requests=1000,
                                requests_per_s=1e6 / value, cpu_us_per_request=value)
                         for at, value in enumerate(draw(middle))]))
    floor = NoiseFloor(key=cells[0].key, metric="cpu_us_per_request",
                       first=draw(51.0), second=draw(51.0))
    peers = Experiment(name="peers", title="Peers", about="", axes=["scenario"],
                       headline="cpu_us_per_request", metrics=["requests_per_s"],
                       planned=len(cells), cells=cells, floors=[floor])
    return Results(
        started=BEGAN, command=["peers"], quick=quick, starts=starts, seconds=1.0,
        load=LoadSide(kind="mask", server_cpus=[0], load_cpus=[1], text="here"),
        headline_reason="two CPUs", environment=environment(), experiments=[peers])


def environment() -> Environment:
    return Environment(
        cpu="Invented CPU", cpus=2, cores=2, governor="", mhz_max=None, memory_bytes=1,
        mitigations={}, kernel="", system="", virtual="", sysctls={}, limits={}, servers={},
        flags={}, tools={}, commit="0", lab="0")


def test_a_slowdown_of_ten_per_cent_in_one_server_is_found() -> None:
    """In every one of twelve pairs of runs; of their 480 questions at most one errs."""
    false = []
    for seed in range(0, 24, 2):
        found = compare(run(seed), run(seed + 1, slower={"nginx": 1.1}))
        worse = [one for one in found.changes if one.verdict == "worse"]
        assert found.worse
        assert {one.place for one in worse if one.server == "nginx"} == {*SCENARIOS, "4 cells"}
        false += [one for one in found.changes
                  if one.verdict != "same" and one.server != "nginx"]
    assert len(false) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_two_runs_of_the_same_build_show_nothing(seed: int) -> None:
    found = compare(run(1000 + 2 * seed), run(1001 + 2 * seed))
    assert not found.changed and not found.worse
    assert "Nothing changed beyond the noise" in text(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_slower_machine_is_no_slower_server(seed: int) -> None:
    found = compare(run(2000 + 2 * seed), run(2001 + 2 * seed, drift=1.15))
    assert not found.changed
    assert found.drift["cpu_us_per_request"] == pytest.approx(1.15, abs=0.02)
    found = compare(run(2000 + 2 * seed), run(2001 + 2 * seed, drift=1.15,
                                              slower={"h2o": 1.1}))
    assert {one.server for one in found.changes if one.verdict != "same"} == {"h2o"}


@pytest.mark.parametrize("seed", range(5))
def test_a_family_of_shapes_that_slows_down_is_not_taken_for_the_machine(seed: int) -> None:
    slower = {"tamarack-event": 1.1, "tamarack-loop": 1.1}
    found = compare(run(3000 + 2 * seed), run(3001 + 2 * seed, slower=slower))
    assert {one.server for one in found.changes if one.verdict == "worse"} == set(slower)
    assert [one for one in found.changes if one.verdict == "better"] == []


@pytest.mark.parametrize("seed", range(5))
def test_three_starts_find_it_over_all_cells_of_the_server(seed: int) -> None:
    found = compare(run(4000 + 2 * seed, starts=3, quick=True),
                    run(4001 + 2 * seed, starts=3, slower={"caddy": 1.12}, quick=True))
    worse = [one for one in found.changes if one.verdict == "worse"]
    assert {one.server for one in worse} <= {"caddy"}
    cells = [one for one in worse if one.before is not None]
    assert cells == [], "three starts of one cell prove nothing"


def test_cells_that_shift_at_random_between_runs_are_noise() -> None:
    """Each cell five per cent off one way or the other, as on a machine with neighbours."""
    after = run(12)
    chance = np.random.default_rng(13)
    for cell in after.experiments[0].cells:
        shift = float(np.exp(chance.normal(0, 0.05)))
        for sample in cell.samples:
            assert sample.cpu_us_per_request
            sample.cpu_us_per_request *= shift
    found = compare(run(11), after)
    assert sum(one.verdict != "same" for one in found.changes) <= 1
    assert found.scatter["cpu_us_per_request"] > 0.08


def test_a_gain_is_better_and_not_worse() -> None:
    found = compare(run(1), run(2, slower={"apache-event": 0.85}))
    assert found.changed and not found.worse
    assert "better" in text(found)


def test_a_cell_that_loses_its_figure_is_worse() -> None:
    after = run(6)
    after.experiments[0].cells[3] = after.experiments[0].cells[3].model_copy(
        update={"status": "marked", "reason": "does not start"})
    found = compare(run(5), after)
    assert found.worse
    assert [(mark.what, mark.reason) for mark in found.marks] == [("broken", "does not start")]
    assert "does not start" in text(found)


def test_the_table_goes_by_ten_starts_being_enough() -> None:
    """The power behind the first test: how many starts 10 % need in one of these cells."""
    questions = len(COSTS_US) * len(SCENARIOS) + len(COSTS_US)
    needed = {spread: statistics.starts_needed(0.10, spread, questions, ALPHA)
              for spread in (0.01, 0.02, 0.03, 0.05)}
    assert needed[0.02] is not None and needed[0.02] <= 10
    assert needed[0.05] is not None and needed[0.05] > 10
    found = compare(run(7), run(8))
    assert "starts find 10.0 %" in " ".join(text(found).split())


def test_page_and_sheet_hold_every_question(tmp_path: Path) -> None:
    found = compare(run(9), run(10, slower={"nginx": 1.3}))
    html, sheet = build_comparison(found, tmp_path)
    with sheet.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(found.changes) == 40
    assert rows[0]["verdict"] == "worse" and rows[0]["label"] == "nginx"
    assert "▲ worse" in html.read_text()


def test_runs_without_a_common_cell_say_so() -> None:
    other = run(11).model_copy(update={"experiments": []})
    found = compare(run(11), other)
    assert found.unmatched == 32 and not found.worse
    assert "nothing can be compared" in text(found)

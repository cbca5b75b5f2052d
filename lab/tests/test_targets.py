"""Targets: what a file may say, which cells a run of them has, and when one is met."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from rich.console import Console
from tamarack_lab import cli, experiment, plan, servers
from tamarack_lab.report import show_targets
from tamarack_lab.report.page import page
from tamarack_lab.report.targets import judge
from tamarack_lab.results import Cell, Experiment, Metric, Results, Sample, Target, read
from tests.test_report import EXAMPLE

OURS, PEER = {"server": "nginx", "scenario": "a"}, {"server": "apache-event", "scenario": "a"}


def cell(server: str, values: list[float], errors: int = 0, reason: str = "") -> Cell:
    samples = [Sample(start=start, order=start, at="2026-01-01T00:00:00Z", duration_s=1.0,
                      requests=100, requests_per_s=100.0, errors=errors, cpu_us_per_request=value,
                      bytes_per_connection=value)  # type: ignore[arg-type]
               for start, value in enumerate(values)]
    return Cell(key=f"server={server} scenario=a", server=server, label=server,
                axes={"scenario": "a"}, tool="wrk", status="marked" if reason else "ok",
                reason=reason, samples=samples)


def judged(target: Target, *cells: Cell) -> list[tuple[str, str]]:
    made = Experiment(name="x", title="X", about="", axes=["scenario"], metrics=[],
                      headline="cpu_us_per_request", planned=2, cells=list(cells),
                      targets=[target])
    return [(one.state, one.shown) for one in judge(made)]


RATIO = Target(of=dict(OURS), to=dict(PEER), most=1.2)


@pytest.mark.parametrize(("values", "state"), [
    # The median decides, whatever the lower end of the interval says.
    ([11.9, 12.5] * 5, "MISSED"), ([12.0] * 10, "met"), ([12.5] * 10, "MISSED"),
    ([1.0] * 4 + [13.0] * 6, "MISSED"), ([10.0] * 6 + [99.0] * 4, "met")])
def test_the_median_of_the_rounds_decides(values: list[float], state: str) -> None:
    assert judged(RATIO, cell("nginx", values), cell("apache-event", [10.0] * 10))[0][0] == state


def test_a_ratio_is_taken_within_each_round() -> None:
    slower = [1.0 + number for number in range(10)]
    ours = cell("nginx", [1.1 * value for value in slower])
    assert judged(RATIO, ours, cell("apache-event", slower)) == [("met", "1.10 (1.10 to 1.10)")]
    # Rounds that only one side has do not count.
    few = judged(RATIO, ours, cell("apache-event", slower[:9]))
    assert few == [("open", "1.10 (1.10 to 1.10)")]


def test_differences_values_and_lower_limits() -> None:
    ours, peer = cell("nginx", [10.4] * 10), cell("apache-event", [10.0] * 10)
    more = Target(form="difference", of=dict(OURS), to=dict(PEER), most=0.5)
    assert judged(more, ours, peer) == [("met", "0.4 µs (0.4 µs to 0.4 µs)")]
    less = Target(form="difference", of=dict(PEER), to=dict(OURS), most=0.5)
    assert judged(less, ours, peer)[0] == ("met", "−0.4 µs (−0.4 µs to −0.4 µs)")
    bytes_of: Metric = "bytes_per_connection"
    far = {"server": "h2o", "scenario": "a"}
    above = Target(of=dict(OURS), above=dict(PEER), to=far, most=0.1)
    assert judged(above, ours, peer, cell("h2o", [5.0] * 10))[0] == (
        "met", "0.08 (0.08 to 0.08)")
    assert not judged(above, ours, cell("h2o", [5.0] * 10))
    value = Target(form="value", metric=bytes_of, of=dict(OURS), most=10)
    assert judged(value, ours)[0][0] == "MISSED"
    least = Target(of=dict(OURS), to=dict(PEER), least=1.05)
    assert judged(least, ours, peer)[0][0] == "MISSED"


def test_our_errors_miss_it_and_a_peers_leave_it_open() -> None:
    good, bad = [10.0] * 10, "3 errors in 1 of 10 starts"
    assert judged(RATIO, cell("nginx", good, 1, bad), cell("apache-event", good)) == [
        ("MISSED", "–")]
    assert judged(RATIO, cell("nginx", good), cell("apache-event", good, 1, bad)) == [
        ("open", "–")]
    assert judged(RATIO, cell("nginx", [], 0, "absent: not yet"), cell("apache-event", good)) == [
        ("open", "–")]
    assert not judged(RATIO, cell("nginx", good)), "what is not in the run is not judged"


@pytest.mark.parametrize("given", [
    {"of": OURS, "to": PEER}, {"of": OURS, "to": PEER, "most": 1, "least": 1},
    {"of": OURS, "most": 1}, {"of": OURS, "to": PEER, "form": "value", "most": 1}])
def test_a_target_has_one_limit_and_what_its_form_needs(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Target.model_validate(given)


def results() -> Results:
    made = read(EXAMPLE)
    first = made.experiments[0].model_copy(update={"targets": [
        Target(of={"server": "nginx", "scheme": "http", "log": "off"},
               to={"server": "apache-event", "scheme": "http", "log": "off"}, most=0.5),
        Target(of={"server": "nginx", "scheme": "https", "log": "off"},
               to={"server": "nginx", "scheme": "http", "log": "off"}, most=0.5)]})
    return made.model_copy(update={"experiments": [first]})


def test_the_report_and_the_terminal_show_them() -> None:
    console = Console(width=160, no_color=True)
    with console.capture() as capture:
        # Three starts are too few to miss anything.
        assert show_targets(results(), console) == 0
    said = capture.get()
    assert "scheme http, log off: nginx / Apache event" in said and "open: 3 of 10 rounds" in said
    assert "scheme https, log off: nginx / scheme http" in said
    assert "<caption>Targets</caption>" in page(results())


@pytest.mark.parametrize("name", [name for name in experiment.names()
                                  if experiment.load(name).targets])
def test_every_target_names_two_cells_of_the_full_run(name: str) -> None:
    spec = experiment.load(name)
    made = plan.make(spec, servers.kinds(), False, 2, 1, plan.Chosen(judged=True))
    assert 0 < len(made.cells) < len(plan.make(spec, servers.kinds(), False, 2, 1).cells) + 1
    for target in spec.targets:
        for side in filter(None, (target.of, target.to)):
            assert sum(plan._fits(cell, side) for cell in made.cells) == 1, side
        assert str(target.of["server"]).startswith("tamarack")


def test_each_row_of_a_real_site_has_a_target() -> None:
    spec = experiment.load("site")
    judged = {side["scenario"] for target in spec.targets
              for side in (target.of, target.to) if side}
    assert judged == {block.scenario for block in spec.cells}
    shapes = {(target.of["server"], target.of["scenario"])
              for target in experiment.load("peers").targets}
    assert {(f"tamarack-{shape}", "mixed site") for shape in ("event", "worker", "prefork")} <= shapes


def test_a_part_of_a_run_is_chosen_by_name() -> None:
    spec = experiment.load("site")
    chosen = cli._chosen(cli.parse(["site", "--servers", "tamarack,nginx", "--scenario",
                                    "HEAD,Range, 100 bytes"]), [spec], servers.kinds())
    assert chosen.scenarios == {"HEAD", "Range, 100 bytes"}
    made = plan.make(spec, servers.kinds(), False, 2, 1, chosen)
    assert {(cell.server, cell.axes["scenario"]) for cell in made.cells} == {
        (server, scenario) for server in ("nginx", "tamarack-event")
        for scenario in chosen.scenarios}


@pytest.mark.parametrize(("option", "said"), [
    (["--scenario", "HED"], "--scenario HED: no such scenario, did you mean HEAD?"),
    (["--servers", "tamarak"], "--servers tamarak: the lab has no such server, did you mean ")])
def test_a_part_that_is_none_is_said(option: list[str], said: str, tmp_path: Path,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["site", *option, "--out", str(tmp_path / "out")]) == cli.USELESS
    assert said in capsys.readouterr().err


def test_rounds_are_starts_and_targets_need_no_experiment() -> None:
    options = cli.parse(["--targets", "--rounds", "12"])
    assert options.starts == 12 and options.targets and not options.experiments


def test_make_bench_names_options_that_there_are() -> None:
    root = Path(__file__).parent.parent.parent
    recipe = re.search(r"^\tlab/run (--targets.*) \$\(BENCH_ARGS\)$",
                       (root / "Makefile").read_text(), re.MULTILINE)
    assert recipe and cli.parse(recipe[1].split()).targets

"""Whole runs with fake servers: marks, notes, the journal, the exit status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tamarack_lab import cli, engine, measure, results
from tamarack_lab.errors import LabError
from tamarack_lab.load import TOOLS
from tamarack_lab.plan import Planned
from tests.fakes import FakeTool, experiment


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTool]:
    made = FakeTool()
    monkeypatch.setitem(TOOLS, "fetch", made)
    monkeypatch.setattr(cli, "_report", lambda made, run: 0)
    yield made


def run(tmp_path: Path, servers: list[str], *more: str) -> tuple[int, results.Results]:
    path = experiment(tmp_path, servers)
    status = cli.main([str(path), "--quick", "--seconds", "0.01", "--no-install",
                       "--out", str(tmp_path / "out"), *more])
    return status, results.read(tmp_path / "out")


def test_what_works_is_measured_and_the_rest_is_marked(tmp_path: Path, tool: FakeTool) -> None:
    status, made = run(tmp_path, ["fake", "fake-wrong", "fake-broken", "fake-absent"])
    cells = {cell.server: cell for cell in made.experiments[0].cells}
    assert status == cli.MARKED
    assert cells["fake"].status == "ok" and len(cells["fake"].samples) == 3
    assert "wrong bytes" in cells["fake-wrong"].reason
    assert cells["fake-broken"].reason == (
        "broken server does not start: line 3: no such directive")
    assert cells["fake-absent"].reason == "absent server is missing: no absentd"
    assert sum("absent server" in line for line in made.notes) == 1
    assert made.finished and made.headline_reason and made.load.text
    assert ("3 fresh starts per cell, a test each, instead of 10"
            in made.experiments[0].left_out)
    floor = made.experiments[0].floors[0]
    assert len(floor.first) == len(floor.second) == 3
    assert engine.filled(made) == (1, 3, 4)


def test_all_good_ends_with_zero(tmp_path: Path, tool: FakeTool) -> None:
    status, made = run(tmp_path, ["fake"])
    assert status == cli.GOOD
    sample = made.experiments[0].cells[0].samples[0]
    assert sample.latency is not None and sample.latency.percentiles_us["50"] == 100.0
    assert sample.cpu_us_per_request is not None and sample.cpu_us_per_request >= 0


def test_one_error_marks_the_cell(tmp_path: Path, tool: FakeTool) -> None:
    tool.errors_at = {1}
    status, made = run(tmp_path, ["fake"])
    cell = made.experiments[0].cells[0]
    # Its only cell: nothing could be run.
    assert status == cli.USELESS and cell.status == "marked"
    assert cell.reason == "1 errors in 1 of 3 starts (read 1)"
    assert [one.errors for one in cell.samples] == [0, 1, 0]
    # A noise floor of a cell with errors is none.
    assert not made.experiments[0].floors


def test_an_error_in_the_second_measurement_of_a_twin_leaves_no_floor(
        tmp_path: Path, tool: FakeTool) -> None:
    run(tmp_path, ["fake"])
    journal = tmp_path / "out" / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    next(line for line in lines if line.get("twin"))["sample"]["errors"] = 1
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, made = run(tmp_path, ["fake"])
    assert status == cli.GOOD and not made.experiments[0].floors


def test_the_floor_knows_every_metric(tmp_path: Path, tool: FakeTool) -> None:
    path = experiment(tmp_path, ["fake"])
    text = path.read_text().replace('["requests_per_s"]', '["context_switches_per_request", '
                                    '"migrations_per_100k", "share_over_1s"]')
    path.write_text(text)
    tool.over = {1000: 1}
    status = cli.main([str(path), "--quick", "--seconds", "0.01", "--no-install",
                       "--out", str(tmp_path / "out")])
    assert status == cli.GOOD
    floors = {floor.metric for floor in results.read(tmp_path / "out").experiments[0].floors}
    assert "context_switches_per_request" in floors and "share_over_1s" in floors


def test_an_interrupted_run_goes_on(tmp_path: Path, tool: FakeTool,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = measure.sample, []

    def interrupted(*given: object) -> results.Sample:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "sample", interrupted)
    status, made = run(tmp_path, ["fake"])
    assert status == cli.INTERRUPTED and made.finished is None
    began = made.started
    status, made = run(tmp_path, ["fake"])
    assert status == cli.GOOD and made.started == began
    # Two before it stopped, one that was cut off, four that were left of six.
    assert len(calls) == 3 + 4
    assert [one.start for one in made.experiments[0].cells[0].samples] == [0, 1, 2]
    run(tmp_path, ["fake"])
    assert len(calls) == 7


def test_a_failed_start_stays_a_mark_until_it_is_lifted(
        tmp_path: Path, tool: FakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = measure.sample, []

    def fails_once(*given: object) -> results.Sample:
        calls.append(given)
        if len(calls) == 3:
            raise LabError("fake server does not start: by chance")
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "sample", fails_once)
    status, made = run(tmp_path, ["fake"])
    assert status == cli.USELESS and len(calls) == 3
    again, made = run(tmp_path, ["fake"])
    assert again == status and len(calls) == 3, "it is not tried until it works"
    assert made.experiments[0].cells[0].reason == "fake server does not start: by chance"
    status, made = run(tmp_path, ["fake"], "--retry")
    assert status == cli.GOOD and len(calls) == 3 + 6, "all its starts are made anew"
    lifted = ("small: server=fake concurrency=2: tried again (--retry) after: "
              "fake server does not start: by chance")
    assert lifted in made.notes
    status, made = run(tmp_path, ["fake"])
    assert status == cli.GOOD and len(calls) == 9 and lifted in made.notes


def test_a_cell_with_errors_begins_anew_on_retry(tmp_path: Path, tool: FakeTool) -> None:
    tool.errors_at = {1}
    run(tmp_path, ["fake"])
    tool.errors_at = set()
    assert run(tmp_path, ["fake"])[0] == cli.USELESS
    status, made = run(tmp_path, ["fake"], "--retry")
    assert status == cli.GOOD
    assert any("after: 1 errors in 1 of 3 starts" in line for line in made.notes)


@pytest.mark.parametrize("error", [
    ValueError("no such\nfigure: 'x'"), KeyError("p99"), FileNotFoundError(2, "No such file")])
def test_an_error_that_nobody_foresaw_costs_one_cell(
        tmp_path: Path, tool: FakeTool, monkeypatch: pytest.MonkeyPatch,
        error: Exception) -> None:
    real = measure.sample

    def fails(cell: Planned, *given: object) -> results.Sample:
        if cell.server == "fake-wrong":
            raise error
        return real(cell, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "sample", fails)
    status, made = run(tmp_path, ["fake", "fake-wrong"])
    cells = {cell.server: cell for cell in made.experiments[0].cells}
    assert status == cli.MARKED and cells["fake"].status == "ok"
    assert cells["fake-wrong"].reason.startswith(f"the lab failed: {type(error).__name__}: ")
    assert "test_engine.py:" in cells["fake-wrong"].reason
    assert "\n" not in cells["fake-wrong"].reason


def test_a_folder_that_can_not_be_written_is_said(
        tmp_path: Path, tool: FakeTool, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("a file")
    path = experiment(tmp_path, ["fake"])
    assert cli.main([str(path), "--no-install", "--out", str(tmp_path / "out")]) == cli.USELESS
    assert "out: nothing can be written there: " in capsys.readouterr().err


def test_a_file_that_is_not_utf_8_is_said(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "caf\xe9"\n')
    assert cli.main([str(path), "--out", str(tmp_path / "out")]) == cli.USELESS
    assert f"{path}: not UTF-8 at byte 11" in capsys.readouterr().err.replace("\n", "")


def test_a_missing_openssl_is_said(tmp_path: Path, tool: FakeTool,
                                   monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    def missing(folder: Path, large: frozenset[str]) -> None:
        raise FileNotFoundError(2, "No such file or directory", "openssl")

    monkeypatch.setattr(cli.site, "make", missing)
    path = experiment(tmp_path, ["fake"])
    assert cli.main([str(path), "--no-install", "--out", str(tmp_path / "out")]) == cli.USELESS
    assert "openssl is missing: apt-get install openssl\n" in capsys.readouterr().err


def test_an_interrupt_while_packages_are_installed_is_one_line(
        tmp_path: Path, tool: FakeTool, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*given: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "install", interrupted)
    path = experiment(tmp_path, ["fake"])
    assert cli.main([str(path), "--out", str(tmp_path / "out")]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "interrupted before anything was measured\n"


def test_an_experiment_without_cells_is_said(tmp_path: Path, tool: FakeTool,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    path = experiment(tmp_path, ["fake"])
    out = ["--no-install", "--out", str(tmp_path / "out")]
    assert cli.main([str(path), "--servers", "fake-absent", *out]) == cli.USELESS
    assert "small has no cells of fake-absent; its servers are fake\n" in capsys.readouterr().err


def test_an_edited_experiment_is_another_run(tmp_path: Path, tool: FakeTool,
                                             monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, ["fake"])
    path = tmp_path / "small.toml"
    path.write_text(path.read_text() + "# edited\n")
    arguments = [str(path), "--quick", "--seconds", "0.01", "--no-install",
                 "--out", str(tmp_path / "out")]
    assert cli.main(arguments) == cli.USELESS
    said = capsys.readouterr().err
    assert "(small.toml was edited since): to begin anew choose another --out" in said
    monkeypatch.setattr(FakeTool, "version", lambda self, side: "fetch 2")
    status, _ = run(tmp_path, ["fake"])
    assert status == cli.USELESS
    assert "fetch: fetch 1 then, fetch 2 now" in capsys.readouterr().err


def test_another_run_in_the_folder_is_refused(tmp_path: Path, tool: FakeTool,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, ["fake"])
    status, _ = run(tmp_path, ["fake"], "--starts", "5")
    assert status == cli.USELESS
    assert "choose another --out" in capsys.readouterr().err.replace("\n", " ")


def test_a_journal_cut_off_in_its_last_line_is_read(tmp_path: Path, tool: FakeTool) -> None:
    run(tmp_path, ["fake"])
    journal = tmp_path / "out" / "journal.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])
    status, made = run(tmp_path, ["fake"])
    assert status == cli.GOOD and len(made.experiments[0].cells[0].samples) == 3
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_broken_experiment_does_not_stop_the_others(
        tmp_path: Path, tool: FakeTool, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("name = \n")
    status, made = run(tmp_path, ["fake"], str(broken))
    assert status == cli.MARKED and len(made.experiments) == 1
    assert f"{broken}:1:" in capsys.readouterr().err.replace("\n", "")
    assert cli.main([str(broken), "--out", str(tmp_path / "none")]) == cli.USELESS


def test_a_port_in_use_and_a_mask_beyond_the_machine_are_said(
        tmp_path: Path, tool: FakeTool, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    path = experiment(tmp_path, ["fake"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert cli.main([str(path), "--no-install", "--out", str(tmp_path / "out"),
                         "--port", port]) == cli.USELESS
        assert capsys.readouterr().err.startswith(f"port {port} is in use (--port ")
        assert not (tmp_path / "out").exists()
        # Somebody takes it after the run has begun.
        monkeypatch.setattr(cli, "refuse_used", lambda address, port: None)
        status, made = run(tmp_path, ["fake"], "--port", port)
    assert status == cli.USELESS
    assert made.experiments[0].cells[0].reason == f"port {port} is in use"
    capsys.readouterr()
    assert cli.main([str(path), "--server-cpus", "4095"]) == cli.USELESS
    assert "no permission for CPU 4095" in capsys.readouterr().err.replace("\n", " ")


def test_an_expected_absence_is_no_fault(tmp_path: Path, tool: FakeTool,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fakes import FakeAbsent

    monkeypatch.setattr(FakeAbsent, "absent", classmethod(lambda cls: "absent: not yet"))
    status, made = run(tmp_path, ["fake", "fake-absent"])
    assert status == cli.GOOD
    assert made.experiments[0].cells[1].status == "marked"


def test_a_part_that_waits_marks_its_cells_only(tmp_path: Path, tool: FakeTool,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fakes import Fake

    monkeypatch.setattr(Fake, "features", frozenset({"log"}))
    monkeypatch.setattr(Fake, "lacks", classmethod(
        lambda cls, feature: "absent: no log yet" if feature == "log" else ""))
    path = experiment(tmp_path, ["fake"])
    text = path.read_text().replace('axes = ["concurrency"]', 'axes = ["concurrency", "log"]')
    path.write_text(text.replace('tool = "fetch"', 'tool = "fetch"\nlog = ["off", "buffered"]'))
    status = cli.main([str(path), "--quick", "--seconds", "0.01", "--no-install",
                       "--out", str(tmp_path / "out")])
    made = results.read(tmp_path / "out")
    reasons = {cell.axes["log"]: cell.reason for cell in made.experiments[0].cells}
    assert status == cli.GOOD and reasons == {"off": "", "buffered": "absent: no log yet"}


def test_each_start_finds_its_own_peak(tmp_path: Path, tool: FakeTool,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, "open", tool)
    path = experiment(tmp_path, ["fake"])
    text = path.read_text().replace('axes = ["concurrency"]', 'axes = ["load_percent"]')
    text = text.replace("concurrency = 2 }", "load_percent = 80 }")
    path.write_text(text.replace('tool = "fetch"', 'tool = "open"\nload_percent = [50, 80]')
                    .replace("concurrency = [1, 2]", "concurrency = 2")
                    .replace("[cells.quick]\nconcurrency = [2]", ""))
    status = cli.main([str(path), "--starts", "2", "--seconds", "0.01", "--no-install",
                       "--out", str(tmp_path / "out")])
    assert status == cli.GOOD
    # Of each of six starts a closed loop of a second, then the load at a share of what it gave.
    found, loads = tool.runs[::2], tool.runs[1::2]
    assert len(found) == len(loads) == 6
    assert all(run.rate is None and run.seconds == 1.0 and run.clients == 2 for run in found)
    # The tool counts one request in 10 ms.
    assert sorted(run.rate or 0 for run in loads) == pytest.approx([50, 50, 80, 80, 80, 80])


def test_the_same_head_for_ever_is_not_measured_as_another(
        tmp_path: Path, tool: FakeTool) -> None:
    path = experiment(tmp_path, ["fake"])
    path.write_text(path.read_text().replace('tool = "fetch"', 'tool = "fetch"\nasks = "unlike"'))
    status = cli.main([str(path), "--quick", "--seconds", "0.01", "--no-install",
                       "--out", str(tmp_path / "out")])
    cell = results.read(tmp_path / "out").experiments[0].cells[0]
    assert status != cli.GOOD and cell.reason == "fetch sends the same head each time"
    tool.any_traffic = True  # type: ignore[misc]
    status = cli.main([str(path), "--quick", "--seconds", "0.01", "--no-install",
                       "--out", str(tmp_path / "again")])
    assert status == cli.GOOD and all(
        run.traffic.name == "unlike" for run in tool.runs)


def test_an_injected_slowdown_is_noted_and_reaches_the_server(
        tmp_path: Path, tool: FakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamarack_lab.servers import base

    seen: list[dict[str, str]] = []
    real = base.Server._slowed

    def slowed(self: base.Server) -> dict[str, str]:
        seen.append(real(self))
        return {}

    monkeypatch.setattr(base.Server, "_slowed", slowed)
    monkeypatch.setattr(base.compiled, "program", lambda source, *more: Path("/slower.so"))
    status, made = run(tmp_path, ["fake"], "--inject", "fake=1.5")
    assert status == cli.GOOD
    assert {"LD_PRELOAD": "/slower.so", "SLOWER_NS": "1500"} in seen
    assert "fake: each answer was made to cost 1.5 µs more" in made.notes
    status, _ = run(tmp_path, ["fake"], "--inject", "fake=much")
    assert status == cli.USELESS

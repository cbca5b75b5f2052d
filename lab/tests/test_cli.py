"""What can't be done is said in one line, by its option or its file, with an exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tamarack_lab import cli, deferred, results
from tamarack_lab.load import TOOLS
from tamarack_lab.load.side import Local
from tamarack_lab.servers.base import Server
from tests.fakes import Fake, FakeTool, experiment

LAB = Path(__file__).parent.parent
EXAMPLE = Path(__file__).parent / "data" / "example"
LIMIT_S = 120

# A whole run in a process of its own, whose load stops at the second fresh start.
INTERRUPTED = """
import sys
from tamarack_lab import cli
from tamarack_lab.load import TOOLS
from tests.fakes import FakeTool

class Stuck(FakeTool):
    def run_one(self, order, side):
        # A start is a warm-up and a load.
        if len(self.runs) == 3:
            side.run(["sh", "-c", '> "$0"; exec sleep 600', sys.argv[1]], 600)
        return super().run_one(order, side)

TOOLS["fetch"] = Stuck()
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An experiment that works."""
    monkeypatch.setitem(TOOLS, "fetch", FakeTool())
    monkeypatch.chdir(tmp_path)
    yield experiment(tmp_path, ["fake"])


def run(path: Path, *more: str) -> int:
    return cli.main([str(path), "--quick", "--seconds", "0.01", "--no-install", *more])


@pytest.mark.parametrize(("options", "said"), [
    (["--servers", "fak"], "--servers fak: the lab has no such server, did you mean fake?"),
    (["--servers", "fake,Q"], "--servers Q: the lab has no such server: there are "),
    (["--inject", "fak=1"], "--inject fak: the lab has no such server, did you mean fake?"),
    (["--inject", "fake=much"], "--inject fake=much: SERVER=MICROSECONDS, as in nginx=1.2"),
    (["--tamarack", "/none"], "--tamarack /none: no such program: "),
    (["--tamarack", "/tmp"], "--tamarack /tmp: no such program: "),
    (["--load-netns", "none"], "--load-netns none: no such network namespace"),
    (["--address", "192.0.2.1"], "can't listen on 192.0.2.1:0: "),
    (["--server-cpus", "a-b"], "not a CPU list: a-b"),
    (["--retry"], "--retry: no run lies in "),
    (["--starts", "0"], "lab/run: argument --starts: 0: not a number from 1 "),
    (["--starts", "-1"], "lab/run: argument --starts: -1: not a number from 1 "),
    (["--seconds", "nan"], "lab/run: argument --seconds: nan: not a number of seconds"),
    (["--port", "65536"], "lab/run: argument --port: 65536: not a number from 0 to 65535"),
    (["--quik"], "lab/run: unrecognized arguments: --quik, did you mean --quick?"),
    (["--frobnicate=3"], "lab/run: unrecognized arguments: --frobnicate=3 (lab/run --help)"),
])
def test_a_wrong_option_is_one_line_and_nothing_is_begun(
        tmp_path: Path, path: Path, options: list[str], said: str,
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(cli.servers_variable(), "/none")
    try:
        status = run(path, "--out", str(tmp_path / "out"), *options)
    except SystemExit as ended:
        status = int(str(ended.code))
    told = capsys.readouterr()
    assert status == cli.USELESS and not told.out
    assert told.err.startswith(said) and told.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_no_experiment_at_all_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--quick"])
    assert ended.value.code == cli.USELESS
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_experiment_file_is_one_line(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "empty.toml").touch()
    for name, said in (("none", "No such file or directory"), ("folder", "Is a directory"),
                       ("empty", "is empty")):
        file = tmp_path / f"{name}.toml"
        assert cli.main([str(file)]) == cli.USELESS
        assert capsys.readouterr().err == f"{file}: {said}\n"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\xff\xfe", None])
def test_a_broken_result_is_one_line(tmp_path: Path, text: str | None,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    if text is None:
        text = (EXAMPLE / "results.json").read_text()[:20_000]
    file = tmp_path / "results.json"
    file.write_bytes(text.encode("latin-1", errors="replace"))
    for options in (["--compare", str(EXAMPLE), str(tmp_path)], ["--report", str(tmp_path)],
                    ["--compare", str(file), str(EXAMPLE)], ["--publish", str(file)]):
        assert cli.main(options) == cli.USELESS
        told = capsys.readouterr()
        assert ": no results, or cut off: " in told.err and told.err.count("\n") == 1
    (tmp_path / "journal.jsonl").touch()
    assert cli.main(["--report", str(tmp_path)]) == cli.USELESS
    assert capsys.readouterr().err.endswith("; its run's command, given again, writes it anew\n")


def test_a_result_that_is_not_there_is_one_line(tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    for folder, said in ((tmp_path, "no results.json is there"),
                         (tmp_path / "none", "No such file or directory")):
        for options in (["--compare", str(folder), str(EXAMPLE)], ["--report", str(folder)]):
            assert cli.main(options) == cli.USELESS
            assert capsys.readouterr().err == f"{folder}: {said}\n"


def test_a_broken_journal_is_one_line(tmp_path: Path, path: Path,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    journal = out / "journal.jsonl"
    assert run(path, "--out", str(out)) == cli.GOOD
    first, *rest = journal.read_text().splitlines()
    for line in ("5", "x", "[]", '{"sample": 3}', '{"mark": 3}',
                 '{"lifted": "", "experiment": []}',
                 '{"sample": {}, "experiment": "small", "key": "k", "twin": false}'):
        for number, lines in ((2, [first, line, *rest]), (1, [line, first, *rest])):
            journal.write_text("\n".join([*lines, ""]))
            capsys.readouterr()
            assert run(path, "--retry", "--out", str(out)) == cli.USELESS
            told = capsys.readouterr().err
            assert told.startswith(f"{journal}:{number}: not a ") and told.count("\n") == 1
    journal.write_bytes(b"\xff\n")
    assert run(path, "--out", str(out)) == cli.USELESS
    assert f"{journal}: not UTF-8 at byte 0: " in capsys.readouterr().err


def test_a_misspelt_server_ends_it_and_the_other_experiments_go_on(
        tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(path.read_text().replace("['fake']", "['fake', 'fak']"))
    said = f"{wrong}:12: fak: the lab has no such server, did you mean fake?\n"
    assert cli.main([str(wrong), "--out", str(tmp_path / "none")]) == cli.USELESS
    assert capsys.readouterr().err == said and not (tmp_path / "none").exists()
    assert run(path, str(wrong), "--out", str(tmp_path / "out")) == cli.MARKED
    assert capsys.readouterr().err.startswith(said)
    assert [one.name for one in results.read(tmp_path / "out").experiments] == ["small"]


def test_tamarack_that_is_not_built_is_said_and_the_rest_goes_on(
        tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(cli.servers_variable(), "/none")
    path.write_text(path.read_text().replace("['fake']", "['fake', 'tamarack-event']"))
    assert run(path, "--out", str(tmp_path / "out")) == cli.MARKED
    told = capsys.readouterr().err.splitlines()
    assert told.count("Tamarack is not built: cargo build --release -p tamarack, "
                      "or --tamarack PATH") == 1
    assert "1 of 2 cells have a figure, 1 are marked for a fault" in told


def test_a_program_that_is_missing_is_said_with_its_package(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "path", classmethod(lambda cls: None))
    assert Fake.absent() == "fake server is missing: no python3"
    monkeypatch.setattr(Fake, "packages", ("python3", "more"))
    assert Fake.absent() == "fake server is missing: no python3 (apt-get install python3 more)"


def test_a_report_that_can_not_be_drawn_leaves_the_figures(
        tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    for error, status, said in (
            (PermissionError(13, "Permission denied", "report.html"), cli.MARKED,
             "no report: report.html: Permission denied"),
            (KeyboardInterrupt(), cli.INTERRUPTED, "interrupted; the figures are kept: ")):
        def fails(*given: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(cli, "_report", fails)
        assert run(path, "--out", str(tmp_path / "out")) == status
        assert said in capsys.readouterr().err
        assert results.read(tmp_path / "out").experiments[0].cells[0].status == "ok"


def test_an_interrupt_keeps_what_was_measured_and_leaves_nothing_running(tmp_path: Path) -> None:
    path = experiment(tmp_path, ["fake"])
    work, out, stuck = tmp_path / "work", tmp_path / "out", tmp_path / "stuck"
    work.mkdir()
    mark = f"INTERRUPTED={tmp_path}"
    lab = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(stuck), str(path), "--quick", "--no-install",
         "--out", str(out)],
        cwd=LAB, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(work), "PYTHONPATH": str(LAB),
             "INTERRUPTED": str(tmp_path)})
    try:
        deadline = time.monotonic() + LIMIT_S
        while not stuck.exists():
            assert lab.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        assert len(_alive(mark)) >= 3, "the lab, a server, a load"
        lab.send_signal(signal.SIGINT)
        _, told = lab.communicate(timeout=LIMIT_S)
    finally:
        lab.kill()
    assert lab.returncode == cli.INTERRUPTED, told
    assert "interrupted; it goes on with: lab/run " in told and "Traceback" not in told
    assert not _alive(mark)
    assert not list(work.iterdir())
    journal = (out / "journal.jsonl").read_text().splitlines()
    assert len(journal) == 2 and "sample" in json.loads(journal[1])
    kept = results.read(out)
    assert kept.finished is None and len(kept.experiments[0].cells) <= 1


def test_a_load_that_was_only_just_started_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    real, started = subprocess.Popen, []

    def interrupted(*given: object, **more: object) -> object:
        started.append(real(*given, **more))  # type: ignore[call-overload]
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    side = Local(())
    try:
        with pytest.raises(KeyboardInterrupt):
            side.run(["sleep", "600"], 600)
        assert started[0].returncode == -signal.SIGKILL
    finally:
        started[0].kill()
        side.close()


def _alive(mark: str) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_waits_for_what_must_be_done(number: signal.Signals,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def end(self: Server) -> None:
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        done.append("ended")

    monkeypatch.setattr(Fake, "_end", end)
    before = [signal.getsignal(one) for one in deferred.INTERRUPTS]
    server = Fake.__new__(Fake)
    with pytest.raises(KeyboardInterrupt):
        server.stop()
    assert done == ["ended"]
    assert [signal.getsignal(one) for one in deferred.INTERRUPTS] == before


def test_what_is_ignored_stays_so() -> None:
    before = {one: signal.getsignal(one) for one in deferred.INTERRUPTS}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        deferred.interruptible()
        with deferred.interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == signal.default_int_handler
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

"""A busy program beside the server, and a quota of CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tamarack_lab import beside, experiment, plan, quota, servers
from tamarack_lab.cpus import Sides
from tamarack_lab.errors import LabError
from tamarack_lab.quota import Quota
from tamarack_lab.site import Page
from tests.test_machine import configured, setup

BURN = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"


def test_the_busy_program_runs_on_its_cpu_and_ends() -> None:
    cpu = min(os.sched_getaffinity(0))
    before = children()
    with beside.busy(cpu, 2):
        fresh = children() - before
        assert len(fresh) == 2
        deadline = time.monotonic() + 20
        while any(os.sched_getaffinity(pid) != {cpu} for pid in fresh):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert children() == before


def test_scripts_run_beside_a_server_until_it_was_measured(tmp_path: Path) -> None:
    own = setup(tmp_path)
    own.site.pages["cgi"] = (Page("/cgi-bin/lab.cgi", None),)
    script = own.site.documents / "cgi-bin/lab.cgi"
    script.parent.mkdir(parents=True)
    script.write_text('#!/bin/sh\necho >> "$0.ran"\n')
    script.chmod(0o755)
    every, before = tuple(os.sched_getaffinity(0)), children()
    with beside.scripts("alone", own, Sides(every, every)):
        assert len(children() - before) == beside.SCRIPTS
        deadline = time.monotonic() + 60
        while not script.with_name("lab.cgi.ran").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert children() == before
    with beside.scripts("", own, Sides(every, every)):
        assert children() == before


def children() -> set[int]:
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(map(int, path.read_text().split()))


def test_a_quota_is_counted_and_removed() -> None:
    try:
        held = Quota.make("test", 0.2)
    except LabError as error:
        pytest.skip(str(error))
    try:
        subprocess.run(held.joining([sys.executable, "-c", BURN]), check=True)
        throttled, periods = held.periods()
        assert 0 < throttled <= periods
    finally:
        held.remove()
    assert not held.folder.exists()


@pytest.mark.parametrize("first", [True, False])
def test_a_quota_of_either_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                   first: bool) -> None:
    table = tmp_path / "cgroup"
    table.write_text("4:cpu,cpuacct:/own\n0::/unified\n" if first else "0::/own\n")
    monkeypatch.setattr(quota, "ROOT", tmp_path)
    monkeypatch.setattr(quota, "TABLE", table)
    home = tmp_path / "cpu" / "own" if first else tmp_path / "own"
    home.mkdir(parents=True)
    real = Path.mkdir

    def mkdir(self: Path) -> None:
        real(self)
        for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us") if first else ("cpu.max",):
            (self / name).write_text("")
        (self / "cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nthrottled_time 1\n")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    made = Quota.make("x", 1.5)
    assert made.folder.parent == home and made.periods() == (4, 9)
    written = "cpu.cfs_quota_us" if first else "cpu.max"
    assert (made.folder / written).read_text() == ("150000" if first else "150000 100000")


def test_without_a_group_the_reason_is_said(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "cgroup"
    table.write_text("0::/gone\n")
    monkeypatch.setattr(quota, "ROOT", tmp_path)
    monkeypatch.setattr(quota, "TABLE", table)
    with pytest.raises(LabError, match="no cgroup with a quota can be made: No such file"):
        Quota.make("x", 1.0)


def test_affinity_has_its_states() -> None:
    made = plan.make(experiment.load("busy"), servers.kinds(), False, 2, 1)
    assert {cell.affinity for cell in made.cells} == {"own", "off", "bound"}
    assert {cell.block.busy for cell in made.cells} == {0, 1, 3}
    assert {cell.block.quota for cell in made.cells} == {0.0, 1.0}


def test_bound_loops_and_rules_are_configured(tmp_path: Path) -> None:
    text = configured(tmp_path, "tamarack-event", affinity="bound", rules=3)
    assert "CPUAffinity Thread\nCPUAffinityAdapt Off\n" in text
    assert text.count("\nSetEnvIf User-Agent ") == 3
    assert "SetEnvIf" not in configured(tmp_path, "tamarack-event")

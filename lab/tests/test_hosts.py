"""Load from two other machines over SSH: two network namespaces with an sshd each, of this test.

Skipped where namespaces can't be made (not root) or there is no sshd.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tamarack_lab import cli, packages, results
from tamarack_lab.errors import LabError
from tamarack_lab.load.side import Local, Ssh
from tests.fakes import experiment

SSHD = packages.which("sshd")
PORT = 2222
CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile {folder}/{name}.pid
Subsystem sftp internal-sftp
"""


@dataclass
class Machines:
    """Two load machines."""

    hosts: list[str]
    key: Path
    namespaces: list[str]
    # This machine's, as the first of them sees it.
    address: str


def sh(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if os.geteuid() != 0 or not packages.which("ip") or not SSHD:
        pytest.skip("needs root, ip and sshd")
    folder = tmp_path_factory.mktemp("sshd")
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host_key"))
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    (folder / "authorized_keys").write_text((folder / "key.pub").read_text())
    Path("/run/sshd").mkdir(exist_ok=True)
    # One bridge-less pair for each machine, out of the block for documentation and tests.
    tag, daemons, names = os.getpid() % 10_000, [], []
    try:
        for number in (0, 1):
            name = f"lab{tag}-{number}"
            try:
                sh("ip", "netns", "add", name)
            except subprocess.CalledProcessError:
                pytest.skip("network namespaces can't be made here")
            names.append(name)
            here, there = f"198.18.{number}.1", f"198.18.{number}.2"
            sh("ip", "link", "add", f"v{tag}a{number}", "type", "veth", "peer", "name",
               f"v{tag}b{number}", "netns", name)
            sh("ip", "address", "add", f"{here}/24", "dev", f"v{tag}a{number}")
            sh("ip", "link", "set", f"v{tag}a{number}", "up")
            inside = ("ip", "-n", name)
            sh(*inside, "address", "add", f"{there}/24", "dev", f"v{tag}b{number}")
            sh(*inside, "link", "set", f"v{tag}b{number}", "up")
            sh(*inside, "link", "set", "lo", "up")
            # The server listens on one address: the other machine finds it by this way.
            sh(*inside, "route", "add", "default", "via", here)
            config = folder / f"{name}.conf"
            config.write_text(CONFIG.format(port=PORT, address=there, folder=folder, name=name))
            daemons.append(subprocess.Popen(
                ["ip", "netns", "exec", name, str(SSHD), "-D", "-e", "-f", str(config)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            _await(there, daemons[-1])
        yield Machines([f"root@198.18.{number}.2:{PORT}" for number in (0, 1)], folder / "key",
                       names, "198.18.0.1")
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def _await(address: str, daemon: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address, PORT), timeout=1).close()
            return
        except OSError:
            if daemon.poll() is not None:
                break
            time.sleep(0.05)
    pytest.skip("sshd does not start in the namespace")


def users(folder: Path) -> str:
    """The fake server under five users with four requests each, of the lab's own load tool."""
    path = experiment(folder, ["fake"])
    text = path.read_text().replace('tool = "fetch"', 'tool = "users"\nrequests_each = 4')
    path.write_text(text.replace("concurrency = [2]", "concurrency = [5]"))
    return str(path)


def test_two_hosts_share_the_load_and_their_results_are_merged(
        machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_report", lambda made, run: 0)
    hosts = [word for host in machines.hosts for word in ("--load-host", host)]
    status = cli.main([users(tmp_path), "--quick", "--seconds", "0.3", "--starts", "1",
                       "--no-install", "--out", str(tmp_path / "out"), *hosts,
                       "--load-key", str(machines.key)])
    made = results.read(tmp_path / "out")
    sample = made.experiments[0].cells[0].samples[0]
    assert status == cli.GOOD, made.notes
    assert (made.load.kind, made.load.load_cpus) == ("hosts", [])
    assert made.load.hosts == machines.hosts
    # Five users are three and two.
    assert sample.requests == 20 and sample.errors == 0
    assert sample.latency is not None and sample.latency.histogram is not None
    assert sum(count for _, count in sample.latency.histogram) == 20
    # The server is here: its CPU time is counted all the same.
    assert sample.cpu_us_per_request is not None and sample.load_busy is None


def test_load_from_a_namespace(machines: Machines, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_report", lambda made, run: 0)
    status = cli.main([users(tmp_path), "--quick", "--seconds", "0.3", "--starts", "1",
                       "--no-install", "--out", str(tmp_path / "out"), "--load-netns",
                       machines.namespaces[0], "--address", machines.address])
    made = results.read(tmp_path / "out")
    assert status == cli.GOOD, made.notes
    assert made.load.kind == "netns"
    assert made.experiments[0].cells[0].samples[0].requests == 20


def test_what_fails_there_is_one_line(machines: Machines) -> None:
    side = Ssh(machines.hosts[0], key=str(machines.key))
    try:
        assert side.has("sh") and not side.has("no-such-tool")
        assert side.cpu_count() >= 1
        with pytest.raises(LabError, match="sh failed with 3: no luck"):
            side.run(["sh", "-c", "echo no luck >&2; exit 3"], 5)
    finally:
        side.close()
    with pytest.raises(LabError, match="no SSH to root@198.18.0.2:1"):
        Ssh("root@198.18.0.2:1", key=str(machines.key))


def test_a_host_that_can_not_be_reached_ends_the_run_with_a_line(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main([users(tmp_path), "--load-host", "nobody@127.0.0.1:1"])
    assert status == cli.USELESS
    assert "no SSH to nobody@127.0.0.1:1" in capsys.readouterr().err.replace("\n", " ")
    assert Local(()).where() == ""

"""What is recorded beside the figures: TLS terms, stolen time, the machine's settings."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tamarack_lab import cpus, engine, machine, measure, proc, site
from tamarack_lab.errors import LabError
from tamarack_lab.load.idle import Growth, Idle
from tamarack_lab.load.side import Local
from tamarack_lab.load.tool import Count
from tamarack_lab.servers import Server, Setup, kinds
from tests.fakes import Fake


class Other(Fake):
    """Agrees on other terms than the fake server."""

    name = "fake-other"
    label = "other server"


@pytest.fixture
def stage(tmp_path: Path) -> measure.Stage:
    return measure.Stage(
        site.make(tmp_path), tmp_path, cpus.Sides((0,), (0,)), Local(()), "127.0.0.1", 0, 1.0, 0.1,
        {"fake": Fake, "fake-other": Other})


@pytest.fixture
def handshaking(stage: measure.Stage) -> Iterator[tuple[int, ssl.SSLContext]]:
    """A port that makes handshakes and no more."""
    terms = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    terms.load_cert_chain(stage.site.certificate, stage.site.key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                with terms.wrap_socket(plain, server_side=True) as secured:
                    secured.recv(1)
            except OSError:
                plain.close()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], terms
    # Wakes the accept, which a mere close would not.
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def made(kind: type[Server], stage: measure.Stage, port: int, tls: bool = True) -> Server:
    return kind(Setup(site=stage.site, folder=stage.folder, port=port, cpus=(0,), tls=tls))


def test_tls_terms_are_kept_and_differences_said(
        stage: measure.Stage, handshaking: tuple[int, ssl.SSLContext]) -> None:
    port, terms = handshaking
    said: list[str] = []
    stage.note = said.append
    measure._keep_tls(made(Fake, stage, port, tls=False), stage)
    assert not stage.tls
    measure._keep_tls(made(Fake, stage, port), stage)
    assert stage.tls["fake"].startswith("TLSv1.3 TLS_") and not said
    terms.maximum_version = ssl.TLSVersion.TLSv1_2
    measure._keep_tls(made(Other, stage, port), stage)
    assert stage.tls["fake-other"].startswith("TLSv1.2 ECDHE-ECDSA-")
    assert len(said) == 1 and said[0].startswith("TLS differs: other server agrees on TLSv1.2 ")
    assert said[0].endswith(f"fake server on {stage.tls['fake']}.")


def test_a_port_without_tls_is_said(stage: measure.Stage) -> None:
    with pytest.raises(LabError, match="fake server makes no handshake"):
        made(Fake, stage, 1).tls_terms()


def test_stolen_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "PROC", tmp_path)
    (tmp_path / "stat").write_text("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 5 80 1 0 0 4 0 0\n"
                                   "cpu1 20 0 5 70 1 0 0 4 0 0\ncpu2 9 9 9 9 9 9 9 9 0 0\n")
    assert proc.stolen((0, 1)) == (8, 200)
    assert proc.ticks((0,)) == (19, 100)


def test_idle_connections_have_no_throughput(
        stage: measure.Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = Growth(Count(600, 0.1), 1056.0, 31_457_280, 41_943_040)
    monkeypatch.setattr(Idle, "grow", lambda *_: grown)
    order: Any = None
    sample = measure._idle(Idle(), order, made(Fake, stage, 1, tls=False), stage.load, 0, 0)
    assert sample.requests == 600 and sample.requests_per_s is None
    assert sample.bytes_per_connection == 1056.0


def run_with(shares: list[float | None]) -> engine.Run:
    """As much of a run as the note looks at."""
    samples = {number: SimpleNamespace(steal=share) for number, share in enumerate(shares)}
    run: Any = SimpleNamespace(journal=SimpleNamespace(samples={("peers", "nginx", False): samples}),
                               notes=[])
    run.note = run.notes.append
    return run  # type: ignore[no-any-return]


def test_what_the_hypervisor_took_is_said() -> None:
    run = run_with([0.0, 0.002, 0.08])
    engine._note_steal(run)
    assert run.notes == ["The hypervisor gave 0.2% of these CPUs' time to others (median of the "
                         "starts), and up to 8.0%."]
    quiet = run_with([0.0, 0.002, None])
    engine._note_steal(quiet)
    assert not quiet.notes


def test_a_result_names_no_folder_of_the_machine() -> None:
    command = ["peers", "--out", "lab/results/mine", "--tamarack", "/home/me/build/tamarack"]
    assert engine.shareable(command) == [*command[:-1], "tamarack"]


def test_huge_pages_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "HUGE_PAGES", tmp_path)
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    (tmp_path / "defrag").write_text("always defer [defer+madvise] madvise never\n")
    kept = machine._settings()
    assert kept["transparent_hugepage.enabled"] == "madvise"
    assert kept["transparent_hugepage.defrag"] == "defer+madvise"


@pytest.mark.parametrize(("name", "said", "kept"), [
    ("lighttpd", "Features:\n\n\t+ IPv6 support\n\t- bzip2 support\n\t+ epoll (Linux)\n",
     "IPv6, epoll (Linux)"),
    ("caddy", "go\tgo1.19.8\npath\tx\nbuild\t-trimpath=true\n", "go1.19.8 -trimpath=true"),
    ("tamarack-event", "Server built:   2026-01-01\nProfile: release\n -D A_B\n",
     "Server built: 2026-01-01, Profile: release, -D A_B")])
def test_flags(name: str, said: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("lighttpd", "caddy", "tamarack", "apache"):
        monkeypatch.setattr(f"tamarack_lab.servers.{module}.output_of", lambda command: said)
    assert kinds()[name].flags() == kept


def test_the_same_terms_are_no_difference(stage: measure.Stage,
                                          handshaking: tuple[int, ssl.SSLContext]) -> None:
    stage = replace(stage, tls={"fake-other": "TLSv1.3 TLS_AES_256_GCM_SHA384"},
                    note=lambda line: pytest.fail(line))
    handshaking[1].minimum_version = ssl.TLSVersion.TLSv1_3
    measure._keep_tls(made(Fake, stage, handshaking[0]), stage)

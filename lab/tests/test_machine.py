"""CPU lists, halves by core, counters from /proc, pools, the page's checks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tamarack_lab import cpus, machine, proc
from tamarack_lab.cpus import CpuError, Sides
from tamarack_lab.load.side import Local
from tamarack_lab.servers import Setup, kinds, pools, python
from tamarack_lab.servers.base import free_port, refuse_used
from tamarack_lab.site import APP_BYTES, APP_PART, Page, Site


def test_lists() -> None:
    assert cpus.parse("0-3,8") == (0, 1, 2, 3, 8)
    assert cpus.text((8, 0, 1, 2, 3)) == "0-3,8"
    assert cpus.text((5,)) == "5"
    with pytest.raises(CpuError, match="0-x"):
        cpus.parse("0-x")


def test_halves_hold_whole_cores(tmp_path: Path) -> None:
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings)
    assert cpus.by_core((0, 1, 2, 3), tmp_path) == (0, 2, 1, 3)


def test_more_cpus_for_the_server_leave_fewer_to_the_load() -> None:
    sides = Sides((0, 1), (2, 3))
    assert sides.server_with(None) == sides
    assert sides.server_with(1) == Sides((0,), (1, 2, 3))
    assert sides.server_with(3) == Sides((0, 1, 2), (3,))
    assert sides.server_with(4) == Sides((0, 1, 2, 3), (0, 1, 2, 3))
    assert sides.server_with(4).shared
    with pytest.raises(CpuError, match="5 CPUs"):
        sides.server_with(5)


def test_cpu_time_of_a_family_counts_what_ended() -> None:
    burn = "import time\nwhile time.process_time() < 0.15: pass"
    script = (f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])\n"
              "print('ready', flush=True)\nsys.stdin.read()")
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    try:
        assert process.stdout and process.stdout.readline()
        reading = proc.reading(proc.family(process.pid), None)
        assert reading.cpu_ns > 140_000_000
        # What the child took is none of its parent's own time.
        assert sum(reading.own_ns.values()) <= reading.cpu_ns - 130_000_000
        assert proc.memory_bytes([process.pid])[1] > 1_000_000
    finally:
        process.communicate()


def test_own_time_is_that_of_processes_that_last() -> None:
    def reading(own_ns: dict[int, int]) -> proc.Reading:
        return proc.Reading(0, own_ns, {}, {}, {})

    before, after = reading({1: 100, 2: 50, 3: 7}), reading({1: 130, 2: 50, 4: 900})
    assert proc.lasting_ns(before, after) == 30
    # A process that ends while it is read.
    assert proc.lasting_ns(reading({1: 5}), reading({1: 0})) == 0


def test_growth_of_counters() -> None:
    assert proc.grown({1: 5}, {1: 9, 2: 3}) == 7
    assert proc.grown({}, {}) is None
    assert proc.busy_share((1, 2), (1, 2)) is None
    assert proc.busy_share((10, 100), (60, 200)) == 0.5


def test_a_used_port_is_refused() -> None:
    import socket

    port = free_port()
    refuse_used("127.0.0.1", port)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(Exception, match=f"port {port} is in use"):
            refuse_used("127.0.0.1", port)


def test_the_published_configuration_is_word_for_word() -> None:
    wanted = {"StartServers 8", "ServerLimit 100", "ThreadsPerChild 125", "ThreadLimit 2000",
              "MaxRequestWorkers 2000", "MaxSpareThreads 1000", "MinSpareThreads 75",
              "KeepAlive On", "MaxKeepAliveRequests 0", "KeepAliveTimeout 50"}
    assert set(pools.P1.splitlines()) == wanted


def setup(tmp_path: Path, **more: object) -> Setup:
    pages: dict[str, tuple[Page, ...]] = {"1k": (Page("/1k.html", b"x"),)}
    site = Site(tmp_path, tmp_path / "documents", tmp_path / "certificate.pem",
                tmp_path / "key.pem", tmp_path / "application", tmp_path / "passwords", pages)
    given: dict[str, object] = {"site": site, "folder": tmp_path, "port": 8123, "cpus": (0, 1)}
    return Setup(**{**given, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [("apache-prefork", "tamarack-prefork"),
                                  ("apache-worker", "tamarack-worker"),
                                  ("apache-event", "tamarack-event")])
def test_tamarack_gets_apaches_very_configuration(tmp_path: Path, pair: tuple[str, str]) -> None:
    texts = []
    for name in pair:
        kinds()[name](setup(tmp_path, tls=True, log=True, clients=256)).configure()
        texts.append((tmp_path / "httpd.conf").read_text())
    assert texts[0] == texts[1]


def configured(tmp_path: Path, name: str, **more: object) -> str:
    kinds()[name](setup(tmp_path, **more)).configure()
    return (tmp_path / "httpd.conf").read_text()


def test_beside_others_apache_sends_files_as_they_do(tmp_path: Path) -> None:
    fair = {"EnableSendfile On", "ExtendedStatus Off"}
    for name in ("apache-prefork", "apache-event", "tamarack-event", "tamarack-loop"):
        assert fair <= set(configured(tmp_path, name).splitlines())
        for profile in ("p1", "p3", "p3-prespawned", "p4"):
            assert not fair & set(configured(tmp_path, name, profile=profile).splitlines())


@pytest.mark.parametrize("name", ["apache-event", "tamarack-event"])
def test_apache_and_tamarack_accept_it(tmp_path: Path, name: str) -> None:
    kind = kinds()[name]
    if not kind.path():
        pytest.skip(f"no {name}")
    (tmp_path / "documents").mkdir()
    configured(tmp_path, name)
    done = subprocess.run([kind.path() or "", "-t", "-f", str(tmp_path / "httpd.conf")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_application_is_embedded_in_prefork_only(tmp_path: Path) -> None:
    event = configured(tmp_path, "apache-event", feature="app", profile="p4")
    # Two CPUs: as many processes as gunicorn has workers.
    assert "WSGIDaemonProcess lab processes=5 threads=1\nWSGIProcessGroup lab\n" in event
    assert "process-group=lab " in event
    prefork = configured(tmp_path, "apache-prefork", feature="app", profile="p4")
    assert "WSGIDaemonProcess" not in prefork and "process-group=%{GLOBAL} " in prefork


def test_a_cell_says_how_many_processes_and_threads_an_application_has(tmp_path: Path) -> None:
    few: dict[str, object] = {"feature": "app", "app_processes": 1, "app_threads": 15}
    for name in ("apache-event", "tamarack-event"):
        text = configured(tmp_path, name, **few)
        assert "WSGIDaemonProcess lab processes=1 threads=15\n" in text
        text = configured(tmp_path, name, app_embedded=True, **few)
        assert "WSGIDaemonProcess" not in text and "process-group=%{GLOBAL} " in text
        # As many as without, in 18 times 15 threads.
        assert "ServerLimit 18\nThreadLimit 15\nThreadsPerChild 15\nMaxRequestWorkers 270\n" in text
    for name, options in (("gunicorn", "--workers 1 --threads 15"),
                          ("uwsgi", "--processes 1 --threads 15"),
                          ("granian", "--workers 1 --blocking-threads 15")):
        assert options in " ".join(kinds()[name](setup(tmp_path, **few)).configure())
    # As their manuals advise: two CPUs.
    for name, options in (("gunicorn", "--workers 5"), ("uwsgi", "--processes 5"),
                          ("granian", "--workers 2 --blocking-threads 1")):
        command = " ".join(kinds()[name](setup(tmp_path)).configure())
        assert options in command and "--threads" not in command


@pytest.mark.skipif(not Path(python.PYTHON).exists(), reason="no Python of the distribution")
def test_the_application_reads_what_it_is_sent(tmp_path: Path) -> None:
    """By the interpreter that servers run it with; the framework may be missing."""
    script = """
import io, sys, types
class Any(types.ModuleType):
    def __getattr__(self, name):
        return lambda *given, **named: None
for name in ("mako", "mako.lookup", "pyramid", "pyramid.config", "pyramid.response"):
    sys.modules[name] = Any(name)
text = open(sys.argv[1]).read().replace("PYRAMID = make()", "PYRAMID = None")
names = {"__file__": sys.argv[1]}
exec(text, names)
def said(path, body=b""):
    answer = []
    parts = names["application"]({"PATH_INFO": path, "wsgi.input": io.BytesIO(body)},
                                 lambda status, fields: answer.extend([status, dict(fields)]))
    whole = b"".join(parts)
    assert answer[0] == "200 OK" and answer[1]["Content-Length"] == str(len(whole))
    return whole
assert said("/hello") == b"hello\\n"
assert said("/upload", b"x" * 200_000) == b"200000\\n" and said("/upload") == b"0\\n"
sys.stdout.buffer.write(said("/response"))
"""
    file = Path(__file__).parent.parent / "servers" / "application" / "application.py"
    done = subprocess.run([python.PYTHON, "-c", script, str(file)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == APP_PART * (APP_BYTES // len(APP_PART))


def test_interpreters_in_memory_are_counted(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    # Itself, and a process that no Python is in.
    with subprocess.Popen(["sleep", "60"]) as other:
        pids = [os.getpid(), other.pid]
        # Until it is the program.
        while "sleep" not in proc._read(proc.PROC / str(other.pid) / "cmdline"):
            time.sleep(0.01)
        assert proc.interpreters(pids) == 1
        other.kill()
    assert proc.interpreters([other.pid]) == 0
    monkeypatch.setattr(proc, "PROC", tmp_path)
    library = "7f00-7f01 r-xp 00000000 fe:00 1    /usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0\n"
    module = "7f02-7f03 r-xp 00000000 fe:00 2    /usr/lib/_x.cpython-311-x86_64-linux-gnu.so\n"
    # Apache's parent has the library alone; a child has imported something.
    for pid, maps in ((1, library), (2, library + module + library)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "exe").symlink_to("/usr/sbin/apache2")
        (tmp_path / str(pid) / "maps").write_text(maps)
    assert proc.interpreters([1, 2]) == 1


@pytest.mark.parametrize("name", ["nginx", "h2o", "lighttpd", "caddy", "webfs", "mini-httpd"])
@pytest.mark.parametrize("tls", [False, True])
def test_every_configuration_names_its_address_and_folder(tmp_path: Path, name: str,
                                                          tls: bool) -> None:
    kind = kinds()[name]
    if tls and not kind.can("tls"):
        pytest.skip("has no TLS")
    command = kind(setup(tmp_path, tls=tls, log=True)).configure()
    text = " ".join(command) + "".join(
        path.read_text() for path in tmp_path.iterdir() if path.is_file())
    assert "8123" in text and str(tmp_path / "documents") in text
    assert (str(tmp_path / "certificate.pem") in text) == tls


def test_the_environment_is_recorded() -> None:
    kind = kinds()["fake"] if "fake" in kinds() else kinds()["webfs"]
    said = machine.describe([kind], ["wrk"], Local(()))
    assert said.cpu and said.cpus == len(os.sched_getaffinity(0)) and said.kernel
    assert "net.core.somaxconn" in said.sysctls and said.limits["nofile"] > 0

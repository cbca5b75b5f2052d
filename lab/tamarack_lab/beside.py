"""What runs beside the measured load: another program, or CGI scripts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from . import cpus, deferred
from .cpus import Sides
from .servers import Setup

# As many scripts as run at a time.
SCRIPTS = 8
# Longer than any cell: the load ends when its process is killed.
FOREVER_S = 36_000


@contextmanager
def busy(cpu: int, threads: int) -> Iterator[None]:
    """Another program on a CPU. In a separate session: in the load's, the scheduler would treat
    both as one group (autogroup), and they would compete with each other more than with the
    server."""
    spin = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
    with _running([spin] * threads):
        yield


@contextmanager
def scripts(how: str, setup: Setup, sides: Sides) -> Iterator[None]:
    """CGI scripts on the server's CPUs: those that clients request of the server ("server"), or
    the same ones, run by no server ("alone")."""
    page = setup.site.pages["cgi"][0]
    if how == "server":
        url = f"http://{setup.host}:{setup.port}{page.path}"
        command = ["taskset", "-c", cpus.text(sides.load), "wrk", "-t1", f"-c{SCRIPTS}",
                   f"-d{FOREVER_S}s", url]
        commands = [command]
    elif how == "alone":
        script = str(setup.site.documents / page.path.lstrip("/"))
        command = ["taskset", "-c", cpus.text(sides.server), "sh", "-c",
                   'while :; do "$0" > /dev/null; done', script]
        commands = [command] * SCRIPTS
    else:
        commands = []
    with _running(commands):
        yield


@contextmanager
def _running(commands: list[list[str]]) -> Iterator[None]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with deferred.interrupts():
                started.append(subprocess.Popen(command, start_new_session=True,
                                                stdout=subprocess.DEVNULL))
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()

"""The servers behind a proxy. They run on the load's CPUs, and their CPU time is not the proxy's."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from . import compiled, cpus, deferred, packages
from .errors import LabError
from .servers.base import SOURCES, Setup, free_port
from .servers.floor import SOURCE as FLOOR
from .servers.floor import response_to
from .servers.nginx import Nginx
from .traffic import GET

START_TIMEOUT_S = 20.0
RESPONDER = SOURCES / "responder.c"
PHP_FPM = ("php-fpm", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2")
PHP_CHILDREN = 5
POOL = """\
[global]
daemonize = no
error_log = {folder}/php.log
[lab]
{user}listen = {place}
listen.mode = 0666
pm = static
pm.max_children = {children}
"""


@contextmanager
def started(setup: Setup, on: tuple[int, ...]) -> Iterator[str]:
    """Runs what the setup's page needs; its address and port, or the path of its socket. Empty if
    the page needs nothing."""
    made = _command(setup)
    if not made:
        yield ""
        return
    place, command = made
    masked = ["taskset", "-c", cpus.text(on), *command]
    with open(setup.folder / "behind.txt", "wb") as output, deferred.interrupts():
        process = subprocess.Popen(masked, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                   start_new_session=True, cwd=setup.folder)
    try:
        _wait(place, process)
        yield place
    finally:
        with deferred.interrupts():
            # Its children leave with it: all of these programs end them.
            process.terminate()
            process.wait()


def _command(setup: Setup) -> tuple[str, list[str]] | None:
    """Where it listens, and the command that runs it."""
    folder, port = setup.folder, free_port()
    if setup.page in ("proxied", "proxied-unix"):
        program = str(compiled.program(FLOOR, "-lpthread"))
        response = folder / "behind.response"
        response.write_bytes(response_to(GET, setup.pages[0]))
        if setup.page == "proxied-unix":
            place = str(folder / "behind.sock")
            return place, [program, place, "0", str(response)]
        return f"127.0.0.1:{port}", [program, "127.0.0.1", str(port), str(response)]
    if setup.page == "proxied-large":
        inner = folder / "behind"
        inner.mkdir(mode=0o777)
        own = replace(setup, folder=inner, port=port, address="127.0.0.1", feature="static",
                      cpus=setup.cpus[:1])
        return f"127.0.0.1:{port}", Nginx(own).configure()
    if setup.page == "responder":
        place, response = str(folder / "behind.sock"), folder / "behind.response"
        body = setup.pages[0].body or b""
        response.write_bytes(b"Content-Type: text/html\r\n"
                             b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return place, [str(compiled.program(RESPONDER)), place, str(response)]
    return _php(folder) if setup.page == "php" else None


def _php(folder: Path) -> tuple[str, list[str]]:
    program = next(filter(None, map(packages.which, PHP_FPM)), None)
    if not program:
        raise LabError("PHP-FPM is missing: apt-get install php-fpm")
    place, pool = str(folder / "behind.sock"), folder / "php.conf"
    pool.write_text(POOL.format(
        folder=folder, place=place, children=PHP_CHILDREN,
        user="user = www-data\ngroup = www-data\n" if os.geteuid() == 0 else ""))
    return place, [program, "-F", "-y", str(pool)]


def _wait(place: str, process: subprocess.Popen[bytes]) -> None:
    """Until it listens. Raises LabError."""
    deadline = time.monotonic() + START_TIMEOUT_S
    host, _, port = place.rpartition(":")
    address = place if place.startswith("/") else (host, int(port))
    family = socket.AF_UNIX if place.startswith("/") else socket.AF_INET
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                return probe.connect(address)
            except OSError:
                time.sleep(0.02)
    raise LabError("the server behind the proxy does not start")

"""What the bench needs of a server: a configuration, a start on one CPU, a check, a stop."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from ..site import Site

START_TIMEOUT_S = 15.0
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Setup:
    """How a server is configured for one cell."""

    tls: bool = False
    log: bool = False
    overrides: bool = False
    idle_connections: int = 0
    mpm: str = "event"


class Server:
    """One server in one setup. A kind of server is a subclass: a name and three facts."""

    name = ""
    program = ""

    def __init__(self, site: Site, setup: Setup, folder: Path, cpu: int | str) -> None:
        self.site = site
        self.setup = setup
        self.folder = folder
        self.cpu = cpu
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def path(cls) -> str | None:
        """The program's file, or None when it is not installed."""
        return shutil.which(cls.program)

    @classmethod
    def version(cls) -> str:
        """What the program calls itself."""
        raise NotImplementedError

    def configure(self) -> list[str]:
        """Writes the configuration; returns the command that serves it in the foreground."""
        raise NotImplementedError

    @property
    def pid(self) -> int:
        """The process all others descend from."""
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.pid

    def url(self, path: str) -> str:
        """Where a path is served."""
        return f"{'https' if self.setup.tls else 'http'}://127.0.0.1:{self.port}{path}"

    def start(self) -> None:
        """Starts the server on its CPU and waits until it answers."""
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)
        command = ["taskset", "-c", str(self.cpu), *self.configure()]
        with open(self.folder / "output.txt", "wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output,
                                             stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self.name} did not start:\n{self._complaint()}")
            time.sleep(0.05)

    def check(self, path: str) -> None:
        """Compares one body byte by byte."""
        body = fetch(self.port, path, self.setup.tls)
        if body != self.site.body(path):
            raise RuntimeError(f"{self.name} answers {path} with another body")

    def stop(self) -> None:
        """Ends the server, its children included."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def _complaint(self) -> str:
        texts = [path.read_text(errors="replace")[-2000:]
                 for path in (self.folder / "output.txt", self.folder / "error.log")
                 if path.exists()]
        return "\n".join(texts)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetch(port: int, path: str, tls: bool) -> bytes:
    """One answer's body; anything but 200 is an error."""
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status} for {path}")
    return body


def first_line(command: list[str]) -> str:
    """The first line a command prints, on either stream."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else ""



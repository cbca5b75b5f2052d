"""The lab's interface to a server. A new server is one file here, with a subclass of Server."""

from __future__ import annotations

import errno
import http.client
import itertools
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from .. import cpus as cpu_lists
from .. import compiled, deferred, packages, proc
from ..errors import LabError
from ..quota import Quota
from ..site import Page, Site
from ..traffic import SAME, Kind, Traffic, Validators, looked_at

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
SETTLE_LIMIT_S = 90.0
# Each process of an embedded application loads its framework, on CPUs that all of them share.
APPLICATION_LIMIT_S = 1.0
FETCH_TIMEOUT_S = 30.0
# The lab's own servers in C.
SOURCES = Path(__file__).parent.parent.parent / "servers"
SLOWER = SOURCES / "slower.c"
# The kernel assigns none of these by default (it assigns from 32768 on): no client's end of a
# connection takes one before the server.
PORTS = range(10_240, 32_240)
# Runs in parallel each start at a different port.
_port_numbers = itertools.count(os.getpid() * 97)
# Numbers of the check's heads: no load starts there.
FIRST_NUMBER = 10**11
# Lines of a server that are more informative than its last one.
FAULT = re.compile(r"alert|emerg|error|fatal|cannot|can't|failed|not permitted", re.IGNORECASE)
Profile = Literal["fit", "p1", "p3", "p3-prespawned", "p4"]


@dataclass(frozen=True)
class Setup:
    """How a server is configured for one cell, and where it runs."""

    site: Site
    folder: Path
    port: int
    cpus: tuple[int, ...]
    address: str = "127.0.0.1"
    tls: bool = False
    log: bool = False
    http2: bool = False
    htaccess: bool = False
    # Connections to hold at once without waiting.
    clients: int = 64
    profile: Profile = "fit"
    prespawned: int = 200
    # mask: nothing but the mask; off, taskset, own, bound: the server's own affinity switched off,
    # its workers pinned by hand, its own affinity switched on, and bound permanently.
    affinity: str = "mask"
    # static, or what the page exercises: cgi, ssi, app, gzip, brotli, zstd,
    # substitute, login, hosts, proxied, fastcgi, php.
    feature: str = "static"
    # Of an application: its processes (0: as many as manuals advise), their threads, and whether
    # it runs in the server's own processes where those have threads. In prefork's it always does.
    app_processes: int = 0
    app_threads: int = 1
    app_embedded: bool = False
    # The requested pages, and the traffic that requests them.
    page: str = "1k"
    asks: str = "same"
    # Of the server behind this one: address and port, or the path of its socket.
    behind: str = ""
    # Lines of SetEnvIf that are matched against each request.
    rules: int = 0
    redirects: int = 0
    # CPUs' worth of time; 0: no limit.
    quota: float = 0.0
    # CPU time added to each response (a slowdown that --compare has to find).
    slower_ns: int = 0

    @property
    def host(self) -> str:
        """The address of load and checks."""
        return self.address

    @property
    def app_workers(self) -> int:
        """Processes of an application: two for each CPU and one more, unless the cell has its own
        number."""
        return self.app_processes or 2 * len(self.cpus) + 1

    @property
    def pages(self) -> tuple[Page, ...]:
        """The requested pages."""
        return self.site.pages[self.page]


class Server:
    """One server in one setup, from its configuration to its stop."""

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    # The program, and its packages.
    program: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    # Of: tls, log, http2, htaccess, cgi, ssi, app, gzip, brotli, zstd, substitute,
    # login, hosts, proxied, fastcgi, php, affinity (has
    # its own).
    features: ClassVar[frozenset[str]] = frozenset()
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.group: proc.Group | None = None
        self.quota: Quota | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    # Attributes of a subclass.

    @classmethod
    def path(cls) -> str | None:
        """The program's file, or None if it is not installed."""
        return packages.which(cls.program)

    @classmethod
    def absent(cls) -> str:
        """Why it can't run here, in one line; empty if it can."""
        if cls.path():
            return ""
        remedy = f" (apt-get install {' '.join(cls.packages)})" if cls.packages else ""
        return f"{cls.label} is missing: no {cls.program}{remedy}"

    @classmethod
    def version(cls) -> str:
        """The version the program prints."""
        return first_line([cls.path() or cls.program, "-v"])

    @classmethod
    def flags(cls) -> str:
        """Its build options, if it prints them."""
        return ""

    @classmethod
    def can(cls, feature: str) -> bool:
        """Whether cells with this feature make sense."""
        return feature in ("static", "") or feature in cls.features

    @classmethod
    def prepare(cls) -> None:
        """Fetches what no package contains; called once a run. If it is absent, one line with
        the reason."""

    @classmethod
    def missing_module(cls, feature: str) -> str:
        """The package of an optional part that a feature needs and that is not installed."""
        return ""

    @classmethod
    def lacks(cls, feature: str) -> str:
        """Why a row with this feature has no figure yet, in one line; otherwise empty."""
        return ""

    def configure(self) -> list[str]:
        """Writes the configuration; returns the command that runs the server in the foreground."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Variables that its program needs."""
        return {}

    # Common to all servers.

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.setup.tls else "http"

    def url(self, page: Page) -> str:
        """The address of a page."""
        return f"{self.scheme}://{self.setup.host}:{self.setup.port}{page.path}"

    def start(self) -> None:
        """Starts it on its CPUs and waits until it responds. LabError: one line with the reason."""
        self.setup.folder.mkdir(parents=True, exist_ok=True)
        self.setup.folder.chmod(0o777)
        refuse_used(self.setup.address, self.setup.port)
        name = f"{self.name}-{self.setup.port}"
        # A process is in one group of a hierarchy: with a quota, its CPU time is not the group's.
        if self.setup.quota:
            self.quota = Quota.make(name, self.setup.quota)
        else:
            self.group = proc.Group.make(name)
        self.launch(self.configure())
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._listens():
            ended = any(process.poll() is not None for process in self._processes)
            if ended or time.monotonic() > deadline:
                complaint = self._complaint()
                self.stop()
                what = "does not start" if ended else "does not answer"
                raise LabError(f"{self.label} {what}: {complaint}")
            time.sleep(0.02)

    def launch(self, command: list[str]) -> None:
        """One more process of this server, on its CPUs, in its group."""
        masked = ["taskset", "-c", cpu_lists.text(self.setup.cpus), *command]
        if self.group:
            masked = self.group.joining(masked)
        if self.quota:
            masked = self.quota.joining(masked)
        # A process that is not recorded would survive an interrupted run.
        with open(self.setup.folder / "output.txt", "ab") as output, deferred.interrupts():
            self._processes.append(subprocess.Popen(
                masked, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                start_new_session=True, cwd=self.setup.folder,
                env={**os.environ, **self.environment(), **self._slowed()}))

    def pids(self) -> list[int]:
        """All its processes."""
        if self.group:
            return self.group.pids()
        return [pid for process in self._processes for pid in proc.family(process.pid)]

    def settle(self) -> None:
        """Waits until it has finished starting: its CPU time no longer grows."""
        children = self.setup.prespawned if self.setup.feature == "app" else 0
        deadline = time.monotonic() + SETTLE_LIMIT_S + children * APPLICATION_LIMIT_S
        before = proc.reading(self.pids(), self.group).cpu_ns
        while time.monotonic() < deadline:
            time.sleep(0.1)
            after = proc.reading(self.pids(), self.group).cpu_ns
            if after - before < 10_000_000:
                return
            before = after

    def pin(self) -> None:
        """Pins by hand, as in P2: each worker process to one CPU; for a single one, its threads."""
        first = self._processes[0].pid
        pids = sorted(self.pids())
        workers = [proc.tasks(pid) for pid in pids if pid != first]
        targets = workers or [[task] for pid in pids for task in proc.tasks(pid)]
        for number, together in enumerate(targets):
            cpu = self.setup.cpus[number % len(self.setup.cpus)]
            for task in together:
                try:
                    os.sched_setaffinity(task, {cpu})
                except ProcessLookupError:
                    continue
                except OSError as error:
                    raise LabError(f"no permission to pin {self.label}: "
                                   f"{error.strerror}") from None

    def check(self, pages: tuple[Page, ...], traffic: Traffic = SAME,
              validators: Validators = Validators()) -> None:
        """Compares the status and the body of each kind of request, over the pages to check.
        Raises LabError if one is wrong."""
        for number, page in enumerate(looked_at(pages)):
            for kind in traffic.kinds:
                host = f"{self.setup.host}:{self.setup.port}"
                head = traffic.head(kind, page, host, validators, FIRST_NUMBER + number, False)
                given = self._answered(page, kind.method, head + kind.body)
                fault = self.fault(kind, page, given)
                if fault:
                    raise LabError(f"{self.label} answers {_shown(head)} {fault}")

    def meant(self, traffic: Traffic) -> Traffic:
        """The traffic with the responses expected from this server."""
        return traffic

    def fault(self, kind: Kind, page: Page, given: Response) -> str:
        """What is wrong with a response; empty if it is as intended."""
        coding = given.fields.get("Content-Encoding", "")
        return kind.fault(page, given.status, coding, given.body)

    def validators(self, page: Page) -> Validators:
        """A file's validators. Raises LabError if it has none."""
        head = SAME.head(SAME.kinds[0], page, self.setup.host, Validators(), 0, False)
        fields = self._answered(page, "GET", head).fields
        found = Validators(fields.get("ETag", ""), fields.get("Last-Modified", ""))
        if not found.etag or not found.modified:
            raise LabError(f"{self.label} names no ETag or no Last-Modified")
        return found

    def _answered(self, page: Page, method: str, request: bytes) -> Response:
        try:
            return ask(self.scheme, self.setup.host, self.setup.port, method, request)
        except (OSError, http.client.HTTPException) as error:
            raise LabError(f"{self.label} does not answer {page.path}: {error}") from None

    def tls_terms(self) -> str:
        """The negotiated TLS version and cipher. Raises LabError."""
        try:
            with socket.create_connection((self.setup.host, self.setup.port),
                                          FETCH_TIMEOUT_S) as plain, \
                    _any_certificate().wrap_socket(plain) as secured:
                version, cipher = secured.version(), secured.cipher()
        except OSError as error:
            raise LabError(f"{self.label} makes no handshake: {error}") from None
        return f"{version} {cipher[0]}" if cipher else ""

    def stop(self) -> None:
        """Ends it, including its children, even if another interrupt arrives meanwhile."""
        with deferred.interrupts():
            self._end()

    def _end(self) -> None:
        processes, self._processes = self._processes, []
        for process in processes:
            if process.poll() is None:
                process.send_signal(self.stop_signal)
        for process in processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _kill_group(process.pid)
        if self.group:
            for pid in self.group.pids():
                _kill(pid)
            self.group.remove()
            self.group = None
        if self.quota:
            self.quota.remove()
            self.quota = None

    def _slowed(self) -> dict[str, str]:
        if not self.setup.slower_ns:
            return {}
        library = compiled.program(SLOWER, "-shared", "-fPIC", "-ldl")
        return {"LD_PRELOAD": str(library), "SLOWER_NS": str(self.setup.slower_ns)}

    def _listens(self) -> bool:
        try:
            socket.create_connection((self.setup.host, self.setup.port), timeout=1).close()
            return True
        except OSError:
            return False

    def _complaint(self) -> str:
        for name in ("output.txt", "error.log"):
            path = self.setup.folder / name
            text = path.read_text(errors="replace") if path.exists() else ""
            lines = text.replace(f"{self.setup.folder}/", "").split("\n")
            said = [line.strip() for line in lines if line.strip()]
            if said:
                return next((line for line in said if FAULT.search(line)), said[-1])[:300]
        return "it said nothing"


def refuse_used(address: str, port: int) -> None:
    """Raises LabError if the address is already in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise LabError(f"port {port} is in use") from None
            raise LabError(f"can't listen on {address}:{port}: {error.strerror}") from None


def free_port(address: str = "127.0.0.1") -> int:
    """An unused port."""
    for _ in PORTS:
        port = PORTS[next(_port_numbers) % len(PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
    raise LabError("no port is free")


@dataclass(frozen=True)
class Response:
    """The response to one request."""

    status: int
    fields: http.client.HTTPMessage
    body: bytes


def ask(scheme: str, host: str, port: int, method: str, request: bytes) -> Response:
    """Sends a request unchanged on a connection of its own; its head has to close it."""
    with socket.create_connection((host, port), FETCH_TIMEOUT_S) as plain:
        connection = _any_certificate().wrap_socket(plain) if scheme == "https" else plain
        with connection:
            connection.sendall(request)
            answer = http.client.HTTPResponse(connection, method=method)
            answer.begin()
            return Response(answer.status, answer.msg, answer.read())


def _shown(head: bytes) -> str:
    """The request line, and the field that characterises the request."""
    lines = head.decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    asked = [line for line in lines if line.startswith(("If-", "Range:", "Authorization:"))]
    return " ".join([*([method] if method != "GET" else []), path,
                     *(f"({line})" for line in asked[:1])])


def fetch(url: str) -> tuple[int, bytes]:
    """One GET."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    name, _, port = host.partition(":")
    head = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    given = ask(scheme, name, int(port), "GET", head.encode())
    return given.status, given.body


def _any_certificate() -> ssl.SSLContext:
    """The lab's own certificate is self-signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def first_line(command: list[str]) -> str:
    """The first line a command prints, on either stream; empty if it can't run."""
    lines = output_of(command).strip().splitlines()
    return lines[0].strip() if lines else ""


def output_of(command: list[str]) -> str:
    """The whole output of a command, on both streams."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass

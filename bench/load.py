"""The load: wrk for requests, openssl s_time for handshakes, plain sockets for idle connections."""

from __future__ import annotations

import json
import re
import resource
import socket
import ssl
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 64
HANDSHAKE_CLIENTS = 4
WRK_SCRIPT = Path(__file__).parent / "wrk.lua"
HEADS_SCRIPT = Path(__file__).parent / "heads.lua"
# wrk's latencies are only good when they are as many as its requests.
LOST_MAX = 0.01
S_TIME_COUNT = re.compile(r"^(\d+) connections in \d+ real seconds", re.MULTILINE)


@dataclass(frozen=True)
class Load:
    """What a load tool counted."""

    requests: int
    errors: int
    p99_us: int
    complaint: str = ""


def wrk(cpu: int, url: str, seconds: float, script: Path = WRK_SCRIPT) -> Load:
    """Keep-alive requests over 64 connections."""
    return _wrk(["taskset", "-c", str(cpu)], url, seconds, script=script)


def wrk_anywhere(url: str, seconds: float, connections: int = CONNECTIONS,
                 threads: int = 1, is_short: bool = False) -> Load:
    """The same, on whichever CPU the kernel likes; short: a connection for each request."""
    headers = ["-H", "Connection: close"] if is_short else []
    return _wrk([], url, seconds, connections, threads, headers)


def _wrk(prefix: list[str], url: str, seconds: float, connections: int = CONNECTIONS,
         threads: int = 1, headers: Sequence[str] = (), script: Path = WRK_SCRIPT) -> Load:
    command = [*prefix, "wrk", *headers, f"-t{threads}", f"-c{connections}",
               f"-d{max(1, round(seconds))}s", "-s", str(script), url, "--", str(connections)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return Load(0, 1, 0)
    counted = json.loads(lines[-1])
    kinds = ("connect", "read", "write", "status", "timeout")
    errors = sum(counted[kind] for kind in kinds)
    complaint = ", ".join(f"{kind} {counted[kind]}" for kind in kinds if counted[kind])
    if abs(counted["counted"] - counted["requests"]) > counted["requests"] * LOST_MAX:
        errors, complaint = errors + 1, f"{complaint} latencies of other requests".strip()
    return Load(counted["requests"], errors, counted["p99_us"], complaint)


def handshakes(cpu: int, port: int, path: str, seconds: float) -> Load:
    """Full handshakes: each connection is new, asks once, and is closed by the server."""
    command = ["taskset", "-c", str(cpu), "openssl", "s_time", "-new",
               "-connect", f"127.0.0.1:{port}", "-www", path, "-time", str(max(1, round(seconds)))]
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True) for _ in range(HANDSHAKE_CLIENTS)]
    requests = errors = 0
    for client in clients:
        output, _ = client.communicate()
        counts = S_TIME_COUNT.findall(output)
        requests += int(counts[-1]) if counts else 0
        errors += int(client.returncode != 0 or not counts)
    return Load(requests, errors, 0)


class Idle:
    """Connections that each got one answer and then stay open."""

    def __init__(self) -> None:
        self._open: list[socket.socket] = []
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    def add(self, port: int, path: str, tls: bool, body: bytes) -> None:
        """Opens one connection, asks once, compares the body, leaves it open."""
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        if tls:
            connection = self._tls.wrap_socket(connection)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        received = b""
        while not (b"\r\n\r\n" in received and received.endswith(body)):
            part = connection.recv(65536)
            if not part:
                raise RuntimeError("the server closed a connection that was to stay open")
            received += part
        self._open.append(connection)

    def alive(self) -> int:
        """Connections that the server has not closed."""
        return sum(1 for connection in self._open if _is_open(connection))

    def close(self) -> None:
        """Closes all of them."""
        for connection in self._open:
            connection.close()
        self._open.clear()


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False

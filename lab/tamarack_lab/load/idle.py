"""Idle connections: each got one response and stays open. The engine reads the memory."""

from __future__ import annotations

import resource
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import LabError
from .side import Local, Side
from .tool import Count, Order, Tool

# Connections before the first reading: pools and arenas exist by then.
WARM_UP = 500

# Proportional and resident memory, in bytes.
Memory = Callable[[], tuple[int, int]]


@dataclass(frozen=True)
class Growth:
    """The memory of the connections."""

    count: Count
    # Proportional memory for each connection.
    each_bytes: float
    # Of the server with all connections open.
    pss_bytes: int
    rss_bytes: int


class Idle(Tool):
    """Opened by the lab itself from this machine, whatever the load side is."""

    name = "idle"
    program = "sh"

    def version(self, side: Side) -> str:
        """It belongs to the lab."""
        return "lab"

    def run_one(self, order: Order, side: Side) -> Count:
        """Nothing; only for the warm-up."""
        return Count(0, 0.0)

    def grow(self, order: Order, side: Side, memory: Memory) -> Growth:
        """Opens the connections, reads the server's memory while they are open, and closes them."""
        if not isinstance(side, Local) or side.namespace:
            raise LabError("idle connections are opened from this machine only")
        idle = _Connections(order)
        began = time.monotonic()
        try:
            for _ in range(WARM_UP):
                idle.add()
            before = settled(memory)
            for _ in range(order.connections):
                idle.add()
            after = settled(memory)
            alive = idle.alive()
        except OSError as error:
            raise LabError(f"idle connection {idle.count() + 1}: {error}") from None
        finally:
            idle.close()
        wanted = order.connections + WARM_UP
        lost = wanted - alive
        count = Count(wanted, time.monotonic() - began, lost, 0,
                      f"{lost} of {wanted} connections were closed" if lost else "")
        return Growth(count, (after[0] - before[0]) / order.connections, *after)


def settled(memory: Memory, limit_s: float = 3.0) -> tuple[int, int]:
    """The memory once it no longer changes, or after the limit."""
    deadline = time.monotonic() + limit_s
    last = memory()
    while time.monotonic() < deadline:
        time.sleep(0.3)
        now = memory()
        if abs(now[0] - last[0]) <= 4096:
            return now
        last = now
    return last


class _Connections:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._open: list[socket.socket] = []
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    def add(self) -> None:
        """Opens a connection, sends one request, compares the body, and leaves it open."""
        order = self._order
        page = order.pages[0]
        connection = socket.create_connection((order.host, order.port), timeout=20)
        if order.scheme == "https":
            connection = self._tls.wrap_socket(connection)
        self._open.append(connection)
        host = f"{order.host}:{order.port}"
        connection.sendall(f"GET {page.path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        received = b""
        while not (b"\r\n\r\n" in received and received.endswith(page.body or b"")):
            part = connection.recv(65536)
            if not part:
                raise LabError("the server closed a connection that was to stay open")
            received += part

    def count(self) -> int:
        """The number of opened connections."""
        return len(self._open)

    def alive(self) -> int:
        """The number of connections that the server has not closed."""
        return sum(1 for connection in self._open if _is_open(connection))

    def close(self) -> None:
        """Closes all."""
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

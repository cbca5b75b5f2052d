"""Memory of idle keep-alive connections: growth of the whole server, per connection."""

from __future__ import annotations

import time
from dataclasses import dataclass

from . import proc, site as documents
from .load import Idle
from .rounds import Plan
from .scenarios import IDLE, IDLE_SERVERS
from .servers import KINDS, Server, Setup
from .site import Site

CONNECTIONS = 10_000
# Connections that come before the first reading: pools and arenas exist then.
WARM_UP = 500
SETTLE_S = 1.5


@dataclass(frozen=True)
class Memory:
    """Bytes per connection; `open` counts those the server kept."""

    server: str
    tls: bool
    proportional: float
    resident: float
    open: int


def run(wanted: set[str], site: Site, plan: Plan) -> list[Memory]:
    """Measures every server that is wanted, without and with TLS."""
    memories: list[Memory] = []
    for tls in (False, True):
        for kind in KINDS:
            if kind.name in wanted and kind.name in IDLE_SERVERS and kind.path():
                folder = site.root / f"idle-{kind.name}-{'tls' if tls else 'plain'}"
                setup = Setup(tls=tls, idle_connections=CONNECTIONS + WARM_UP)
                server = kind(site, setup, folder, plan.server_cpu)
                plan.progress(f"{IDLE} {server.name}{' tls' if tls else ''}", duration_s(tls))
                try:
                    memories.append(_measure(server, tls))
                except (OSError, RuntimeError) as error:
                    plan.complain(f"{IDLE}: {server.name} is left out: {error}")
    return memories


def duration_s(tls: bool) -> float:
    """About how long one server takes."""
    return 2 * SETTLE_S + CONNECTIONS * (0.002 if tls else 0.0003)


def _measure(server: Server, tls: bool) -> Memory:
    idle = Idle()
    body = server.site.body(documents.SMALL)
    try:
        server.start()
        for _ in range(WARM_UP):
            idle.add(server.port, documents.SMALL, tls, body)
        time.sleep(SETTLE_S)
        before = proc.memory_bytes(server.pid)
        for _ in range(CONNECTIONS):
            idle.add(server.port, documents.SMALL, tls, body)
        time.sleep(SETTLE_S)
        after = proc.memory_bytes(server.pid)
        alive = idle.alive()
    finally:
        idle.close()
        server.stop()
    if alive < CONNECTIONS + WARM_UP:
        raise RuntimeError(f"only {alive} of {CONNECTIONS + WARM_UP} connections stayed open")
    growth = [(new - old) / CONNECTIONS for old, new in zip(before, after, strict=True)]
    return Memory(server.name, tls, growth[0], growth[1], alive)

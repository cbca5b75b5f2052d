"""What is measured: each scenario is a set of cells that run interleaved, and their load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import load, site
from .load import Load
from .servers import KINDS, Server, Setup


@dataclass(frozen=True)
class Variant:
    """One setup of a scenario; the name tells cells of one server apart."""

    name: str
    setup: Setup


@dataclass(frozen=True)
class Scenario:
    """Servers in setups under one kind of load."""

    name: str
    title: str
    path: str
    variants: tuple[Variant, ...]
    servers: tuple[str, ...]
    run: Callable[[int, Server, str, float], Load]
    # Server and load on the same two CPUs, instead of one each.
    shares_cpus: bool = False

    def cells(self, wanted: set[str]) -> list[tuple[type[Server], Variant]]:
        """The cells of the servers that are wanted and installed."""
        kinds = [kind for kind in KINDS
                 if kind.name in wanted and kind.name in self.servers and kind.path()]
        return [(kind, variant) for kind in kinds for variant in self.variants]


def _wrk(cpu: int, server: Server, path: str, seconds: float) -> Load:
    return load.wrk(cpu, server.url(path), seconds)


def _wrk_heads(cpu: int, server: Server, path: str, seconds: float) -> Load:
    return load.wrk(cpu, server.url(path), seconds, load.HEADS_SCRIPT)


def _wrk_anywhere(_cpu: int, server: Server, path: str, seconds: float) -> Load:
    return load.wrk_anywhere(server.url(path), seconds)


def _wrk_twice(_cpu: int, server: Server, path: str, seconds: float) -> Load:
    return load.wrk_anywhere(server.url(path), seconds, threads=2)


def _handshakes(cpu: int, server: Server, path: str, seconds: float) -> Load:
    return load.handshakes(cpu, server.port, path, seconds)


def _mpm(name: str, log: bool = False) -> Variant:
    return Variant(name, Setup(mpm=name, log=log))


def _plain(name: str = "") -> Variant:
    return Variant(name, Setup())


_TLS = Variant("", Setup(tls=True))
_LOOPS = (Variant("one", Setup(mpm="loop")), Variant("two", Setup()))
_PEERS = ("tamarack", "h2o", "nginx", "apache")

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("plain", "1 KiB file, keep-alive, no log", site.SMALL, (_plain(),),
             ("floor", *_PEERS), _wrk),
    Scenario("heads", "the same, and no two heads are alike", site.SMALL, (_plain(),),
             _PEERS, _wrk_heads),
    Scenario("tls", "1 KiB file over TLS, keep-alive, no log", site.SMALL, (_TLS,),
             _PEERS, _wrk),
    Scenario("handshakes", "full TLS handshakes, ECDSA P-256, one request each", site.SMALL,
             (_TLS,), _PEERS, _handshakes),
    Scenario("log", "1 KiB file, combined log in a buffer against no log", site.SMALL,
             (_plain("off"), Variant("on", Setup(log=True))),
             ("tamarack", "nginx", "apache"), _wrk),
    Scenario("htaccess", "1 KiB file four folders deep, two .htaccess on the way", site.DEEP,
             (_plain("none"), Variant("all", Setup(overrides=True))),
             ("tamarack", "apache"), _wrk),
    Scenario("large", "100 KiB file, keep-alive, no log", site.LARGE, (_plain(),),
             _PEERS, _wrk),
    Scenario("shapes", "1 KiB file, keep-alive, no log: each MPM", site.SMALL,
             (_mpm("event"), _mpm("worker"), _mpm("prefork")),
             ("floor", "tamarack", "apache"), _wrk),
    Scenario("shapes-heads", "the same, and no two heads are alike", site.SMALL,
             (_mpm("worker"), _mpm("prefork")), ("tamarack", "apache"), _wrk_heads),
    Scenario("shapes-log", "1 KiB file, keep-alive, log in a buffer: worker and prefork", site.SMALL,
             (_mpm("worker", log=True), _mpm("prefork", log=True)), ("tamarack", "apache"), _wrk),
    Scenario("loops", "1 KiB file, keep-alive: one loop against two, wrk with two threads, all on "
             "the same two CPUs", site.SMALL, _LOOPS, ("tamarack", "nginx"), _wrk_twice,
             shares_cpus=True),
    # One thread of wrk keeps two loops waiting: they wake up for fewer requests at a time.
    Scenario("loops-waiting", "the same with one thread of wrk, which is slower than two loops",
             site.SMALL, _LOOPS, ("tamarack", "nginx"), _wrk_anywhere, shares_cpus=True),
)

# Measured apart: memory is counted once per server, not in rounds of CPU time.
IDLE = "idle"
IDLE_SERVERS = ("tamarack", "nginx", "h2o", "apache")
AFFINITY = "affinity"
NAMES = (*(scenario.name for scenario in SCENARIOS), IDLE, AFFINITY)

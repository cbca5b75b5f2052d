"""From an experiment to its cells: the product of each block's lists, for the servers that
support them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

from . import cpus as cpu_lists
from .experiment import Block, Spec
from .results import Metric, Value
from .servers import Server
from .traffic import TRAFFICS

# Empirical time for starting, checking and stopping a server; for the estimate of the remaining
# time.
OVERHEAD_S = 1.2
JMETER_S = 6.0
IDLE_PER_S = 1500.0
# Each process of an embedded application loads its framework.
APPLICATION_S = 0.4
# The feature of the server that a page requires.
PAGE_FEATURES = {"cgi": "cgi", "ssi": "ssi", "menu": "ssi", "parts": "ssi", "site-cgi": "cgi",
                 "app": "app", "hello": "app", "app-response": "app", "app-upload": "app",
                 "text": "gzip", "prose-gzip": "gzip",
                 "prose-br": "brotli", "prose-zstd": "zstd", "replaced": "substitute", "private": "login",
                 "hosts": "hosts", "aliases": "hosts", "proxied": "proxied",
                 "proxied-unix": "proxied", "proxied-large": "proxied", "responder": "fastcgi",
                 "php": "php"}
# --quick uses only some numbers of CPUs if there are more than these.
QUICK_CPUS = 4
FEW_CPUS = cpu_lists.FEW


@dataclass(frozen=True)
class Planned:
    """A cell to be measured."""

    experiment: str
    key: str
    server: str
    label: str
    axes: dict[str, Value] = field(hash=False)
    block: Block = field(hash=False)
    tool: str
    page: str
    asks: str
    scheme: str
    log: str
    htaccess: str
    affinity: str
    concurrency: int
    # None: the server's side as a whole.
    cpus: int | None
    load_percent: int
    # The A/A run's second measurement of a cell.
    twin: bool = False

    @property
    def feature(self) -> str:
        """static, or the page's feature."""
        return PAGE_FEATURES.get(self.page, "static")

    def cost_s(self, seconds: float, warm_up_s: float) -> float:
        """The approximate time of a start."""
        cost = seconds + warm_up_s + OVERHEAD_S
        if self.tool == "jmeter":
            return cost - seconds + JMETER_S
        if self.tool == "idle":
            return OVERHEAD_S + 2.0 + self.block.connections / IDLE_PER_S
        prespawned = self.feature == "app" and self.server == "apache-prefork"
        return cost + (self.block.prespawned * APPLICATION_S if prespawned else 0.0)

    @property
    def load(self) -> str:
        """The load in words: the tool, the concurrency, the requests."""
        block = self.block
        if self.tool == "idle":
            return f"{block.connections:,} connections that ask for nothing"
        if self.tool == "handshakes":
            return f"{self.concurrency} clients, a full handshake each time"
        if block.requests_each:
            return f"{self.tool}, {self.concurrency} users, {block.requests_each} requests each"
        if self.tool == "streams":
            return f"h2load, {self.concurrency} connections with {block.streams} streams each, " \
                f"{TRAFFICS[self.asks].words}"
        who = (f"{self.concurrency} connections" if block.keep_alive
               else f"{self.concurrency} clients, a new connection for each request")
        what = "pages in random order" if self.page == "mixed" else TRAFFICS[self.asks].words
        pace = f", at {self.load_percent} % of the peak" if self.tool == "open" else ""
        return f"{self.tool}, {who}, {what}{pace}"

    @property
    def needs(self) -> list[str]:
        """The features that its server needs besides static files."""
        return needs(self.page, self.scheme, self.log, self.htaccess, self.tool)


@dataclass(frozen=True)
class Plan:
    """An experiment's cells, and the parts that this run omits."""

    spec: Spec
    cells: list[Planned]
    twins: list[Planned]
    headline: Metric
    left_out: list[str]


@dataclass(frozen=True)
class Chosen:
    """The chosen part of an experiment; empty: all of it."""

    servers: frozenset[str] = frozenset()
    scenarios: frozenset[str] = frozenset()
    # Only cells that a target names.
    judged: bool = False

    def takes(self, cell: Planned, spec: Spec) -> bool:
        """Whether the cell belongs to that part."""
        return ((not self.servers or cell.server in self.servers)
                and (not self.scenarios or cell.block.scenario in self.scenarios)
                and (not self.judged or any(
                    _fits(cell, side) for target in spec.targets
                    for side in (target.of, target.to, target.above) if side)))


def make(spec: Spec, kinds: dict[str, type[Server]], quick: bool, cpus: int, side_cpus: int,
         chosen: Chosen = Chosen()) -> Plan:
    """All chosen cells; `cpus` of the machine, `side_cpus` of the server's side."""
    cells: dict[str, Planned] = {}
    left_out = list(spec.left_out)
    scenarios = [block.scenario for block in spec.cells]
    for block in spec.cells:
        shown, dropped = _for_run(block, quick, kinds, scenarios.count(block.scenario) > 1)
        left_out += dropped
        for cell in _cells(spec, shown, kinds, quick, cpus, side_cpus, left_out):
            if chosen.takes(cell, spec):
                cells.setdefault(cell.key, cell)
    twins = [_twin(cell) for selector in spec.noise
             for cell in list(cells.values()) if _fits(cell, selector)]
    headline: Metric = spec.headline or (
        "cpu_us_per_request" if cpus < FEW_CPUS else "requests_per_s")
    return Plan(spec, list(cells.values()), twins, headline, list(dict.fromkeys(left_out)))


def _for_run(block: Block, quick: bool, kinds: dict[str, type[Server]],
             alike: bool) -> tuple[Block, list[str]]:
    """The block in this run, and lines on what --quick omits.

    Blocks whose scenario is `alike` are distinguished by their tool.
    """
    if not quick:
        return block, []
    changes = block.quick.model_dump(exclude_none=True)
    where = f"{block.scenario} ({', '.join(block.tool)})" if alike else block.scenario
    lines = [f"{where}: {line} (--quick)" for name, value in changes.items()
             if (line := _change(block, name, value, kinds))]
    return block.model_copy(update=changes), lines


def _change(block: Block, name: str, value: Any, kinds: dict[str, type[Server]]) -> str:
    """What a changed field omits; empty if nothing."""
    full = getattr(block, name)
    if not isinstance(full, list):
        now = value if value else "as many as the time allows"
        return f"{name} {now} instead of {full}" if full != value else ""
    if [one for one in value if one not in full]:
        return f"{name} {_joined(value)} instead of {_joined(full)}"
    gone = [one for one in full if one not in value]
    if name == "servers":
        # A server without the feature is not omitted for lack of time.
        gone = [one for one in gone if _takes_part(kinds[one], block)]
    return f"{name} {_joined(gone)}" if gone else ""


def _joined(values: list[Value]) -> str:
    return ", ".join(map(str, values))


def _takes_part(kind: type[Server], block: Block) -> bool:
    """Whether the block has a cell of this server that could have a figure."""
    return any(_makes_sense(kind, wanted, _affinity(kind, affinity))
               and not any(map(kind.lacks, wanted))
               for wanted, affinity in itertools.product(
                   itertools.starmap(needs, itertools.product(
                       block.page, block.scheme, block.log, block.htaccess, block.tool)),
                   block.affinity))


def _affinity(kind: type[Server], wanted: str) -> str:
    """"pinned" is by the server itself if possible, otherwise by hand."""
    if wanted != "pinned":
        return wanted
    return "own" if kind.can("affinity") else "taskset"


def _cells(spec: Spec, block: Block, kinds: dict[str, type[Server]], quick: bool, cpus: int,
           side_cpus: int, left_out: list[str]) -> list[Planned]:
    found = []
    counts = _cpu_counts(block, quick, cpus, side_cpus)
    shared = [count for count in counts if count is not None and count > side_cpus]
    if shared:
        left_out.append(f"{block.scenario}: on {_joined([*shared])} CPUs the load shares them")
    for server in block.servers:
        kind = kinds[server]
        for values in itertools.product(
                block.tool, block.page, block.asks, block.scheme, block.log, block.htaccess, block.affinity,
                block.concurrency, counts, block.load_percent):
            tool, page, asks, scheme, log, htaccess, wanted, clients, count, percent = values
            affinity = _affinity(kind, wanted)
            if not _makes_sense(kind, needs(page, scheme, log, htaccess, tool), affinity):
                continue
            every: dict[str, Value] = {
                "scenario": block.scenario, "tool": tool, "page": page, "asks": asks,
                "scheme": scheme, "log": log, "htaccess": htaccess, "affinity": affinity,
                "concurrency": clients,
                "cpus": count if count is not None else side_cpus, "load_percent": percent}
            axes = {name: every[name] for name in spec.axes}
            key = " ".join([f"server={server}",
                            *(f"{name}={value}" for name, value in axes.items())])
            found.append(Planned(spec.name, key, server, kind.label, axes, block, tool, page,
                                 asks, scheme, log, htaccess, affinity, clients, count, percent))
    return found


def _cpu_counts(block: Block, quick: bool, cpus: int, side_cpus: int) -> list[int | None]:
    counts: list[int | None] = []
    for value in block.cpus:
        if value == "each":
            levels = list(range(1, cpus + 1))
            if quick and cpus > QUICK_CPUS:
                levels = sorted({1, 2, 4, cpus // 2, cpus})
            counts += levels
        elif value == "several":
            # Affinity has no meaning on one CPU.
            counts.append(max(2, side_cpus) if cpus > 1 else None)
        else:
            counts.append(None if value == "side" else int(value))
    return [count for count in counts if count is None or count <= cpus]


def needs(page: str, scheme: str, log: str, htaccess: str, tool: str) -> list[str]:
    """The server features that a cell requires."""
    found = [PAGE_FEATURES[page]] if page in PAGE_FEATURES else []
    found += ["tls"] if scheme == "https" else []
    found += ["log"] if log != "off" else []
    found += ["http2"] if tool == "streams" else []
    return found + (["htaccess"] if htaccess != "none" else [])


def _makes_sense(kind: type[Server], wanted: list[str], affinity: str) -> bool:
    """Whether the server has the features of the cell. What it lacks by design is no cell."""
    if affinity in ("taskset", "own", "bound") and \
            kind.can("affinity") != (affinity in ("own", "bound")):
        return False
    return all(map(kind.can, wanted))


def _fits(cell: Planned, selector: dict[str, Value]) -> bool:
    have: dict[str, Value] = {"server": cell.server, **cell.axes}
    return all(have.get(name) == value for name, value in selector.items())


def _twin(cell: Planned) -> Planned:
    return replace(cell, twin=True)

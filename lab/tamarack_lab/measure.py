"""One fresh start of a cell: start, check, settle, warm up, measure, check again, stop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from . import behind, beside, cpus, proc
from .cpus import CpuError, Sides
from .errors import LabError
from .load import TOOLS, Count, Order, answer
from .load.idle import Idle
from .load.side import Local, Side
from .load.tool import Tool
from .plan import Planned
from .results import Sample
from .servers import Server, Setup
from .servers.base import free_port
from .site import Page, Site
from .traffic import TRAFFICS, Validators

# P5 has so many users that their first requests come at once: one round of them warms up.
WARM_UP_MIN_S = 0.3
# Pages in turn are each requested so often before they are measured: caches may keep a page only
# when it is requested again.
WARM_UP_TURNS = 3
WARM_UP_MAX_S = 30.0
# A shorter search for a peak depends on chance.
PEAK_MIN_S = 1.0


@dataclass
class Stage:
    """The machine's part of a measurement: addresses, CPUs, times."""

    site: Site
    folder: Path
    sides: Sides
    load: Side
    address: str
    # 0: any free port.
    port: int
    seconds: float
    warm_up_s: float
    kinds: dict[str, type[Server]]
    # Server → nanoseconds that are added to each of its responses.
    slower_ns: dict[str, int] = field(default_factory=dict)
    # Server → TLS version and cipher, as negotiated.
    tls: dict[str, str] = field(default_factory=dict)
    note: Callable[[str], None] = print
    # Set by tests.
    tools: dict[str, Tool] | None = None

    def tool(self, name: str) -> Tool:
        """A load tool by name."""
        return (self.tools or TOOLS)[name]


def sample(cell: Planned, start: int, order: int, stage: Stage) -> Sample:
    """Measures once. LabError: one line why there is no figure."""
    sides = stage.sides
    try:
        sides = sides.server_with(cell.cpus)
    except CpuError as error:
        raise LabError(str(error)) from None
    with _started(cell, sides, stage) as server, _load_on(sides, stage) as side:
        pages = stage.site.pages[cell.page]
        tool = stage.tool(cell.tool)
        traffic = server.meant(TRAFFICS[cell.asks])
        if not traffic.is_plain and not tool.any_traffic:
            raise LabError(f"{tool.name} sends the same head each time")
        # Children that still load an application would delay the check.
        server.settle()
        validators = server.validators(pages[0]) if traffic.validates else Validators()
        wanted = replace(order_of(cell, pages, server, side, stage, start), traffic=traffic,
                         validators=validators)
        server.check(pages, traffic, validators)
        _keep_tls(server, stage)
        if cell.affinity == "taskset":
            server.pin()
        if isinstance(tool, Idle):
            return _idle(tool, wanted, server, side, start, order)
        if tool.sums_bytes:
            wanted = replace(wanted, answer_bytes=answer.lengths(wanted))
        statuses: dict[int, int] = {}
        with beside.busy(sides.server[-1], cell.block.busy), \
                beside.scripts(cell.block.scripts, server.setup, sides):
            if cell.tool == "open":
                wanted = replace(wanted, rate=_peak(cell, tool, wanted, side, stage)
                                 * cell.load_percent / 100)
            else:
                statuses = _warm_up(cell, tool, wanted, side, stage)
            if cell.affinity == "taskset":
                # Processes started by the load.
                server.pin()
            made = _measured(tool, wanted, server, side, sides, start, order)
        server.check(pages, traffic, validators)
        return made.model_copy(update={"statuses": statuses or made.statuses})


def order_of(cell: Planned, pages: tuple[Page, ...], server: Server, side: Side, stage: Stage,
             start: int) -> Order:
    """The load of a cell; that of an open loop gets its rate when the peak is known."""
    block = cell.block
    return Order(
        scheme=server.scheme, host=server.setup.host, port=server.setup.port, pages=pages,
        clients=cell.concurrency, seconds=stage.seconds,
        threads=block.threads or side.cpu_count(), keep_alive=block.keep_alive, streams=block.streams,
        requests=block.requests or None, requests_each=block.requests_each,
        connections=block.connections, timeline=cell.tool == "users",
        seed=start * 100 + 1)


@contextmanager
def _started(cell: Planned, sides: Sides, stage: Stage) -> Iterator[Server]:
    folder = stage.folder / f"{cell.server}-{time.monotonic_ns()}"
    idle = cell.block.connections + 600 if cell.tool == "idle" else 0
    setup = Setup(
        site=stage.site, folder=folder, port=stage.port or free_port(stage.address),
        cpus=sides.server, address=stage.address, tls=cell.scheme == "https",
        log=cell.log != "off", htaccess=cell.htaccess != "none", asks=cell.asks,
        page=cell.page,
        clients=max(cell.concurrency, idle), profile=cell.block.profile,
        prespawned=cell.block.prespawned, rules=cell.block.rules,
        redirects=cell.block.redirects, quota=cell.block.quota, affinity=cell.affinity,
        app_processes=cell.block.app_processes, app_threads=cell.block.app_threads,
        app_embedded=cell.block.app_embedded,
        feature=cell.feature, http2=cell.tool == "streams",
        slower_ns=stage.slower_ns.get(cell.server, 0))
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    try:
        with behind.started(setup, sides.load) as place:
            server = stage.kinds[cell.server](replace(setup, behind=place))
            try:
                server.start()
                yield server
            finally:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _load_on(sides: Sides, stage: Stage) -> Iterator[Side]:
    """The load's side; on this machine its mask depends on the cell."""
    load = stage.load
    if not isinstance(load, Local) or load.mask == sides.load:
        yield load
        return
    before, load.mask = load.mask, sides.load
    try:
        yield load
    finally:
        load.mask = before


def _warm_up(cell: Planned, tool: Tool, wanted: Order, side: Side,
             stage: Stage) -> dict[int, int]:
    """Returns the responses by status, if the traffic must be counted. Raises LabError for
    others than intended: in the measured load they would be mistaken for them."""
    seconds = max(WARM_UP_MIN_S, stage.warm_up_s)
    if cell.block.warm_up_rate:
        tool = stage.tool("open")
        warm = replace(wanted, seconds=seconds, rate=float(cell.block.warm_up_rate), threads=1,
                       clients=8, requests=None, keep_alive=True)
    elif cell.tool in ("users", "jmeter"):
        tool = stage.tool("hammer")
        warm = replace(wanted, seconds=seconds, timeline=False, threads=1)
    else:
        warm = replace(wanted, seconds=seconds, requests=None, rate=None,
                       counting=not wanted.traffic.is_plain)
    count = tool.run(warm, side)
    if wanted.traffic.in_turn and 0 < count.requests < WARM_UP_TURNS * len(wanted.pages):
        # Each run begins with the first page.
        share = count.requests / (WARM_UP_TURNS * len(wanted.pages))
        count = tool.run(replace(warm, seconds=min(WARM_UP_MAX_S, seconds / share)), side)
    if warm.counting and (count.errors or count.wrong_bytes):
        wrong = "wrong bytes" if count.wrong_bytes else ""
        said = ", ".join(filter(None, (count.complaint, wrong)))
        raise LabError(f"{cell.label} gives other responses than intended ({said})")
    return count.statuses


def _keep_tls(server: Server, stage: Stage) -> None:
    """Records the negotiated TLS; reports it if another server's differs: it is different work."""
    if not server.setup.tls or server.name in stage.tls:
        return
    mine = stage.tls[server.name] = server.tls_terms()
    first, theirs = next(iter(stage.tls.items()))
    if mine != theirs:
        stage.note(f"TLS differs: {server.label} agrees on {mine}, "
                   f"{stage.kinds[first].label} on {theirs}.")


def _peak(cell: Planned, tool: Tool, wanted: Order, side: Side, stage: Stage) -> float:
    """The warm-up of an open loop: the most requests/s that this start reaches in a closed one.

    Each start has its own: on a machine whose speed varies, 95 % of an old peak may be more than
    the server can handle, or hardly any load.
    """
    count = tool.run(replace(wanted, seconds=max(PEAK_MIN_S, stage.warm_up_s)), side)
    if not count.requests:
        raise LabError(f"{cell.label} answered nothing while its peak was looked for")
    return count.requests / count.duration_s


def _measured(tool: Tool, wanted: Order, server: Server, side: Side, sides: Sides, start: int,
              order: int) -> Sample:
    at = datetime.now(UTC)
    busy = [proc.ticks(mask) for mask in (sides.server, sides.load)]
    every = tuple({*sides.server, *sides.load})
    taken = proc.stolen(every)
    before, periods = proc.reading(server.pids(), server.group), _periods(server)
    count = tool.run(wanted, side)
    after, periods_after = proc.reading(server.pids(), server.group), _periods(server)
    stolen = proc.stolen(every)
    shares = [proc.busy_share(old, proc.ticks(mask))
              for old, mask in zip(busy, (sides.server, sides.load), strict=True)]
    if count.requests == 0:
        raise LabError(f"{server.label}: no request was answered ({count.complaint or 'no error'})")
    pids = server.pids()
    proportional, resident = proc.memory_bytes(pids)
    if not isinstance(side, Local):
        shares[1] = None
    return Sample(
        **_counted(count, start, order, at),
        cpu_us_per_request=(after.cpu_ns - before.cpu_ns) / 1000 / count.requests
        if tool.starts_at_once else None,
        own_cpu_us_per_request=proc.lasting_ns(before, after) / 1000 / count.requests
        if tool.starts_at_once else None,
        throttled=proc.busy_share(periods, periods_after),
        migrations=proc.grown(before.migrations, after.migrations),
        context_switches_voluntary=proc.grown(before.voluntary, after.voluntary),
        context_switches_involuntary=proc.grown(before.involuntary, after.involuntary),
        pss_bytes=proportional, rss_bytes=resident,
        interpreters=proc.interpreters(pids) if server.setup.feature == "app" else None,
        server_cpus=len(sides.server), server_busy=shares[0], load_busy=shares[1],
        steal=proc.busy_share(taken, stolen),
        latency=count.latency(), timeline_ms=count.timeline_ms)


def _periods(server: Server) -> tuple[int, int]:
    """The periods of its quota in which it was throttled, and all; zero without one."""
    return server.quota.periods() if server.quota else (0, 0)


def _idle(tool: Idle, wanted: Order, server: Server, side: Side, start: int,
          order: int) -> Sample:
    at = datetime.now(UTC)
    growth = tool.grow(wanted, side, lambda: proc.memory_bytes(server.pids()))
    counted = _counted(growth.count, start, order, at) | {"requests_per_s": None}
    return Sample(**counted, pss_bytes=growth.pss_bytes, rss_bytes=growth.rss_bytes,
                  bytes_per_connection=growth.each_bytes)


def _counted(count: Count, start: int, order: int, at: datetime) -> dict[str, object]:
    rate = count.requests / count.duration_s
    return {"start": start, "order": order, "at": at, "duration_s": count.duration_s,
            "requests": count.requests, "errors": count.errors,
            "wrong_bytes": count.wrong_bytes, "complaint": count.complaint,
            "statuses": count.statuses,
            "requests_per_s": rate,
            "bytes_per_s": None if count.bytes is None else count.bytes / count.duration_s}


def text_of(sides: Sides, load: Side, quick: bool) -> str:
    """The origin of the load, in a sentence."""
    server = cpus.text(sides.server)
    if not isinstance(load, Local):
        return f"from other machines over SSH ({load.where().strip()}); server on CPU {server}"
    inside = f", in network namespace {load.namespace}" if load.namespace else ""
    shared = "; some CPUs serve both" if sides.shared else ""
    return (f"on the same machine{inside}: server on CPU {server}, "
            f"load on CPU {cpus.text(sides.load)}{shared}")

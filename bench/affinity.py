"""CPU affinity: migrations of loops, a busy program on one of two CPUs, a quota of one CPU on two.

Unlike the other scenarios the server and the load share both CPUs: the point is what the kernel
and the server make of them. Everything is compared with the same server left alone.

Beside the busy program there are two loads. With connections that stay open and always have a
request under way both loops always have work, wherever they run: what is left of two CPUs is used
up in every way of sharing it out, and the ways are hardly told apart. With a connection for each
request a loop that is bound to the busy CPU gets half of all connections and half of a CPU:
they pile up there, while the other loop waits for more. That is where static binding loses. Each
request costs the server much more than the client (a long list of SetEnvIf lines, as people have
against robots): else it is the client that takes the time which static binding wastes.

One busy thread leaves the bound loop half of its CPU or more, and static binding wastes little of
the other; three leave it a quarter. New connections are measured beside both."""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from . import intervals, load, proc, site
from .rounds import CELL_OVERHEAD_S
from .scenarios import AFFINITY as NAME
from .servers import Setup
from .servers.apache import Apache
from .servers.server import Server
from .servers.tamarack import Tamarack
from .site import Site
from .targets import Verdict

# How long a server has to notice what has changed before it is measured, with the load on.
SETTLE_S = 3.0
WARM_UP_S = 1.0
# More say little more, and the whole is to take seven minutes.
ROUNDS_MAX = 8
# As many requests at a time as both loops need to have work when they are shared out well.
BUSY_CONNECTIONS = 16
# So many that a request costs the server about half a millisecond.
ROBOT_LINES = 1500
ROBOTS = "".join(f'SetEnvIf User-Agent "Bad(bot|crawler|spider)[a-z]*{number}/[0-9.]+" robot\n'
                 for number in range(ROBOT_LINES))
# A process for each loop, as Debian has it. Loops of one process hand connections to each other
# whether they are bound or not, which is another matter.
PROCESSES = "StartServers 2\nServerLimit 2\nMaxRequestWorkers 256\n"
QUOTA_US = 100_000
PERIOD_US = 100_000
MIGRATIONS = re.compile(r"^se\.nr_migrations\s*:\s*(\d+)", re.MULTILINE)
# What each part is called, and the loads beside the busy program.
MOVES, KEPT, SHORT = "migrations", "busy, kept connections", "busy, new connections"
CROWDED = "three busy, new connections"
# Busy threads beside the server, all on one CPU.
HOGS = {KEPT: 1, SHORT: 1, CROWDED: 3}
QUOTA, QUOTA_MANY = "quota, event", "quota, prefork"
# Names of the tables' rows.
PINNED, ADAPTING, FREE, APACHE = "pinned", "adapting", "unpinned", "apache"


class Pinned(Tamarack):
    """Loops bound to CPUs once and for all."""

    lines = "CPUAffinity Thread\nCPUAffinityAdapt Off\n"
    # What the part needs beside.
    more = ""

    def configure(self) -> list[str]:
        """Apache's configuration, and the lines of the kind."""
        command = super().configure()
        file = self.folder / "httpd.conf"
        file.write_text(file.read_text() + self.lines + self.more)
        return command


class Adapting(Pinned):
    """What is there without any directive."""

    lines = "CPUAffinity Auto\nCPUAffinityAdapt On\n"


class Free(Pinned):
    """Left to the kernel."""

    lines = "CPUAffinity Off\n"


VARIANTS: dict[str, type[Server]] = {
    PINNED: Pinned, ADAPTING: Adapting, FREE: Free, APACHE: Apache}


@dataclass
class Row:
    """What was measured of one server in one part, a value a round."""

    part: str
    variant: str
    unit: str
    values: list[float] = field(default_factory=list)
    errors: int = 0


@dataclass(frozen=True)
class Plan:
    """How much is measured, where, and who hears of it."""

    rounds: int
    seconds: float
    cpus: tuple[int, int]
    progress: Callable[[str, float], None]
    complain: Callable[[str], None]


def duration_s(rounds: int, seconds: float) -> float:
    """About how long all parts take."""
    rounds = min(rounds, ROUNDS_MAX)
    cell = seconds + CELL_OVERHEAD_S
    # Of each part the servers, and how often each is measured in a round.
    cells = 4 * cell + 3 * len(HOGS) * (cell + SETTLE_S) + 2 * 2 * cell
    return rounds * cells + 10 * WARM_UP_S


def run(wanted: set[str], served: Site, plan: Plan) -> list[Row]:
    """All parts, for the servers that are wanted and installed."""
    rows: list[Row] = []
    plan = replace(plan, rounds=min(plan.rounds, ROUNDS_MAX))
    for part in (_migrations, _busy, _quota, _quota_many):
        variants = {name: kind for name, kind in VARIANTS.items()
                    if kind.name in wanted and kind.path()}
        try:
            rows += part(variants, served, plan)
        except (OSError, RuntimeError) as error:
            plan.complain(f"{NAME}: {part.__name__.strip('_')} is left out: {error}")
    return rows


def judge(rows: list[Row]) -> list[Verdict]:
    """Every target for which both sides were measured."""
    table = {(row.part, row.variant): row for row in rows}
    verdicts: list[Verdict] = []

    def compare(part: str, ours: str, base: str, target: str,
                measure: Callable[[float, float], float],
                is_met: Callable[[intervals.Interval], bool]) -> None:
        mine, theirs = table.get((part, ours)), table.get((part, base))
        if mine and theirs:
            pairs = zip(mine.values, theirs.values, strict=True)
            found = intervals.of([measure(one, other) for one, other in pairs])
            met = is_met(found) and not mine.errors
            text = f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f})"
            verdicts.append(Verdict(f"{NAME}: {part}: {ours} against {base}", target, text, met))

    pinned = table.get((MOVES, PINNED))
    if pinned:
        found = intervals.of(pinned.values)
        verdicts.append(Verdict(f"{NAME}: migrations of pinned loops", "< 5 in 100,000",
                                f"{found.median:.2f}", found.median < 5 and not pinned.errors))
    for part in HOGS:
        compare(part, ADAPTING, FREE, "≥ 0.95 ×", lambda one, other: one / other,
                lambda found: found.median >= 0.95)
    for part in (SHORT, CROWDED):
        compare(part, ADAPTING, PINNED, "≥ 1.1 ×, surely > 1 ×", lambda one, other: one / other,
                lambda found: found.median >= 1.1 and found.low > 1.0)
    for part in (QUOTA, QUOTA_MANY):
        compare(part, ADAPTING, FREE, "≤ + 0.01", lambda one, other: one - other,
                lambda found: found.low <= 0.01)
    return verdicts


def lines(rows: list[Row]) -> list[tuple[str, ...]]:
    """Rows of a table: part, server, median and interval."""
    shown = []
    for row in rows:
        if row.values:
            found = intervals.of(row.values)
            shown.append((f"{row.part}: {row.variant}", row.unit, f"{found.median:.3f}",
                          f"{found.low:.3f} to {found.high:.3f}",
                          f"{row.errors} !" if row.errors else "0"))
    return shown


def as_json(rows: list[Row]) -> list[dict[str, object]]:
    """For the raw results."""
    return [{**asdict(row), "values": [round(value, 6) for value in row.values]} for row in rows]


def _migrations(variants: dict[str, type[Server]], served: Site, plan: Plan) -> list[Row]:
    """How often the kernel moves the servers' threads while they answer."""
    unit = "migrations/100,000 requests"
    with _started(MOVES, variants, served, plan) as servers:
        def measure(server: Server, row: Row) -> float:
            before = _moves(server.pid)
            counted = _load(server, row, plan)
            return (_moves(server.pid) - before) * 1e5 / max(1, counted.requests)

        return _rounds(MOVES, unit, servers, plan, measure)


def _busy(variants: dict[str, type[Server]], served: Site, plan: Plan) -> list[Row]:
    """Another program keeps the second CPU busy, by one thread or by three."""
    own = {name: kind for name, kind in variants.items() if name != APACHE}
    late = {part: {name: Row(f"{part}, p99", name, "ms") for name in own} for part in HOGS}
    rows: list[Row] = []

    def measure(server: Server, row: Row) -> float:
        is_short = row.part != KEPT
        load.wrk_anywhere(server.url(site.SMALL), SETTLE_S, BUSY_CONNECTIONS, is_short=is_short)
        counted = _load(server, row, plan, BUSY_CONNECTIONS, is_short)
        late[row.part][row.variant].values.append(counted.p99_us / 1000)
        return counted.requests / plan.seconds

    with _started("busy", own, served, plan, more=ROBOTS) as servers:
        for part, threads in HOGS.items():
            with _hogs(plan.cpus[1], threads):
                rows += _rounds(part, "requests/s", servers, plan, measure, SETTLE_S)
                rows += late[part].values()
    return rows


def _quota(variants: dict[str, type[Server]], served: Site, plan: Plan) -> list[Row]:
    """Two CPUs, and the time of one: one loop then, by plan."""
    return _throttled(QUOTA, "event", variants, served, plan)


def _quota_many(variants: dict[str, type[Server]], served: Site, plan: Plan) -> list[Row]:
    """The same with more processes than the quota has CPUs: they use it up before its time."""
    return _throttled(QUOTA_MANY, "prefork", variants, served, plan)


def _throttled(part: str, mpm: str, variants: dict[str, type[Server]], served: Site,
               plan: Plan) -> list[Row]:
    # Under a quota "pinned" is nothing else: nobody is bound to a CPU alone.
    own = {name: kind for name, kind in variants.items() if name in (ADAPTING, FREE)}
    with ExitStack() as groups:
        held = {name: groups.enter_context(_group(name)) for name in own}
        # With what the client needs little for, the server could use both CPUs.
        with _started(part, own, served, plan, held, ROBOTS, mpm) as servers:
            def measure(server: Server, row: Row) -> float:
                periods, throttled = held[row.variant].counts()
                _load(server, row, plan)
                now_periods, now_throttled = held[row.variant].counts()
                return (now_throttled - throttled) / max(1, now_periods - periods)

            return _rounds(part, "throttled periods", servers, plan, measure)


def _rounds(part: str, unit: str, servers: dict[str, Server], plan: Plan,
            measure: Callable[[Server, Row], float], beside_s: float = 0.0) -> list[Row]:
    rows = {name: Row(part, name, unit) for name in servers}
    for number in range(plan.rounds):
        order = list(servers)
        random.shuffle(order)
        for name in order:
            plan.progress(f"{NAME} {part} {number + 1}/{plan.rounds} {name}",
                          plan.seconds + beside_s + CELL_OVERHEAD_S)
            rows[name].values.append(measure(servers[name], rows[name]))
    return list(rows.values())


def _load(server: Server, row: Row, plan: Plan,
          connections: int = load.CONNECTIONS, is_short: bool = False) -> load.Load:
    counted = load.wrk_anywhere(server.url(site.SMALL), plan.seconds, connections,
                                is_short=is_short)
    row.errors += counted.errors
    if counted.errors:
        plan.complain(f"{NAME} {row.part}: {row.variant}: errors: {counted.complaint}")
    return counted


@contextmanager
def _started(part: str, variants: dict[str, type[Server]], served: Site, plan: Plan,
             groups: dict[str, Group] | None = None,
             more: str = "", mpm: str = "event") -> Iterator[dict[str, Server]]:
    servers: dict[str, Server] = {}
    both = ",".join(str(cpu) for cpu in plan.cpus)
    try:
        for name, kind in variants.items():
            folder = served.root / f"{NAME}-{part}-{name}".replace(", ", "-").replace(" ", "-")
            server = kind(served, Setup(mpm=mpm), folder, both)
            if isinstance(server, Pinned):
                server.more = more + (PROCESSES if mpm == "event" else "")
            servers[name] = server
            with groups[name].entered() if groups else ExitStack():
                server.start()
            server.check(site.SMALL)
            plan.progress(f"{NAME} {part} warm-up {name}", WARM_UP_S)
            load.wrk_anywhere(server.url(site.SMALL), WARM_UP_S)
        yield servers
    finally:
        for server in servers.values():
            server.stop()


@contextmanager
def _hogs(cpu: int, threads: int) -> Iterator[None]:
    """Programs of somebody else: in the load generator's session they would be of one scheduling
    group with it (autogroup), and compete with it more than with the server."""
    spin = ["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]
    processes = [subprocess.Popen(spin, start_new_session=True)
                 for _ in range(threads)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _moves(root: int) -> int:
    """Migrations of all threads of a server's children; the one that only watches is not asked."""
    found = 0
    for pid in proc.family(root)[1:]:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if match := MIGRATIONS.search((task / "sched").read_text()):
                found += int(match.group(1))
    return found


@dataclass(frozen=True)
class Group:
    """A cgroup with a quota, of either version."""

    path: Path
    home: Path

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What is started inside is in the group, and this process is not afterwards."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (self.home / "cgroup.procs").write_text(str(os.getpid()))

    def counts(self) -> tuple[int, int]:
        """Periods with something to do, and those in which the time was used up."""
        words = dict(line.split()[:2] for line in (self.path / "cpu.stat").read_text().splitlines())
        return int(words["nr_periods"]), int(words["nr_throttled"])


@contextmanager
def _group(name: str) -> Iterator[Group]:
    root = Path("/sys/fs/cgroup")
    legacy = (root / "cpu").is_dir()
    table = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line.split(":", 2)[2] for line in table
                if ("cpu" in line.split(":")[1].split(",") if legacy else line.startswith("0::"))),
               "/")
    home = (root / "cpu" if legacy else root) / own.strip("/")
    group = Group(home / f"tamarack-bench-{os.getpid()}-{name}", home)
    group.path.mkdir()
    try:
        if legacy:
            (group.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group.path / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        else:
            (group.path / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
        yield group
    finally:
        for _ in range(50):
            try:
                group.path.rmdir()
                break
            except OSError:
                time.sleep(0.1)

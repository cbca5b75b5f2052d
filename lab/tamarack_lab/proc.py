"""The kernel's counters for a server: CPU time, migrations, context switches, memory.

CPU time comes from a separate cgroup if possible (threads and children that ended are counted
fully), otherwise from each process's clock and the times of children it waited for.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# A module in C, as it is mapped.
EXTENSION = re.compile(r"\.cpython-\d+[^/\n]*\.so$", re.MULTILINE)
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """Totals since the start; None if the kernel does not provide them."""

    cpu_ns: int
    # Each process's own clock, without its children's.
    own_ns: dict[int, int]
    migrations: dict[int, int]
    voluntary: dict[int, int]
    involuntary: dict[int, int]


def family(root: int) -> list[int]:
    """The process and all its descendants."""
    members = [root]
    for pid in members:
        for task in tasks(pid):
            words = _read(PROC / str(pid) / "task" / str(task) / "children").split()
            members += [int(word) for word in words]
    return members


def tasks(pid: int) -> list[int]:
    """Threads of a process."""
    try:
        return [int(name) for name in os.listdir(PROC / str(pid) / "task")]
    except OSError:
        return []


def reading(pids: list[int], group: Group | None) -> Reading:
    """Reads all counters of these processes."""
    migrations: dict[int, int] = {}
    voluntary: dict[int, int] = {}
    involuntary: dict[int, int] = {}
    for pid in pids:
        for task in tasks(pid):
            folder = PROC / str(pid) / "task" / str(task)
            for line in _read(folder / "sched").splitlines():
                if line.startswith("se.nr_migrations"):
                    migrations[task] = int(line.split(":")[1])
            for line in _read(folder / "status").splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    voluntary[task] = int(line.split(":")[1])
                elif line.startswith("nonvoluntary_ctxt_switches"):
                    involuntary[task] = int(line.split(":")[1])
    cpu_ns = group.cpu_ns() if group else sum(_process_ns(pid) for pid in pids)
    return Reading(cpu_ns, {pid: _own_ns(pid) for pid in pids}, migrations, voluntary, involuntary)


def grown(before: dict[int, int], after: dict[int, int]) -> int | None:
    """Growth of a counter over all live threads; None if nothing was read."""
    if not after:
        return None
    return sum(count - before.get(task, 0) for task, count in after.items())


def lasting_ns(before: Reading, after: Reading) -> int:
    """CPU time between two readings of the processes that are in both."""
    return sum(max(0, after.own_ns[pid] - spent) for pid, spent in before.own_ns.items()
               if pid in after.own_ns)


def memory_bytes(pids: list[int]) -> tuple[int, int]:
    """Proportional and resident memory."""
    proportional = resident = 0
    for pid in pids:
        for line in _read(PROC / str(pid) / "smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                proportional += int(line.split()[1]) * 1024
            elif line.startswith("Rss:"):
                resident += int(line.split()[1]) * 1024
    return proportional, resident


def interpreters(pids: list[int]) -> int:
    """How many of these processes have an interpreter of Python in memory: those that are one, and
    those that have loaded an extension module. libpython alone is a library that waits."""
    return sum(_is_python(PROC / str(pid)) for pid in pids)


def _is_python(folder: Path) -> bool:
    try:
        if (folder / "exe").readlink().name.startswith("python"):
            return True
    except OSError:
        return False
    return EXTENSION.search(_read(folder / "maps")) is not None


def ticks(cpus: tuple[int, ...]) -> tuple[int, int]:
    """Busy and all ticks of some CPUs since boot."""
    numbers = _ticks(cpus)
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)


def stolen(cpus: tuple[int, ...]) -> tuple[int, int]:
    """Ticks that the hypervisor gave to others while these CPUs had work, and all ticks."""
    numbers = _ticks(cpus)
    return numbers[7], sum(numbers)


def _ticks(cpus: tuple[int, ...]) -> list[int]:
    """user, nice, system, idle, iowait, irq, softirq, steal (proc(5)), summed over some CPUs."""
    whole = [0] * 8
    wanted = {f"cpu{cpu}" for cpu in cpus}
    for line in _read(PROC / "stat").splitlines():
        words = line.split()
        if words and words[0] in wanted:
            whole = [one + int(word) for one, word in zip(whole, words[1:9], strict=True)]
    return whole


def busy_share(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """The share of the time between two readings in which the CPUs were busy, or were taken."""
    if after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])


class Group:
    """A cgroup of one server: it has no controller, it only counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, name: str) -> Group | None:
        """A new group, or None if cgroup v2 is missing or not accessible."""
        for line in _read(PROC / "mounts").splitlines():
            words = line.split()
            if len(words) > 2 and words[2] == "cgroup2":
                folder = Path(words[1]) / f"tamarack-lab-{os.getpid()}-{name}"
                try:
                    folder.mkdir()
                except OSError:
                    continue
                group = cls(folder)
                if (folder / "cgroup.procs").exists() and group.cpu_ns() >= 0:
                    return group
                group.remove()
        return None

    def joining(self, command: list[str]) -> list[str]:
        """The command, run inside the group."""
        script = 'echo $$ > "$0" && exec "$@"'
        return ["sh", "-c", script, str(self._folder / "cgroup.procs"), *command]

    def pids(self) -> list[int]:
        """All processes started inside."""
        return [int(word) for word in _read(self._folder / "cgroup.procs").split()]

    def cpu_ns(self) -> int:
        """CPU time since its creation, -1 if unknown."""
        for line in _read(self._folder / "cpu.stat").splitlines():
            if line.startswith("usage_usec "):
                return int(line.split()[1]) * 1000
        return -1

    def remove(self) -> None:
        """Removes it; processes that still run inside keep it for a moment."""
        for _ in range(50):
            try:
                self._folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.02)


def _process_ns(pid: int) -> int:
    """The process's own clock and its reaped children's (those in ticks)."""
    own = _own_ns(pid)
    words = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return own + (int(words[13]) + int(words[14])) * TICK_NS if len(words) > 14 else own


def _own_ns(pid: int) -> int:
    """The process's own clock, with all its threads'; zero once it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

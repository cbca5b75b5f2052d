"""What /proc says: CPU time and memory of a process with all its children, and busy CPUs."""

from __future__ import annotations

import time
from pathlib import Path

PROC = Path("/proc")


def family(root: int) -> list[int]:
    """The process and everything that descends from it."""
    members = [root]
    for pid in members:
        for task in _folder(PROC / str(pid) / "task"):
            members += [int(word) for word in _read(task / "children").split()]
    return members


def process_ns(root: int) -> dict[int, int]:
    """Nanoseconds on a CPU of every process of the family, by process id: its threads that have
    ended count as well, since a thread pool may let one go at any time."""
    times: dict[int, int] = {}
    for pid in family(root):
        try:
            times[pid] = time.clock_gettime_ns(_clock_of(pid))
        except OSError:
            continue
    return times


def spent_ns(before: dict[int, int], after: dict[int, int]) -> int:
    """CPU time between two readings; processes that are new count in full."""
    return sum(spent - before.get(pid, 0) for pid, spent in after.items())


def ended(before: dict[int, int], after: dict[int, int]) -> int:
    """Processes that vanished between two readings, whose last slice is not counted."""
    return len(before.keys() - after.keys())


def memory_bytes(root: int) -> tuple[int, int]:
    """Proportional and resident memory of the family."""
    proportional = resident = 0
    for pid in family(root):
        for line in _read(PROC / str(pid) / "smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                proportional += int(line.split()[1]) * 1024
            elif line.startswith("Rss:"):
                resident += int(line.split()[1]) * 1024
    return proportional, resident


def cpu_ticks(cpu: int) -> tuple[int, int]:
    """Busy and all ticks of one CPU since boot."""
    for line in _read(PROC / "stat").splitlines():
        if line.startswith(f"cpu{cpu} "):
            ticks = [int(word) for word in line.split()[1:9]]
            return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
    raise RuntimeError(f"/proc/stat has no cpu{cpu}")


def busy_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of the time between two readings in which the CPU was not idle."""
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def _clock_of(pid: int) -> int:
    """The process's CPU clock, as clock_getcpuclockid(3) makes it: the scheduler's count."""
    return (~pid << 3) | 2


def _folder(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

"""The CPUs of the server and of the load."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SYS_CPU = Path("/sys/devices/system/cpu")
# With fewer CPUs the load has less room than the server, so requests/s measure the load.
FEW = 4


class CpuError(Exception):
    """A mask that is not available."""


@dataclass(frozen=True)
class Sides:
    """The CPUs of the server and of the load, in order of assignment."""

    server: tuple[int, ...]
    load: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether some CPU serves both."""
        return bool(set(self.server) & set(self.load))

    def server_with(self, count: int | None) -> Sides:
        """Puts the server on `count` CPUs; the load gets the others, or shares all."""
        if count is None:
            return self
        every = self.server + tuple(cpu for cpu in self.load if cpu not in self.server)
        if count > len(every):
            raise CpuError(f"{count} CPUs are asked for and {len(every)} are there")
        return Sides(every[:count], every[count:] or every)


def sides(server: str = "", load: str = "", remote: bool = False) -> Sides:
    """Splits by the options' CPU lists, or in halves by whole cores; all CPUs if the load is
    remote."""
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    if server or load:
        chosen = Sides(parse(server) or allowed, parse(load) or allowed)
        if missing := (set(chosen.server) | (set() if remote else set(chosen.load))) - set(allowed):
            raise CpuError(f"no permission for CPU {sorted(missing)[0]}: "
                           f"the mask allows {text(allowed)}")
        return chosen
    ordered = by_core(allowed)
    if remote or len(ordered) == 1:
        return Sides(ordered, ordered)
    half = len(ordered) // 2
    return Sides(ordered[:half], ordered[half:])


def by_core(cpus: tuple[int, ...], root: Path = SYS_CPU) -> tuple[int, ...]:
    """The CPUs with siblings of a core adjacent, so that a half contains whole cores."""
    def core(cpu: int) -> int:
        path = root / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        try:
            return min(parse(path.read_text().strip()))
        except (OSError, CpuError, ValueError):
            return cpu
    return tuple(sorted(cpus, key=lambda cpu: (core(cpu), cpu)))


def parse(listed: str) -> tuple[int, ...]:
    """Parses a kernel CPU list: 0-3,8."""
    found: list[int] = []
    try:
        for part in filter(None, listed.split(",")):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        raise CpuError(f"not a CPU list: {listed} (as in 0-3,8)") from None
    return tuple(found)


def text(cpus: tuple[int, ...]) -> str:
    """Formats a CPU list like the kernel."""
    parts: list[str] = []
    ordered = sorted(set(cpus))
    for cpu in ordered:
        if parts and cpu - 1 in ordered:
            parts[-1] = f"{parts[-1].split('-')[0]}-{cpu}"
        else:
            parts.append(str(cpu))
    return ",".join(parts)

"""A cgroup with a quota of CPU time, of either version."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError

ROOT = Path("/sys/fs/cgroup")
TABLE = Path("/proc/self/cgroup")
PERIOD_US = 100_000
REMOVE_TRIES = 50


@dataclass(frozen=True)
class Quota:
    """Processes started inside share the time."""

    folder: Path

    @classmethod
    def make(cls, name: str, cpus: float) -> Quota:
        """Allows this many CPUs' worth of time in each period. Raises LabError if that is not
        possible."""
        folder = _home() / f"tamarack-lab-{os.getpid()}-quota-{name}"
        quota_us = round(cpus * PERIOD_US)
        try:
            folder.mkdir()
            if (folder / "cpu.cfs_quota_us").exists():
                (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        except OSError as error:
            raise LabError(f"no cgroup with a quota can be made: {error.strerror}") from None
        return cls(folder)

    def joining(self, command: list[str]) -> list[str]:
        """The command, run inside."""
        script = 'echo $$ > "$0" && exec "$@"'
        return ["sh", "-c", script, str(self.folder / "cgroup.procs"), *command]

    def periods(self) -> tuple[int, int]:
        """Periods in which the time was used up, and all periods with work to do."""
        lines = (self.folder / "cpu.stat").read_text().splitlines()
        words = dict(line.split()[:2] for line in lines)
        return int(words["nr_throttled"]), int(words["nr_periods"])

    def remove(self) -> None:
        """Removes it; processes that still run inside keep it for a moment."""
        for _ in range(REMOVE_TRIES):
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)


def _home() -> Path:
    """This process's own group, of the hierarchy that has the controller."""
    is_first = (ROOT / "cpu").is_dir()
    for line in TABLE.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") if is_first else not controllers:
            return (ROOT / "cpu" if is_first else ROOT) / path.strip("/")
    return ROOT / "cpu" if is_first else ROOT

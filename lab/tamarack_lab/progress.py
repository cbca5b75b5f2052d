"""The current task, the progress, and the remaining time."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

# The interval of lines without a terminal.
LINE_EVERY_S = 30.0
# Until this much is done, the plan's estimate is better than the pace.
TRUST_S = 20.0


class Progress:
    """A bar on a terminal, occasional lines in a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._total_s = self._done_s = 0.0
        self._count = self._starts = 0
        self._began = self._said = time.monotonic()
        self._name = ""
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def begin(self, total_s: float, starts: int) -> None:
        """All work to do."""
        self._total_s, self._starts = total_s, starts
        self._began = time.monotonic()
        self._console.print(f"{starts} fresh starts, about {clock(total_s)}", highlight=False)
        if self._console.is_terminal and starts:
            self._bar = Bar(TextColumn("{task.fields[name]}"), BarColumn(None),
                            TextColumn("{task.fields[count]} · {task.fields[left]} left"),
                            TextColumn("{task.description}"), console=self._console)
            self._task = self._bar.add_task("", total=total_s, name="", count="", left="")
            self._bar.start()

    def experiment(self, name: str) -> None:
        """The experiment in progress."""
        self._name = name
        self._said = 0.0

    def now(self, what: str) -> None:
        """The cell in progress."""
        count = f"{self._count}/{self._starts} starts"
        left = clock(self.left_s())
        if self._bar and self._task is not None:
            self._bar.update(self._task, description=what[:40], completed=self._done_s,
                             name=self._name, count=count, left=left)
        elif time.monotonic() - self._said > LINE_EVERY_S:
            self._said = time.monotonic()
            self._console.print(f"{self._name}: {count}, {left} left: {what}", highlight=False)

    def done(self, cost_s: float) -> None:
        """Counts one more step, to which the plan attributed this cost."""
        self._done_s += cost_s
        self._count += 1

    def left_s(self) -> float:
        """Estimated from the pace so far."""
        rest = max(0.0, self._total_s - self._done_s)
        elapsed = time.monotonic() - self._began
        return rest * (elapsed / self._done_s if self._done_s > TRUST_S else 1.0)

    def end(self) -> None:
        """Restores the terminal."""
        if self._bar:
            self._bar.stop()
            self._bar = None


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02} min"

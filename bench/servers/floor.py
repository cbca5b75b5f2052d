"""The bare servers of bench/floor: an epoll loop, threads, processes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .. import site
from .server import Server

SOURCE = Path(__file__).parent.parent / "floor" / "floor.c"

# As many as the others have from the start.
SHAPES = {"event": [], "worker": ["threads", "128"], "prefork": ["processes", "80"]}


class Floor(Server):
    """Parses nothing and always sends the 1 KiB file: a bound, not a competitor."""

    name = "floor"
    program = "cc"

    @classmethod
    def version(cls) -> str:
        """It has none."""
        return "bench/floor"

    def configure(self) -> list[str]:
        """Compiles it."""
        program = self.folder / "floor"
        compiler = shutil.which(self.program) or self.program
        subprocess.run([compiler, "-O2", "-Wall", "-pthread", "-o", str(program), str(SOURCE)],
                       check=True)
        body = self.site.documents / site.SMALL.lstrip("/")
        return [str(program), str(self.port), str(body), *SHAPES[self.setup.mpm]]

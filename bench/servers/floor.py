"""The bare epoll loop of bench/floor."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .. import site
from .server import Server

SOURCE = Path(__file__).parent.parent / "floor" / "floor.c"


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
        subprocess.run([compiler, "-O2", "-Wall", "-o", str(program), str(SOURCE)], check=True)
        return [str(program), str(self.port), str(self.site.documents / site.SMALL.lstrip("/"))]

"""The lab's own deliberately naive C server: a thread per connection (lab/servers/naive.c)."""

from __future__ import annotations

from .. import compiled
from .base import SOURCES, Server

SOURCE = SOURCES / "naive.c"


class Naive(Server):
    """A server that can be written in a weekend."""

    name = "naive"
    label = "naive C server"
    program = "cc"
    packages = ("gcc", "libc6-dev")

    @classmethod
    def version(cls) -> str:
        """It has none."""
        return "lab/servers/naive.c"

    @classmethod
    def flags(cls) -> str:
        """As it is compiled."""
        return " ".join(compiled.FLAGS)

    def configure(self) -> list[str]:
        """Compiles it once."""
        program = compiled.program(SOURCE, "-lpthread")
        setup = self.setup
        return [str(program), setup.address, str(setup.port), str(setup.site.documents)]

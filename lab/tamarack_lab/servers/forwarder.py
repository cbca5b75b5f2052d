"""The floor of a proxy (lab/servers/forwarder.c): it parses nothing and passes on what comes."""

from __future__ import annotations

from .. import compiled
from .base import SOURCES, Server

SOURCE = SOURCES / "forwarder.c"


class Forwarder(Server):
    """One epoll loop, and a connection to the server behind for each client's."""

    name = "forwarder"
    label = "forwarding floor"
    program = "cc"
    packages = ("gcc", "libc6-dev")
    features = frozenset({"proxied"})

    @classmethod
    def version(cls) -> str:
        """It has none."""
        return "lab/servers/forwarder.c"

    @classmethod
    def flags(cls) -> str:
        """As it is compiled."""
        return " ".join(compiled.FLAGS)

    def configure(self) -> list[str]:
        """Compiles it once."""
        setup = self.setup
        host, _, port = setup.behind.rpartition(":")
        return [str(compiled.program(SOURCE)), setup.address, str(setup.port), host, port]

"""The floor of CGI (lab/servers/starter.c): it parses nothing, and starts a script per request."""

from __future__ import annotations

from .. import compiled
from ..site import Page
from ..traffic import Kind
from .base import SOURCES, Response, Server

SOURCE = SOURCES / "starter.c"


class Starter(Server):
    """A loop on each CPU, which waits for the script that it starts."""

    name = "starter"
    label = "CGI floor"
    program = "cc"
    packages = ("gcc", "libc6-dev")
    features = frozenset({"cgi"})

    @classmethod
    def version(cls) -> str:
        """It has none."""
        return "lab/servers/starter.c"

    @classmethod
    def flags(cls) -> str:
        """As it is compiled."""
        return " ".join(compiled.FLAGS)

    @classmethod
    def can(cls, feature: str) -> bool:
        """It has nothing else to send."""
        return feature in cls.features

    def fault(self, kind: Kind, page: Page, given: Response) -> str:
        """The response's body is the script's whole output."""
        return "" if given.body.endswith(page.contains) else "without the script's output"

    def configure(self) -> list[str]:
        """Compiles it once."""
        setup = self.setup
        script = setup.site.documents / setup.pages[0].path.lstrip("/")
        return [str(compiled.program(SOURCE)), setup.address, str(setup.port), str(script),
                str(len(setup.cpus))]

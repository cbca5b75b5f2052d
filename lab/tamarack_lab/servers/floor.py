"""The floor (lab/servers/floor.c): it parses nothing and always sends the same bytes.

Its cost is the kernel's part of a request: a bound for servers of its shape, not a competitor.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import ClassVar

from .. import compiled
from ..site import Page
from ..traffic import RANGE_BYTES, TRAFFICS, Kind, Traffic
from .base import SOURCES, Response, Server

SOURCE = SOURCES / "floor.c"
REASONS = {200: "OK", 206: "Partial Content", 301: "Moved Permanently", 304: "Not Modified",
           404: "Not Found"}
# As long as those of servers that send Server and Date.
HEAD = ("HTTP/1.1 {status} {reason}\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: floor\r\n"
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: \"floor\"\r\n{fields}\r\n")
ERROR_PAGE = b"<html><head><title>floor</title></head><body>" + b"." * 150 + b"</body></html>"


class Floor(Server):
    """Common to all shapes."""

    program = "cc"
    packages = ("gcc", "libc6-dev")
    features = frozenset({"gzip", "login", "hosts"})
    shape: ClassVar[str] = ""

    @classmethod
    def version(cls) -> str:
        """It has none."""
        return "lab/servers/floor.c"

    @classmethod
    def flags(cls) -> str:
        """As it is compiled."""
        return " ".join(compiled.FLAGS)

    @property
    def kind(self) -> Kind:
        """Of requests: the traffic's first, to which the one response belongs."""
        return TRAFFICS[self.setup.asks].kinds[0]

    def meant(self, traffic: Traffic) -> Traffic:
        """It responds to every kind as to the first."""
        return replace(traffic, kinds=tuple(
            replace(kind, status=self.kind.status) for kind in traffic.kinds))

    def fault(self, kind: Kind, page: Page, given: Response) -> str:
        """It responds to every page alike: only the fact of a response is checked."""
        return "" if given.status == self.kind.status else f"with {given.status}"

    def configure(self) -> list[str]:
        """Compiles it once, and writes its response."""
        program = compiled.program(SOURCE, "-lpthread")
        setup = self.setup
        response = setup.folder / "response"
        response.write_bytes(response_to(self.kind, setup.pages[0]))
        return [str(program), setup.address, str(setup.port), str(response), *self.pool()]

    def pool(self) -> list[str]:
        """As many threads or processes as the others have connections."""
        return [] if self.shape == "event" else [self.shape, str(self.setup.clients + 8)]


def response_to(kind: Kind, page: Page) -> bytes:
    """The bytes of a whole response."""
    body = page.body or b"" if kind.status == 200 else ERROR_PAGE
    if kind.status == 206:
        body = (page.body or b"")[:RANGE_BYTES]
    if kind.coding == "gzip":
        body = gzip.compress(body, 6)
    coding = f"Content-Encoding: {kind.coding}\r\n" if kind.coding else ""
    fields = "" if kind.status == 304 else f"Content-Length: {len(body)}\r\n{coding}"
    head = HEAD.format(status=kind.status, reason=REASONS[kind.status], fields=fields)
    bare = kind.status == 304 or kind.method == "HEAD"
    return head.encode() + (b"" if bare else body)


class FloorLoop(Floor):
    """One epoll loop."""

    name = "floor"
    label = "floor"
    shape = "event"


class FloorThreads(Floor):
    """A thread per connection."""

    name = "floor-threads"
    label = "floor, threads"
    shape = "threads"


class FloorProcesses(Floor):
    """A process per connection."""

    name = "floor-processes"
    label = "floor, processes"
    shape = "processes"

"""The load: a tool per file, and the side it runs on."""

from __future__ import annotations

from . import answer
from .ab import Ab
from .h2load import H2load, Streams
from .hammer import Open, Users, Hammer
from .handshakes import Handshakes
from .idle import Idle
from .jmeter import Jmeter
from .oha import Oha
from .tool import Count, Order, Tool
from .wrk import Wrk

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (
    Wrk(), Ab(), H2load(), Streams(), Oha(), Hammer(), Open(), Users(), Jmeter(), Handshakes(), Idle())}

__all__ = ["TOOLS", "Count", "Order", "Tool", "answer"]

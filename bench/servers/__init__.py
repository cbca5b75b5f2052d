"""The servers that are compared, in the order of the tables."""

from __future__ import annotations

from .apache import Apache
from .floor import Floor
from .h2o import H2o
from .nginx import Nginx
from .server import Server, Setup
from .tamarack import Tamarack

KINDS: tuple[type[Server], ...] = (Floor, Tamarack, H2o, Nginx, Apache)

__all__ = ["KINDS", "Server", "Setup"]

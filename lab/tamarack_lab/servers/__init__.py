"""The servers, one file each. Every module here is read: a new server needs no other change."""

from __future__ import annotations

import importlib
import pkgutil

from .base import Server, Setup

__all__ = ["Server", "Setup", "kinds"]


def kinds() -> dict[str, type[Server]]:
    """All servers by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found: dict[str, type[Server]] = {}
    waiting = [Server]
    for kind in waiting:
        waiting += kind.__subclasses__()
        # A subclass that inherits its name is a base of others.
        if kind.__dict__.get("name"):
            found[kind.name] = kind
    return found

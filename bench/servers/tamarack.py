"""Tamarack, as the release build leaves it, on Apache's very configuration."""

from __future__ import annotations

import os
from pathlib import Path

from .apache import Apache
from .server import first_line

ROOT = Path(__file__).parent.parent.parent


class Tamarack(Apache):
    """The program under test; TAMARACK names another binary than the release build's."""

    name = "tamarack"
    program = "tamarack"

    @classmethod
    def path(cls) -> str | None:
        """The release binary, when it is built."""
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        program = Path(os.environ.get("TAMARACK", target / "release" / "tamarack"))
        return str(program) if os.access(program, os.X_OK) else None

    @classmethod
    def version(cls) -> str:
        """Its own version line."""
        return first_line([cls.path() or cls.program, "-v"]).removeprefix("Server version: ")

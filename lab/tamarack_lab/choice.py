"""A name out of a closed list: what somebody is told who gave another."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: object, known: Iterable[object]) -> str:
    """The name that was probably meant, or nothing."""
    found = difflib.get_close_matches(str(name), list(map(str, known)), 1)
    return found[0] if found else ""


def instead(name: object, known: Iterable[object]) -> str:
    """How a sentence about a wrong name ends: with the one that was meant, or with all."""
    every = list(dict.fromkeys(map(str, known)))
    if meant := near(name, every):
        return f", did you mean {meant}?"
    return f": there are {', '.join(every)}" if every else ""

"""Suggestions for a name that is not in a closed list."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: object, known: Iterable[object]) -> str:
    """The name that was probably meant, or an empty string."""
    found = difflib.get_close_matches(str(name), list(map(str, known)), 1)
    return found[0] if found else ""


def instead(name: object, known: Iterable[object]) -> str:
    """The end of an error about a wrong name: the name that was meant, or all names."""
    every = list(dict.fromkeys(map(str, known)))
    if meant := near(name, every):
        return f", did you mean {meant}?"
    return f": there are {', '.join(every)}" if every else ""

"""Finds the line of a part of a parsed TOML file."""

from __future__ import annotations

import re

# Keys and numbers, as pydantic reports an error's place: ("cells", 1, "quick", "servers", 0).
Place = tuple[int | str, ...]
# The end of a key's value: the next key or table.
ENDS = re.compile(r"^\s*([\w\"'.-]+\s*=|\[+\s*[A-Za-z])")


def line_of(text: str, place: Place, value: object = None) -> int:
    """The line of a key: its table first, then the key; or of a text in its list."""
    lines = text.splitlines()
    at = 0
    for number, part in enumerate(place):
        if isinstance(part, str):
            following = place[number + 1] if number + 1 < len(place) else None
            at = _found(lines, at, part, following if isinstance(following, int) else None)
    return _within(lines, at, value) + 1


def _found(lines: list[str], start: int, part: str, count: int | None) -> int:
    """The line of a key or a table from `start`; of repeated tables that of number `count`;
    `start` itself if there is none."""
    table = re.compile(rf"^\s*\[+\s*(\w+\.)*{re.escape(part)}\s*\]+")
    key = re.compile(rf"^\s*\"?{re.escape(part)}\"?\s*=|[{{,]\s*\"?{re.escape(part)}\"?\s*=")
    tables = [at for at in range(start, len(lines)) if table.match(lines[at])]
    if count is not None and tables:
        return tables[min(count, len(tables) - 1)]
    keys = (at for at in range(start, len(lines)) if key.search(lines[at]))
    return min([*tables[:1], *(at for at, _ in zip(keys, "1", strict=False))], default=start)


def _within(lines: list[str], start: int, value: object) -> int:
    """The line of a text in a value that spans several lines."""
    if isinstance(value, str):
        for at in range(start, len(lines)):
            if at > start and ENDS.match(lines[at]):
                break
            if f'"{value}"' in lines[at] or f"'{value}'" in lines[at]:
                return at
    return start

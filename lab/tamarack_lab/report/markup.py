"""The little HTML that the report is made of: escaped text, facts, sortable tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Field:
    """One cell of a table: its HTML, its sort key, whether it is a figure."""

    html: str
    sort: float | str | None = None
    figure: bool = False


def text(words: object) -> Field:
    """A cell of text."""
    return Field(escape(str(words)), str(words))


def figure(written: str, sort: float | None, note: str = "") -> Field:
    """A cell with a figure, followed by a smaller note."""
    small = f' <small>{escape(note)}</small>' if note else ""
    return Field(escape(written) + small, sort, figure=True)


NOTHING = Field('<span class="none" title="not measured">–</span>', None, figure=True)
# Words of this length get room, on a phone too.
LONG = 40
EMPTY = (NOTHING, text(""))


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Field]]) -> str:
    """A table that scrolls sideways if it is too wide; its headings are buttons that sort.

    Empty columns are left out.
    """
    rows = [list(row) for row in rows]
    used = [at for at in range(len(heads)) if any(row[at] not in EMPTY for row in rows)]
    heads, rows = [heads[at] for at in used], [[row[at] for at in used] for row in rows]
    figures = [any(row[at].figure for row in rows) for at in range(len(heads))]
    head = "".join(
        f'<th scope="col"{" class=figure" if wide else ""}>'
        f'<button type="button">{escape(name)}</button></th>'
        for name, wide in zip(heads, figures, strict=True))
    body = "\n".join(f"<tr>{''.join(_field(one, at == 0) for at, one in enumerate(row))}</tr>"
                     for row in rows)
    return (f'<div class="table" tabindex="0" role="region" aria-label="{attribute(caption)}">'
            f"<table><caption>{escape(caption)}</caption>"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>")


def _field(one: Field, first: bool) -> str:
    tag = 'th scope="row"' if first else "td"
    kind = ' class="figure"' if one.figure else ""
    if not one.figure and len(one.html) >= LONG:
        kind = ' class="long"'
    sort = "" if one.sort is None else f' data-sort="{attribute(one.sort)}"'
    return f"<{tag}{kind}{sort}>{one.html}</{tag[:2]}>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of terms and descriptions; the descriptions are HTML."""
    inside = "".join(f"<div><dt>{escape(term)}</dt><dd>{html}</dd></div>" for term, html in pairs)
    return f'<dl class="facts">{inside}</dl>'


def folded(summary: str, html: str, opened: bool = False) -> str:
    """A section that opens on a click."""
    return (f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>\n"
            f"{html}\n</details>")


def listing(lines: Iterable[str], kind: str = "") -> str:
    """An unordered list of plain lines."""
    inside = "".join(f"<li>{escape(line)}</li>" for line in lines)
    named = f' class="{kind}"' if kind else ""
    return f"<ul{named}>{inside}</ul>"


def attribute(value: object) -> str:
    """A value for use between double quotes."""
    return escape(str(value), quote=True)


def embedded(data: Any) -> str:
    """JSON that can't end the script element it is in."""
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c")

"""Colours, shapes and dashes: light and dark, told apart without colour too.

Specifications hold tokens ("token:ink") where a colour belongs; the page exchanges them for the
scheme that the reader's system asks for, the SVGs for the one they are drawn in. A family of
servers (the adapter's name up to its hyphen) shares a hue, its members differ by shape and dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tamarack_lab.results import Results

Scheme = Literal["light", "dark"]
TOKEN = "token:"

INK: dict[Scheme, dict[str, str]] = {
    "light": {"ink": "#1c2833", "muted": "#5b6874", "grid": "#e3e8ec", "band": "#8a97a3",
              "surface": "#ffffff", "rate": "#0b5cad", "time": "#b3420a", "warn": "#9a5b00"},
    "dark": {"ink": "#e7edf2", "muted": "#9fb0bd", "grid": "#2d3942", "band": "#8fa1b0",
             "surface": "#161d23", "rate": "#6cb6ff", "time": "#ff9e64", "warn": "#f2b84b"},
}
# After Okabe and Ito, each darkened or lightened until it has 4.5:1 on its surface.
HUES: dict[Scheme, tuple[str, ...]] = {
    "light": ("#b3420a", "#0b5cad", "#00735a", "#8a3fa0", "#7a6000", "#0e7490", "#b0175a",
              "#55606a", "#7c4a2d", "#43700c", "#4f46b8", "#9a1f1f", "#2f6b2f", "#5c4a00"),
    "dark": ("#ff9e64", "#6cb6ff", "#33cfa4", "#d79bf0", "#e6c84a", "#62d4ee", "#ff93bd",
             "#b3bfc9", "#d3a688", "#a9d867", "#a7a2ff", "#ff8080", "#7fdc7f", "#cbb26a"),
}
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
DASHES: tuple[tuple[int, ...], ...] = ((), (6, 3), (2, 2), (9, 3, 2, 3), (12, 4))
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Look:
    """How one server is drawn everywhere in a report."""

    label: str
    hue: int
    shape: str
    dash: tuple[int, ...]

    def colour(self, scheme: Scheme) -> str:
        """The server's colour."""
        return HUES[scheme][self.hue]


def looks(results: Results) -> dict[str, Look]:
    """A look for each label, by the order in which the servers appear."""
    servers: dict[str, str] = {}
    for experiment in results.experiments:
        for cell in experiment.cells:
            servers.setdefault(cell.label, cell.server)
    return looks_of(servers)


def looks_of(servers: dict[str, str]) -> dict[str, Look]:
    """The same from labels and adapter names."""
    families: dict[str, int] = {}
    members: dict[str, int] = {}
    used: set[tuple[str, tuple[int, ...]]] = set()
    found: dict[str, Look] = {}
    for label, server in servers.items():
        family = families.setdefault(server.split("-")[0], len(families))
        member = members.get(server.split("-")[0], 0)
        members[server.split("-")[0]] = member + 1
        mark = next((mark for mark in _marks(family, member) if mark not in used),
                    next(_marks(family, member)))
        used.add(mark)
        found[label] = Look(label, family % len(HUES["light"]), *mark)
    return found


def _marks(family: int, member: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Shapes and dashes in the order in which a member of a family would like to have them."""
    for turn in range(len(DASHES)):
        for step in range(len(SHAPES)):
            yield (SHAPES[(family + member + step) % len(SHAPES)],
                   DASHES[(member + turn) % len(DASHES)])


def series(labels: Iterable[str], drawn: dict[str, Look], channel: str) -> dict[str, Any]:
    """A Vega-Lite scale from labels to "color", "shape" or "strokeDash"."""
    domain = list(labels)
    chosen = [drawn[label] for label in domain]
    if channel == "color":
        ranges: list[Any] = [f"{TOKEN}hue{look.hue}" for look in chosen]
    elif channel == "shape":
        ranges = [look.shape for look in chosen]
    else:
        ranges = [list(look.dash) or [1, 0] for look in chosen]
    return {"domain": domain, "range": ranges}


def tokens(scheme: Scheme) -> dict[str, str]:
    """Every token's colour in a scheme."""
    found = {f"{TOKEN}{name}": colour for name, colour in INK[scheme].items()}
    found.update({f"{TOKEN}hue{at}": colour for at, colour in enumerate(HUES[scheme])})
    return found


def painted(spec: Any, scheme: Scheme) -> Any:
    """The specification with its tokens exchanged."""
    return _exchange(spec, tokens(scheme))


def config() -> dict[str, Any]:
    """What all charts share, with tokens."""
    text = {"labelColor": f"{TOKEN}muted", "titleColor": f"{TOKEN}muted", "labelFont": FONT,
            "titleFont": FONT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500}
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**text, "gridColor": f"{TOKEN}grid", "domain": False, "ticks": False,
                 "labelPadding": 6},
        "legend": {**text, "labelColor": f"{TOKEN}ink", "symbolStrokeWidth": 2},
        "title": {"color": f"{TOKEN}ink", "font": FONT, "anchor": "start", "fontSize": 14,
                  "subtitleColor": f"{TOKEN}muted", "subtitleFont": FONT, "subtitleFontSize": 12},
        "text": {"font": FONT, "fontSize": 12, "color": f"{TOKEN}ink"},
        "rule": {"color": f"{TOKEN}muted"},
        "point": {"filled": True, "size": 60},
        "line": {"strokeWidth": 2},
    }


def _exchange(value: Any, colours: dict[str, str]) -> Any:
    if isinstance(value, str):
        return colours.get(value, value)
    if isinstance(value, list):
        return [_exchange(one, colours) for one in value]
    if isinstance(value, dict):
        return {key: _exchange(one, colours) for key, one in value.items()}
    return value

"""The picture of docs/measuring.md: one bar per server, readable on light and dark pages."""

from __future__ import annotations

from html import escape

WIDTH = 720
LABEL_WIDTH = 96
FIGURE_WIDTH = 84
BAR_HEIGHT = 22
GAP = 12
TOP = 46
SUBJECT, BOUND = "tamarack", "floor"

STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #24313a }
    .title { font-weight: 600 }
    .bar { fill: #9aa7b0 } .subject { fill: #c9702b }
    .bound { fill: none; stroke: #9aa7b0; stroke-dasharray: 3 3 }
    @media (prefers-color-scheme: dark) {
      text { fill: #dfe6ea }
      .bar { fill: #66747e } .subject { fill: #e08c47 } .bound { stroke: #66747e }
    }"""


def draw(bars: list[tuple[str, float]]) -> str:
    """An SVG of the given names and microseconds, in their order."""
    height = TOP + len(bars) * (BAR_HEIGHT + GAP)
    longest = max((value for _, value in bars), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{_alternative(bars)}">',
        f"  <style>{STYLE}\n  </style>",
        '  <text class="title" x="0" y="18">CPU time per request, 1 KiB file, keep-alive: '
        "shorter is better</text>",
    ]
    for at, (name, value) in enumerate(bars):
        parts.append(_bar(TOP + at * (BAR_HEIGHT + GAP), name, value, longest))
    return "\n".join([*parts, "</svg>\n"])


def _bar(top: int, name: str, value: float, longest: float) -> str:
    room = WIDTH - LABEL_WIDTH - FIGURE_WIDTH
    width = max(2.0, room * value / longest)
    kind = {SUBJECT: "subject", BOUND: "bound"}.get(name, "bar")
    base = top + BAR_HEIGHT - 6
    return (f'  <text x="0" y="{base}">{escape(name)}</text>\n'
            f'  <rect class="{kind}" x="{LABEL_WIDTH}" y="{top}" width="{width:.1f}" '
            f'height="{BAR_HEIGHT}" rx="3"/>\n'
            f'  <text x="{LABEL_WIDTH + width + 8:.1f}" y="{base}">{value:.1f} µs</text>')


def _alternative(bars: list[tuple[str, float]]) -> str:
    figures = ", ".join(f"{name} {value:.1f}" for name, value in bars)
    return escape(f"CPU microseconds per request: {figures}", quote=True)

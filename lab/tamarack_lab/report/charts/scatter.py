"""Response time against time, one mark per request: shows whether responses form bands.

The three lines are the thresholds that the study cites: over 100 ms a delay is noticed, 1 s
interrupts thought, after 10 s the user gives up.
"""

from __future__ import annotations

from statistics import median

from tamarack_lab.results import Cell, Experiment

from ..figures import floor_of, place_of
from ..metrics import duration, percent
from ..theme import Look, series
from .chart import DURATION, Chart, Row, floor_words, limit_words, spec

HEIGHT = 240
LIMITS_MS = ((100.0, "noticed"), (1000.0, "interrupts"), (10000.0, "user lost"))
# A picture of more points is no clearer, only slower; all slow ones are kept.
MOST_POINTS = 4000


def scatters(experiment: Experiment, drawn: dict[str, Look]) -> list[Chart]:
    """A chart for each cell that recorded individual requests, all on the same scales."""
    cells = [cell for cell in experiment.cells
             if cell.status == "ok" and any(sample.timeline_ms for sample in cell.samples)]
    points = [point for cell in cells for point in _points(cell)]
    if not points:
        return []
    last = max(at for at, _ in points) / 1000
    lowest = max(0.01, min(took for _, took in points)) / 1.5
    highest = max(1500.0, max(took for _, took in points) * 1.5)
    return [_chart(experiment, cell, drawn, (last, lowest, highest)) for cell in cells]


def _points(cell: Cell) -> list[tuple[float, float]]:
    return [(at, max(took, 0.01)) for sample in cell.samples
            for at, took in sample.timeline_ms or []]


def _chart(
    experiment: Experiment, cell: Cell, drawn: dict[str, Look],
    limits: tuple[float, float, float]
) -> Chart:
    last, lowest, highest = limits
    points = _points(cell)
    middle = median(took for _, took in points)
    around = floor_of(experiment, "latency_median_us") or 0.0
    shares = ", ".join(f"{percent(sum(took > limit for _, took in points) / len(points))} over "
                       f"{duration(limit * 1000)}" for limit, _ in LIMITS_MS)
    words = f"{cell.label}: median {duration(middle * 1000)}, {shares}"
    shown = thinned(points)
    left_out = (f" {len(points) - len(shown):,} of {len(points):,} quick answers are not drawn."
                if len(shown) < len(points) else "")
    time_axis = {"labelExpr": DURATION, "values": [10**e for e in range(0, 9)], "grid": False}
    y = {"type": "quantitative",
         "scale": {"type": "log", "domain": [lowest * 1000, highest * 1000], "nice": False}}
    x = {"field": "s", "type": "quantitative", "title": "seconds since the test began",
         "scale": {"domain": [0, last * 1.02], "nice": False}}
    lines: list[Row] = [{"y": limit * 1000, "text": f"{duration(limit * 1000)}: {text}"}
                        for limit, text in LIMITS_MS if limit < highest]
    layers = [
        {"data": {"values": [{"low": middle * 1000 / (1 + around),
                              "high": middle * 1000 * (1 + around)}]},
         "mark": {"type": "rect", "color": "token:band", "opacity": 0.35},
         "encoding": {"y": {**y, "field": "low", "title": "response time", "axis": time_axis},
                      "y2": {"field": "high"}}},
        {"data": {"values": lines}, "mark": {"type": "rule", "strokeDash": [4, 4]},
         "encoding": {"y": {**y, "field": "y"}}},
        {"data": {"values": [{"s": at / 1000, "us": took * 1000, "label": cell.label}
                             for at, took in shown]},
         "mark": {"type": "point", "size": 14, "opacity": 0.5},
         "encoding": {"x": x, "y": {**y, "field": "us"},
                      "color": {"field": "label", "type": "nominal", "legend": None,
                                "scale": series([cell.label], drawn, "color")}}},
        {"data": {"values": lines},
         "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -2, "dx": -4,
                  "fontWeight": 600, "color": "token:muted",
                  "x": "width"},
         "encoding": {"y": {**y, "field": "y"}, "text": {"field": "text"}}},
    ]
    caption = (f"{words}.{left_out} "
               f"{floor_words(experiment, 'latency_median_us', [cell])}{limit_words([cell])}")
    return Chart("scatter", cell.label, place_of(cell), caption, words,
                 spec(HEIGHT, words, layer=layers), height=HEIGHT + 50, canvas=True)


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most this many points: every slow one, and every n-th of the fast ones."""
    slow = [point for point in points if point[1] > LIMITS_MS[0][0]]
    quick = [point for point in points if point[1] <= LIMITS_MS[0][0]]
    room = max(MOST_POINTS - len(slow), MOST_POINTS // 4)
    step = max(1, -(-len(quick) // room))
    return sorted(slow[:: max(1, -(-len(slow) // MOST_POINTS))] + quick[::step])

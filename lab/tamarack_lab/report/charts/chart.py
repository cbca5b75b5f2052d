"""What the charts have in common: the row behind a mark, axes, the band of the noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamarack_lab.results import Cell, Experiment, Metric

from ..figures import (
    floor_from, floor_of, floor_owners, interval_of, load_was_limit)
from ..metrics import MEANINGS, MEGABYTES, MICROSECONDS, percent, written

Row = dict[str, Any]
Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Times are formatted as times: 1500 µs is "1.5 ms".
DURATION = ("datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' s' : datum.value >= 1e3 ? "
            "format(datum.value / 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' µs'")

# Places unchanged. A "format" of ~g would drop the digits that distinguish the marks: 50, 80 and 95
# would become 5e+1, 8e+1 and 1e+2.
PLAIN = "'' + datum.value"


@dataclass(frozen=True)
class Chart:
    """A drawing with its texts."""

    # The kind of plot: "bars", "curves"…; with `place` it is unique in its experiment.
    kind: str
    title: str
    # Which of the experiment's groups it shows: "scheme https"; empty for all of them.
    place: str
    # What a reader must know to read it, in one or two sentences.
    caption: str
    # A description, for readers who can't see it.
    alternative: str
    spec: Spec
    # Labels of the servers in it, for the key; empty if each mark has its name.
    key: tuple[str, ...] = ()
    # Drawn only when its section is opened.
    folded: bool = False
    # Pixels that the page reserves until it is drawn.
    height: int = 300
    # Many marks are faster on a canvas.
    canvas: bool = False


def point(cell: Cell, metric: Metric, floor: float | None, quick: bool) -> Row | None:
    """The row behind a cell's mark: median, interval, noise floor; None without figures."""
    found = interval_of(cell, metric, quick)
    if found is None:
        return None
    around = floor or 0.0
    return {
        "label": cell.label, **{f"x_{axis}": value for axis, value in cell.axes.items()},
        "median": found.median, "low": found.low, "high": found.high,
        "band_low": found.median / (1 + around), "band_high": found.median * (1 + around),
        "text": written(found.median, metric),
        "ends": f"{written(found.low, metric)} to {written(found.high, metric)}",
    }


def metric_for(experiment: Experiment, cells: list[Cell], quick: bool) -> Metric | None:
    """The metric these cells are about: the headline, or otherwise one they have; None without any.

    Only idle connections have memory per connection, and they have it instead of a load.
    """
    first: tuple[Metric, ...] = ("bytes_per_connection", experiment.headline)
    for metric in (*first, *experiment.metrics):
        if any(interval_of(cell, metric, quick) for cell in cells):
            return metric
    return None


def axis_title(metric: Metric) -> str:
    """"µs, less is better": the chart's own title names the metric."""
    meaning = MEANINGS[metric]
    unit = "" if _is_time(metric) else f"{meaning.unit}, "
    return f"{unit}{'more' if meaning.more_is_better else 'less'} is better"


def axis(metric: Metric, **more: Any) -> Spec:
    """The axis of a metric, its labels in the metric's unit."""
    labels: Spec = {"format": "~s"}
    if _is_time(metric):
        labels = {"labelExpr": DURATION}
    elif metric == "cpu_us_per_request":
        labels = {"format": ".4~r"}
    elif MEANINGS[metric].unit == MEGABYTES:
        labels = {"labelExpr": "format(datum.value / 1e6, '~g')"}
    elif MEANINGS[metric].unit == "%":
        labels = {"format": "~%"}
    return {**labels, "tickCount": 5, **more}


def floor_words(experiment: Experiment, metric: Metric, cells: Sequence[Cell] = ()) -> str:
    """The sentence under a chart of these cells (none: all) about the noise floor and its source.

    An A/A run of other cells is described as borrowed.
    """
    floor = floor_from(experiment, metric)
    if floor is None:
        if any(one.metric == metric for one in experiment.floors):
            return "The A/A run has starts that count none of it, so it tells no noise floor."
        return "No A/A run tells this metric's noise floor."
    own = not cells or any(cell.key in floor.keys for cell in cells)
    by = "" if floor.metric == metric else f", by its {MEANINGS[floor.metric].title}"
    return (f"Grey or pale band: noise floor ±{percent(floor.value)}, "
            f"{'from the' if own else 'borrowed from the'} A/A run of "
            f"{floor_owners(experiment, floor)}{by}; "
            "marks whose bands overlap are not told apart.")


def limit_words(cells: Sequence[Cell]) -> str:
    """With a leading space, the metrics whose figures are the load tool's; empty if there are
    none."""
    names = list(dict.fromkeys(cell.label for cell in cells if load_was_limit(cell)))
    return f" Here the load tool was the limit: {', '.join(names)}." if names else ""


def interval_words(quick: bool) -> str:
    """The meaning of the thin lines."""
    return "Thin line: range of the starts." if quick else "Thin line: bootstrap 95 % interval."


def tooltip(metric: Metric, *axes: str) -> list[Spec]:
    """The tooltip of a mark."""
    return [{"field": "label", "title": "server"},
            *({"field": f"x_{name}", "title": name} for name in axes),
            {"field": "text", "title": MEANINGS[metric].title}, {"field": "ends", "title": "from"}]


def decades(low: float, high: float) -> list[float]:
    """Labels of a logarithmic axis: 1, 10, 100…, with 2 and 5 if those are too few."""
    whole = [10.0**at for at in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    within = [value for value in whole if low <= value <= high]
    if len(within) >= 3:
        return within
    return [step * value for value in whole for step in (1, 2, 5) if low <= step * value <= high]


def listed(rows: list[Row]) -> str:
    """The rows as words, for the text alternative."""
    return "; ".join(f"{row['label']} {row['text']}" for row in rows)


def spec(height: int, description: str, **parts: Any) -> Spec:
    """A specification as wide as the page allows."""
    return {"$schema": SCHEMA, "description": description, "width": "container",
            "height": height, "autosize": {"type": "fit-x", "contains": "padding"}, **parts}


def _is_time(metric: Metric) -> bool:
    return MEANINGS[metric].unit == MICROSECONDS and metric != "cpu_us_per_request"


__all__ = ["Chart", "Row", "Spec", "axis", "axis_title", "decades", "floor_of", "floor_words",
           "interval_words", "limit_words", "listed", "metric_for", "point", "spec", "tooltip"]

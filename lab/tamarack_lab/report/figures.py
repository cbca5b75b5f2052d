"""From raw samples to the figures of the report: medians, floors, published figures, ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tamarack_lab import statistics
from tamarack_lab.results import Cell, Experiment, Metric, Published, Ratio, Results, Value
from tamarack_lab.statistics import Interval

from .metrics import values

# Published throughput is from machines with CPUs to spare for the load. If the load has to share
# them, the throughput per CPU second is what the server itself could reach.
YIELD: dict[Metric, Metric] = {"requests_per_s": "cpu_us_per_request"}

# Busier CPUs have no capacity left.
BUSY = 0.9


@dataclass(frozen=True)
class PublishedRow:
    """A published figure with the figure measured here; None if the cell has no figure."""

    published: Published
    cell: Cell | None
    measured: Interval | None


@dataclass(frozen=True)
class RatioRow:
    """One ratio for one server and one place on the other axes, here and as published."""

    ratio: Ratio
    server: str
    label: str
    place: str
    # In the form's own terms: 0.23 for "costs 23 %". By the ratio's metric, and by CPU time.
    measured: Interval
    by_cpu: Interval | None
    # The noise floor that the ratio does not exceed; None if it does, or no floor is known.
    noise: float | None = None
    # Whether the load tool was the limit of one of the two cells.
    limited: bool = False


def interval_of(cell: Cell, metric: Metric, quick: bool) -> Interval | None:
    """The median of a cell with its interval; None for a marked cell or an unknown metric."""
    samples = values(cell, metric)
    return statistics.interval(samples, quick) if samples else None


@dataclass(frozen=True)
class Floor:
    """A noise floor with its source."""

    # Relative: 0.02 is two per cent.
    value: float
    # The metric of the A/A run that it is from: the wanted one, or its stand-in.
    metric: Metric
    # Keys of the cells that were measured twice.
    keys: tuple[str, ...]


def floor_of(experiment: Experiment, metric: Metric) -> float | None:
    """The experiment's noise floor for a metric, relative; None without an A/A run."""
    found = floor_from(experiment, metric)
    return found.value if found else None


def floor_from(experiment: Experiment, metric: Metric) -> Floor | None:
    """The same with its source.

    Throughput and CPU time per request of a closed loop stand for each other if one is missing.
    """
    for wanted in (metric, *STAND_INS.get(metric, ())):
        told = [floor for floor in experiment.floors
                if floor.metric == wanted and _usable(floor.first) and _usable(floor.second)]
        if told:
            value = statistics.noise_floor([(floor.first, floor.second) for floor in told])
            return Floor(value, wanted, tuple(floor.key for floor in told))
    return None


STAND_INS: dict[Metric, tuple[Metric, ...]] = {
    "requests_per_s": ("cpu_us_per_request",),
    "cpu_us_per_request": ("requests_per_s",),
}


def floor_owners(experiment: Experiment, floor: Floor) -> str:
    """The A/A run's cells: "nginx, small file and Apache event, small file"."""
    named = {cell.key: ", ".join(filter(None, (cell.label, place_of(cell))))
             for cell in experiment.cells}
    return " and ".join(named.get(key, key) for key in floor.keys)


def floors(results: Results) -> list[tuple[str, Metric, float]]:
    """Experiment, headline metric and noise floor, of every experiment that has one."""
    found = ((one.name, one.headline, floor_of(one, one.headline)) for one in results.experiments)
    return [(name, metric, floor) for name, metric, floor in found if floor is not None]


def load_busy(cell: Cell) -> float | None:
    """Median busy share of the load's CPUs; None for a marked cell and if it is unknown."""
    return _busy([sample.load_busy for sample in cell.samples] if cell.status == "ok" else [])


def load_was_limit(cell: Cell) -> bool:
    """Whether the load tool had no CPU time left while the server still had some."""
    load, server = load_busy(cell), _busy([sample.server_busy for sample in cell.samples])
    return load is not None and server is not None and load > BUSY >= server


def _busy(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return statistics.interval(known).median if known else None


def published_rows(experiment: Experiment, quick: bool) -> list[PublishedRow]:
    """Every published figure, in its order, next to the cell that it belongs to."""
    rows = []
    for published in experiment.published:
        cell = next(iter(matching(experiment, published.cell)), None)
        measured = interval_of(cell, published.metric, quick) if cell else None
        rows.append(PublishedRow(published, cell, measured))
    return rows


def ratio_rows(experiment: Experiment, quick: bool) -> list[RatioRow]:
    """Every ratio for every server and every place on the axes that it leaves open."""
    return [row for ratio in experiment.ratios for row in _rows_of(experiment, ratio, quick)]


def _rows_of(experiment: Experiment, ratio: Ratio, quick: bool) -> Iterator[RatioRow]:
    bases = matching(experiment, ratio.to)
    for over in matching(experiment, ratio.of):
        place = _open_axes(over, ratio.of)
        under = next((base for base in bases if _open_axes(base, ratio.to) == place
                      and ("server" in ratio.to or base.server == over.server)), None)
        if under is None:
            continue
        measured = _ratio(ratio, over, under, ratio.metric, quick)
        if measured is None:
            continue
        # More CPUs don't make a request cheaper: their ratio is of throughput alone.
        inverse = YIELD.get(ratio.metric) if ratio.form != "times" else None
        by_cpu = _ratio(ratio, under, over, inverse, quick) if inverse else None
        text = ", ".join(f"{name} {value}" for name, value in place)
        yield RatioRow(ratio, over.server, over.label, text, measured, by_cpu,
                       _noise(ratio, measured.median, floor_of(experiment, ratio.metric)),
                       load_was_limit(over) or load_was_limit(under))


def _noise(ratio: Ratio, value: float, floor: float | None) -> float | None:
    """The floor if the ratio does not exceed it."""
    times = plain(ratio, value)
    if floor is None or times <= 0 or abs(math.log(times)) > math.log1p(floor):
        return None
    return floor


def _ratio(
    ratio: Ratio, over: Cell, under: Cell, metric: Metric, quick: bool
) -> Interval | None:
    above, below = values(over, metric), values(under, metric)
    if not above or not below or min(above) <= 0 or min(below) <= 0:
        return None
    return in_form(ratio, statistics.ratio(above, below, quick))


def in_form(ratio: Ratio, times: Interval) -> Interval:
    """A plain ratio in the form's terms: its cost, its gain, or the ratio itself."""
    if ratio.form == "times":
        return times
    sign, shift = (-1.0, 1.0) if ratio.form == "cost" else (1.0, -1.0)
    ends = sorted((sign * times.low + shift, sign * times.high + shift))
    return Interval(sign * times.median + shift, ends[0], ends[1], times.kind, times.count)


def plain(ratio: Ratio, value: float) -> float:
    """The plain ratio of/to behind a value in the form's terms."""
    if ratio.form == "times":
        return value
    return 1 - value if ratio.form == "cost" else 1 + value


def matching(experiment: Experiment, wanted: Mapping[str, Value]) -> list[Cell]:
    """The cells whose server and axes have these values."""
    return [cell for cell in experiment.cells
            if all(_value(cell, name) == value for name, value in wanted.items())]


def groups(experiment: Experiment) -> list[tuple[str, list[Cell]]]:
    """The cells by their place on all axes but the plot's own, in the file's order."""
    found: dict[str, list[Cell]] = {}
    for cell in experiment.cells:
        found.setdefault(place_of(cell, experiment.x), []).append(cell)
    return list(found.items())


def place_of(cell: Cell, without: str | None = None) -> str:
    """A cell's place on its axes: "small file, log off"; empty without axes."""
    return ", ".join(str(value) if axis == "scenario" else f"{axis} {value}"
                     for axis, value in cell.axes.items() if axis != without)


def filled(results: Results) -> tuple[int, int, int]:
    """Cells with figures, marked cells, cells that were planned and not run."""
    cells = [cell for one in results.experiments for cell in one.cells]
    good = sum(cell.status == "ok" and bool(cell.samples) for cell in cells)
    planned = sum(max(one.planned, len(one.cells)) for one in results.experiments)
    return good, len(cells) - good, planned - len(cells)


def _open_axes(cell: Cell, fixed: Mapping[str, Value]) -> list[tuple[str, Value]]:
    return [(name, value) for name, value in cell.axes.items() if name not in fixed]


def _value(cell: Cell, name: str) -> Value | None:
    return cell.server if name == "server" else cell.axes.get(name)


def _usable(samples: list[float]) -> bool:
    return bool(samples) and min(samples) > 0

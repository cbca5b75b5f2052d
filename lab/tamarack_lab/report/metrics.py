"""The name of each metric, the format of its figures, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass

from tamarack_lab import reading
from tamarack_lab.results import Cell, Metric

MICROSECONDS = "µs"
# The report writes bytes of memory this way.
MEGABYTES = "MB"


@dataclass(frozen=True)
class Meaning:
    """One metric as displayed."""

    title: str
    unit: str
    more_is_better: bool


MEANINGS: dict[Metric, Meaning] = {
    "requests_per_s": Meaning("Throughput", "requests/s", True),
    "cpu_us_per_request": Meaning("CPU time per request", MICROSECONDS, False),
    # Of those of its processes that were there before and after: without the scripts they run.
    "own_cpu_us_per_request": Meaning("CPU time without scripts", MICROSECONDS, False),
    "latency_mean_us": Meaning("Mean latency", MICROSECONDS, False),
    "latency_stdev_us": Meaning("Deviation of latency", MICROSECONDS, False),
    "latency_median_us": Meaning("Median latency", MICROSECONDS, False),
    "latency_p99_us": Meaning("p99 latency", MICROSECONDS, False),
    "latency_p999_us": Meaning("p99.9 latency", MICROSECONDS, False),
    "latency_max_us": Meaning("Longest latency", MICROSECONDS, False),
    # Proportional set size of all the server's processes, at the end of the load.
    "pss_bytes": Meaning("Memory", MEGABYTES, False),
    "interpreters": Meaning("Interpreters in memory", "processes", False),
    "interpreters_per_cpu": Meaning("Interpreters per CPU", "processes", False),
    "bytes_per_connection": Meaning("Memory per idle connection", "bytes", False),
    "throttled_share": Meaning("Periods with the quota used up", "%", False),
    "migrations_per_100k": Meaning("Migrations", "per 100,000 requests", False),
    "context_switches_per_request": Meaning("Context switches", "per request", False),
    "share_over_100ms": Meaning("Over 100 ms", "%", False),
    "share_over_1s": Meaning("Over 1 s", "%", False),
    "share_over_10s": Meaning("Over 10 s", "%", False),
}


def values(cell: Cell, metric: Metric) -> list[float]:
    """The metric of every start of a cell; empty for a marked cell and if it is unknown."""
    return [] if cell.status == "marked" else raw_values(cell, metric)


def raw_values(cell: Cell, metric: Metric) -> list[float]:
    """The same, for marked cells too: for the raw tables only."""
    taken = (reading.value(sample, metric) for sample in cell.samples)
    return [value for value in taken if value is not None]


def written(value: float, metric: Metric) -> str:
    """A figure with its unit, to three significant digits: "12.3 µs", "1.20 s"."""
    unit = MEANINGS[metric].unit
    if unit == MICROSECONDS and metric not in ("cpu_us_per_request", "own_cpu_us_per_request"):
        return duration(value)
    if unit == "%":
        return percent(value)
    if unit == MICROSECONDS:
        return f"{number(value)} µs"
    if unit == MEGABYTES:
        return number(value / 1e6)
    return f"{number(value)} {unit}" if unit == "bytes" else number(value)


def number(value: float) -> str:
    """Three significant digits, or all digits before the point: "0.123", "12.3", "243,139"."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or size == 0:
        return f"{value:.2f}".rstrip("0").rstrip(".") if size == 0 else f"{value:.2f}"
    return f"{value:.3g}"


def duration(value_us: float) -> str:
    """A time in the unit in which it has at most three digits before the point."""
    if value_us >= 1e6:
        return f"{number(value_us / 1e6)} s"
    if value_us >= 1e3:
        return f"{number(value_us / 1e3)} ms"
    return f"{number(value_us)} µs"


def percent(share: float) -> str:
    """A share in per cent; a value other than zero is never shown as zero."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{share * 100:.1f} %"


def signed_percent(ratio: float) -> str:
    """A ratio as a change: 1.1 is "+10.0 %"."""
    return f"{(ratio - 1) * 100:+.1f} %".replace("-", "−")


def lower(title: str) -> str:
    """A metric's title inside a sentence: "CPU time" is unchanged."""
    return title if title[:2].isupper() else title[0].lower() + title[1:]

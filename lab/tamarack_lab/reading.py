"""One start's value of each metric, for both the noise floors and the report."""

from __future__ import annotations

from collections.abc import Callable

from .results import Latency, Metric, Sample


def value(one: Sample, metric: Metric) -> float | None:
    """The metric in its own unit (see results.py), shares from 0 to 1; None where unknown."""
    taken = TAKEN[metric](one)
    return None if taken is None else float(taken)


def _percentile(name: str) -> Callable[[Sample], float | None]:
    return lambda one: one.latency.percentiles_us.get(name) if one.latency else None


def _latency(take: Callable[[Latency], float | None]) -> Callable[[Sample], float | None]:
    return lambda one: take(one.latency) if one.latency else None


def _switches(one: Sample) -> float | None:
    voluntary, involuntary = one.context_switches_voluntary, one.context_switches_involuntary
    if voluntary is None or involuntary is None or not one.requests:
        return None
    return (voluntary + involuntary) / one.requests


def _migrations(one: Sample) -> float | None:
    if one.migrations is None or not one.requests:
        return None
    return one.migrations * 100_000 / one.requests


def _interpreters_per_cpu(one: Sample) -> float | None:
    if one.interpreters is None or not one.server_cpus:
        return None
    return one.interpreters / one.server_cpus


TAKEN: dict[Metric, Callable[[Sample], float | None]] = {
    "requests_per_s": lambda one: one.requests_per_s,
    "cpu_us_per_request": lambda one: one.cpu_us_per_request,
    "own_cpu_us_per_request": lambda one: one.own_cpu_us_per_request,
    "latency_mean_us": _latency(lambda one: one.mean_us),
    "latency_stdev_us": _latency(lambda one: one.stdev_us),
    "latency_median_us": _percentile("50"),
    "latency_p99_us": _percentile("99"),
    "latency_p999_us": _percentile("99.9"),
    "latency_max_us": _latency(lambda one: one.max_us),
    "pss_bytes": lambda one: one.pss_bytes,
    "interpreters": lambda one: one.interpreters,
    "interpreters_per_cpu": _interpreters_per_cpu,
    "bytes_per_connection": lambda one: one.bytes_per_connection,
    "throttled_share": lambda one: one.throttled,
    "migrations_per_100k": _migrations,
    "context_switches_per_request": _switches,
    "share_over_100ms": _latency(lambda one: one.over_100ms),
    "share_over_1s": _latency(lambda one: one.over_1s),
    "share_over_10s": _latency(lambda one: one.over_10s),
}

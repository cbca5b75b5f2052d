"""What Tamarack has to reach, and whether the measured interval reaches it."""

from __future__ import annotations

from dataclasses import dataclass

from . import intervals
from .idle import Memory
from .intervals import Interval
from .rounds import Cell

SUBJECT = "tamarack"


@dataclass(frozen=True)
class Ratio:
    """At most `limit` times a peer's CPU time per request; the peer may be the same server in
    another setup."""

    scenario: str
    peer: str
    limit: float
    variant: str = ""
    peer_variant: str = ""


@dataclass(frozen=True)
class Extra:
    """At most `limit_us` more than the same server in another setup."""

    scenario: str
    variant: str
    base: str
    limit_us: float


RATIOS = (
    Ratio("plain", "floor", 1.20), Ratio("plain", "h2o", 0.90),
    Ratio("plain", "nginx", 0.70), Ratio("plain", "apache", 0.18),
    Ratio("tls", "nginx", 0.80), Ratio("tls", "apache", 0.18),
    Ratio("handshakes", "nginx", 1.0),
    Ratio("large", "nginx", 1.0),
    Ratio("shapes", SUBJECT, 1.6, "worker", "event"),
    Ratio("shapes", SUBJECT, 1.6, "prefork", "event"),
    Ratio("shapes", "apache", 0.5, "worker", "worker"),
    Ratio("shapes", "apache", 0.5, "prefork", "prefork"),
    Ratio("loops", SUBJECT, 1.10, "two", "one"),
    Ratio("loops-waiting", SUBJECT, 1.10, "two", "one"),
)
EXTRAS = (Extra("log", "on", "off", 0.5), Extra("htaccess", "all", "none", 0.4))
IDLE_PLAIN_BYTES = 1024


@dataclass(frozen=True)
class Verdict:
    """One line of the table."""

    what: str
    target: str
    measured: str
    met: bool


def judge(cells: list[Cell], memories: list[Memory]) -> list[Verdict]:
    """Every target for which both sides were measured."""
    table = {(cell.scenario, cell.server, cell.variant): cell for cell in cells}
    verdicts: list[Verdict] = []
    for ratio in RATIOS:
        ours = table.get((ratio.scenario, SUBJECT, ratio.variant))
        peer = table.get((ratio.scenario, ratio.peer, ratio.peer_variant))
        if ours and peer:
            verdicts.append(_ratio(ratio, ours, peer))
    for extra in EXTRAS:
        ours = table.get((extra.scenario, SUBJECT, extra.variant))
        base = table.get((extra.scenario, SUBJECT, extra.base))
        if ours and base:
            verdicts.append(_extra(extra, ours, base))
    return verdicts + _idle(memories)


def _ratio(ratio: Ratio, ours: Cell, peer: Cell) -> Verdict:
    interval = intervals.of([mine.cpu_us / theirs.cpu_us for mine, theirs
                             in zip(ours.samples, peer.samples, strict=True)])
    what = f"{ratio.scenario}: {ratio.variant} × {ratio.peer} {ratio.peer_variant}"
    return Verdict(" ".join(what.split()), f"≤ {ratio.limit:.2f}",
                   _text(interval, ""), _met(interval, ratio.limit, ours))


def _extra(extra: Extra, ours: Cell, base: Cell) -> Verdict:
    interval = intervals.of([mine.cpu_us - theirs.cpu_us for mine, theirs
                             in zip(ours.samples, base.samples, strict=True)])
    return Verdict(f"{extra.scenario}: {extra.variant} − {extra.base}",
                   f"≤ {extra.limit_us:.1f} µs", _text(interval, " µs"),
                   _met(interval, extra.limit_us, ours))


def _met(interval: Interval, limit: float, ours: Cell) -> bool:
    # A peer's errors are marked in its row; ours mean that the figure proves nothing.
    return interval.low <= limit and not ours.errors


def _text(interval: Interval, unit: str) -> str:
    return f"{interval.median:.2f}{unit} ({interval.low:.2f} to {interval.high:.2f})"


def _idle(memories: list[Memory]) -> list[Verdict]:
    table = {(memory.server, memory.tls): memory.proportional for memory in memories}
    verdicts: list[Verdict] = []
    if (ours := table.get((SUBJECT, False))) is not None:
        verdicts.append(Verdict("idle: bytes per connection", f"≤ {IDLE_PLAIN_BYTES}",
                                f"{ours:.0f}", ours <= IDLE_PLAIN_BYTES))
    ours, peer = table.get((SUBJECT, True)), table.get(("nginx", True))
    if ours is not None and peer is not None:
        verdicts.append(Verdict("idle: bytes per TLS connection", f"≤ nginx, {peer:.0f}",
                                f"{ours:.0f}", ours <= peer))
    return verdicts

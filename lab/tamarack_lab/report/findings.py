"""The findings of an experiment in one to three sentences, as far as its noise allows."""

from __future__ import annotations

from tamarack_lab.results import Experiment, Metric, Ratio

from .charts.bars import ranked
from .charts.chart import Row, metric_for
from .figures import BUSY, RatioRow, floor_of, groups, load_was_limit, ratio_rows
from .metrics import MEANINGS, lower, percent
from .tables import said

MOST_GROUPS = 8


def findings(experiment: Experiment, quick: bool) -> list[str]:
    """Sentences: ratios against the published ones, the leaders, where the load was the limit."""
    rows = ratio_rows(experiment, quick)
    lines = [_ratio(ratio, [row for row in rows if row.ratio is ratio])
             for ratio in experiment.ratios if any(row.ratio is ratio for row in rows)]
    if experiment.x is None:
        lines += [line for place, cells in groups(experiment)[:MOST_GROUPS]
                  if (metric := metric_for(experiment, cells, quick))
                  and (line := _leader(place, metric, floor_of(experiment, metric) is not None,
                                       ranked(experiment, cells, metric, quick)))]
    return [*lines, *_limited(experiment)]


def _limited(experiment: Experiment) -> list[str]:
    """Where requests/s and latency are the load tool's rather than the server's."""
    places = []
    for place, cells in groups(experiment):
        names = list(dict.fromkeys(cell.label for cell in cells if load_was_limit(cell)))
        if names:
            every = len(names) > 1 and all(load_was_limit(cell) for cell in cells)
            who = "every server" if every else ", ".join(names)
            places.append(f"{place}: {who}" if place else who)
    if not places:
        return []
    return [f"Here the load tool was the limit, its CPUs over {BUSY * 100:.0f} % busy and "
            f"the server's not: {'; '.join(places)}."]


def _ratio(ratio: Ratio, rows: list[RatioRow]) -> str:
    """ "HTTPS costs 23 % here (Apache event), 29 % there (Yitian 710)."""
    first = rows[0]
    where = f", {first.place}" if first.place else ""
    label = ratio.label[0].upper() + ratio.label[1:]
    line = f"{label} {said(first, first.measured.median)} here ({first.label}{where})"
    if first.noise is not None:
        line += f" (within the noise, ±{percent(first.noise)})"
    if first.limited:
        line += " (the load tool was the limit)"
    if ratio.published:
        line += ", " + ", ".join(f"{said(first, value)} there ({machine})"
                                 for machine, value in ratio.published.items())
    others = [row.measured.median for row in rows[1:]]
    if others:
        every = [first.measured.median, *others]
        line += (f"; over all {len(every)} servers and places {said(first, min(every))} to "
                 f"{said(first, max(every))}")
        quiet = sum(row.noise is not None for row in rows)
        line += f", {quiet} of them within the noise" if quiet else ""
        limited = sum(row.limited for row in rows)
        line += f", {limited} with the load tool as the limit" if limited else ""
    return line + "."


def _leader(place: str, metric: Metric, floored: bool, rows: list[Row]) -> str:
    """The leader of a group and its margin, or that the noise, if known, is larger."""
    if len(rows) < 2:
        return ""
    best, last = rows[0], rows[-1]
    title, more_is_better = MEANINGS[metric].title, MEANINGS[metric].more_is_better
    alike = [row["label"] for row in rows[1:]
             if row["band_low"] <= best["band_high"] and best["band_low"] <= row["band_high"]]
    times = max(best["median"], last["median"]) / max(1e-12, min(best["median"], last["median"]))
    where = f"{place}: " if place else ""
    word = "most" if more_is_better else "least"
    leader = f"{best['label']} ({best['text']})"
    tied = f", not told apart from {', '.join(alike)}" if alike else ""
    if len(alike) == len(rows) - 1:
        return f"{where}{title} tells no server from another."
    other, off = ("least", "times less") if more_is_better else ("most", "times as much")
    return (f"{where}{word} {lower(title)} by {leader}{tied}; {other} by {last['label']} "
            f"({last['text']}), {times:.1f} {off}{'' if floored else '; no A/A run tells the noise'}"
            ".")

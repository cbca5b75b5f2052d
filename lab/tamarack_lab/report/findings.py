"""What an experiment says in a sentence or three, as far as its noise allows."""

from __future__ import annotations

from tamarack_lab.results import Experiment, Ratio

from .charts.bars import ranked
from .charts.chart import Row, metric_for
from .figures import RatioRow, groups, ratio_rows
from .metrics import MEANINGS
from .tables import said

MOST_GROUPS = 8


def findings(experiment: Experiment, quick: bool) -> list[str]:
    """Sentences: ratios against the published ones first, then who leads where."""
    rows = ratio_rows(experiment, quick)
    lines = [_ratio(ratio, [row for row in rows if row.ratio is ratio])
             for ratio in experiment.ratios if any(row.ratio is ratio for row in rows)]
    if experiment.x is None:
        lines += [line for place, cells in groups(experiment)[:MOST_GROUPS]
                  if (metric := metric_for(experiment, cells, quick))
                  and (line := _leader(place, MEANINGS[metric].title, MEANINGS[metric]
                                       .more_is_better, ranked(experiment, cells, metric, quick)))]
    return lines


def _ratio(ratio: Ratio, rows: list[RatioRow]) -> str:
    """ "HTTPS costs 23 % here (Apache event), 29 % there (Yitian 710)."""
    first = rows[0]
    where = f", {first.place}" if first.place else ""
    line = f"{ratio.label} {said(first, first.measured.median)} here ({first.label}{where})"
    if ratio.published:
        line += ", " + ", ".join(f"{said(first, value)} there ({machine})"
                                 for machine, value in ratio.published.items())
    others = [row.measured.median for row in rows[1:]]
    if others:
        every = [first.measured.median, *others]
        line += (f"; over all {len(every)} servers and places {said(first, min(every))} to "
                 f"{said(first, max(every))}")
    return line + "."


def _leader(place: str, metric: str, more_is_better: bool, rows: list[Row]) -> str:
    """Who leads a group and by how much, or that the noise does not tell."""
    if len(rows) < 2:
        return ""
    best, last = rows[0], rows[-1]
    alike = [row["label"] for row in rows[1:]
             if row["band_low"] <= best["band_high"] and best["band_low"] <= row["band_high"]]
    times = max(best["median"], last["median"]) / max(1e-12, min(best["median"], last["median"]))
    where = f"{place}: " if place else ""
    word = "most" if more_is_better else "least"
    leader = f"{best['label']} ({best['text']})"
    tied = f", not told apart from {', '.join(alike)}" if alike else ""
    if len(alike) == len(rows) - 1:
        return f"{where}{metric} tells no server from another."
    other, off = ("least", "times less") if more_is_better else ("most", "times as much")
    return (f"{where}{word} {_lower(metric)} by {leader}{tied}; {other} by {last['label']} "
            f"({last['text']}), {times:.1f} {off}.")


def _lower(title: str) -> str:
    return title if title[:2].isupper() else title[0].lower() + title[1:]

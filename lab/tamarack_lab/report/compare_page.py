"""compare.html and compare.csv: every question about two runs, with its result."""

from __future__ import annotations

import csv
from html import escape
from pathlib import Path
from typing import Any

from .charts.chart import Row, spec
from .compare import Change, Comparison
from .compare_text import SIGNS, change_words, medians, ranked, reach, verdict
from .markup import attribute, facts, figure, listing, table, text
from .metrics import MEANINGS, percent, signed_percent
from .page import document

STEP = 22
# Rows of one drawing; the table has all of them.
MOST_ROWS = 60
HEADS = ["experiment", "key", "label", "place", "metric", "before", "after", "ratio", "low",
         "high", "floor", "p", "p_holm", "verdict"]


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Writes compare.html and compare.csv into the folder; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    html, sheet = folder / "compare.html", folder / "compare.csv"
    html.write_text(page(comparison), encoding="utf-8")
    with sheet.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADS)
        for one in ranked(comparison):
            writer.writerow([
                one.experiment, one.key, one.label, one.place, one.metric, one.before, one.after,
                *(f"{value:.6g}" for value in (one.ratio.median, one.ratio.low, one.ratio.high,
                                               one.floor, one.p, one.corrected)), one.verdict])
    return [html, sheet]


def page(comparison: Comparison) -> str:
    """The whole page."""
    before, after = comparison.before, comparison.after
    pairs = [(name, f"{escape(run.environment.cpu)}<br><small>{run.started:%Y-%m-%d %H:%M} UTC, "
              f"commit {escape(run.environment.commit[:12])}, {run.starts} starts of "
              f"{run.seconds:g} s</small>") for name, run in (("Before", before), ("After", after))]
    pairs += [("What could be found", "<br>".join(map(escape, reach(comparison))))]
    changes = ranked(comparison)
    gathered: dict[str, dict[str, Any]] = {}
    drawing = ""
    if changes:
        gathered["chart-compare"] = {"spec": _spec(changes[:MOST_ROWS], verdict(comparison)),
                                     "canvas": False}
        drawing = (
            '<section><h2>Size of the changes</h2><figure><div class="chart" id="chart-compare" '
            f'role="img" aria-label="{attribute(verdict(comparison))}"></div><figcaption>After '
            "over before. Triangle: changed beyond the noise; dot: not. Thin line: interval. "
            "Grey band: noise floor of the A/A runs.</figcaption></figure></section>")
    body = (f'<header><p class="kicker">What changed beyond the noise</p>'
            f"<h1>{escape(verdict(comparison))}</h1>{listing(comparison.warnings)}"
            f"{facts(pairs)}</header>{_marks(comparison)}{drawing}"
            f"<section>{_table(changes)}</section>")
    return document("Lab: what changed", body, gathered)


def _marks(comparison: Comparison) -> str:
    if not comparison.marks:
        return ""
    rows = [[text(mark.what), text(mark.experiment), text(mark.label), text(mark.place),
             text(mark.reason)] for mark in comparison.marks]
    return table("Cells that lost or gained their figure",
                 ["what", "experiment", "server", "where", "reason"], rows)


def _table(changes: list[Change]) -> str:
    rows = [[text(SIGNS[one.verdict]), text(one.label), text(f"{one.experiment}: {one.place}"),
             text(MEANINGS[one.metric].title), figure(medians(one), one.before),
             figure(change_words(one), one.ratio.median), figure(f"±{percent(one.floor)}",
                                                                 one.floor),
             figure(f"{one.p:.2g}", one.p), figure(f"{one.corrected:.2g}", one.corrected)]
            for one in changes]
    return table(f"All {len(rows)} questions", [
        "answer", "server", "where", "metric", "medians", "change", "floor", "p",
        "p (Holm)"], rows)


def _spec(changes: list[Change], alternative: str) -> dict[str, Any]:
    rows: list[Row] = [
        {"name": f"{at + 1}. {one.label} · {one.place}", "ratio": one.ratio.median,
         "low": one.ratio.low, "high": one.ratio.high, "band_low": 1 / (1 + one.floor),
         "band_high": 1 + one.floor, "verdict": one.verdict,
         "text": signed_percent(one.ratio.median)} for at, one in enumerate(changes)]
    names = [row["name"] for row in rows]
    ends = [value for row in rows for value in (row["low"], row["high"])]
    widest = max(max(ends) - 1, 1 - min(ends), max(row["band_high"] for row in rows) - 1) * 1.1
    x = {"type": "quantitative", "scale": {"domain": [1 - widest, 1 + widest], "clamp": True}}
    shown = {"domain": list(SIGNS)}
    return spec(
        STEP * len(rows), alternative, data={"values": rows},
        encoding={"y": {"field": "name", "type": "nominal", "sort": names, "title": None,
                        "axis": {"labelLimit": 220, "labelColor": "token:ink"}}},
        layer=[
            {"mark": {"type": "bar", "height": STEP - 2, "color": "token:band", "opacity": 0.3},
             "encoding": {"x": {**x, "field": "band_low", "title": "after over before",
                                "axis": {"labelExpr": "format(datum.value - 1, '+.0%')",
                                         "tickCount": 6}},
                          "x2": {"field": "band_high"}}},
            {"mark": {"type": "rule", "strokeWidth": 1.5},
             "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "opacity": 1, "size": 80},
             "encoding": {
                 "x": {**x, "field": "ratio"},
                 "shape": {"field": "verdict", "type": "nominal", "legend": None, "scale": {
                     **shown, "range": ["triangle-up", "triangle-down", "circle"]}},
                 "color": {"field": "verdict", "type": "nominal", "legend": None, "scale": {
                     **shown, "range": ["token:time", "token:rate", "token:muted"]}},
                 "tooltip": [{"field": "name", "title": "cell"},
                             {"field": "text", "title": "change"}]}},
        ])

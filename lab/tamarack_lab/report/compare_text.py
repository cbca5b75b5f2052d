"""A comparison as text for the terminal, and the texts that its page shares."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tamarack_lab import statistics

from .compare import ALPHA, Change, Comparison
from .metrics import MEANINGS, percent, signed_percent, written

# Distinguished by sign as well as by colour.
SIGNS = {"worse": "▲ worse", "better": "▼ better", "same": "same"}
STYLES = {"worse": "bold red", "better": "green", "same": "dim"}
EFFECT = 0.10
WIDTH = 110


def text(comparison: Comparison) -> str:
    """The verdict, the table of changes, and the smallest detectable change."""
    console = Console(width=WIDTH, highlight=False, no_color=True)
    with console.capture() as capture:
        show(comparison, console)
    return capture.get().rstrip()


def show(comparison: Comparison, console: Console) -> None:
    """Prints the comparison, in colour if the terminal has it."""
    for line in comparison.warnings:
        console.print(line, markup=False)
    console.print(verdict(comparison), style="bold", markup=False)
    shown = [one for one in ranked(comparison) if one.verdict != "same"]
    if shown:
        console.print(_table(shown))
    for mark in comparison.marks:
        console.print(f"{mark.what}: {mark.experiment}, {mark.label}, {mark.place}: "
                      f"{mark.reason}", markup=False)
    for line in reach(comparison):
        console.print(line, markup=False)


def ranked(comparison: Comparison) -> list[Change]:
    """Changes first, the larger before the smaller."""
    order = {"worse": 0, "better": 1, "same": 2}
    return sorted(comparison.changes, key=lambda one: (order[one.verdict], one.corrected,
                                                       -abs(one.ratio.median - 1)))


def verdict(comparison: Comparison) -> str:
    """The result in one sentence."""
    counts = {name: sum(one.verdict == name for one in comparison.changes) for name in SIGNS}
    broken = sum(mark.what == "broken" for mark in comparison.marks)
    questions = len(comparison.changes)
    if not comparison.changed:
        return f"Nothing changed beyond the noise ({questions} questions asked)."
    line = (f"Beyond the noise: {counts['worse']} worse, {counts['better']} better, of "
            f"{questions} questions asked")
    mended = len(comparison.marks) - broken
    line += f"; {broken} cells lost their figure" if broken else ""
    line += f"; {mended} cells gained one" if mended else ""
    return line + "."


def reach(comparison: Comparison) -> list[str]:
    """What was taken out, and how small a change these runs could have shown."""
    lines = []
    for metric, drift in comparison.drift.items():
        lines.append(f"{MEANINGS[metric].title} of the later run differs by "
                     f"{signed_percent(drift)} in all families of servers alike: the machine's "
                     "doing, taken out.")
    for metric, scatter in comparison.scatter.items():
        lines.append(f"{MEANINGS[metric].title}: equal cells scatter by up to "
                     f"{percent(scatter)} between the runs; less does not count.")
    if comparison.unmatched:
        lines.append(f"{comparison.unmatched} cells stand in one of the runs only.")
    if comparison.changes and comparison.starts > 1:
        lines.append(_power(comparison))
    return lines


def change_words(one: Change) -> str:
    """ "+9.8 % [+8.1 % to +11.0 %]"."""
    return (f"{signed_percent(one.ratio.median)} [{signed_percent(one.ratio.low)} to "
            f"{signed_percent(one.ratio.high)}]")


def medians(one: Change) -> str:
    """Both medians; empty for a server as a whole."""
    if one.before is None or one.after is None:
        return ""
    return f"{written(one.before, one.metric)} → {written(one.after, one.metric)}"


def _power(comparison: Comparison) -> str:
    asked = len(comparison.changes)
    # The spread is known to no more than two digits.
    spread, starts = float(f"{comparison.spread:.2g}"), comparison.starts
    least = statistics.least_found(spread, starts, asked, ALPHA)
    needed = statistics.starts_needed(EFFECT, spread, asked, ALPHA)
    found = f"{percent(least)} or more" if least else "no change, however large,"
    more = (f"; {needed} starts find {percent(EFFECT)}" if needed
            else f"; {percent(EFFECT)} would not be found by 40 starts")
    return (f"One start varies by {percent(spread)}: in a single cell {starts} starts find "
            f"{found} four times of five{more}.")


def _table(changes: list[Change]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("", "server", "where", "metric", "medians", "change", "floor", "p (Holm)"):
        table.add_column(name, overflow="fold")
    for one in changes:
        table.add_row(
            f"[{STYLES[one.verdict]}]{SIGNS[one.verdict]}[/]", one.label,
            f"{one.experiment}: {one.place}".replace("[", "\\["), MEANINGS[one.metric].title,
            medians(one), change_words(one).replace("[", "\\["), f"±{percent(one.floor)}",
            f"{one.corrected:.2g}")
    return table

"""Tables on the screen, and the raw results as JSON."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from . import machine
from .idle import Memory
from .rounds import Cell, results_folder
from .scenarios import SCENARIOS
from .targets import Verdict


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text; the first is left-aligned, the others right."""
    widths = [max(len(row[at]) for row in [heading, *rows]) for at in range(len(heading))]
    lines = []
    for row in [heading, *rows]:
        cells = [cell.ljust(width) if at == 0 else cell.rjust(width)
                 for at, (cell, width) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def cells(measured: list[Cell]) -> str:
    """A table per scenario: CPU time per request, and how busy both CPUs were."""
    parts = []
    for scenario in SCENARIOS:
        rows = [_row(cell) for cell in measured if cell.scenario == scenario.name]
        if rows:
            heading = ("server", "µs/request", "95 % interval", "requests/s·CPU",
                       "server CPU", "client CPU", "errors")
            parts.append(f"\n{scenario.name}: {scenario.title}\n{table(heading, rows)}")
    return "\n".join(parts)


def memory(measured: list[Memory]) -> str:
    """Bytes per idle connection."""
    if not measured:
        return ""
    rows = [(f"{one.server}{' tls' if one.tls else ''}", f"{one.proportional:.0f}",
             f"{one.resident:.0f}") for one in measured]
    heading = ("server", "PSS bytes", "RSS bytes")
    return f"\nidle: memory per open connection after one answer\n{table(heading, rows)}"


def affinity(rows: list[tuple[str, ...]]) -> str:
    """Migrations, throughput beside a busy program, throttled periods."""
    if not rows:
        return ""
    heading = ("affinity: server and load on the same two CPUs", "unit", "median",
               "95 % interval", "errors")
    return f"\n{table(heading, rows)}"


def verdicts(judged: list[Verdict]) -> str:
    """The targets."""
    if not judged:
        return "\nNo target was judged: tamarack was not measured."
    rows = [(one.what, one.target, one.measured, "met" if one.met else "NOT MET")
            for one in judged]
    return f"\ntargets\n{table(('what', 'target', 'measured', ''), rows)}"


def save(measured: list[Cell], memories: list[Memory], judged: list[Verdict],
         options: dict[str, object], affinity_rows: list[dict[str, object]]) -> Path:
    """Writes bench/results/DATE-MACHINE.json."""
    folder = results_folder()
    folder.mkdir(exist_ok=True)
    stamp = datetime.datetime.now().strftime("%Y-%m-%d-%H%M")
    path = folder / f"{stamp}-{machine.short_name()}.json"
    content = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "options": options,
        "cells": [_cell(cell) for cell in measured],
        "memory": [asdict(one) for one in memories],
        "affinity": affinity_rows,
        "targets": [asdict(one) for one in judged],
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path


def _row(cell: Cell) -> tuple[str, ...]:
    name = f"{cell.server} {cell.variant}".strip()
    interval = cell.cpu_us
    server_busy, client_busy = cell.busy()
    mark = f"{cell.errors} !" if cell.errors else "0"
    return (name, f"{interval.median:.2f}", f"{interval.low:.2f} to {interval.high:.2f}",
            f"{1e6 / interval.median:.0f}", f"{server_busy:.0%}", f"{client_busy:.0%}", mark)


def _cell(cell: Cell) -> dict[str, object]:
    samples = [{key: value if isinstance(value, str) else round(value, 4)
                for key, value in asdict(sample).items()}
               for sample in cell.samples]
    return {"scenario": cell.scenario, "server": cell.server, "variant": cell.variant,
            "cpu_us": cell.cpu_us.as_dict(), "errors": cell.errors, "samples": samples}

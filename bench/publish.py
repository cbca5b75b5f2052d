"""python3 -m bench.publish [RESULT]: puts the newest into docs/measuring.md, and its picture."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from . import picture
from .machine import ROOT
from .rounds import results_folder
from .scenarios import SCENARIOS
from .servers import KINDS

PAGE = ROOT / "docs" / "measuring.md"
PICTURE = ROOT / "docs" / "images" / "speed.svg"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
# Row labels; a scenario with variants has one row for each.
LABELS = {
    ("plain", ""): "1 KiB file",
    ("heads", ""): "1 KiB file, no two heads alike",
    ("tls", ""): "1 KiB file over TLS",
    ("handshakes", ""): "full TLS handshake",
    ("log", "on"): "1 KiB file, combined log",
    ("htaccess", "all"): "four folders deep, two `.htaccess`",
    ("large", ""): "100 KiB file",
    ("shapes", "worker"): "1 KiB file, worker",
    ("shapes-heads", "worker"): "1 KiB file, worker, no two heads alike",
    ("shapes-log", "worker"): "1 KiB file, worker, combined log",
    ("shapes", "prefork"): "1 KiB file, prefork",
    ("shapes-heads", "prefork"): "1 KiB file, prefork, no two heads alike",
    ("shapes-log", "prefork"): "1 KiB file, prefork, combined log",
}


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    path = Path(arguments[0]) if arguments else newest()
    if path is None:
        print("bench/results holds nothing: run `make bench` first", file=sys.stderr)
        return 1
    result = json.loads(path.read_text())
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture.draw(bars(result)))
    PAGE.write_text(replaced(PAGE.read_text(), section(result, path.name)))
    print(f"{PAGE.relative_to(ROOT)} and {PICTURE.relative_to(ROOT)} now show {path.name}")
    return 0


def newest() -> Path | None:
    """The last result by name, which begins with its date."""
    results = sorted(results_folder().glob("*.json"))
    return results[-1] if results else None


def replaced(text: str, content: str) -> str:
    """The text with what stands between the markers exchanged."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE.relative_to(ROOT)} has no {BEGIN} … {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n{content}\n{END}", text, count=1)


def section(result: dict[str, Any], name: str) -> str:
    """The table and the line that says what it was measured on."""
    servers = [kind.name for kind in KINDS]
    lines = [f"| CPU time per request, µs | {' | '.join(servers)} |",
             "|---|" + "--:|" * len(servers)]
    for (scenario, variant), label in LABELS.items():
        cells = [_figure(result, scenario, server, variant) for server in servers]
        if any(cell != "–" for cell in cells):
            lines.append(f"| {label} | {' | '.join(cells)} |")
    memory = [_memory(result, server) for server in servers]
    if any(cell != "–" for cell in memory):
        lines.append(f"| idle connection, bytes | {' | '.join(memory)} |")
    machine = result["machine"]
    errors = any(cell["errors"] for cell in result["cells"])
    rounds = result["options"]["rounds"]
    versions = ", ".join(version for server, version in machine["servers"].items()
                         if server not in ("floor", "tamarack"))
    lines += ["", f"{result['date'][:10]}, {machine['cpu']}, server on one CPU, medians of "
              f"{rounds} rounds; {versions}; `floor` parses nothing. "
              f"{'† with errors. ' if errors else ''}"
              f"Raw: [{name}](../bench/results/{name})."]
    return "\n".join(lines)


def bars(result: dict[str, Any]) -> list[tuple[str, float]]:
    """What the picture shows: the plain scenario, quickest first."""
    found = {cell["server"]: cell["cpu_us"]["median"] for cell in result["cells"]
             if cell["scenario"] == SCENARIOS[0].name}
    return sorted(found.items(), key=lambda bar: bar[1])


def _figure(result: dict[str, Any], scenario: str, server: str, variant: str) -> str:
    for cell in result["cells"]:
        if (cell["scenario"], cell["server"], cell["variant"]) == (scenario, server, variant):
            mark = " †" if cell["errors"] else ""
            return f"{cell['cpu_us']['median']:.1f}{mark}"
    return "–"


def _memory(result: dict[str, Any], server: str) -> str:
    for one in result["memory"]:
        if one["server"] == server and not one["tls"]:
            return f"{one['proportional']:.0f}"
    return "–"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

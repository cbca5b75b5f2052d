"""Servers and a load tool for the engine's tests: no packages, no masks, no seconds of load."""

from __future__ import annotations

import sys
from pathlib import Path

from tamarack_lab.load.side import Side
from tamarack_lab.load.tool import Count, Order, Tool
from tamarack_lab.servers import Server
from tamarack_lab.servers.base import fetch

PROGRAM = """
import http.server, sys
address, port, folder, wrong = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "wrong"
class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *given):
        super().__init__(*given, directory=folder)
    def copyfile(self, source, target):
        body = source.read()
        target.write(body[::-1] if wrong else body)
    def log_message(self, *given):
        pass
http.server.ThreadingHTTPServer((address, port), Handler).serve_forever()
"""


class Fake(Server):
    """Python's own web server."""

    name = "fake"
    label = "fake server"
    program = "python3"
    wrong = "right"

    @classmethod
    def path(cls) -> str | None:
        return sys.executable

    @classmethod
    def version(cls) -> str:
        return "fake 1"

    def configure(self) -> list[str]:
        setup = self.setup
        return [sys.executable, "-c", PROGRAM, setup.address, str(setup.port),
                str(setup.site.documents), self.wrong]


class FakeWrong(Fake):
    """Answers with other bytes of the same number."""

    name = "fake-wrong"
    label = "lying server"
    wrong = "wrong"


class FakeBroken(Fake):
    """Does not start."""

    name = "fake-broken"
    label = "broken server"

    def configure(self) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit('line 3: no such directive')"]


class FakeAbsent(Fake):
    """Is not installed."""

    name = "fake-absent"
    label = "absent server"

    @classmethod
    def absent(cls) -> str:
        return "absent server is missing: no absentd"


class FakeTool(Tool):
    """One request per page; at the starts in `errors_at` it counts an error."""

    name = "fetch"
    program = "sh"
    many_pages = True

    def __init__(self) -> None:
        self.runs: list[Order] = []
        self.errors_at: set[int] = set()
        # Milliseconds → how many answers took longer.
        self.over: dict[int, int] = {}

    def version(self, side: Side) -> str:
        return "fetch 1"

    def run_one(self, order: Order, side: Side) -> Count:
        self.runs.append(order)
        for page in order.pages:
            fetch(order.url(page))
        errors = int(order.seed // 100 in self.errors_at)
        return Count(len(order.pages), 0.01, errors, 0, "read 1" if errors else "",
                     percentiles_us={"50": 100.0, "90": 200.0, "99": 300.0}, mean_us=120.0,
                     max_us=400.0, over=self.over)


def experiment(folder: Path, servers: list[str], more: str = "") -> Path:
    """Writes an experiment of one cell per server."""
    path = folder / "small.toml"
    path.write_text(f"""\
name = "small"
title = "Small"
about = "A test."
axes = ["concurrency"]
metrics = ["requests_per_s"]
seconds = 0.01
warm_up_s = 0.01
noise = [{{ server = "fake", concurrency = 2 }}]
{more}
[[cells]]
scenario = "one"
servers = {servers}
tool = "fetch"
concurrency = [1, 2]
[cells.quick]
concurrency = [2]
""")
    return path

"""An experiment file: which servers under which loads, along which axes, and what was published.

A `[[cells]]` block is the product of its lists. Fields named in the experiment's `axes` tell cells
apart; every block gives them. `[cells.quick]` replaces fields of its block under --quick.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from .results import Metric, Model, Published, Ratio, Value

FOLDER = Path(__file__).parent.parent / "experiments"


class ExperimentError(Exception):
    """A file that can't be used; the text names file, line and remedy."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Texts = Annotated[list[str], BeforeValidator(_listed)]
Numbers = Annotated[list[int], BeforeValidator(_listed)]
Scheme = Annotated[list[Literal["http", "https"]], BeforeValidator(_listed)]
Log = Annotated[list[Literal["off", "buffered"]], BeforeValidator(_listed)]
# "pinned": by the server itself where it can, else by hand.
Affinity = Annotated[
    list[Literal["mask", "off", "taskset", "own", "pinned"]], BeforeValidator(_listed)]
Overrides = Annotated[list[Literal["none", "all"]], BeforeValidator(_listed)]
# Numbers of CPUs; "each": 1, 2 … all; "side": the server's side; "several": it, but at least 2.
Cpus = Annotated[list[int | Literal["each", "side", "several"]], BeforeValidator(_listed)]


class Changes(Model):
    """Fields of a block that --quick replaces."""

    servers: Texts | None = None
    tool: Texts | None = None
    page: Texts | None = None
    scheme: Scheme | None = None
    log: Log | None = None
    htaccess: Overrides | None = None
    affinity: Affinity | None = None
    concurrency: Numbers | None = None
    cpus: Cpus | None = None
    load_percent: Numbers | None = None
    requests: int | None = None
    requests_each: int | None = None
    prespawned: int | None = None
    connections: int | None = None


class Block(Model):
    """Cells: the product of the lists."""

    scenario: str
    servers: Texts
    # An adapter of load/: wrk, ab, h2load, hammer, handshakes, idle, open, users.
    tool: Texts
    # A page of the site: 1k, 100k, deep, mixed (several at random), cgi, ssi, app.
    page: Texts = ["1k"]
    scheme: Scheme = ["http"]
    log: Log = ["off"]
    htaccess: Overrides = ["none"]
    # mask: the server's CPUs as a whole; off, taskset, own: experiment P2's three.
    affinity: Affinity = ["mask"]
    concurrency: Numbers = [64]
    # "side": all CPUs of the server's side.
    cpus: Cpus = ["side"]
    # Open loop: the rate, in per cent of the measured peak.
    load_percent: Numbers = [100]
    keep_alive: bool = True
    # No two heads are alike (a number in each): what a server does for a new head is measured.
    unlike: bool = False
    # Sizes of the server's pools: fit (to the load), or a study's: p1, p3, p3-prespawned, p4.
    profile: Literal["fit", "p1", "p3", "p3-prespawned", "p4"] = "fit"
    # Threads of the load tool; 0: one per load CPU.
    threads: int = 0
    # A number of requests instead of a time, in all or by each client.
    requests: int | None = None
    requests_each: int | None = None
    # Requests/s of the warm-up (P3); None: the load itself.
    warm_up_rate: int | None = None
    prespawned: int = 200
    # Idle connections that are opened (tool idle).
    connections: int = 10_000
    quick: Changes = Field(default_factory=Changes)


class Spec(Model):
    """A whole experiment file."""

    name: str
    title: str
    about: str
    axes: list[str]
    x: str | None = None
    # None: requests/s, or CPU time per request where there are fewer than 4 CPUs.
    headline: Metric | None = None
    metrics: list[Metric]
    # Seconds of load per start, and of warm-up; --quick has its own.
    seconds: float = 10.0
    warm_up_s: float = 2.0
    # Cells measured twice over, as server + axes: the A/A run.
    noise: list[dict[str, Value]]
    cells: list[Block]
    published: list[Published] = Field(default_factory=list)
    ratios: list[Ratio] = Field(default_factory=list)
    # Lines for the report on what this experiment can't do.
    left_out: list[str] = Field(default_factory=list)


def names(folder: Path = FOLDER) -> list[str]:
    """All experiments, by name."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = FOLDER) -> Spec:
    """Reads one experiment by name or by path. ExperimentError says file and line."""
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    if not path.is_file():
        raise ExperimentError(f"no experiment {name}: there are {', '.join(names(folder))}")
    text = path.read_text()
    try:
        spec = Spec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)|\(at end of document\)", str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        what = str(error).split(" (at ")[0]
        raise ExperimentError(f"{path}:{line}: {what}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(first["loc"])
        what = ".".join(str(part) for part in where)
        raise ExperimentError(
            f"{path}:{_line_of(text, where)}: {what}: {_remedy(first, where)}") from None
    return _checked(spec, path, text)


def _remedy(error: Any, where: tuple[int | str, ...]) -> str:
    if error["type"] != "extra_forbidden":
        return str(error["msg"])
    model: type[Model] = Spec
    if where[0] == "cells":
        model = Changes if "quick" in where[:-1] else Block
    import difflib

    near = difflib.get_close_matches(str(where[-1]), model.model_fields, 1)
    return "unknown" + (f", did you mean {near[0]}?" if near else "")


def _checked(spec: Spec, path: Path, text: str) -> Spec:
    known = set(Block.model_fields) - {"quick", "servers"}
    for axis in spec.axes:
        if axis not in known:
            raise ExperimentError(f"{path}:{_line_of(text, ('axes',))}: {axis} is no axis: "
                                  f"{', '.join(sorted(known))}")
    for number, block in enumerate(spec.cells):
        for field in known:
            value = getattr(block, field)
            if isinstance(value, list) and len(value) > 1 and field not in spec.axes:
                line = _line_of(text, ("cells", number, field))
                raise ExperimentError(f"{path}:{line}: several values for {field}, "
                                      "which is not in axes")
    return spec


def _line_of(text: str, where: tuple[int | str, ...]) -> int:
    """The line where a key of the parsed file stands: its table first, then the key."""
    lines = text.splitlines()
    at = 0
    for number, part in enumerate(where):
        if isinstance(part, int):
            continue
        following = where[number + 1] if number + 1 < len(where) else None
        table = re.compile(rf"^\s*\[+\s*(\w+\.)*{re.escape(part)}\s*\]+")
        key = re.compile(rf"^\s*\"?{re.escape(part)}\"?\s*=|[{{,]\s*{re.escape(part)}\s*=")
        count = following if isinstance(following, int) else 0
        for line in range(at, len(lines)):
            if table.match(lines[line]):
                if count == 0:
                    at = line
                    break
                count -= 1
            elif key.search(lines[line]):
                at = line
                break
    return at + 1

"""An experiment file: which servers under which loads, along which axes, and published figures.

A `[[cells]]` block is the product of its lists. Fields named in the experiment's `axes`
distinguish cells; every block must have them. `[cells.quick]` replaces fields of its block under
--quick.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from . import servers
from .choice import instead, near
from .load import TOOLS
from .place import Place, line_of
from .results import Metric, Model, Published, Ratio, Target, Value
from .site import PAGES
from .traffic import TRAFFICS

FOLDER = Path(__file__).parent.parent / "experiments"
# Fields of a block that may distinguish cells, besides the server.
AXES = ("scenario", "tool", "page", "asks", "scheme", "log", "htaccess", "affinity", "concurrency", "cpus",
        "load_percent")


class ExperimentError(Exception):
    """An invalid file; the text names file, line and remedy."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _out_of(what: str, known: Callable[[], Iterable[str]]) -> AfterValidator:
    """Names that the lab knows: of servers, tools, pages."""
    def check(name: str) -> str:
        if name not in (names := list(known())):
            raise PydanticCustomError("no_such", "{said}", {
                "said": f"{name}: the lab has no such {what}{instead(name, names)}"})
        return name
    return AfterValidator(check)


Servers = Annotated[
    list[Annotated[str, _out_of("server", servers.kinds)]], BeforeValidator(_listed)]
# Adapters of load/: wrk, ab, h2load, streams, hammer, handshakes, idle, open, users.
Tools = Annotated[
    list[Annotated[str, _out_of("load tool", lambda: TOOLS)]], BeforeValidator(_listed)]
# Pages of the site: site.PAGES.
Pages = Annotated[list[Annotated[str, _out_of("page", lambda: PAGES)]], BeforeValidator(_listed)]
Asks = Annotated[
    list[Annotated[str, _out_of("traffic", lambda: TRAFFICS)]], BeforeValidator(_listed)]
Numbers = Annotated[list[int], BeforeValidator(_listed)]
Scheme = Annotated[list[Literal["http", "https"]], BeforeValidator(_listed)]
Log = Annotated[list[Literal["off", "buffered"]], BeforeValidator(_listed)]
# "pinned": by the server itself if possible, otherwise by hand.
Affinity = Annotated[
    list[Literal["mask", "off", "taskset", "own", "bound", "pinned"]], BeforeValidator(_listed)]
Overrides = Annotated[list[Literal["none", "all"]], BeforeValidator(_listed)]
# Numbers of CPUs; "each": 1, 2 … all; "side": the server's side; "several": the same, at least 2.
Cpus = Annotated[list[int | Literal["each", "side", "several"]], BeforeValidator(_listed)]


class Changes(Model):
    """The fields of a block that --quick replaces."""

    servers: Servers | None = None
    tool: Tools | None = None
    page: Pages | None = None
    asks: Asks | None = None
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
    servers: Servers
    tool: Tools
    page: Pages = ["1k"]
    # The kinds of requests for the pages, from traffic.py.
    asks: Asks = ["same"]
    scheme: Scheme = ["http"]
    log: Log = ["off"]
    htaccess: Overrides = ["none"]
    # mask: all of the server's CPUs; off, taskset, own: experiment P2's three; bound: its own,
    # fixed.
    affinity: Affinity = ["mask"]
    concurrency: Numbers = [64]
    # "side": all CPUs of the server's side.
    cpus: Cpus = ["side"]
    # Open loop: the rate in per cent of the measured peak.
    load_percent: Numbers = [100]
    keep_alive: bool = True
    # Requests at a time on each connection (tool streams).
    streams: int = Field(default=1, ge=1, le=1000)
    # Sizes of the server's pools: fit (to the load), or a study's: p1, p3, p3-prespawned, p4.
    profile: Literal["fit", "p1", "p3", "p3-prespawned", "p4"] = "fit"
    # Threads of the load tool; 0: one per load CPU.
    threads: int = 0
    # A number of requests instead of a time, in total or per client.
    requests: int | None = None
    requests_each: int | None = None
    # Requests/s of the warm-up (P3); None: the load itself.
    warm_up_rate: int | None = None
    prespawned: int = 200
    # Of an application: its processes (0: two for each CPU and one more; Granian: one for each),
    # the threads of each, and whether it runs in the processes of servers that have threads.
    app_processes: int = Field(default=0, ge=0, le=1000)
    app_threads: int = Field(default=1, ge=1, le=1000)
    app_embedded: bool = False
    # Idle connections to open (tool idle).
    connections: int = 10_000
    # Threads of another program that keep the last of the server's CPUs busy.
    busy: int = Field(default=0, ge=0, le=64)
    # CGI scripts on the server's CPUs, eight at a time: requested of the server, or run by none.
    scripts: Literal["", "server", "alone"] = ""
    # The server's CPU quota, in CPUs; 0: no quota.
    quota: float = Field(default=0.0, ge=0.0)
    # RewriteRule lines of the host, each with a redirect.
    redirects: int = Field(default=0, ge=0, le=10_000)
    # SetEnvIf lines that each request is matched with.
    rules: int = Field(default=0, ge=0, le=10_000)
    quick: Changes = Field(default_factory=Changes)


class Spec(Model):
    """A whole experiment file."""

    name: str
    title: str
    about: str
    axes: list[str]
    x: str | None = None
    # None: requests/s, or CPU time per request with fewer than 4 CPUs.
    headline: Metric | None = None
    metrics: list[Metric]
    # Seconds of load per start, and of warm-up; --quick has its own.
    seconds: float = 10.0
    warm_up_s: float = 2.0
    # Cells measured twice, as server + axes: the A/A run.
    noise: list[dict[str, Value]]
    cells: list[Block]
    published: list[Published] = Field(default_factory=list)
    ratios: list[Ratio] = Field(default_factory=list)
    targets: list[Target] = Field(default_factory=list)
    # Scenarios in the README; empty: all.
    quoted: list[str] = Field(default_factory=list)
    # Limitations of this experiment, for the report.
    left_out: list[str] = Field(default_factory=list)


def names(folder: Path = FOLDER) -> list[str]:
    """All experiments, by name."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load(name: str, folder: Path = FOLDER) -> Spec:
    """Reads an experiment by name or path. ExperimentError names file and line."""
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    if path == folder / f"{name}.toml" and not path.is_file():
        raise ExperimentError(f"no experiment {name}{instead(name, names(folder))}")
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        raise ExperimentError(f"{path}: is empty")
    try:
        spec = Spec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)|\(at end of document\)", str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        what = str(error).split(" (at ")[0]
        raise ExperimentError(f"{path}:{line}: {what}") from None
    except ValidationError as error:
        line, what = _fault(error, text)
        raise ExperimentError(f"{path}:{line}: {what}") from None
    for where, value, what in _misfits(spec):
        raise ExperimentError(f"{path}:{line_of(text, where, value)}: {what}")
    return spec


def _fault(error: ValidationError, text: str) -> tuple[int, str]:
    """The first error: its line and text."""
    every = error.errors()
    first = every[0]
    # For a value that may be a number or a name, the names are more informative.
    where = tuple(part for part in first["loc"] if part != "int")
    for other in every:
        if other["type"] == "literal_error" and other["loc"][:len(where)] == where:
            first = other
    what = ".".join(map(str, where))
    if first["type"] == "missing":
        lacking = [str(one["loc"][-1]) for one in every
                   if one["type"] == "missing" and one["loc"][:-1] == where[:-1]]
        inside = f"{'.'.join(map(str, where[:-1]))}: " if where[1:] else ""
        return line_of(text, where[:-1]), f"{inside}missing: {', '.join(lacking)}"
    line = line_of(text, where, first["input"])
    if first["type"] == "no_such":
        return line, str(first["msg"])
    if first["type"] == "literal_error":
        field = next(part for part in reversed(where) if isinstance(part, str))
        known = re.findall(r"'([^']*)'", str(first["ctx"]["expected"]))
        given = first["input"]
        return line, f"{given}: no such value of {field}{instead(given, known)}"
    if first["type"] == "extra_forbidden":
        meant = near(where[-1], _model_of(where).model_fields)
        return line, f"{what}: unknown" + (f", did you mean {meant}?" if meant else "")
    return line, f"{what}: {first['msg']}"


def _model_of(where: Place) -> type[Model]:
    """The model of the field at this place."""
    if where[0] == "cells":
        return Changes if "quick" in where[:-1] else Block
    if len(where) > 1 and where[0] in ("published", "ratios", "targets"):
        models: dict[int | str, type[Model]] = {
            "published": Published, "ratios": Ratio, "targets": Target}
        return models[where[0]]
    return Spec


def _misfits(spec: Spec) -> Iterator[tuple[Place, object, str]]:
    """Names that refer to nothing in the file: place, name, and the error."""
    for axis in spec.axes:
        if axis not in AXES:
            yield ("axes",), axis, f"{axis}: no such axis{instead(axis, AXES)}"
    if spec.x is not None and spec.x not in spec.axes:
        yield ("x",), spec.x, f"{spec.x}: x has to be one of axes{instead(spec.x, spec.axes)}"
    for number, block in enumerate(spec.cells):
        both: list[tuple[Place, Model]] = [
            (("cells", number), block), (("cells", number, "quick"), block.quick)]
        for (place, one), field in itertools.product(both, AXES):
            value = getattr(one, field, None)
            if isinstance(value, list) and len(value) > 1 and field not in spec.axes:
                yield (*place, field), None, f"several values for {field}, which is not in axes"
    scenarios = [block.scenario for block in spec.cells]
    for scenario in spec.quoted:
        if scenario not in scenarios:
            yield ("quoted",), scenario, \
                f"{scenario}: no cells have this scenario{instead(scenario, scenarios)}"
    for selector, place in _selectors(spec):
        for name, value in selector.items():
            if name != "server" and name not in spec.axes:
                said = f"{name}: no such axis{instead(name, ['server', *spec.axes])}"
                yield (*place, name), None, said
            elif (known := _values(spec, name)) and value not in known:
                yield (*place, name), value, f"{value}: no cell has such a {name}" \
                    f"{instead(value, known)}"


def _selectors(spec: Spec) -> Iterator[tuple[dict[str, Value], Place]]:
    """Selectors of cells by server and axes, with their places."""
    for number, one in enumerate(spec.noise):
        yield one, ("noise", number)
    for number, figure in enumerate(spec.published):
        yield figure.cell, ("published", number, "cell")
    for number, ratio in enumerate(spec.ratios):
        yield ratio.of, ("ratios", number, "of")
        yield ratio.to, ("ratios", number, "to")
    for number, target in enumerate(spec.targets):
        yield target.of, ("targets", number, "of")
        yield target.to, ("targets", number, "to")
        yield target.above, ("targets", number, "above")


def _values(spec: Spec, name: str) -> list[Value]:
    """The values in the cells, including those of --quick; empty if they depend on the machine."""
    field = "servers" if name == "server" else name
    found: list[Value] = []
    for block in spec.cells:
        for one in (block, block.quick):
            value = getattr(one, field, None) or []
            found += value if isinstance(value, list) else [value]
    if name == "cpus" and any(isinstance(value, str) for value in found):
        return []
    if "pinned" in found:
        found += ["own", "taskset"]
    return found

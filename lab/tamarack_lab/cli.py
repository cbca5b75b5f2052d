"""The command line: lab/run EXPERIMENT… | --list | --compare A B."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import cpus, deferred, engine, experiment, journal, machine, measure, plan, results
from . import servers, site
from .choice import instead
from .errors import LabError
from .experiment import ExperimentError, Spec
from .load.side import Local, Several, Side, Ssh
from .options import GOOD, INTERRUPTED, MARKED, QUICK_SECONDS, QUICK_STARTS, USELESS, parse
from .progress import Progress
from .servers.base import refuse_used

QUICK_WARM_UP_S = 0.5
STARTS_MIN = 10

console = Console(stderr=True, soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse(arguments)
    # A signal from outside also stops the servers, and the run can be continued later.
    deferred.interruptible()
    try:
        if options.list:
            return _list()
        if options.compare:
            before, after = map(Path, options.compare)
            return _compare(before, after, options.out)
        if options.report:
            _report(_read(options.report), options.out or _folder_of(options.report))
            return GOOD
        if options.publish:
            return _publish(options.publish)
        return _run(options, sys.argv[1:] if arguments is None else arguments)
    except (LabError, ExperimentError, cpus.CpuError) as error:
        _say(str(error))
        return USELESS
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except OSError as error:
        _say(_told(error))
        return USELESS


def _list() -> int:
    table = Table(box=None, pad_edge=False)
    for name in ("experiment", "cells", "what"):
        table.add_column(name)
    status = GOOD
    side = len(cpus.sides().server)
    for name in experiment.names():
        try:
            spec = _load(name)
        except ExperimentError as error:
            _say(str(error))
            status = USELESS
            continue
        counts = [len(plan.make(spec, servers.kinds(), quick, engine.cpu_count(), side).cells)
                  for quick in (False, True)]
        table.add_row(name, f"{counts[0]} ({counts[1]} quick)", escape(spec.title))
    Console().print(table)
    return status


def _compare(before: Path, after: Path, out: Path | None) -> int:
    """Prints the changes, and writes them next to the later result; MARKED if anything got
    worse."""
    reporter = _reporter()
    comparison = reporter.compare(_read(before), _read(after))
    reporter.show(comparison, Console())
    folder = out or _folder_of(after)
    try:
        for path in reporter.build_comparison(comparison, folder):
            _say(f"written: {path}")
    except OSError as error:
        raise LabError(f"{folder}: {error.strerror}") from None
    return MARKED if comparison.worse else GOOD


def _publish(path: Path) -> int:
    reporter = _reporter()
    root = experiment.FOLDER.parent.parent
    pages = (root / "README.md", root / "docs" / "measuring.md")
    try:
        for file in reporter.publish(_read(path), _folder_of(path).resolve(), *pages):
            _say(f"written: {file}")
    except (reporter.PublishError, OSError) as error:
        raise LabError(str(error)) from None
    return GOOD


def _read(path: Path) -> results.Results:
    try:
        return results.read(path)
    except FileNotFoundError as error:
        said = f"{path}: no results.json is there" if path.is_dir() else f"{path}: {error.strerror}"
        raise LabError(said) from None
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        again = ("; its run's command, given again, writes it anew"
                 if (_folder_of(path) / journal.NAME).exists() else "")
        raise LabError(f"{path}: no results, or cut off: {place}{': ' if place else ''}"
                       f"{first['msg']}{again}") from None


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _run(options: argparse.Namespace, command: list[str]) -> int:
    specs, files, broken = _specs(options.experiments or experiment.names())
    if not options.experiments:
        specs = [spec for spec in specs if spec.targets]
        files = {name: digest for name, digest in files.items()
                 if name in {f"{spec.name}.toml" for spec in specs}}
    if not specs:
        return USELESS
    if options.tamarack:
        os.environ[servers_variable()] = str(_program(options.tamarack))
    load = _load_side(options)
    work = Path(tempfile.mkdtemp(prefix="tamarack-lab-"))
    try:
        sides = cpus.sides(options.server_cpus, options.load_cpus, bool(options.load_host))
        if isinstance(load, Local):
            load.mask = sides.load
        try:
            run, stage = _prepare(options, command, specs, files, sides, load, work)
        except KeyboardInterrupt:
            _say("interrupted before anything was measured")
            return INTERRUPTED
        return max(_measure(run, stage), MARKED if broken else GOOD)
    finally:
        with deferred.interrupts():
            shutil.rmtree(work, ignore_errors=True)
            load.close()


def _program(path: str) -> Path:
    file = Path(path).resolve()
    if not file.is_file() or not os.access(file, os.X_OK):
        raise LabError(f"--tamarack {path}: no such program: cargo build --release -p tamarack")
    return file


def _specs(names: list[str]) -> tuple[list[Spec], dict[str, str], bool]:
    """The experiments, each one's file and its SHA-256, and whether one could not be read."""
    specs: list[Spec] = []
    files: dict[str, str] = {}
    broken = False
    for name in dict.fromkeys(names):
        try:
            specs.append(_load(name))
            file = _file(name)
            files[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        except ExperimentError as error:
            broken = True
            _say(str(error))
    return specs, files, broken


def _load(name: str) -> Spec:
    try:
        return experiment.load(name)
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{_file(name)}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ExperimentError(f"{_file(name)}: {error.strerror}") from None


def _file(name: str) -> Path:
    return Path(name) if name.endswith(".toml") else experiment.FOLDER / f"{name}.toml"


def _load_side(options: argparse.Namespace) -> Side:
    if options.load_host:
        hosts: list[Side] = [Ssh(host, key=options.load_key) for host in options.load_host]
        return hosts[0] if len(hosts) == 1 else Several(hosts)
    if options.load_netns and not Path("/run/netns", options.load_netns).exists():
        raise LabError(f"--load-netns {options.load_netns}: no such network namespace")
    return Local((), options.load_netns)


def _prepare(options: argparse.Namespace, command: list[str], specs: list[Spec],
             files: dict[str, str], sides: cpus.Sides, load: Side, work: Path,
             ) -> tuple[engine.Run, measure.Stage]:
    kinds, count = servers.kinds(), engine.cpu_count()
    chosen = _chosen(options, specs, kinds)
    slowed, address = _injected(options.inject, kinds), _address(options)
    plans = [plan.make(_timed(spec, options), kinds, options.quick, count, len(sides.server),
                       chosen) for spec in specs]
    plans = _with_cells(plans, options)
    specs = [one.spec for one in plans]
    folder = options.out or engine.default_folder()
    if options.retry and not (folder / journal.NAME).exists():
        raise LabError(f"--retry: no run lies in {folder}" if options.out
                       else "--retry needs --out with the folder of a run")
    _listening(address, options.port)
    journal.claim(folder)
    missing = [] if options.no_install else engine.install(plans, kinds, load, _say)
    starts = _starts(options)
    used = {cell.server: kinds[cell.server] for one in plans for cell in one.cells}
    tools = sorted({cell.tool for one in plans for cell in one.cells})
    environment = machine.describe(list(used.values()), tools, load)
    where = measure.text_of(sides, load, options.quick)
    seconds = options.seconds or (
        QUICK_SECONDS if options.quick else max(spec.seconds for spec in specs))
    kept = journal.open_in(folder, {
        **_header(specs, options, starts, seconds, where, environment, chosen), "files": files})
    if kept.resumed:
        _say(f"going on in {folder}")
    stage = measure.Stage(
        _site(work, plans), work, sides, load, address, options.port, seconds,
        QUICK_WARM_UP_S, kinds, slowed)
    run = engine.Run(
        plans, kept, environment, _load_record(options, sides, where),
        engine.headline_reason(count, bool(options.load_host)), command, options.quick, starts,
        folder, _say)
    for line in [*missing, *(f"{name}: each answer was made to cost {cost / 1000:g} µs more"
                             for name, cost in slowed.items())]:
        run.note(line)
    if (begun := kept.header.get("commit")) != environment.commit:
        run.note(f"begun at commit {begun}, gone on with at {environment.commit}")
    if options.retry:
        engine.retry(run)
    return run, stage


def _chosen(options: argparse.Namespace, specs: list[Spec],
            kinds: dict[str, type[servers.Server]]) -> plan.Chosen:
    """The chosen cells. Raises LabError for an unknown name."""
    only: set[str] = set()
    for name in _listed(options.servers):
        found = [name] if name in kinds else \
            [kind for kind in kinds if kind.startswith(f"{name}-")]
        if not found:
            raise LabError(f"--servers {name}: the lab has no such server{instead(name, kinds)}")
        only.update(found)
    known = list(dict.fromkeys(block.scenario for spec in specs for block in spec.cells))
    for name in (scenarios := _scenarios(options.scenario, known)):
        if name not in known:
            raise LabError(f"--scenario {name}: no such scenario{instead(name, known)}")
    return plan.Chosen(frozenset(only), frozenset(scenarios), options.targets)


def _scenarios(given: str, known: list[str]) -> list[str]:
    """Names separated by commas; some scenarios contain a comma."""
    found, rest = [], given
    for name in sorted(known, key=len, reverse=True):
        if f",{name}," in f",{rest},":
            found.append(name)
            rest = f",{rest},".replace(f",{name},", ",").strip(",")
    return found + _listed(rest)


def _listed(given: str) -> list[str]:
    return list(filter(None, map(str.strip, given.split(","))))


def _with_cells(plans: list[plan.Plan], options: argparse.Namespace) -> list[plan.Plan]:
    """The experiments with cells to measure; reports those that were named and have none. Raises
    LabError if none has any."""
    lines = []
    for one in plans:
        if not one.cells:
            there = dict.fromkeys(name for block in one.spec.cells for name in block.servers)
            lines.append(f"{one.spec.name} has no cells" + (
                f" of {options.servers}; its servers are {', '.join(there)}"
                if options.servers else " of that kind"))
    if len(lines) == len(plans):
        raise LabError("\n".join(lines))
    for line in lines if options.experiments else ():
        _say(line)
    return [one for one in plans if one.cells]


def _site(folder: Path, plans: list[plan.Plan]) -> site.Site:
    """The pages of the run and the certificate. Raises LabError if they can't be created."""
    large = site.LARGE & {cell.page for one in plans for cell in one.cells}
    try:
        return site.make(folder, large)
    except (OSError, subprocess.CalledProcessError) as error:
        if isinstance(error, FileNotFoundError) and error.filename == "openssl":
            raise LabError("openssl is missing: apt-get install openssl") from None
        said = error.stderr.decode(errors="replace").strip().splitlines()[-1:] \
            if isinstance(error, subprocess.CalledProcessError) else [str(error)]
        raise LabError(f"the pages can't be made: {' '.join(said)}") from None


def _injected(given: str, kinds: dict[str, type[servers.Server]]) -> dict[str, int]:
    """Server → nanoseconds; the report mentions it in a note."""
    name, _, cost = given.partition("=")
    if not given:
        return {}
    if name not in kinds:
        raise LabError(f"--inject {name}: the lab has no such server{instead(name, kinds)}")
    try:
        return {name: round(float(cost) * 1000)}
    except (ValueError, OverflowError):
        raise LabError(f"--inject {given}: SERVER=MICROSECONDS, as in nginx=1.2") from None


def _listening(address: str, port: int) -> None:
    """Raises LabError if no server could listen, so that no cell would have a figure."""
    try:
        refuse_used(address, port)
    except LabError as error:
        raise LabError(f"{error} (--port and --address say where the servers are)") from None


def _timed(spec: Spec, options: argparse.Namespace) -> Spec:
    """The experiment with the times of this run, and a line for what was shortened."""
    seconds = options.seconds or (QUICK_SECONDS if options.quick else spec.seconds)
    lines = []
    if (starts := _starts(options)) < STARTS_MIN:
        lines.append(f"{starts} fresh starts per cell, a test each, instead of {STARTS_MIN}")
    warm_up = spec.warm_up_s
    if seconds != spec.seconds:
        warm_up = QUICK_WARM_UP_S if options.quick else min(warm_up, max(0.5, seconds / 4))
        lines.append(f"{seconds:g} s of load per start instead of {spec.seconds:g}")
    return spec.model_copy(update={"seconds": seconds, "warm_up_s": warm_up,
                                   "left_out": [*spec.left_out, *lines]})


def _starts(options: argparse.Namespace) -> int:
    return int(options.starts or (QUICK_STARTS if options.quick else STARTS_MIN))


def _header(specs: list[Spec], options: argparse.Namespace, starts: int, seconds: float,
            where: str, environment: results.Environment, chosen: plan.Chosen) -> dict[str, Any]:
    header = {"experiments": [spec.name for spec in specs], "quick": options.quick,
              "starts": starts, "seconds": seconds, "only": sorted(chosen.servers),
              "scenarios": sorted(chosen.scenarios), "targets": chosen.judged, "load": where,
              "servers": environment.servers, "tools": environment.tools, "inject": options.inject,
              "commit": environment.commit}
    return dict(json.loads(json.dumps(header)))


def _address(options: argparse.Namespace) -> str:
    """The address at which the load finds the servers: the one that faces the load's first
    machine."""
    if options.address:
        return str(options.address)
    if options.load_netns:
        raise LabError("--load-netns needs --address: this machine's, as the namespace sees it")
    if not options.load_host:
        return "127.0.0.1"
    import socket

    host = options.load_host[0].rpartition("@")[2].split(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))
        except OSError as error:
            raise LabError(f"no way to {host}: {error.strerror or error}; give --address") from None
        return str(probe.getsockname()[0])


def _load_record(options: argparse.Namespace, sides: cpus.Sides,
                 where: str) -> results.LoadSide:
    remote = bool(options.load_host)
    return results.LoadSide(
        kind="hosts" if remote else "netns" if options.load_netns else "mask",
        server_cpus=list(sides.server), load_cpus=[] if remote else list(sides.load),
        hosts=options.load_host or [], text=where)


def _measure(run: engine.Run, stage: measure.Stage) -> int:
    progress = Progress(console)
    status = GOOD
    try:
        engine.measure(run, stage, progress)
    except KeyboardInterrupt:
        progress.end()
        _say(f"interrupted; it goes on with: lab/run {' '.join(run.command)}"
             + ("" if "--out" in run.command else f" --out {run.folder}"))
        status = INTERRUPTED
    with deferred.interrupts():
        made = engine.results(run, finished=status == GOOD)
        file = results.write(made, run.folder)
    _say(f"raw results: {file}")
    if status == GOOD:
        status = _reported(made, run.folder)
    missed = _judged(made)
    good, faults, planned = engine.filled(made)
    _say(f"{good} of {planned} cells have a figure, {faults} are marked for a fault")
    if run.journal.marks:
        _say("the same command with --retry begins the marked ones anew")
    if status != INTERRUPTED and not good:
        return USELESS
    return status or (MARKED if faults or missed else GOOD)


def _judged(made: results.Results) -> bool:
    """Prints the targets; returns whether one is missed."""
    if not any(one.targets for one in made.experiments):
        return False
    return bool(_reporter().show_targets(made, Console(soft_wrap=True)))


def _reported(made: results.Results, folder: Path) -> int:
    """The status with a report: if the report fails, the figures are kept."""
    try:
        _report(made, folder)
    except (LabError, OSError) as error:
        _say(f"no report: {_told(error) if isinstance(error, OSError) else error}")
        return MARKED
    except KeyboardInterrupt:
        _say(f"interrupted; the figures are kept: lab/run --report {folder} draws them")
        return INTERRUPTED
    return GOOD


def _report(made: results.Results, folder: Path) -> None:
    """Creates the report."""
    for path in _reporter().build(made, folder):
        if path.suffix == ".html":
            _say(f"report: {path}")


def _reporter() -> Any:
    """The report, imported only when needed: measuring does not draw."""
    try:
        return importlib.import_module(f"{__package__}.report")
    except ImportError as error:
        raise LabError(f"the report can't be drawn: {error}") from None


def servers_variable() -> str:
    """The environment variable that names Tamarack's binary."""
    from .servers.tamarack import VARIABLE

    return VARIABLE


def _told(error: OSError) -> str:
    return f"{error.filename or 'the lab'}: {error.strerror or error}"


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False)

"""The options of lab/run, and its exit statuses."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .choice import near

QUICK_STARTS, QUICK_SECONDS = 3, 2.0
# All cells have a figure; some are marked; nothing could be run; interrupted.
GOOD, MARKED, USELESS, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """Reports wrong options in one line."""

    def error(self, message: str) -> NoReturn:
        """Without the usage, which would hide the error."""
        given = message.removeprefix("unrecognized arguments: ").split("=")[0].split()[0]
        meant = near(given, self._option_string_actions) if given.startswith("-") else ""
        self.exit(USELESS, f"lab/run: {message}"
                  f"{f', did you mean {meant}?' if meant else ' (lab/run --help)'}\n")


def _at_least(least: int, most: int = 1_000_000) -> Callable[[str], int]:
    def number(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text}: not a number from {least} to {most}")
    return number


def _duration(text: str) -> float:
    try:
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text}: not a number of seconds")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options; exits with a line on stderr if they are wrong."""
    parser = Parser(prog="lab/run", description=(
        "Runs published web server benchmarks again, side by side, on this machine."))
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT",
                        help="by name (see --list), or a .toml file")
    parser.add_argument("--list", action="store_true", help="say which experiments there are")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"),
                        help="what changed between two results, beyond the noise")
    parser.add_argument("--report", type=Path, metavar="DIR",
                        help="draw the report of a result again")
    parser.add_argument("--publish", type=Path, metavar="DIR",
                        help="put a result's figures into README.md and docs/measuring.md")
    parser.add_argument("--quick", action="store_true", help=(
        f"{QUICK_STARTS} starts, {QUICK_SECONDS:g} s cells, fewer levels"))
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="where results go; a run that lies there goes on")
    parser.add_argument("--servers", default="", metavar="A,B", help=(
        "only these servers; a first part of names, as in tamarack, means all that have it"))
    parser.add_argument("--scenario", default="", metavar="A,B", help="only these scenarios")
    parser.add_argument("--targets", action="store_true", help=(
        "only cells that a target names; of all experiments, unless some are named"))
    parser.add_argument("--starts", type=_at_least(1), metavar="N", help="fresh starts per cell")
    parser.add_argument("--rounds", type=_at_least(1), metavar="N", dest="starts",
                        help="the same: each round starts every cell once")
    parser.add_argument("--seconds", type=_duration, metavar="S", help=(
        "of load per start, instead of the experiments' own; the report says so"))
    parser.add_argument("--tamarack", metavar="PATH", help="another binary than target/release's")
    parser.add_argument("--server-cpus", default="", metavar="LIST", help="as in 0-3")
    parser.add_argument("--load-cpus", default="", metavar="LIST", help="as in 4-7")
    parser.add_argument("--load-host", action="append", default=[], metavar="USER@HOST",
                        help="load from there, over SSH; may be given several times")
    parser.add_argument("--load-key", default="", metavar="FILE", help="private key for it")
    parser.add_argument("--load-netns", default="", metavar="NAME",
                        help="load from this network namespace of the same machine")
    parser.add_argument("--address", default="", help="where servers listen; the load's way to it")
    parser.add_argument("--port", type=_at_least(0, 65535), default=0,
                        help="a fixed port (for firewalls)")
    parser.add_argument("--inject", default="", metavar="SERVER=US", help=(
        "let each answer of that server cost so many µs more: --compare has to find it"))
    parser.add_argument("--retry", action="store_true", help=(
        "begin the marked cells of the run in --out anew; the report says so"))
    parser.add_argument("--no-install", action="store_true",
                        help="don't install missing packages, also as root")
    options = parser.parse_intermixed_args(arguments)
    if not (options.list or options.compare or options.report or options.publish
            or options.experiments or options.targets):
        parser.error("which experiment? lab/run --list names them")
    return options

"""What a result belongs to: the machine, the programs, the commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from .servers import KINDS
from .servers.server import first_line

ROOT = Path(__file__).parent.parent


def describe() -> dict[str, object]:
    """Everything that is needed to read the figures later."""
    return {
        "cpu": cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "system": _system(),
        "commit": commit(),
        "servers": {kind.name: kind.version() for kind in KINDS if kind.path()},
        "wrk": first_line(["wrk", "-v"]).split(" Copyright")[0],
        "openssl": first_line(["openssl", "version"]),
    }


def cpu_model() -> str:
    """As the kernel names it."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def short_name() -> str:
    """The CPU as a part of a file name."""
    words = re.sub(r"\((R|TM|r|tm)\)|CPU|Processor|@", " ", cpu_model())
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def commit() -> str:
    """The commit that is checked out, marked when the tree differs from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT,
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _system() -> str:
    found = re.search(r'^PRETTY_NAME="(.*)"$', Path("/etc/os-release").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.system()

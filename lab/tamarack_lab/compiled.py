"""The lab's own C programs, compiled when their source has changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import threading
from pathlib import Path

from . import packages
from .errors import Absent

FLAGS = ("-O2", "-Wall")
FOLDER = Path(tempfile.gettempdir()) / f"tamarack-lab-{os.getuid()}"


def folder() -> Path:
    """The folder of files that outlive a run. Raises Absent if it belongs to another user."""
    FOLDER.mkdir(mode=0o755, exist_ok=True)
    if FOLDER.stat().st_uid != os.getuid():
        raise Absent(f"{FOLDER} belongs to another user")
    return FOLDER


def program(source: Path, *libraries: str) -> Path:
    """The program of a source file. Raises Absent without a compiler."""
    digest = hashlib.sha256(source.read_bytes() + " ".join(FLAGS).encode()).hexdigest()[:12]
    path = folder() / f"{source.stem}-{digest}"
    if path.exists():
        return path
    compiler = packages.which("cc")
    if not compiler:
        raise Absent(f"no C compiler for {source.name}: apt-get install gcc libc6-dev")
    fresh = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    done = subprocess.run([compiler, *FLAGS, "-o", str(fresh), str(source), *libraries],
                          capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["the compiler said nothing"]
        raise Absent(f"{source.name} does not compile: {said[-1]}")
    fresh.rename(path)
    return path

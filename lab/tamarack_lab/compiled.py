"""Files that outlive a run: the lab's own C programs, compiled when their source has changed, and
what load tools read."""

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


def written(name: str, text: str) -> Path:
    """A file with this text, named by it: runs that need the same share it."""
    path = folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        # Threads of one load may write it at the same time.
        fresh = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        fresh.write_text(text)
        fresh.rename(path)
    return path


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

"""Tamarack, in its four shapes, with the same configuration as Apache."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path

from .apache import Apache
from .base import first_line, output_of

ROOT = Path(__file__).parent.parent.parent.parent
# --tamarack PATH sets it, for this process and all its children.
VARIABLE = "TAMARACK"
# Feature → the module that implements it.
MODULES = {"cgi": "mod_cgi", "app": "mod_wsgi", "ssi": "mod_include", "htaccess": "core.c", "tls": "mod_ssl",
           "log": "mod_log_config", "http2": "mod_http2", "affinity": "core.c", "proxied": "mod_proxy_http",
           "fastcgi": "mod_proxy_fcgi", "zstd": "mod_zstd", "brotli": "mod_brotli",
           "substitute": "mod_substitute", "php": "mod_proxy_fcgi"}
BUILT = re.compile(r"^(?:Server built|Compiler|Profile).*$", re.MULTILINE)


class Tamarack(Apache):
    """Common to all shapes."""

    program = "tamarack"
    packages = ()

    @classmethod
    def path(cls) -> str | None:
        """The release build of this checkout, or the one given by --tamarack."""
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        program = Path(os.environ.get(VARIABLE, target / "release" / "tamarack"))
        return str(program) if os.access(program, os.X_OK) else None

    @classmethod
    def absent(cls) -> str:
        """How to build it."""
        if cls.path():
            return ""
        return "Tamarack is not built: cargo build --release -p tamarack, or --tamarack PATH"

    @classmethod
    def version(cls) -> str:
        """Its version line, which identifies the build: a run can be continued only with the
        same one."""
        path = cls.path()
        return _version(path) if path else ""

    @classmethod
    def flags(cls) -> str:
        """When, by which compiler and how it was built, from its -V."""
        text = output_of([cls.path() or cls.program, "-V"])
        return ", ".join([" ".join(found.split()) for found in BUILT.findall(text)]
                         + [super().flags()])

    @classmethod
    def can(cls, feature: str) -> bool:
        """By the compiled modules."""
        module = MODULES.get(feature)
        return not cls.path() or module is None or module in _modules(cls.path() or "")

    @classmethod
    def missing_module(cls, feature: str) -> str:
        """Everything is compiled in."""
        return ""

    def affinity_lines(self) -> str:
        """Its own affinity, if the experiment requires a state of it."""
        if self.setup.affinity in ("off", "taskset"):
            return "CPUAffinity Off\n"
        if self.setup.affinity == "bound":
            return "CPUAffinity Thread\nCPUAffinityAdapt Off\n"
        return "CPUAffinity Auto\nCPUAffinityAdapt On\n" if self.setup.affinity == "own" else ""


@functools.cache
def _version(path: str) -> str:
    line = first_line([path, "-v"]).removeprefix("Server version: ")
    return f"{line}, build {hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"


@functools.cache
def _modules(path: str) -> str:
    return output_of([path, "-l"]) if path else ""


class TamarackEvent(Tamarack):
    """Processes × loops."""

    name = "tamarack-event"
    label = "Tamarack event"
    shape = "event"


class TamarackLoop(Tamarack):
    """One process, one loop."""

    name = "tamarack-loop"
    label = "Tamarack loop"
    shape = "loop"


class TamarackWorker(Tamarack):
    """A thread per connection."""

    name = "tamarack-worker"
    label = "Tamarack worker"
    shape = "worker"


class TamarackPrefork(Tamarack):
    """A process per connection."""

    name = "tamarack-prefork"
    label = "Tamarack prefork"
    shape = "prefork"

"""Python application servers, as they are packaged: gunicorn, Granian."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..errors import Absent
from .base import Server, first_line

# Debian's Python has Debian's Pyramid, Mako and gunicorn; Granian comes from the registry into an
# environment on top of it, so that all application servers run one interpreter and one framework.
PYTHON = "/usr/bin/python3"
ENVIRONMENT = Path(__file__).parent.parent.parent / ".venv-app"
FRAMEWORK = ("python3-pyramid", "python3-mako")
PIP_TIMEOUT_S = 300


class Gunicorn(Server):
    """Two workers per CPU plus one, as its manual advises."""

    name = "gunicorn"
    label = "gunicorn"
    program = "gunicorn"
    packages = ("gunicorn", *FRAMEWORK)
    features = frozenset({"app"})

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "--version"])

    def configure(self) -> list[str]:
        """It needs no file."""
        setup = self.setup
        user = ["--user", "www-data", "--group", "www-data"] if os.geteuid() == 0 else []
        return [self.path() or self.program, "--chdir", str(setup.site.application), "--bind",
                f"{setup.address}:{setup.port}", "--workers", str(2 * len(setup.cpus) + 1),
                "--backlog", "4096", "--log-level", "error", "--preload", *user,
                "application:application"]

    def environment(self) -> dict[str, str]:
        """No file but the application is needed."""
        return {"PYTHONDONTWRITEBYTECODE": "1"}


class Granian(Server):
    """A worker per CPU, WSGI."""

    name = "granian"
    label = "Granian"
    program = "granian"
    packages = ("python3-venv", *FRAMEWORK)
    features = frozenset({"app"})

    @classmethod
    def path(cls) -> str | None:
        """In its own environment."""
        program = ENVIRONMENT / "bin" / "granian"
        return str(program) if program.exists() else None

    @classmethod
    def absent(cls) -> str:
        """No package contains it."""
        return "" if cls.path() else "Granian is missing: pip brings it, without --no-install"

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "--version"])

    @classmethod
    def prepare(cls) -> None:
        """Installs it. If it is absent, one line with the reason."""
        if cls.path():
            return
        for command in ([PYTHON, "-m", "venv", "--system-site-packages", str(ENVIRONMENT)],
                        [str(ENVIRONMENT / "bin" / "pip"), "install", "-q", "granian"]):
            try:
                done = subprocess.run(command, capture_output=True, text=True,
                                      timeout=PIP_TIMEOUT_S)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Absent(f"Granian can't be installed: {error}") from None
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                raise Absent(f"Granian can't be installed: {said[-1] if said else 'pip failed'}")

    def configure(self) -> list[str]:
        """It needs no file."""
        setup = self.setup
        return [self.path() or self.program, "--interface", "wsgi", "--host", setup.address,
                "--port", str(setup.port), "--workers", str(len(setup.cpus)), "--backlog",
                "4096", "--no-access-log", "--log-level", "error", "--working-dir",
                str(setup.site.application), "application:application"]

    def environment(self) -> dict[str, str]:
        """No file but the application is needed."""
        return {"PYTHONDONTWRITEBYTECODE": "1"}

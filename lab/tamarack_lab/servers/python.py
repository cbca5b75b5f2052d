"""Python application servers, as they are packaged: gunicorn, uWSGI, Granian."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from ..errors import Absent
from .base import Server, first_line

# Debian's Python has Debian's Pyramid, Mako, gunicorn and uWSGI; Granian comes from the registry into an
# environment on top of it, so that all application servers run one interpreter and one framework.
PYTHON = "/usr/bin/python3"
ENVIRONMENT = Path(__file__).parent.parent.parent / ".venv-app"
FRAMEWORK = ("python3-pyramid", "python3-mako")
PIP_TIMEOUT_S = 300
BACKLOG = 4096
# uWSGI refuses to start with a longer backlog than the kernel's.
SOMAXCONN = Path("/proc/sys/net/core/somaxconn")


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
        # With threads, it has them instead of its workers of one request.
        threads = ["--threads", str(setup.app_threads)] if setup.app_threads > 1 else []
        return [self.path() or self.program, "--chdir", str(setup.site.application), "--bind",
                f"{setup.address}:{setup.port}", "--workers", str(setup.app_workers), *threads,
                "--backlog", str(BACKLOG), "--log-level", "error", "--preload", *user,
                "application:application"]

    def environment(self) -> dict[str, str]:
        """No file but the application is needed."""
        return {"PYTHONDONTWRITEBYTECODE": "1"}


class Uwsgi(Server):
    """With its own HTTP, as many processes as gunicorn, which take turns to accept."""

    name = "uwsgi"
    label = "uWSGI"
    program = "uwsgi_python3"
    packages = ("uwsgi-core", "uwsgi-plugin-python3", *FRAMEWORK)
    features = frozenset({"app"})
    stop_signal = signal.SIGINT

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return f"uWSGI {first_line([cls.path() or cls.program, '--version'])}"

    def configure(self) -> list[str]:
        """It needs no file."""
        setup = self.setup
        backlog = min(BACKLOG, int(SOMAXCONN.read_text()) if SOMAXCONN.exists() else 128)
        user = ["--uid", "www-data", "--gid", "www-data"] if os.geteuid() == 0 else []
        threads = ["--threads", str(setup.app_threads)] if setup.app_threads > 1 else []
        return [self.path() or self.program, "--http-socket", f"{setup.address}:{setup.port}",
                "--chdir", str(setup.site.application), "--module", "application", "--master",
                "--need-app", "--processes", str(setup.app_workers), *threads, "--thunder-lock",
                "--listen", str(backlog), "--disable-logging", *user]

    def environment(self) -> dict[str, str]:
        """No file but the application is needed."""
        return {"PYTHONDONTWRITEBYTECODE": "1"}


class Granian(Server):
    """A worker per CPU, WSGI, with the settings that cost it least: a thread for the application,
    HTTP/1.1 alone, and few flushes."""

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
                "--port", str(setup.port), "--workers",
                str(setup.app_processes or len(setup.cpus)), "--blocking-threads",
                str(setup.app_threads), "--http", "1", "--no-ws", "--http1-pipeline-flush",
                "--backlog", str(BACKLOG), "--no-access-log", "--log-level", "error",
                "--working-dir", str(setup.site.application), "application:application"]

    def environment(self) -> dict[str, str]:
        """No file but the application is needed."""
        return {"PYTHONDONTWRITEBYTECODE": "1"}

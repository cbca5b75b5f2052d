"""Missing programs: installed by name as root, otherwise the apt command is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

# Debian's administration programs are not in every user's PATH.
SEARCH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
POLICY = Path("/usr/sbin/policy-rc.d")
APACHE_MODULES = Path("/etc/apache2/mods-enabled")
APT_TIMEOUT_S = 600


def which(program: str) -> str | None:
    """The program's file, or None."""
    return shutil.which(program, path=SEARCH)


def install(packages: list[str], say: Callable[[str], None]) -> list[str]:
    """Installs what apt has, one by one; returns a line for each that is still missing."""
    wanted = sorted(set(packages))
    if not wanted:
        return []
    if os.geteuid() != 0 or not which("apt-get"):
        return [f"missing packages: sudo apt-get install {' '.join(wanted)}"]
    say(f"installing {', '.join(wanted)}")
    _apt(["update", "-qq"])
    # Installed servers must not be started as services: the lab starts its own.
    closed = not POLICY.exists()
    if closed:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        return [f"apt has no package {package} that could be installed" for package in wanted
                if _install(package) != 0]
    finally:
        if closed:
            POLICY.unlink(missing_ok=True)


def _install(package: str) -> int:
    """Installs a package. A module for Apache is not left enabled in the machine's own site: the
    lab's configurations load it themselves."""
    before = _enabled()
    status = _apt(["install", "-y", "-qq", "--no-install-recommends", package])
    if package.startswith("libapache2-mod-") and (a2dismod := which("a2dismod")):
        for name in sorted(_enabled() - before):
            subprocess.run([a2dismod, "-q", name], capture_output=True, stdin=subprocess.DEVNULL)
    return status


def _enabled() -> set[str]:
    """The modules that the machine's own Apache loads."""
    return {link.stem for link in APACHE_MODULES.glob("*.load")}


def _apt(arguments: list[str]) -> int:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(["apt-get", *arguments], env=environment, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=APT_TIMEOUT_S).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 1

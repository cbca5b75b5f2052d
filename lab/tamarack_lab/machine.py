"""The origin of a result: the machine, the programs, the commit."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
from pathlib import Path

from . import __version__
from .load import TOOLS
from .load.side import Side
from .results import Environment
from .servers import Server
from .servers.base import first_line

ROOT = Path(__file__).parent.parent.parent
SYS_CPU = Path("/sys/devices/system/cpu")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
SYSCTLS = (
    "net.core.somaxconn", "net.core.netdev_max_backlog", "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_fin_timeout", "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_syncookies", "fs.file-max", "kernel.sched_autogroup_enabled",
    "kernel.numa_balancing", "vm.swappiness")


def describe(kinds: list[type[Server]], tools: list[str], side: Side) -> Environment:
    """Everything needed to interpret the figures later."""
    there = [kind for kind in kinds if not kind.absent()]
    return Environment(
        cpu=cpu_model(), cpus=len(os.sched_getaffinity(0)), cores=_cores(),
        governor=_read(SYS_CPU / "cpu0/cpufreq/scaling_governor") or "not told by the kernel",
        mhz_max=_mhz(), memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        mitigations={path.name: _read(path)
                     for path in sorted((SYS_CPU / "vulnerabilities").glob("*"))},
        kernel=platform.release(), system=_system(),
        virtual=first_line(["systemd-detect-virt"]) or _hypervisor(),
        sysctls=_settings(),
        limits={"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
                "nproc": resource.getrlimit(resource.RLIMIT_NPROC)[1]},
        servers={kind.name: kind.version() for kind in there},
        flags={kind.name: flags for kind in there if (flags := kind.flags())},
        tools={name: TOOLS[name].version(side) for name in tools
               if name in TOOLS and not TOOLS[name].missing(side)},
        commit=commit(), lab=__version__)


def _settings() -> dict[str, str]:
    """Kernel settings, by sysctl; transparent huge pages have no name there."""
    found = {name: value for name in SYSCTLS
             if (value := _read(Path("/proc/sys") / name.replace(".", "/")))}
    # The chosen one is in brackets: always [madvise] never.
    for name in ("enabled", "defrag"):
        if chosen := re.search(r"\[(\w[\w+]*)\]", _read(HUGE_PAGES / name)):
            found[f"transparent_hugepage.{name}"] = chosen[1]
    return found


def cpu_model() -> str:
    """As the kernel names it."""
    found = re.search(r"^(?:model name|Hardware)\s*: (.*)$", _read(Path("/proc/cpuinfo")),
                      re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def short_name() -> str:
    """The CPU as a part of a folder's name."""
    words = re.sub(r"\((R|TM|r|tm)\)|CPU|Processor|@", " ", cpu_model())
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def commit() -> str:
    """The checked-out commit, marked if the tree differs from it."""
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"],
                              cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _cores() -> int:
    cores = {_read(path) for path in SYS_CPU.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return len(cores - {""}) or os.cpu_count() or 1


def _mhz() -> float | None:
    if text := _read(SYS_CPU / "cpu0/cpufreq/cpuinfo_max_freq"):
        return int(text) / 1000
    found = re.findall(r"^cpu MHz\s*: ([\d.]+)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    return max(map(float, found)) if found else None


def _system() -> str:
    found = re.search(r'^PRETTY_NAME="?(.*?)"?$', _read(Path("/etc/os-release")), re.MULTILINE)
    return found[1] if found else platform.system()


def _hypervisor() -> str:
    return "virtual" if " hypervisor" in _read(Path("/proc/cpuinfo")) else "not told"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""

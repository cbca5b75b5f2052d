"""The side of the load: other CPUs here, other network namespaces, other machines."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import cpus, deferred, packages
from ..errors import LabError

if TYPE_CHECKING:
    from .tool import Count

# A load tool that takes this much longer than requested hangs.
GRACE_S = 60.0


class Side:
    """Runs commands on the side of the load."""

    hosts: tuple[str, ...] = ()

    def everywhere(self, work: Callable[[Side, int, int], Count]) -> list[Count]:
        """Does the work on every machine at the same time: (side, number, total)."""
        return [work(self, 0, 1)]

    def run(self, command: list[str], timeout_s: float) -> str:
        """Runs it there; returns its standard output. Raises LabError if it fails or hangs."""
        raise NotImplementedError

    def popen(self, command: list[str]) -> list[str]:
        """The command as it is run here: with a mask, in a namespace."""
        raise NotImplementedError

    def has(self, program: str) -> bool:
        """Whether the program exists."""
        raise NotImplementedError

    def put(self, file: Path) -> str:
        """Copies a file there; returns its path there."""
        raise NotImplementedError

    def take(self, path: str) -> str:
        """The text of a file that a tool wrote there, which is removed. Empty if it does not
        exist."""
        raise NotImplementedError

    def scratch(self, name: str) -> str:
        """A path for a tool's output there."""
        raise NotImplementedError

    def where(self) -> str:
        """For messages: ' on HOST', or an empty string."""
        return ""

    def cpu_count(self) -> int:
        """The number of CPUs that the load may use there."""
        raise NotImplementedError

    def first_line(self, command: list[str]) -> str:
        """The first line of a command's output; empty if it fails."""
        try:
            text = self.run(["sh", "-c", f"{shlex.join(command)} 2>&1 || true"], 20)
        except LabError:
            return ""
        lines = text.strip().splitlines()
        return lines[0].strip() if lines else ""

    def close(self) -> None:
        """Closes connections and removes files."""


class Local(Side):
    """This machine, by a CPU mask, optionally in a network namespace."""

    def __init__(self, mask: tuple[int, ...], namespace: str = "") -> None:
        self.mask = mask
        self.namespace = namespace
        self._folder = Path(tempfile.mkdtemp(prefix="tamarack-lab-load-"))

    def popen(self, command: list[str]) -> list[str]:
        """With taskset, and ip netns exec."""
        inside = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        mask = ["taskset", "-c", cpus.text(self.mask)] if self.mask else []
        return [*inside, *mask, *command]

    def run(self, command: list[str], timeout_s: float) -> str:
        """Here."""
        started: list[subprocess.Popen[str]] = []
        try:
            # An interrupt before it is recorded would leave it running: subprocess.run has that
            # gap.
            with deferred.interrupts():
                started.append(subprocess.Popen(
                    self.popen(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True))
            output, errors = started[0].communicate(timeout=timeout_s + GRACE_S)
            return _judged(command, started[0].returncode, output, errors)
        except subprocess.TimeoutExpired:
            raise LabError(f"{command[0]} hung") from None
        except OSError as error:
            raise LabError(f"{command[0]}: {error.strerror}") from None
        finally:
            for process in started:
                # No effect on a process that has ended; leaving closes the pipes and waits.
                process.kill()
                with process:
                    pass

    def has(self, program: str) -> bool:
        """In PATH, /usr/sbin too."""
        return packages.which(program) is not None

    def put(self, file: Path) -> str:
        """It is here already."""
        return str(file)

    def take(self, path: str) -> str:
        """Reads and removes."""
        file = Path(path)
        text = file.read_text() if file.exists() else ""
        file.unlink(missing_ok=True)
        return text

    def scratch(self, name: str) -> str:
        """In a folder of the run."""
        return str(self._folder / name)

    def where(self) -> str:
        """The namespace, if any."""
        return f" in namespace {self.namespace}" if self.namespace else ""

    def cpu_count(self) -> int:
        """Of the mask."""
        return max(1, len(self.mask))

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


class Ssh(Side):
    """Another machine. ~/.ssh/config and the agent are used; no password is ever asked for."""

    def __init__(self, host: str, port: int | None = None, key: str = "") -> None:
        import fabric

        self.host = host
        options: dict[str, Any] = {"banner_timeout": 20, "auth_timeout": 20}
        if key:
            options["key_filename"] = key
        self._connection = fabric.Connection(host, port=port, connect_timeout=10,
                                             connect_kwargs=options)
        try:
            self._folder = self._run("mktemp -d /tmp/tamarack-lab-load-XXXXXX", 20).strip()
            self._cpus = int(self._run("nproc", 20))
        except LabError:
            raise
        except Exception as error:  # paramiko's errors have no common base
            raise LabError(f"no SSH to {host}: {error}") from None
        self._put: dict[Path, str] = {}

    def run(self, command: list[str], timeout_s: float) -> str:
        """There."""
        return self._run(f"PATH=$PATH:/usr/sbin:/sbin {shlex.join(command)}", timeout_s)

    def _run(self, line: str, timeout_s: float) -> str:
        done = self._connection.run(line, hide=True, warn=True, timeout=timeout_s + GRACE_S,
                                    in_stream=False)
        return _judged(shlex.split(line), done.exited, done.stdout, done.stderr)

    def popen(self, command: list[str]) -> list[str]:
        """By the ssh client."""
        return ["ssh", "-o", "BatchMode=yes", self.host, shlex.join(command)]

    def has(self, program: str) -> bool:
        """In its PATH."""
        line = f"PATH=$PATH:/usr/sbin:/sbin command -v {shlex.quote(program)}"
        return bool(self._connection.run(line, hide=True, warn=True, in_stream=False).ok)

    def put(self, file: Path) -> str:
        """By SFTP, once."""
        if file not in self._put:
            path = f"{self._folder}/{file.name}"
            self._connection.put(str(file), path)
            self._connection.run(f"chmod +x {shlex.quote(path)}", hide=True, in_stream=False)
            self._put[file] = path
        return self._put[file]

    def take(self, path: str) -> str:
        """Over the connection."""
        return self._run(f"cat {shlex.quote(path)} && rm -f {shlex.quote(path)} || true", 20)

    def scratch(self, name: str) -> str:
        """In a folder of the run."""
        return f"{self._folder}/{name}"

    def where(self) -> str:
        """The host."""
        return f" on {self.host}"

    def cpu_count(self) -> int:
        """All of its CPUs."""
        return self._cpus

    def close(self) -> None:
        """Removes the folder, disconnects."""
        self._connection.run(f"rm -rf {shlex.quote(self._folder)}", hide=True, warn=True,
                             in_stream=False)
        self._connection.close()


class Several(Side):
    """Several machines; queries go to the first that says no, work goes to all."""

    def __init__(self, sides: list[Side]) -> None:
        self._sides = sides

    def everywhere(self, work: Callable[[Side, int, int], Count]) -> list[Count]:
        """At the same time."""
        parts = len(self._sides)
        with ThreadPoolExecutor(parts) as pool:
            futures = [pool.submit(work, side, number, parts)
                       for number, side in enumerate(self._sides)]
            return [future.result() for future in futures]

    def run(self, command: list[str], timeout_s: float) -> str:
        """On the first."""
        return self._sides[0].run(command, timeout_s)

    def popen(self, command: list[str]) -> list[str]:
        """On the first."""
        return self._sides[0].popen(command)

    def has(self, program: str) -> bool:
        """On all of them."""
        return all(side.has(program) for side in self._sides)

    def where(self) -> str:
        """All of them."""
        return " on" + " and".join(side.where().removeprefix(" on") for side in self._sides)

    def cpu_count(self) -> int:
        """Of the smallest."""
        return min(side.cpu_count() for side in self._sides)

    def close(self) -> None:
        """All of them."""
        for side in self._sides:
            side.close()


def _judged(command: list[str], status: int, output: str, errors: str) -> str:
    if status == 0:
        return output
    said = (errors.strip() or output.strip()).splitlines()
    if "taskset" in errors or "sched_setaffinity" in errors:
        raise LabError(f"no permission for the mask of the load: {said[-1]}")
    program = next((word for word in command if "=" not in word), command[0])
    raise LabError(f"{Path(program).name} failed with {status}: {said[-1] if said else ''}")

"""journal.jsonl: every sample as soon as it is measured, so that a run can be interrupted."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .errors import LabError
from .results import Sample

NAME = "journal.jsonl"
ANEW = "to begin anew choose another --out, or remove that folder"
# What must be the same to continue a run in a folder.
SAME = ("experiments", "files", "quick", "starts", "seconds", "only", "scenarios", "targets", "load", "servers", "tools",
        "inject")


@dataclass
class Journal:
    """The measurements so far."""

    path: Path
    header: dict[str, Any]
    # (experiment, key, twin) → samples by start.
    samples: dict[tuple[str, str, bool], dict[int, Sample]] = field(default_factory=dict)
    # (experiment, key) → why the cell has no figure. Persistent, because repeating the command
    # until a cell succeeds would select the starts.
    marks: dict[tuple[str, str], str] = field(default_factory=dict)
    # A line for each mark that was removed.
    lifted: list[str] = field(default_factory=list)
    resumed: bool = False

    @property
    def started(self) -> datetime:
        """When the run began, before any interruption."""
        return datetime.fromisoformat(self.header["started"])

    def add(self, experiment: str, key: str, twin: bool, sample: Sample) -> None:
        """Stores a sample."""
        self.samples.setdefault((experiment, key, twin), {})[sample.start] = sample
        self._write({"experiment": experiment, "key": key, "twin": twin,
                     "sample": sample.model_dump(mode="json", exclude_defaults=True)})

    def mark(self, experiment: str, key: str, reason: str) -> None:
        """Stores why a cell has no figure."""
        self.marks[experiment, key] = reason
        self._write({"experiment": experiment, "key": key, "mark": reason})

    def lift(self, reasons: dict[tuple[str, str], str]) -> None:
        """Begins these cells again: removes their marks and all their samples."""
        for (experiment, key), reason in reasons.items():
            self._forget(experiment, key, reason)
            self._write({"experiment": experiment, "key": key, "lifted": reason})

    def has(self, experiment: str, key: str, twin: bool, start: int) -> bool:
        """Whether this start was measured."""
        return start in self.samples.get((experiment, key, twin), {})

    def _forget(self, experiment: str, key: str, reason: str) -> None:
        self.marks.pop((experiment, key), None)
        for twin in (False, True):
            self.samples.pop((experiment, key, twin), None)
        self.lifted.append(f"{experiment}: {key}: tried again (--retry) after: {reason}")

    def _take(self, line: dict[str, Any]) -> None:
        """Applies a line of the journal."""
        if "sample" in line:
            sample = Sample.model_validate(line["sample"])
            place = (line["experiment"], line["key"], line["twin"])
            self.samples.setdefault(place, {})[sample.start] = sample
        elif "mark" in line:
            self.marks[line["experiment"], line["key"]] = line["mark"]
        elif "lifted" in line:
            self._forget(line["experiment"], line["key"], line["lifted"])

    def _write(self, line: dict[str, Any]) -> None:
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")


def claim(folder: Path) -> None:
    """Creates the folder of a run. Raises LabError if it can't be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LabError(f"{folder}: nothing can be written there: {error.strerror}") from None


def open_in(folder: Path, header: dict[str, Any]) -> Journal:
    """A new journal, or the existing one if it belongs to the same run; otherwise raises
    LabError."""
    path = folder / NAME
    claim(folder)
    header = {"started": datetime.now(UTC).isoformat(), **header}
    if not path.exists():
        if (folder / "results.json").exists():
            raise LabError(f"{folder} holds results without a journal: choose another --out")
        journal = Journal(path, header)
        journal._write({"header": header})
        return journal
    text = _text(path)
    lines = text.splitlines()
    before = _parsed(lines[0], path, 1).get("header") if lines else None
    if not isinstance(before, dict) or "started" not in before:
        raise LabError(f"{path}:1: not a run's first line: {ANEW}")
    for name in SAME:
        if before.get(name) != header.get(name):
            raise LabError(f"{folder} holds another run ({_difference(name, before, header)}): "
                           f"{ANEW}")
    journal = Journal(path, before, resumed=True)
    for number, line in enumerate(lines[1:], 2):
        # The last line may be cut off after a power failure.
        parsed = _parsed(line, path, number, last=number == len(lines))
        try:
            journal._take(parsed)
        except (KeyError, TypeError, ValidationError):
            raise LabError(f"{path}:{number}: not a journal line: {ANEW}") from None
    if not text.endswith("\n"):
        path.write_text("\n".join(lines[:-1]) + "\n")
    return journal


def _difference(name: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    old, new = before.get(name), now.get(name)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                if name == "files":
                    return f"{key} was edited since"
                return f"{key}: {old.get(key)} then, {new.get(key)} now"
    if name == "files":
        return "begun by an older lab"
    return f"{name}: {old} then, {new} now"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LabError(f"{path}: not UTF-8 at byte {error.start}: {ANEW}") from None


def _parsed(text: str, path: Path, number: int, last: bool = False) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:
        line = {} if last else None
    if not isinstance(line, dict):
        raise LabError(f"{path}:{number}: not a journal line: {ANEW}")
    return line

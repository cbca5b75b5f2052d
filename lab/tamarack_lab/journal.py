"""journal.jsonl: every sample as soon as it is there, so that a run can be interrupted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import LabError
from .results import Sample

NAME = "journal.jsonl"
# What has to be the same for a run to go on in a folder.
SAME = ("experiments", "quick", "starts", "seconds", "only", "load", "servers", "inject")


@dataclass
class Journal:
    """What was measured so far."""

    path: Path
    header: dict[str, Any]
    # (experiment, key, twin) → samples by start.
    samples: dict[tuple[str, str, bool], dict[int, Sample]] = field(default_factory=dict)
    resumed: bool = False

    @property
    def started(self) -> datetime:
        """When the run began, also when it was interrupted since."""
        return datetime.fromisoformat(self.header["started"])

    def add(self, experiment: str, key: str, twin: bool, sample: Sample) -> None:
        """Keeps a sample."""
        self.samples.setdefault((experiment, key, twin), {})[sample.start] = sample
        self._write({"experiment": experiment, "key": key, "twin": twin,
                     "sample": sample.model_dump(mode="json", exclude_defaults=True)})

    def has(self, experiment: str, key: str, twin: bool, start: int) -> bool:
        """Whether this start was measured."""
        return start in self.samples.get((experiment, key, twin), {})

    def _write(self, line: dict[str, Any]) -> None:
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")


def open_in(folder: Path, header: dict[str, Any]) -> Journal:
    """A new journal, or the one that lies there if it is of the same run. LabError if not."""
    path = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    header = {"started": datetime.now(UTC).isoformat(), **header}
    if not path.exists():
        if (folder / "results.json").exists():
            raise LabError(f"{folder} holds results without a journal: choose another --out")
        journal = Journal(path, header)
        journal._write({"header": header})
        return journal
    lines = path.read_text().splitlines()
    before = _parsed(lines[0], path, 1).get("header", {}) if lines else {}
    for name in SAME:
        if before.get(name) != header.get(name):
            raise LabError(f"{folder} holds another run ({_difference(name, before, header)}): "
                           "choose another --out")
    journal = Journal(path, before, resumed=True)
    for number, text in enumerate(lines[1:], 2):
        # The last line may be cut off where the power went.
        line = _parsed(text, path, number, last=number == len(lines))
        if "sample" in line:
            sample = Sample.model_validate(line["sample"])
            place = (line["experiment"], line["key"], line["twin"])
            journal.samples.setdefault(place, {})[sample.start] = sample
    if lines and not path.read_text().endswith("\n"):
        path.write_text("\n".join(lines[:-1]) + "\n")
    return journal


def _difference(name: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    old, new = before.get(name), now.get(name)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return f"{key}: {old.get(key)} then, {new.get(key)} now"
    return f"{name}: {old} then, {new} now"


def _parsed(text: str, path: Path, number: int, last: bool = False) -> dict[str, Any]:
    try:
        line: dict[str, Any] = json.loads(text)
        return line
    except ValueError:
        if last:
            return {}
        raise LabError(f"{path}:{number}: not a journal line") from None

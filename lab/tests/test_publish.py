"""The README's section comes from a committed result."""

from __future__ import annotations

from pathlib import Path

import pytest
from tamarack_lab.report import PublishError, publish
from tamarack_lab.results import Results, read

EXAMPLE = Path(__file__).parent / "data" / "example"


def peers() -> Results:
    results = read(EXAMPLE)
    first = results.experiments[0].model_copy(update={"name": "peers"})
    first.cells[1] = first.cells[1].model_copy(
        update={"status": "marked", "reason": "does not start"})
    return results.model_copy(update={"experiments": [first]})


def test_the_section_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- lab:begin -->\nold\n<!-- lab:end -->\nafter\n")
    folder = tmp_path / "lab" / "results" / "mine"
    folder.mkdir(parents=True)
    publish(peers(), folder, readme)
    text = readme.read_text()
    assert text.startswith("before\n<!-- lab:begin -->\n<picture>")
    assert text.endswith("<!-- lab:end -->\nafter\n")
    assert "old" not in text
    assert "(lab/results/mine/report.html)" in text
    row = next(line for line in text.splitlines() if line.startswith("| Apache event"))
    assert row.split(" | ")[2].strip() == "✗", "a marked cell has no figure"
    assert float(row.split(" | ")[1]) > 0
    assert (folder / "peers-dark.svg").exists()
    once = readme.read_text()
    publish(peers(), folder, readme)
    assert readme.read_text() == once


def test_a_readme_without_the_markers_is_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing here\n")
    with pytest.raises(PublishError, match="lab:begin"):
        publish(peers(), tmp_path, readme)
    assert readme.read_text() == "nothing here\n"

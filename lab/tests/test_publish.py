"""The figures of the README and of docs/measuring.md come from a committed result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tamarack_lab.report import PublishError, publish
from tamarack_lab.report.publish import figures, section
from tamarack_lab.results import Results, Target, read

MARKED = ("before\n<!-- lab-picture:begin -->\nold\n<!-- lab-picture:end -->\nbetween\n"
          "<!-- lab:begin -->\nold\n<!-- lab:end -->\nafter\n")
FIGURES = ("top\n<!-- lab-figures:begin -->\nold\n<!-- lab-figures:end -->\nbetween\n"
           "<!-- lab-targets:begin -->\nold\n<!-- lab-targets:end -->\nbottom\n")
EXAMPLE = Path(__file__).parent / "data" / "example"


@pytest.fixture
def measuring(tmp_path: Path) -> Path:
    page = tmp_path / "docs" / "measuring.md"
    page.parent.mkdir()
    page.write_text(FIGURES)
    return page


def peers() -> Results:
    results = read(EXAMPLE)
    first = results.experiments[0].model_copy(update={"name": "peers"})
    first.cells[1] = first.cells[1].model_copy(
        update={"status": "marked", "reason": "does not start"})
    for cell in first.cells:
        cell.load = "wrk, 64 connections, one request repeated"
    return results.model_copy(update={"experiments": [first]})


def test_the_section_is_replaced_and_nothing_else(tmp_path: Path, measuring: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(MARKED)
    folder = tmp_path / "lab" / "results" / "mine"
    folder.mkdir(parents=True)
    publish(peers(), folder, readme, measuring)
    text = readme.read_text()
    assert text.startswith("before\n<!-- lab-picture:begin -->\n<picture>")
    assert "</picture>\n<!-- lab-picture:end -->\nbetween\n<!-- lab:begin -->\n| " in text
    alt = re.search(r'alt="([^"]*)"', text)
    assert alt and re.match(r"CPU time per request, scheme http, log off: \w.* µs; ", alt[1])
    assert text.endswith("<!-- lab:end -->\nafter\n")
    assert "old" not in text
    assert "(lab/results/mine/report.html)" in text
    row = next(line for line in text.splitlines() if line.startswith("| Apache event"))
    assert row.split(" | ")[2].strip() == "✗", "a marked cell has no figure"
    assert float(row.split(" | ")[1]) > 0
    assert (folder / "peers-dark.svg").exists()
    once = readme.read_text()
    publish(peers(), folder, readme, measuring)
    assert readme.read_text() == once


@pytest.mark.parametrize("gone", ["<!-- lab:end -->", "<!-- lab-picture:begin -->"])
def test_a_readme_without_the_markers_is_left_alone(
        tmp_path: Path, measuring: Path, gone: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(MARKED.replace(gone, ""))
    with pytest.raises(PublishError, match="begin --> … <!-- lab"):
        publish(peers(), tmp_path, readme, measuring)
    assert readme.read_text() == MARKED.replace(gone, "")
    assert not list(tmp_path.glob("*.svg")), "nothing is written before the marks are found"


def test_the_section_says_how_it_is_to_be_read() -> None:
    text = section(peers(), "lab/results/mine")
    for words in (
            "Less is better in every column.",
            "server on CPU 0, load on CPU 1; wrk, 64 connections, one request repeated.",
            "medians of 3 fresh starts of 2 s.",
            "Noise floor of CPU time per request ±",
            "by the A/A run of Apache event, scheme http, log off."):
        assert words in text, words
    assert "| memory under scheme http, log off, MB |" in text
    row = next(line for line in text.splitlines() if line.startswith("| nginx"))
    assert row.split(" | ")[-1] == "31.5 |"


def test_more_is_better_where_it_is() -> None:
    results = peers()
    results.experiments[0].headline = "requests_per_s"
    text = section(results, "mine")
    assert "More is better in requests/s, less in the other columns." in text


def test_an_unfinished_run_is_not_published(tmp_path: Path, measuring: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(MARKED)
    unfinished = peers().model_copy(update={"finished": None})
    with pytest.raises(PublishError, match="unfinished.*goes on with it"):
        publish(unfinished, tmp_path, readme, measuring)
    assert sorted(tmp_path.iterdir()) == sorted([readme, measuring.parent])
    assert measuring.read_text() == FIGURES


def test_the_readme_quotes_the_one_table(tmp_path: Path, measuring: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(MARKED)
    folder = tmp_path / "lab" / "results" / "mine"
    folder.mkdir(parents=True)
    publish(peers(), folder, readme, measuring)
    table = measuring.read_text()
    assert table.startswith("top\n<!-- lab-figures:begin -->\n**") and table.endswith("bottom\n")
    assert "(../lab/results/mine/results.json)" in table
    rows = [line for line in readme.read_text().splitlines() if line.startswith("| ")]
    quoted = [field.strip() for row in rows[1:] for field in row.split("|")[2:-1]]
    assert len(quoted) > 8 and all(f" {figure} " in table for figure in quoted)


def test_targets_alone_leave_the_figures_as_they_are(tmp_path: Path, measuring: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(MARKED)
    results = peers()
    first = results.experiments[0]
    of, to = ({"server": cell.server, **cell.axes} for cell in first.cells[:2])
    first.cells[1] = first.cells[1].model_copy(update={"status": "ok", "reason": ""})
    judged = first.model_copy(update={"name": "own", "targets": [Target(of=of, to=to, most=9.0)]})
    publish(results.model_copy(update={"experiments": [judged]}), tmp_path / "mine", readme, measuring)
    text = measuring.read_text()
    assert "lab-figures:begin -->\nold\n" in text and readme.read_text() == MARKED
    between = text.split("<!-- lab-targets:begin -->\n")[1].split("<!-- lab-targets:end -->")[0]
    assert "| ≤ 9.00 | " in between and "fresh starts of 2 s" in between and "old" not in between


def test_a_result_without_either_is_refused(tmp_path: Path, measuring: Path) -> None:
    results = peers()
    other = results.experiments[0].model_copy(update={"name": "own", "targets": []})
    with pytest.raises(PublishError, match="neither peers nor a judged target"):
        publish(results.model_copy(update={"experiments": [other]}), tmp_path,
                tmp_path / "README.md", measuring)
    assert measuring.read_text() == FIGURES


def sites() -> Results:
    """Two scenarios of two servers and of the floor."""
    results = peers()
    first = results.experiments[0]
    labels = {"nginx": "nginx", "floor": "floor"}
    cells = [cell.model_copy(update={
        "axes": {"scenario": scenario}, "server": server, "label": labels[server],
        "key": f"server={server} scenario={scenario}", "status": "ok"})
        for cell in first.cells[:1] for scenario in ("deep", "small", "mixed", "more")
        for server in labels]
    small = first.model_copy(update={"cells": cells, "axes": ["scenario"], "floors": [],
                                     "quoted": ["mixed", "small"]})
    return results.model_copy(update={"experiments": [small]})


def test_the_readme_leads_with_what_the_file_names_first_and_leaves_bounds_out() -> None:
    head, *_ = section(sites(), "mine").splitlines()
    assert head.startswith("|  | mixed, µs | small, µs |") and "deep" not in head
    assert "| floor |" not in section(sites(), "mine")


def test_where_places_are_more_than_servers_they_are_rows() -> None:
    lines = figures(sites(), "mine").splitlines()
    assert lines[2] == "|  | nginx | floor |"
    assert [line.split(" | ")[0] for line in lines[4:6]] == ["| deep, µs", "| small, µs"]

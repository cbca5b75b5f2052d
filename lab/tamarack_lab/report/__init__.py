"""Views of a results.json: report.html, pictures, CSV, and the comparison of two runs."""

from __future__ import annotations

from pathlib import Path

from tamarack_lab.results import Results

from . import compare_page, svg, tables_csv
from .compare import Comparison, compare
from .compare_text import show
from .page import page
from .publish import PublishError, publish
from .targets import show_targets

__all__ = ["Comparison", "PublishError", "build", "build_comparison", "compare", "publish", "show",
           "show_targets"]


def build(results: Results, folder: Path) -> list[Path]:
    """Writes report.html, the SVGs and the CSV files into the folder; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.html"
    report.write_text(page(results), encoding="utf-8")
    return [report, *svg.pictures(results, folder), *tables_csv.write(results, folder)]


def build_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Writes compare.html and compare.csv into the folder; returns the files written."""
    return compare_page.write(comparison, folder)

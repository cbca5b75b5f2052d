"""The report of the invented run: what it says, what it holds, what it never does."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest
import vl_convert
from tamarack_lab import reading
from tamarack_lab.experiment import load
from tamarack_lab.report import build, charts, figures, metrics, svg, tables, theme
from tamarack_lab.report.charts import chart
from tamarack_lab.report.charts.curves import drawing as curves_of
from tamarack_lab.report.findings import findings
from tamarack_lab.report.page import lengths, page
from tamarack_lab.results import Experiment, Metric, Results, Sample, read

EXAMPLE = Path(__file__).parent / "data" / "example"


@pytest.fixture(scope="module")
def results() -> Results:
    return read(EXAMPLE)


@pytest.fixture(scope="module")
def html(results: Results) -> str:
    return page(results)


def experiment(results: Results, name: str) -> Experiment:
    return next(one for one in results.experiments if one.name == name)


def test_the_first_screen_says_what_was_run_and_why(html: str, results: Results) -> None:
    head = html[html.index("<header>"):html.index("</header>")]
    for words in ("p3-concurrency", results.environment.cpu, results.load.text, "Quick run",
                  "3 fresh starts", "left out", "Noise floor", "±"):
        assert words in head
    # The reason has an apostrophe, which is escaped.
    assert "fewer than 4 CPUs" in head


def test_the_servers_terms_of_tls_are_listed(results: Results) -> None:
    agreed = results.model_copy(deep=True, update={"experiments": []})
    agreed.environment.tls = {"nginx": "TLSv1.3, TLS_AES_256_GCM_SHA384"}
    assert "TLSv1.3, TLS_AES_256_GCM_SHA384</td>" in page(agreed)


def test_pictures_come_first_and_tables_wait_behind_their_titles(html: str) -> None:
    for section in re.findall(r'<section id="(?!environment).*?</section>', html, re.DOTALL):
        first = section.index("<figure>")
        assert "<table" not in section[:first]
        assert section[:first].count("<li>") <= 3 + section[:first].count("<svg")
        opened = section.split("<table")[:-1]
        for at in range(len(opened)):
            before = "<table".join(opened[:at + 1])
            assert before.count("<details") > before.count("</details>")


def test_one_file_asks_nobody(html: str) -> None:
    assert "default-src 'none'" in html.replace("&#x27;", "'")
    without_scripts = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", without_scripts)
    assert "@import" not in html and "url(" not in without_scripts


def test_what_a_file_says_can_not_become_markup(results: Results) -> None:
    evil = results.model_copy(deep=True)
    evil.environment.cpu = "<script>alert(1)</script>"
    evil.experiments = evil.experiments[:1]
    evil.experiments[0].cells[0].label = "</script><img src=x>"
    written = page(evil)
    assert "<script>alert" not in written
    assert "</script><img" not in written


def test_costs_are_set_beside_the_published_ones(results: Results) -> None:
    said = findings(experiment(results, "p1-keepalive"), quick=True)
    assert re.match(r"HTTPS costs 2\d\.\d % here \(Apache event\), 29\.2 % there", said[0])


def test_a_marked_cell_shows_its_reason_and_no_figure(html: str, results: Results) -> None:
    assert "2 errors in 3 starts: read 2" in html
    one = experiment(results, "p3-concurrency")
    cell = next(cell for cell in one.cells if cell.status == "marked")
    cell = cell.model_copy(update={"samples": one.cells[0].samples})
    assert metrics.values(cell, "requests_per_s") == []
    assert figures.interval_of(cell, "requests_per_s", True) is None


@pytest.mark.parametrize(("name", "kinds"), [
    ("p1-keepalive", {"bars", "spread"}),
    ("p3-concurrency", {"curves-cpu_us_per_request", "curves-requests_per_s", "twins", "spread"}),
    ("p4-cores", {"cores", "curves-cpu_us_per_request", "curves-requests_per_s", "twins",
                  "spread"}),
    ("p5-naive", {"bars", "scatter", "spread"}),
])
def test_every_experiment_has_its_drawings(results: Results, name: str, kinds: set[str]) -> None:
    drawn = charts.of(experiment(results, name), theme.looks(results), quick=True)
    assert {one.kind for one in drawn} == kinds
    for one in drawn:
        assert one.alternative and one.caption
        assert "band" in json.dumps(one.spec), "the noise floor is drawn in every plot"


def test_idle_connections_are_judged_by_their_memory(results: Results) -> None:
    one = experiment(results, "p1-keepalive").model_copy(deep=True)
    for cell in one.cells[:4]:
        for sample in cell.samples:
            sample.bytes_per_connection = 1056.0
    assert chart.metric_for(one, one.cells[:4], True) == "bytes_per_connection"
    assert chart.metric_for(one, one.cells[4:], True) == one.headline


def test_an_open_loop_is_drawn_by_percentile(results: Results) -> None:
    one = experiment(results, "p1-keepalive").model_copy(deep=True)
    for cell in one.cells:
        for sample in cell.samples:
            assert sample.latency
            sample.latency.corrected = True
    drawn = [found for found in charts.of(one, theme.looks(results), True)
             if found.kind == "percentiles"]
    assert len(drawn) == 4
    steps = {row["step"] for row in drawn[0].spec["data"]["values"]}
    assert steps == {"median", "p90", "p99", "p99.9", "longest"}


def test_servers_are_told_apart_without_colour(results: Results) -> None:
    looks = theme.looks(results)
    names = ["apache-prefork", "apache-worker", "apache-event", "nginx", "h2o", "lighttpd",
             "caddy", "haproxy", "tamarack-prefork", "tamarack-worker", "tamarack-event",
             "tamarack-loop", "naive", "webfs", "mini-httpd", "gunicorn", "granian",
             "uwsgi"]
    for many in (looks, theme.looks_of({name: name for name in names})):
        assert len({(one.shape, one.dash) for one in many.values()}) == len(many)
        assert len({one.hue for one in many.values()}) >= min(10, len(many) // 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_stand_out_from_their_surface(scheme: theme.Scheme) -> None:
    surface = luminance(theme.INK[scheme]["surface"])
    for colour in (*theme.HUES[scheme], theme.INK[scheme]["ink"], theme.INK[scheme]["muted"]):
        lighter, darker = sorted((luminance(colour), surface), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, colour


def luminance(colour: str) -> float:
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4
                        for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_build_writes_page_pictures_and_tables(results: Results, tmp_path: Path) -> None:
    few = results.model_copy(update={"experiments": results.experiments[:1]})
    files = {file.name for file in build(few, tmp_path)}
    assert files == {"report.html", "p1-keepalive-light.svg", "p1-keepalive-dark.svg",
                     "cells.csv", "samples.csv"}
    dark = (tmp_path / "p1-keepalive-dark.svg").read_text()
    assert dark.startswith("<svg") and "token:" not in dark and "Apache event" in dark
    with (tmp_path / "cells.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    mine = [row for row in rows if row["metric"] == "cpu_us_per_request"]
    assert len(mine) == 12
    assert all(float(row["low"]) <= float(row["median"]) <= float(row["high"]) for row in mine)
    with (tmp_path / "samples.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 36


def test_an_empty_run_still_has_a_report(results: Results) -> None:
    none = results.model_copy(update={"experiments": []})
    assert "No A/A run" in page(none)


@pytest.mark.parametrize(("value", "written"), [
    (0.1234, "0.123"), (0, "0"), (1.5, "1.50"), (12.34, "12.3"), (243138.93, "243,139")])
def test_numbers_have_three_digits_that_mean_something(value: float, written: str) -> None:
    assert metrics.number(value) == written


@pytest.mark.parametrize(("value", "written"), [
    (12.3, "12.3 µs"), (1500, "1.50 ms"), (2.5e6, "2.50 s")])
def test_durations_choose_their_unit(value: float, written: str) -> None:
    assert metrics.duration(value) == written


def test_small_shares_are_not_nought() -> None:
    assert metrics.percent(0.0001) == "<0.1 %"
    assert metrics.percent(0) == "0.0 %"
    assert metrics.signed_percent(0.9) == "−10.0 %"


def test_memory_stands_in_the_tables_in_megabytes(results: Results) -> None:
    one = experiment(results, "p1-keepalive").model_copy(deep=True)
    one.metrics = [*one.metrics, "pss_bytes"]
    for cell in one.cells:
        for sample in cell.samples:
            sample.pss_bytes = 20_400_000
    table = tables.cells(one, quick=True)
    assert "Memory, MB" in table and ">20.4<" in table
    for name in ("peers", "p3-concurrency"):
        assert "pss_bytes" in load(name).metrics


def test_a_leader_without_a_noise_floor_is_said_to_have_none(results: Results) -> None:
    one = experiment(results, "p1-keepalive").model_copy(deep=True)
    assert not any("no A/A run" in line for line in findings(one, True))
    one.floors = []
    assert sum("no A/A run tells the noise." in line for line in findings(one, True)) == 4


def test_every_metric_has_a_meaning_and_a_value() -> None:
    assert set(reading.TAKEN) == set(metrics.MEANINGS) == set(get_args(Metric))


def test_interpreters_are_counted_for_each_cpu() -> None:
    one = Sample(start=0, order=0, at=datetime.now(UTC), duration_s=1.0, requests=1,
                 requests_per_s=1.0, interpreters=6, server_cpus=4)
    assert reading.value(one, "interpreters") == 6
    assert reading.value(one, "interpreters_per_cpu") == 1.5
    for unknown in ({"interpreters": None}, {"server_cpus": None}):
        assert reading.value(one.model_copy(update=unknown), "interpreters_per_cpu") is None


@pytest.mark.parametrize("places", [(50, 80, 95), (1, 25, 150), (1, 2, 4)])
def test_places_on_the_running_axis_are_written_out(
        results: Results, places: tuple[int, ...]) -> None:
    rows = [{"label": "nginx", "x_load": place, "median": 5.0, "low": 4.0, "high": 6.0,
             "band_low": 4.0, "band_high": 6.0, "text": "5", "ends": ""} for place in places]
    drawn = curves_of(rows, ["nginx"], "load", "requests_per_s",
                      theme.looks_of({"nginx": "nginx"}), "")
    drawing = vl_convert.vegalite_to_svg(theme.painted({**drawn, "width": 400}, "light"))
    for place in places:
        assert f">{place}<" in drawing


def busy(one: Experiment, key: str, load: float, server: float) -> None:
    cell = next(cell for cell in one.cells if cell.key == key)
    for sample in cell.samples:
        sample.load_busy, sample.server_busy = load, server


def test_where_the_load_tool_was_the_limit_the_report_says_so(results: Results) -> None:
    one = experiment(results, "p1-keepalive").model_copy(deep=True)
    assert not any("load tool" in line for line in findings(one, True))
    busy(one, "server=nginx scheme=http log=off", 0.99, 0.7)
    busy(one, "server=tamarack-event scheme=http log=off", 0.99, 0.99)
    assert ("Here the load tool was the limit, its CPUs over 90 % busy and the server's not: "
            "scheme http, log off: nginx.") in findings(one, True)
    busy(one, "server=nginx scheme=https log=off", 0.99, 0.7)
    assert "1 with the load tool as the limit" in findings(one, True)[0]
    assert tables.ratios(one, True).count("the load tool was the limit") == 1
    busy(one, "server=nginx scheme=https log=off", 0.5, 0.7)
    table = tables.cells(one, True)
    assert "load busy" in table and table.count("the limit") == 1
    captions = {drawn.place: drawn.caption for drawn in charts.of(one, theme.looks(results), True)
                if drawn.kind == "bars"}
    assert "Here the load tool was the limit: nginx." in captions["scheme http, log off"]
    assert "load tool" not in captions["scheme https, log off"]


def test_a_caption_says_whose_noise_floor_it_is(results: Results) -> None:
    drawn = charts.of(experiment(results, "p1-keepalive"), theme.looks(results), True)
    captions = {one.place: one.caption for one in drawn if one.kind == "bars"}
    owner = "A/A run of Apache event, scheme http, log off"
    assert f", from the {owner}" in captions["scheme http, log off"]
    assert f", borrowed from the {owner}" in captions["scheme https, log off"]


def test_a_ratio_within_the_noise_is_said_to_be(results: Results) -> None:
    one = experiment(results, "p1-keepalive").model_copy(deep=True)
    assert "within the noise" not in " ".join(findings(one, True))
    one.floors[0].second = [2 * value for value in one.floors[0].second]
    said = findings(one, True)[0]
    assert re.search(r"here \(Apache event\) \(within the noise, ±1\d\d\.\d %\), 29\.2 %", said)
    assert "3 of them within the noise" in said
    assert "within the noise" in tables.ratios(one, True)


def test_an_unfinished_run_says_so_at_the_top(results: Results) -> None:
    assert "nfinished" not in page(results).split("</header>")[0].split("<body>")[1]
    cut = results.model_copy(deep=True)
    cut.finished = None
    gone = cut.experiments[0].cells.pop()
    cut.experiments[0].cells[0].samples.pop()
    head = page(cut).split("</header>")[0]
    planned = sum(one.planned for one in cut.experiments)
    assert gone and "<strong>Unfinished run.</strong>" in head
    assert f"1 of {planned} cells were not run, 1 have fewer than 3 starts" in head
    assert "up to 3 fresh starts per cell" in head
    assert "unfinished run" in json.dumps(svg.picture(cut, cut.experiments[0]))


def test_starts_of_several_lengths_are_told_apart(results: Results) -> None:
    assert lengths(results) == "2 s each"
    several = results.model_copy(deep=True)
    several.experiments = several.experiments[:3]
    for one, seconds in zip(several.experiments, (30.0, 10.0, 30.0), strict=True):
        one.seconds = seconds
    assert lengths(several) == "each 30 s in p1-keepalive, p4-cores; 10 s in p3-concurrency"

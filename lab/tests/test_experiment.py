"""Experiment files: those of the lab are sound, and what is wrong is said by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tamarack_lab import experiment, plan, servers, site
from tamarack_lab.experiment import ExperimentError
from tamarack_lab.load import TOOLS
from tests.fakes import FakeTool, FakeWrong
from tests.fakes import experiment as written

# What was published nowhere: the lab's own questions about Tamarack.
OWN = ("site", "rewriting", "loops", "busy", "proxy", "programs", "http2", "filters", "wsgi")

RATIO = """\
[[ratios]]
study = "P1"
label = "it gives"
form = "gain"
metric = "requests_per_s"
of = { concurrency = 1 }
to = { server = "fake" }
"""


@pytest.fixture(autouse=True)
def fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, "fetch", FakeTool())


def refusal(path: Path) -> str:
    """What is said of a file, without the file's own name."""
    with pytest.raises(ExperimentError) as caught:
        experiment.load(str(path))
    said = str(caught.value)
    assert said.startswith(f"{path}:") and "\n" not in said
    return said.removeprefix(f"{path}:")


@pytest.mark.parametrize("name", experiment.names())
def test_every_experiment_names_known_servers_tools_and_cells(name: str) -> None:
    spec = experiment.load(name)
    assert spec.name == name
    kinds = servers.kinds()
    for quick in (False, True):
        made = plan.make(spec, kinds, quick, cpus=8, side_cpus=4)
        assert made.cells and made.twins
        assert {cell.tool for cell in made.cells} <= set(TOOLS)
        assert len({cell.key for cell in made.cells}) == len(made.cells)
    # What was published belongs to a cell of the full run.
    cells = plan.make(spec, kinds, False, 8, 4).cells
    for figure in spec.published:
        assert any(plan._fits(cell, figure.cell) for cell in cells), figure.label
    if name != "p4-cores":
        # Of as many CPUs as a machine may not have.
        for ratio in spec.ratios:
            for side in (ratio.of, ratio.to):
                assert any(plan._fits(cell, side) for cell in cells), ratio.label


def test_a_full_quick_run_fits_into_its_time() -> None:
    seconds = {}
    for name in experiment.names():
        made = plan.make(experiment.load(name), servers.kinds(), True, cpus=2, side_cpus=1)
        seconds[name] = 3 * sum(cell.cost_s(2.0, 0.5) for cell in [*made.cells, *made.twins])
    own = sum(seconds.pop(name) for name in OWN)
    assert sum(seconds.values()) < 37 * 60 and own < 45 * 60


@pytest.mark.parametrize(("wrong", "line", "said"), [
    ('title = "Small', 2, "character"),
    ("tittle = 1", 9, "unknown, did you mean title?"),
    ("seconds = \"long\"", 6, "already"),
])
def test_a_typo_is_said_with_its_line(tmp_path: Path, wrong: str, line: int, said: str) -> None:
    path = written(tmp_path, ["fake"])
    text = path.read_text()
    text = text.replace('title = "Small"', wrong) if wrong.startswith("title") \
        else text.replace("\n\n[[cells]]", f"\n{wrong}\n[[cells]]")
    path.write_text(text)
    with pytest.raises(ExperimentError) as caught:
        experiment.load(str(path))
    assert f"{path}:" in str(caught.value)
    if wrong.startswith("ti"):
        assert f"{path}:{line}:" in str(caught.value), caught.value
        assert said in str(caught.value)


def test_a_wrong_field_of_the_second_block_is_found_there(tmp_path: Path) -> None:
    path = written(tmp_path, ["fake"])
    path.write_text(path.read_text() + '[[cells]]\nscenario = "two"\nservers = "fake"\n'
                    'tool = "fetch"\nconcurency = 3\n')
    with pytest.raises(ExperimentError) as caught:
        experiment.load(str(path))
    lines = path.read_text().splitlines()
    assert f":{lines.index('concurency = 3') + 1}:" in str(caught.value)
    assert "did you mean concurrency?" in str(caught.value)


@pytest.mark.parametrize(("right", "wrong", "line", "said"), [
    ("['fake']", "['fake', 'nginxx']", 12,
     "nginxx: the lab has no such server, did you mean nginx?"),
    ("['fake']", "'nginxx'", 12, "nginxx: the lab has no such server, did you mean nginx?"),
    ("['fake']", "[\n'nginx', # one\n'ngnx']", 14,
     "ngnx: the lab has no such server, did you mean nginx?"),
    ('"fetch"', '"fetsh"', 13, "fetsh: the lab has no such load tool, did you mean fetch?"),
    ('"fetch"', '"fetch"\nasks = "rnge"', 14,
     "rnge: the lab has no such traffic, did you mean range?"),
    ('"fetch"', '"fetch"\npage = "1kk"', 14, "1kk: the lab has no such page, did you mean 1k?"),
    ("[2]\n", "[2]\nservers = ['nginxx']\n", 17,
     "nginxx: the lab has no such server, did you mean nginx?"),
    ("[2]\n", "[2]\ntool = 'abb'\n", 17, "abb: the lab has no such load tool, did you mean ab?"),
    ('"fetch"', '"fetch"\nscheme = ["http", "htps"]', 14,
     "htps: no such value of scheme, did you mean https?"),
    ('"fetch"', '"fetch"\nlog = "of"', 14, "of: no such value of log, did you mean off?"),
    ('"fetch"', '"fetch"\nhtaccess = "al"', 14,
     "al: no such value of htaccess, did you mean all?"),
    ('"fetch"', '"fetch"\naffinity = "pined"', 14,
     "pined: no such value of affinity, did you mean pinned?"),
    ('"fetch"', '"fetch"\ncpus = [1, "eech"]', 14,
     "eech: no such value of cpus, did you mean each?"),
    ('"fetch"', '"fetch"\nprofile = "Q"', 14,
     "Q: no such value of profile: there are fit, p1, p3, p3-prespawned, p4"),
    ('["requests_per_s"]', '["requests_per"]', 5,
     "requests_per: no such value of metrics, did you mean requests_per_s?"),
    ('["concurrency"]', '["concurrency", "scenari"]', 4,
     "scenari: no such axis, did you mean scenario?"),
    # A field, and none that cells could be told apart by.
    ('["concurrency"]', '["concurrency", "threads"]', 4, "threads: no such axis: there are "),
    ('["concurrency"]\n', '["concurrency"]\nx = "concurency"\n', 5,
     "concurency: x has to be one of axes, did you mean concurrency?"),
    ('server = "fake"', 'server = "fke"', 8,
     "fke: no cell has such a server, did you mean fake?"),
    ('server = "fake"', 'sever = "fake"', 8, "sever: no such axis, did you mean server?"),
    ("concurrency = 2 }", "concurrency = 20 }", 8,
     "20: no cell has such a concurrency, did you mean 2?"),
    ('"gain"', '"gian"', 20, "gian: no such value of form, did you mean gain?"),
    ('to = { server = "fake"', 'to = { server = "fak"', 23,
     "fak: no cell has such a server, did you mean fake?"),
    ("of = { concurrency", "of = { concurency", 22,
     "concurency: no such axis, did you mean concurrency?"),
    ('label = "it gives"', 'lable = "it gives"', 17, "ratios.0: missing: label"),
    ('form = "gain"', 'form = "gain"\nfrom = "gain"', 21,
     "ratios.0.from: unknown, did you mean form?"),
    ('tool = "fetch"\n', "", 10, "cells.0: missing: tool"),
    ('tool = "fetch"', 'tool = ["fetch", "wrk"]', 13,
     "several values for tool, which is not in axes"),
    ("[2]\n", "[2]\ntool = ['ab', 'wrk']\n", 17,
     "several values for tool, which is not in axes"),
])
def test_a_name_that_is_none_is_said_with_its_line(
        tmp_path: Path, right: str, wrong: str, line: int, said: str) -> None:
    path = written(tmp_path, ["fake"])
    text = path.read_text() + RATIO
    assert text.count(right) >= 1
    head, _, rest = text.rpartition(right) if right == "[2]\n" else text.partition(right)
    path.write_text(text)
    experiment.load(str(path))
    path.write_text(head + wrong + rest)
    assert refusal(path).startswith(f"{line}: {said}")


def test_the_line_is_that_of_the_right_block(tmp_path: Path) -> None:
    path = written(tmp_path, ["fake"])
    path.write_text(path.read_text() + """\
[[ratios]]
study = "P1"
label = "published"
form = "gain"
metric = "requests_per_s"
of = { concurrency = 1 }
to = { concurrency = 2 }
published = { cpu = 1 }
[[cells]]
scenario = "two"
servers = "fake"
tool = "fetch"
[[published]]
study = "P1"
label = "one"
cell = { server = "fake" }
metric = "requests_per_s"
value = 1
machine = "cpu"
[[published]]
study = "P1"
label = "two"
cell = { server = "fake", concurrency = 7 }
metric = "requests_per_s"
value = 1
machine = "cpu"
""")
    lines = path.read_text().splitlines()
    wrong = next(number for number, line in enumerate(lines, 1) if "= 7 }" in line)
    assert refusal(path).startswith(f"{wrong}: 7: no cell has such a concurrency")
    path.write_text(path.read_text().replace('tool = "fetch"\n[[pub', '[[pub'))
    second = [number for number, line in enumerate(lines, 1) if line == "[[cells]]"][1]
    assert refusal(path) == f"{second}: cells.1: missing: tool"


def test_names_that_the_machine_decides_on_are_not_refused(tmp_path: Path) -> None:
    path = written(tmp_path, ["fake"])
    text = path.read_text().replace('"concurrency"]', '"concurrency", "cpus", "affinity"]')
    text = text.replace('tool = "fetch"', 'tool = "fetch"\ncpus = "each"\naffinity = "pinned"')
    path.write_text(text.replace("concurrency = 2 }", 'cpus = 64, affinity = "taskset" }'))
    assert experiment.load(str(path)).noise[0]["cpus"] == 64


def test_every_axis_tells_cells_apart(tmp_path: Path) -> None:
    path = written(tmp_path, ["fake"])
    path.write_text(path.read_text().replace('["concurrency"]', str(list(experiment.AXES))))
    cell = plan.make(experiment.load(str(path)), servers.kinds(), True, 2, 1).cells[0]
    assert list(cell.axes) == list(experiment.AXES)


def test_the_pages_that_may_be_asked_for_are_those_of_the_site(tmp_path: Path) -> None:
    made = site.make(tmp_path)
    assert set(made.pages) == set(site.PAGES) - site.LARGE


def test_a_file_that_is_no_experiment_is_said(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text("\n \n")
    assert refusal(path) == " is empty"
    path.write_text("name = 'small'\n")
    assert refusal(path) == "1: missing: title, about, axes, metrics, noise, cells"


def test_an_unknown_experiment_says_which_there_are() -> None:
    with pytest.raises(ExperimentError, match="no experiment p9: there are .*p1-keepalive"):
        experiment.load("p9")
    with pytest.raises(ExperimentError, match=r"no experiment perrs, did you mean peers\?"):
        experiment.load("perrs")


def test_quick_says_what_it_leaves_out(tmp_path: Path) -> None:
    spec = experiment.load(str(written(tmp_path, ["fake"])))
    made = plan.make(spec, servers.kinds(), True, 2, 1)
    assert [cell.key for cell in made.cells] == ["server=fake concurrency=2"]
    assert made.left_out == ["one: concurrency 1 (--quick)"]
    assert made.headline == "cpu_us_per_request"
    assert plan.make(spec, servers.kinds(), False, 8, 4).headline == "requests_per_s"


def test_a_cell_says_its_load_in_words() -> None:
    made = plan.make(experiment.load("peers"), servers.kinds(), False, 2, 1)
    loads = {cell.axes["scenario"]: cell.load for cell in made.cells}
    assert loads["small file"] == "wrk, 64 connections, one request repeated"
    assert loads["idle connections"] == "10,000 connections that ask for nothing"
    assert loads["handshakes"] == "4 clients, a full handshake each time"
    made = plan.make(experiment.load("p3-concurrency"), servers.kinds(), False, 2, 1)
    mixed = next(cell for cell in made.cells if cell.axes["scenario"] == "mixed sizes")
    assert mixed.load == ("hammer, 25 clients, a new connection for each request, "
                          "pages in random order")


def test_quick_says_what_it_puts_in_the_place_of_what(tmp_path: Path) -> None:
    made = plan.make(experiment.load("p1-keepalive"), servers.kinds(), True, 2, 1)
    assert "keep-alive: concurrency 100 instead of 1000 (--quick)" in made.left_out
    made = plan.make(experiment.load("p3-concurrency"), servers.kinds(), True, 2, 1)
    assert "1 KiB (wrk): concurrency 150 (--quick)" in made.left_out


def test_who_can_not_do_it_is_not_left_out_by_quick(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, ["fake", "fake-wrong"])
    text = path.read_text().replace("concurrency = [2]\n", 'concurrency = [2]\nservers = "fake"\n')
    path.write_text(text)
    made = plan.make(experiment.load(str(path)), servers.kinds(), True, 2, 1)
    assert "one: servers fake-wrong (--quick)" in made.left_out
    path.write_text(text.replace('tool = "fetch"', 'tool = "fetch"\npage = "cgi"'))
    made = plan.make(experiment.load(str(path)), servers.kinds(), True, 2, 1)
    assert not [line for line in made.left_out if "servers" in line]
    # Who waits for a module would have no figure either.
    monkeypatch.setattr(FakeWrong, "features", frozenset({"cgi"}))
    again = plan.make(experiment.load(str(path)), servers.kinds(), True, 2, 1)
    assert "one: servers fake-wrong (--quick)" in again.left_out
    monkeypatch.setattr(FakeWrong, "lacks", classmethod(lambda cls, feature: "absent: not yet"))
    again = plan.make(experiment.load(str(path)), servers.kinds(), True, 2, 1)
    assert not [line for line in again.left_out if "servers" in line]


def test_cpus_beyond_the_server_s_side_are_shared_and_said() -> None:
    for name, scenario in (("p2-affinity", "affinity"), ("p4-cores", "dynamic page")):
        spec = experiment.load(name)
        line = f"{scenario}: on 2 CPUs the load shares them"
        assert line in plan.make(spec, servers.kinds(), False, 2, 1).left_out
    wide = plan.make(experiment.load("p2-affinity"), servers.kinds(), False, 8, 4)
    assert not [line for line in wide.left_out if "shares" in line]


def test_p3_compares_its_architectures_and_p5_its_deviations() -> None:
    labels = " ".join(ratio.label for ratio in experiment.load("p3-concurrency").ratios)
    for words in ("worker against its prefork", "one process", "prespawned"):
        assert words in labels
    there = {(figure.cell["server"], figure.value) for figure in experiment.load(
        "p5-naive").published if figure.metric == "latency_stdev_us"}
    assert there == {("apache-prefork", 465000), ("naive", 160000)}
    assert "latency_stdev_us" in experiment.load("p5-naive").metrics


@pytest.mark.parametrize("quick", [True, False])
def test_a_build_without_a_module_has_no_row_of_it(quick: bool,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    from tamarack_lab.servers import tamarack

    monkeypatch.setattr(tamarack.Tamarack, "path", classmethod(lambda cls: "/tamarack"))
    modules = "core.c mod_ssl.c mod_log_config.c"
    for more, expected in (("", set()), (" mod_cgi.c mod_include.c mod_wsgi.c",
                                         {"cgi", "ssi", "app"})):
        monkeypatch.setattr(tamarack, "_modules", lambda path, all=modules + more: all)
        made = plan.make(experiment.load("p3-concurrency"), servers.kinds(), quick, 8, 4)
        needed = {need for cell in made.cells if cell.server == "tamarack-event"
                  for need in cell.needs}
        assert needed == expected


def test_a_log_that_nobody_reads_is_no_log() -> None:
    made = plan.make(experiment.load("peers"), servers.kinds(), False, 8, 4)
    assert ("haproxy", "log on") not in {(cell.server, cell.axes["scenario"])
                                         for cell in made.cells}
    assert not servers.kinds()["haproxy"].can("log")
    assert any(line.startswith("HAProxy, log on: ") for line in made.left_out)


def test_heads_of_which_no_two_are_alike_are_asked_of_every_peer() -> None:
    for quick in (True, False):
        made = plan.make(experiment.load("peers"), servers.kinds(), quick, 8, 4)
        unlike = {cell.server for cell in made.cells if cell.asks == "unlike"}
        alike = {cell.server for cell in made.cells if cell.axes["scenario"] == "small file"
                 and not cell.server.startswith("floor")}
        assert unlike == alike if not quick else unlike >= {"nginx", "tamarack-event"}
        assert all(TOOLS[cell.tool].any_traffic for cell in made.cells if cell.asks != "same")


def test_concurrency_goes_on_until_throughput_drops() -> None:
    made = plan.make(experiment.load("p3-concurrency"), servers.kinds(), False, 8, 4)
    assert max(cell.concurrency for cell in made.cells) == 600

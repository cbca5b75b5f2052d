"""What a load asks for: each kind's head, what has to come back, and how tools tell it."""

from __future__ import annotations

import collections
import gzip
import http.server
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tamarack_lab import compiled, measure, packages, site
from tamarack_lab.errors import LabError
from tamarack_lab.load import answer, heads, wrk
from tamarack_lab.load.hammer import Hammer
from tamarack_lab.load.side import Local
from tamarack_lab.load.tool import Order, Tool
from tamarack_lab.load.wrk import Wrk
from tamarack_lab.servers import Setup, kinds
from tamarack_lab.servers.floor import response_to
from tamarack_lab.site import Page
from tamarack_lab.traffic import BODY_BYTE, GET, SAME, TRAFFICS, Kind, Validators, looked_at

from .quiet import serving

PAGES = tuple(Page(f"/d{number}/page.html", bytes([97 + number]) * 1024) for number in range(20))
KNOWN = Validators('"1-2"', "Sun, 13 Sep 2020 12:26:40 GMT")


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as a server of files does; `broken` forgets conditional requests."""

    protocol_version = "HTTP/1.1"
    broken = False
    heads: list[str]

    def do_GET(self) -> None:
        self.heads.append(f"{self.requestline}\n{self.headers}")
        path = self.path.partition("?")[0]
        page = next((page for page in PAGES if page.path == path), None)
        if page is None or page.body is None:
            return self.give(404, b"nothing")
        asked = (self.headers["If-None-Match"], self.headers["If-Modified-Since"])
        if KNOWN.etag in asked or KNOWN.modified in asked:
            return self.give(200, page.body) if self.broken else self.give(304, b"")
        if self.headers["Range"]:
            return self.give(206, page.body[:100])
        return self.give(200, page.body)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answers how much it was sent; `broken` has lost some of it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heads.append(f"{self.requestline}\n{self.headers}")
        self.give(200, b"%d\n" % (body.count(BODY_BYTE) - self.broken))

    def give(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *given: object) -> None:
        pass


@pytest.fixture
def served() -> Iterator[tuple[int, type[Handler]]]:
    class Fresh(Handler):
        heads: list[str] = []

    with serving(Fresh) as port:
        yield port, Fresh


def order(port: int, name: str) -> Order:
    return Order("http", "127.0.0.1", port, PAGES, 4, 1.0, traffic=TRAFFICS[name],
                 validators=KNOWN)


@pytest.mark.parametrize("name", [name for name in TRAFFICS if name not in ("same", "upload")])
def test_no_two_heads_are_alike(name: str) -> None:
    traffic = TRAFFICS[name]
    for kind in traffic.kinds:
        one, other = (traffic.head(kind, PAGES[0], "localhost", KNOWN, number)
                      for number in (1, 2))
        assert one != other and one.startswith(f"{kind.method} /d0/page.html".encode())
        assert b"{" not in one and one.endswith(b"\r\n\r\n")


def test_the_mix_is_what_its_words_say() -> None:
    shares: collections.Counter[int] = collections.Counter()
    for kind in TRAFFICS["mixed"].kinds:
        shares[kind.status] += kind.weight
    assert shares == {200: 82, 304: 12, 404: 6}
    assert "12 with a query, 12 that get a 304, 6 a 404" in TRAFFICS["mixed"].words
    assert SAME.is_plain and not TRAFFICS["unlike"].is_plain


def test_a_response_that_was_not_meant_is_a_fault() -> None:
    page = PAGES[0]
    body = page.body or b""
    assert GET.fault(page, 200, "", body) == ""
    assert GET.fault(page, 404, "", body) == "with 404 instead of 200"
    assert GET.fault(page, 200, "", body[::-1] + b"x") == "with wrong bytes"
    ranged, pressed = TRAFFICS["range"].kinds[0], TRAFFICS["gzip"].kinds[0]
    assert ranged.fault(page, 206, "", body[:100]) == ""
    assert ranged.fault(page, 206, "", body) == "with wrong bytes"
    assert pressed.fault(page, 200, "gzip", gzip.compress(body)) == ""
    assert pressed.fault(page, 200, "", body).startswith("with the coding identity instead")


@pytest.mark.skipif(not packages.which("wrk"), reason="no wrk")
@pytest.mark.parametrize(("name", "statuses"), [
    ("mixed", {200, 304, 404}), ("match", {304}), ("modified", {304}), ("gone", {404}),
    ("unknown", {404}), ("range", {206}), ("version", {200}), ("turn", {200})])
def test_wrk_gets_what_was_meant(served: tuple[int, type[Handler]], name: str,
                                 statuses: set[int]) -> None:
    port, handler = served
    wanted = order(port, name)
    wanted = replace(wanted, answer_bytes=answer.lengths(wanted))
    handler.heads.clear()
    count = Wrk().run(replace(wanted, counting=True), Local(()))
    assert set(count.statuses) <= statuses and sum(count.statuses.values()) == count.requests
    assert count.requests > 0 and (count.errors, count.wrong_bytes) == (0, 0), count.complaint
    assert len(set(handler.heads)) == len(handler.heads), "every head is another"
    fast = Wrk().run(wanted, Local(()))
    assert (fast.errors, fast.wrong_bytes, fast.statuses) == (0, 0, {}), fast.complaint


@pytest.mark.skipif(not packages.which("wrk"), reason="no wrk")
def test_wrk_sees_a_status_that_was_not_meant(served: tuple[int, type[Handler]]) -> None:
    port, handler = served
    wanted = order(port, "match")
    wanted = replace(wanted, answer_bytes=answer.lengths(wanted))
    handler.broken = True
    count = Wrk().run(replace(wanted, counting=True), Local(()))
    assert count.errors >= count.requests > 0
    assert "unexpected status 200: " in count.complaint
    # Where wrk does not count them one by one, their bytes show it.
    assert Wrk().run(wanted, Local(())).wrong_bytes == 1
    missing = Wrk().run(replace(order(port, "gone"), traffic=replace(
        TRAFFICS["gone"], kinds=(Kind("found", 404),))), Local(()))
    assert missing.errors > 0 and "missing status over 399" in missing.complaint


@pytest.mark.skipif(not packages.which("cc"), reason="no C compiler")
@pytest.mark.parametrize(("name", "status"), [
    ("head", 200), ("match", 304), ("gone", 404), ("turn", 200), ("range", 206)])
def test_hammer_gets_what_was_meant(served: tuple[int, type[Handler]], name: str,
                                    status: int) -> None:
    port, handler = served
    count = Hammer().run(replace(order(port, name), seconds=0.4, threads=2), Local(()))
    assert set(count.statuses) == {status}, count.complaint
    assert count.requests > 0 and (count.errors, count.wrong_bytes) == (0, 0)
    assert len(set(handler.heads)) == len(handler.heads)
    handler.broken = True
    if name == "match":
        assert Hammer().run(replace(order(port, name), seconds=0.2), Local(())).errors > 0


SENT = 300_000


@pytest.mark.skipif(not packages.which("wrk"), reason="no wrk")
@pytest.mark.parametrize("name", ["upload", "unlike"])
def test_wrk_sends_bodies(served: tuple[int, type[Handler]], name: str) -> None:
    port, handler = served
    page = Page("/upload", b"%d\n" % SENT)
    # A head that never changes, and one that does.
    traffic = replace(TRAFFICS[name], kinds=(Kind("sent", method="POST", sends=SENT),))
    wanted = replace(order(port, name), pages=(page,), traffic=traffic)
    wanted = replace(wanted, answer_bytes=answer.lengths(wanted))
    count = Wrk().run(replace(wanted, counting=True), Local(()))
    assert set(count.statuses) == {200} and count.requests > 0
    assert (count.errors, count.wrong_bytes) == (0, 0), count.complaint
    assert all(f"Content-Length: {SENT}\n" in head for head in handler.heads)
    assert (len(set(handler.heads[1:])) > 1) == (name == "unlike")
    with pytest.raises(LabError, match="hammer sends no bodies"):
        Hammer().run(wanted, Local(()))


def test_a_body_that_was_not_read_to_its_end_is_a_fault(
        served: tuple[int, type[Handler]], tmp_path: Path) -> None:
    port, handler = served
    page = Page("/upload", b"%d\n" % SENT)
    made = site.Site(tmp_path, tmp_path, tmp_path, tmp_path, tmp_path, tmp_path, {"sent": (page,)})
    server = kinds()["granian"](Setup(site=made, folder=tmp_path, port=port, cpus=(0,)))
    traffic = replace(TRAFFICS["upload"], kinds=(Kind("sent", method="POST", sends=SENT),))
    server.check((page,), traffic)
    handler.broken = True
    with pytest.raises(LabError, match="Granian answers POST /upload with wrong bytes"):
        server.check((page,), traffic)


def test_bytes_of_each_kind_are_summed_by_how_often_it_was_asked() -> None:
    mixed = replace(order(80, "mixed"), clients=1, answer_bytes=(
        (1300, 1300), (1300, 1300), (200, 200), (200, 200), (400, 400), (400, 400)))
    said = {"requests": 100, "duration_us": 10**6, "bytes": 82 * 1300 + 12 * 200 + 6 * 400,
            "connect": 0, "read": 0, "write": 0, "status": 6, "timeout": 0, "counted": 0,
            "statuses": {}, "asked": [70, 12, 6, 6, 4, 2]}
    good = wrk.count(said, mixed)
    assert (good.errors, good.wrong_bytes) == (0, 0), good.complaint
    # The 304 came with bodies; a 404 too many.
    assert wrk.count({**said, "bytes": 94 * 1300 + 6 * 400}, mixed).wrong_bytes == 1
    assert wrk.count({**said, "status": 9}, mixed).complaint == "unexpected status over 399: 3"


def test_the_file_of_heads_does_not_name_the_port() -> None:
    text = heads.written(order(8123, "mixed"))
    assert "8123" not in text and text.count("\nkind\t") == 6 and text.count("\npage\t") == 20
    assert "If-None-Match: \"1-2\"\\r\\n" in text and text.startswith("order\trandom\n")
    # A body is compared where the traffic means nothing else.
    assert text.endswith("\t-1\t0\n")
    assert heads.written(order(1, "turn")).startswith("order\tturn\n")
    assert f"\t1024\t{PAGES[0].hash}\n" in heads.written(order(1, "plain"))


def test_processes_of_one_load_write_one_file_of_heads(monkeypatch: pytest.MonkeyPatch,
                                                       tmp_path: Path) -> None:
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    wanted = order(80, "mixed")
    for _ in range(50):
        with ThreadPoolExecutor(8) as pool:
            files = set(pool.map(lambda _: heads.file(wanted), range(8)))
        (only,) = files
        assert only.read_text() == heads.written(wanted)
        only.unlink()
    assert not list(tmp_path.iterdir())


def test_of_many_pages_some_are_looked_at() -> None:
    assert looked_at(PAGES[:3]) == PAGES[:3]
    some = looked_at(PAGES)
    assert len(some) == 9 and some[0] == PAGES[0] and some[-1] == PAGES[-1]


@pytest.fixture(scope="module")
def made() -> Iterator[site.Site]:
    # pytest's own folders are closed to the accounts that servers run as.
    with tempfile.TemporaryDirectory(prefix="tamarack-lab-test-") as folder:
        yield site.make(Path(folder))


@pytest.fixture
def folder(made: site.Site) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=made.root) as inside:
        Path(inside).chmod(0o755)
        yield Path(inside) / "server"


def test_the_site_is_folders_of_folders_of_files(made: site.Site) -> None:
    pages = made.pages["site"]
    folders = {page.path.rpartition("/")[0] for page in pages}
    assert len(pages) == len({page.body for page in pages}) == 2000 and len(folders) == 50
    assert all(folder.count("/") == 3 and page.length == 1024
               for folder, page in zip(sorted(folders), pages, strict=False))
    assert len({len(page.path) for page in pages}) == 1, "responses are of one length"
    assert {page.path for page in made.pages["folders"]} == folders


@pytest.mark.parametrize(("name", "asks", "page"), [
    ("floor", "mixed", "site"), ("floor", "modified", "site"), ("floor-threads", "range", "site"),
    ("floor-processes", "gzip", "text"), ("floor", "head", "site")])
def test_the_floor_answers(made: site.Site, folder: Path, name: str, asks: str,
                           page: str) -> None:
    if not packages.which("cc"):
        pytest.skip("no C compiler")
    kind = kinds()[name]
    server = kind(Setup(site=made, folder=folder, port=measure.free_port(),
                        cpus=(0,), clients=2, asks=asks, page=page))
    try:
        server.start()
        server.check(made.pages[page], TRAFFICS[asks], KNOWN)
        if asks == "head":
            # Its one response names a body that it has not.
            return
        server.setup = replace(server.setup, asks="gone")
        with pytest.raises(LabError, match="answers /"):
            server.check(made.pages[page], TRAFFICS["gone"], KNOWN)
    finally:
        server.stop()


@pytest.mark.skipif(not packages.which("wrk"), reason="no wrk")
def test_the_floor_takes_a_mix(made: site.Site, folder: Path) -> None:
    kind, pages = kinds()["floor"], made.pages["site"]
    server = kind(Setup(site=made, folder=folder, port=measure.free_port(), cpus=(0,), clients=4,
                        asks="mixed", page="site"))
    traffic = server.meant(TRAFFICS["mixed"])
    assert {kind.status for kind in traffic.kinds} == {200}
    try:
        server.start()
        known = server.validators(pages[0])
        server.check(pages, traffic, known)
        wanted = Order("http", "127.0.0.1", server.setup.port, pages, 4, 1.0, traffic=traffic,
                       validators=known)
        wanted = replace(wanted, answer_bytes=answer.lengths(wanted))
        count = Wrk().run(replace(wanted, counting=True), Local(()))
        assert set(count.statuses) == {200} and not count.errors and not count.wrong_bytes
    finally:
        server.stop()


def test_responses_of_the_floor_are_whole() -> None:
    page = PAGES[0]
    assert response_to(GET, page).endswith(page.body or b"?")
    for name in ("head", "modified"):
        assert response_to(TRAFFICS[name].kinds[0], page).endswith(b"\r\n\r\n")
    assert b" 206 " in response_to(TRAFFICS["range"].kinds[0], page)


@pytest.mark.parametrize("name", ["apache-event", "nginx", "h2o", "tamarack-event"])
@pytest.mark.parametrize(("asks", "page"), [
    ("mixed", "site"), ("range", "site"), ("head", "site"), ("slash", "folders"),
    ("plain", "indexes"), ("gzip", "text"), ("login", "private"), ("version", "deep")])
def test_real_servers_answer_as_meant(made: site.Site, folder: Path, name: str, asks: str,
                                      page: str) -> None:
    kind = kinds()[name]
    if kind.absent() or (asks == "login" and not kind.can("login")):
        pytest.skip(f"{name}: {kind.absent() or 'cannot do it'}")
    feature = {"text": "gzip", "private": "login"}.get(page, "static")
    server = kind(Setup(site=made, folder=folder, port=measure.free_port(),
                        cpus=(0,), clients=4, asks=asks, page=page, feature=feature))
    traffic, pages = TRAFFICS[asks], made.pages[page]
    try:
        server.start()
        known = server.validators(pages[0]) if traffic.validates else Validators()
        server.check(pages, traffic, known)
        if traffic.validates:
            with pytest.raises(LabError, match="instead of 304"):
                server.check(pages, traffic, Validators('"another"', "Sat, 01 Jan 2000 00:00:00 GMT"))
    finally:
        server.stop()


def test_the_warm_up_counts_and_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace
    from typing import Any

    class Wrong(Tool):
        def run(self, given: Order, side: Any) -> Any:
            assert given.counting
            return SimpleNamespace(errors=3, wrong_bytes=0, statuses={200: 3},
                                   complaint="unexpected status 200: 3")

    cell: Any = SimpleNamespace(block=SimpleNamespace(warm_up_rate=None), tool="wrk",
                                label="a server")
    stage: Any = SimpleNamespace(warm_up_s=0.1)
    with pytest.raises(LabError, match=r"other responses than intended \(unexpected status 200"):
        measure._warm_up(cell, Wrong(), order(80, "match"), Local(()), stage)


def test_pages_in_turn_are_all_requested_thrice_before_they_are_measured() -> None:
    from types import SimpleNamespace
    from typing import Any

    given: list[float] = []

    class Slow(Tool):
        def run(self, given_order: Order, side: Any) -> Any:
            given.append(given_order.seconds)
            return SimpleNamespace(requests=int(10 * given_order.seconds), errors=0, wrong_bytes=0,
                                   statuses={}, complaint="")

    pages = tuple(Page(f"/{number}", b"x") for number in range(20))
    cell: Any = SimpleNamespace(block=SimpleNamespace(warm_up_rate=None), tool="wrk",
                                label="a server")
    stage: Any = SimpleNamespace(warm_up_s=2.0)
    measure._warm_up(cell, Slow(), replace(order(80, "turn"), pages=pages), Local(()), stage)
    assert given == [2.0, 6.0]
    measure._warm_up(cell, Slow(), replace(order(80, "plain"), pages=pages), Local(()), stage)
    assert given == [2.0, 6.0, 2.0]

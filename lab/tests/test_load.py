"""What load tools print, read back; the lab's own tool against a server of this test."""

from __future__ import annotations

import http.server
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tamarack_lab import packages, site
from tamarack_lab.errors import LabError
from tamarack_lab.histogram import Histogram, upper_bound
from tamarack_lab.load import ab, answer, h2load, handshakes, idle, jmeter, oha, wrk
from tamarack_lab.load.ab import Ab
from tamarack_lab.load.hammer import Hammer, Open, Users
from tamarack_lab.load.handshakes import Handshakes
from tamarack_lab.load.idle import Idle
from tamarack_lab.load.side import Local, Several, Side
from tamarack_lab.load.tool import Count, Order, Tool, together
from tamarack_lab.load.wrk import Wrk
from tamarack_lab.site import Page, fnv1a
from tamarack_lab.traffic import TRAFFICS

from .quiet import serving

PAGE = Page("/1k.html", b"x" * 1024)


def order(**more: object) -> Order:
    given: dict[str, object] = {"scheme": "http", "host": "127.0.0.1", "port": 80,
                                "pages": (PAGE,), "clients": 2, "seconds": 0.2}
    return Order(**{**given, **more})  # type: ignore[arg-type]


def at_best(run: Callable[[], Count], is_good: Callable[[Count], bool]) -> Count:
    """The first good one of five: one of them may be a second in which the machine stands still."""
    for _ in range(4):
        count = run()
        if is_good(count):
            return count
    return run()


def wrk_said() -> dict[str, Any]:
    return {"requests": 1000, "duration_us": 2_000_000, "bytes": 1_300_000, "connect": 0,
            "read": 2, "write": 0, "status": 0, "timeout": 1, "counted": 1000, "mean_us": 150.0,
            "stdev_us": 10.0, "max_us": 900, "over_100ms": 0, "over_1s": 0, "over_10s": 0,
            "histogram": [[100, 990], [912, 10]], "asked": [], "statuses": {}}


def test_wrk() -> None:
    count = wrk.count(wrk_said(), order(answer_bytes=((1300, 1300),)))
    assert (count.requests, count.duration_s, count.errors) == (1000, 2.0, 3)
    assert count.complaint == "read 2, timeout 1" and count.wrong_bytes == 0
    latency = count.latency()
    assert latency is not None and latency.count == 1000
    assert latency.percentiles_us["50"] == 100 and latency.max_us == 900
    assert latency.percentiles_us["99.9"] == 900
    assert latency.mean_us == pytest.approx(150.0)


def test_wrk_shows_no_latencies_that_are_not_those_of_its_requests() -> None:
    count = wrk.count({**wrk_said(), "counted": 1011}, order())
    assert count.requests == 1000 and count.latency() is None
    assert wrk.count({**wrk_said(), "counted": 1009}, order()).latency() is not None


@pytest.mark.parametrize(("received", "wrong"), [
    # Two answers are still under way, and a head may be some bytes shorter.
    (1_300_000, 0), (1_302_600, 0), (1_293_000, 0),
    # All bodies are there and all heads are not; or there is too much of it.
    (1_024_000, 1), (1_290_000, 1), (1_350_000, 1)])
def test_wrong_bytes_show_in_the_sum(received: int, wrong: int) -> None:
    said = {**wrk_said(), "bytes": received}
    assert wrk.count(said, order(answer_bytes=((1300, 1300),))).wrong_bytes == wrong


AB = """\
Complete requests:      1000
Document Length:        1024 bytes
Failed requests:        6
   (Connect: 0, Receive: 1, Length: 5, Exceptions: 0)
Non-2xx responses:      2
Total transferred:      1300000 bytes
Time taken for tests:   0.500 seconds
Time per request:       12.500 [ms] (mean)
Connection Times (ms)
Total:          1   12   3.4     11      99
"""


def test_ab() -> None:
    table = "Percentage served,Time in ms\n0,1.0\n50,11.5\n90,14.25\n99,40.0\n"
    count = ab.count(AB, table, order())
    # Two of the five bodies of another length came with another status.
    assert count.wrong_bytes == 3
    assert (count.requests, count.errors, count.complaint) == (997, 3, "receive 1, status 2")
    latency = count.latency()
    assert latency is not None and latency.percentiles_us == {
        "50": 11500.0, "90": 14250.0, "99": 40000.0}
    assert latency.max_us == 99000 and latency.mean_us == 12500


def test_ab_has_its_length_from_the_first_answer_which_may_be_wrong() -> None:
    other = AB.replace("1024 bytes", "900 bytes")
    assert ab.count(other, "", order()).wrong_bytes == 1000
    # Of a page that changes nothing is known.
    varied = AB.replace("1024 bytes", "Variable").replace("Length: 5", "Length: 0")
    assert ab.count(varied, "", order(pages=(Page("/time", None),))).wrong_bytes == 0
    assert ab.count(AB.replace("Length: 5", "Length: 0"), "", order()).wrong_bytes == 0


@pytest.mark.skipif(not packages.which("ab"), reason="no ab")
def test_ab_counts_bodies_of_another_length(served: tuple[int, type[Handler]]) -> None:
    port, handler = served
    wanted = order(port=port, keep_alive=False, requests=40)
    count = Ab().run(wanted, Local(()))
    assert (count.requests, count.errors, count.wrong_bytes) == (40, 0, 0), count.complaint
    handler.count, handler.short_at = 0, 7
    assert Ab().run(wanted, Local(())).wrong_bytes == 1
    handler.short_at = 0
    count = Ab().run(replace(wanted, pages=(Page("/time", None),)), Local(()))
    assert (count.requests, count.errors, count.wrong_bytes) == (40, 0, 0)


def test_h2load() -> None:
    text = ("finished in 2.00s, 10.00 req/s, 1.2KB/s\n"
            "requests: 4 total, 4 started, 4 done, 3 succeeded, 1 failed, 0 errored, 0 timeout\n"
            "status codes: 3 2xx, 0 3xx, 1 4xx, 0 5xx\ntraffic: 4.0KB (4096) total, 1B (1) "
            "headers (space savings 0.00%), 3.0KB (3072) data\n")
    log = "1 200 120\n2 200 99900\n3 404 9\n4 200 100001\n"
    count = h2load.count(text, log, order())
    assert (count.requests, count.duration_s, count.errors) == (3, 2.0, 2)
    assert count.histogram is not None and count.histogram.total == 3
    # One bucket holds the second and the fourth.
    assert count.over == {100: 1, 1000: 0, 10_000: 0} and count.wrong_bytes == 0
    assert h2load.count(text.replace("3072", "3000"), log, order()).wrong_bytes == 1


def test_oha() -> None:
    said = {"summary": {"total": 2.0, "totalData": 204800, "average": 0.001, "slowest": 0.01},
            "latencyPercentiles": {"p50": 0.001, "p90": 0.002, "p99": 0.003, "p99.9": 0.004},
            "statusCodeDistribution": {"200": 200},
            "errorDistribution": {"aborted due to deadline": 3}}
    count = oha.count(said, order(rate=100.0))
    assert (count.requests, count.errors, count.wrong_bytes, count.corrected) == (200, 0, 0, True)
    latency = count.latency()
    assert latency is not None and latency.percentiles_us["99.9"] == pytest.approx(4000)


def test_jmeter() -> None:
    table = ("timeStamp,elapsed,label,responseCode,success,bytes\n"
             "1000,5,page,200,true,1090\n1003,120,page,200,true,1090\n"
             "1004,7,page,503,false,90\n1009,2,page,200,true,90\n")
    count = jmeter.count(table, order(requests_each=2))
    assert (count.requests, count.errors, count.wrong_bytes) == (3, 1, 1)
    assert count.timeline_ms == [(0.0, 5.0), (3.0, 120.0), (9.0, 2.0)]
    latency = count.latency()
    assert latency is not None and latency.over_100ms == pytest.approx(1 / 3)
    assert "50" in jmeter.PLAN.format(each=20, users=50, host="h", port=1, scheme="http",
                                      path="/", timeout_ms=1, keep="true")


def test_hosts_are_merged_by_histogram() -> None:
    parts = []
    for value, number in ((100, 90), (10_000, 10)):
        kept = Histogram()
        kept.record(value, number)
        parts.append(Count(number, 2.0, histogram=kept, bytes=5, stdev_us=0.0,
                           over={100: number // 2}))
    whole = together(parts)
    assert (whole.requests, whole.duration_s, whole.bytes) == (100, 2.0, 10)
    assert whole.over == {100: 50} and whole.stdev_us == pytest.approx(2970)
    latency = whole.latency()
    assert latency is not None and latency.percentiles_us["90"] == 100
    assert latency.percentiles_us["99"] == pytest.approx(10_000, rel=0.02)


def test_the_load_is_shared_among_hosts() -> None:
    class Recorder(Tool):
        name = "recorder"

        def run_one(self, order: Order, side: Side) -> Count:
            return Count(order.clients, 1.0)

    whole = order(clients=7, rate=90.0, requests=10)
    shares = [whole.share(number, 3) for number in range(3)]
    assert [share.clients for share in shares] == [3, 2, 2]
    assert [share.requests for share in shares] == [4, 3, 3]
    assert [share.rate for share in shares] == [30.0, 30.0, 30.0]
    assert len({share.seed for share in shares}) == 3
    sides: list[Side] = [Local(()), Local(()), Local(())]
    assert Recorder().run(whole, Several(sides)).requests == 7


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Set by tests: chunked bodies, a body of other bytes, a pause at one request.
    chunked = wrong = False
    stall_at, stall_s, count = 0, 0.0, 0
    # At one request a body of half the length.
    short_at = 0
    # Request heads, where a test wants them.
    heads: list[str] | None = None

    def do_GET(self) -> None:
        kind = type(self)
        if kind.heads is not None:
            kind.heads.append(f"{self.requestline}\n{self.headers}")
        kind.count += 1
        if kind.count == kind.stall_at:
            time.sleep(kind.stall_s)
        body = b"y" * 1024 if kind.wrong else PAGE.body or b""
        body = body[:512] if kind.count == kind.short_at else body
        self.send_response(200)
        if self.headers["Connection"] == "close":
            self.send_header("Connection", "close")
        if kind.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3e8\r\n" + body[:1000] + b"\r\n18\r\n" + body[1000:] +
                             b"\r\n0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *given: object) -> None:
        pass


@pytest.fixture
def served() -> Iterator[tuple[int, type[Handler]]]:
    class Fresh(Handler):
        pass

    with serving(Fresh) as port:
        yield port, Fresh


needs_wrk = pytest.mark.skipif(not packages.which("wrk"), reason="no wrk")


@needs_wrk
@pytest.mark.parametrize(("clients", "threads"), [(4, 1), (7, 3)])
def test_wrk_tells_of_no_answers_that_it_invented(
        served: tuple[int, type[Handler]], clients: int, threads: int) -> None:
    port, handler = served
    # For the others this one is a pause; wrk would add an answer for each interval of it.
    wanted = order(port=port, clients=clients, threads=threads, seconds=1)

    def run() -> Count:
        handler.stall_at, handler.stall_s = handler.count + 8, 0.4
        return Wrk().run(replace(wanted, answer_bytes=answer.lengths(wanted)), Local(()))

    count = at_best(run, lambda one: one.over.get(1000) == 0)
    assert count.errors == 0 and count.wrong_bytes == 0, count.complaint
    kept = count.histogram
    assert kept is not None and kept.total == count.requests
    # Little's law: no more requests are under way than there are connections.
    assert kept.mean_us() / 1e6 * count.requests / count.duration_s <= clients * 1.05
    assert count.over[100] >= 1 and count.over[1000] == 0
    assert kept.maximum_us >= 400_000
    # The script's buckets are those of histogram.py.
    assert all(upper_bound(bound) == bound for bound, _ in kept.pairs())


@needs_wrk
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("pages", [(PAGE,), (PAGE, Page("/other", PAGE.body))])
def test_wrk_sends_no_two_heads_alike(served: tuple[int, type[Handler]], keep: bool,
                                      pages: tuple[Page, ...]) -> None:
    port, handler = served

    def run() -> Count:
        handler.heads = []
        return Wrk().run(order(port=port, pages=pages, threads=2, keep_alive=keep, seconds=1,
                               traffic=TRAFFICS["unlike"]), Local(()))

    count = at_best(run, lambda one: one.requests > 50)
    assert count.requests > 10 and count.errors == 0, count.complaint
    assert len(set(handler.heads)) == len(handler.heads) >= count.requests
    for head in handler.heads:
        assert f"\nHost: 127.0.0.1:{port}\n" in head and "\nX-Request-ID: " in head
        assert ("\nConnection: close\n" in head) != keep
    assert {head.split()[1] for head in handler.heads} == {page.path for page in pages}


@needs_wrk
def test_wrk_repeats_one_head(served: tuple[int, type[Handler]]) -> None:
    port, handler = served
    handler.heads = []
    Wrk().run(order(port=port, seconds=1), Local(()))
    assert len(set(handler.heads)) == 1


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_a_whole_answer_is_measured(served: tuple[int, type[Handler]], chunked: bool,
                                    keep: bool) -> None:
    port, handler = served
    handler.chunked = chunked
    wanted = order(port=port, pages=(PAGE, PAGE), keep_alive=keep)
    ((least, most),) = answer.lengths(wanted)
    assert 1100 < least <= most < 1250
    assert answer.lengths(replace(wanted, pages=(PAGE, Page("/time", None)))) == ()


needs_compiler = pytest.mark.skipif(not packages.which("cc"), reason="no C compiler")


@needs_compiler
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
def test_users_ask_so_many_times_each(served: tuple[int, type[Handler]], keep: bool,
                                      chunked: bool) -> None:
    port, handler = served
    handler.chunked = chunked
    count = Users().run(order(port=port, clients=3, requests_each=5, keep_alive=keep,
                              timeline=True), Local(()))
    assert (count.requests, count.errors, count.wrong_bytes) == (15, 0, 0), count.complaint
    assert handler.count == 15 and len(count.timeline_ms or []) == 15
    assert count.bytes and count.bytes > 15 * 1024


@needs_compiler
def test_wrong_bytes_and_refused_connections_count(served: tuple[int, type[Handler]]) -> None:
    port, handler = served
    handler.wrong = True
    count = Users().run(order(port=port, requests_each=2), Local(()))
    assert count.wrong_bytes == count.requests == 4
    closed = Users().run(order(port=1, requests_each=2), Local(()))
    assert (closed.requests, closed.errors) == (0, 4)
    assert closed.latency() is None


@needs_compiler
def test_several_pages_and_several_processes(served: tuple[int, type[Handler]]) -> None:
    port, _ = served
    pages = (PAGE, Page("/other", PAGE.body))
    wanted = order(port=port, pages=pages, clients=4, threads=2, seconds=0.3)
    count = at_best(lambda: Hammer().run(wanted, Local(())), lambda one: one.requests > 4)
    assert count.requests > 4 and count.errors == 0 and count.wrong_bytes == 0
    assert count.histogram is not None and count.histogram.total == count.requests
    # The C tool's buckets are those of histogram.py.
    assert all(upper_bound(bound) == bound for bound, _ in count.histogram.pairs())


@needs_compiler
def test_an_open_loop_counts_what_a_stall_makes_wait(served: tuple[int, type[Handler]]) -> None:
    port, handler = served
    handler.stall_at, handler.stall_s = 10, 0.4
    count = Open().run(order(port=port, clients=1, rate=100.0, seconds=0.6), Local(()))
    assert count.requests + count.errors == 60 and count.corrected
    assert count.histogram is not None
    # The stall kept about forty requests waiting, one after the other less: a closed loop
    # would have seen a single slow answer.
    slow = sum(number for bound, number in count.histogram.pairs() if bound > 100_000)
    assert slow > 15


@needs_compiler
def test_answers_of_an_open_loop_that_came_late_count_over_the_time_they_took(
        served: tuple[int, type[Handler]]) -> None:
    port, handler = served

    def run() -> Count:
        handler.stall_at, handler.stall_s = handler.count + 30, 4.0
        return Open().run(order(port=port, clients=1, rate=100.0, seconds=0.6), Local(()))

    count = at_best(run, lambda one: not one.errors and one.duration_s < 20)
    # The stall is longer than the time; all that were due are answered after it.
    assert (count.requests, count.errors) == (60, 0), count.complaint
    assert 4.0 < count.duration_s < 20


SAID = "227 connections in 0.37s; 613.51 connections/user sec, bytes read 258326\n" \
       "227 connections in 2 real seconds, {} bytes read per connection\n"


def test_handshakes_are_divided_by_the_time_they_took() -> None:
    count = handshakes.count([SAID.format(1138)] * 2, 1.9, order())
    assert (count.requests, count.duration_s, count.wrong_bytes) == (454, 1.9, 0)
    assert handshakes.count([SAID.format(1138), SAID.format(900)], 1.9, order()).wrong_bytes == 1
    with pytest.raises(LabError, match="no figures"):
        handshakes.count([SAID.format(1138), "connect: refused"], 1.9, order())


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[int, type[Handler]]]:
    """The same server behind TLS."""
    class Fresh(Handler):
        pass

    made = site.make(tmp_path)
    terms = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    terms.load_cert_chain(made.certificate, made.key)
    with serving(Fresh, terms) as port:
        yield port, Fresh


def test_handshakes(secured: tuple[int, type[Handler]]) -> None:
    port, handler = secured
    # s_time speaks HTTP/1.0 and reads until the end.
    handler.protocol_version = "HTTP/1.0"
    took = 0.0

    def run() -> Count:
        nonlocal took
        began = time.monotonic()
        made = Handshakes().run(order(port=port, scheme="https", seconds=1), Local(()))
        took = time.monotonic() - began
        return made

    count = at_best(run, lambda one: took * 0.9 < one.duration_s)
    assert count.requests > 0 and count.wrong_bytes == 0
    assert count.requests <= handler.count
    # It runs one to two seconds: which, is no figure of the server's.
    assert took * 0.9 < count.duration_s <= took
    other = order(port=port, scheme="https", seconds=1, pages=(Page("/100k", b"z" * 102_400),))
    assert Handshakes().run(other, Local(())).wrong_bytes == 2


@pytest.mark.parametrize("tls", [False, True])
def test_idle_connections_are_open_while_memory_is_read(
        served: tuple[int, type[Handler]], secured: tuple[int, type[Handler]], tls: bool,
        monkeypatch: pytest.MonkeyPatch) -> None:
    port = (secured if tls else served)[0]
    monkeypatch.setattr(idle, "WARM_UP", 5)
    seen: list[int] = []

    def memory() -> tuple[int, int]:
        seen.append(established(port))
        return 1_000_000 + 2000 * seen[-1], 2_000_000 + 2000 * seen[-1]

    growth = Idle().grow(order(port=port, scheme="https" if tls else "http", connections=20),
                         Local(()), memory)
    assert (min(seen), max(seen)) == (5, 25)
    assert growth.each_bytes == pytest.approx(2000)
    assert (growth.pss_bytes, growth.rss_bytes) == (1_050_000, 2_050_000)
    assert (growth.count.requests, growth.count.errors) == (25, 0)


def established(port: int) -> int:
    """Open connections to a port, by the kernel's table."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(1 for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01")


def test_idle_connections_that_the_server_closes_are_errors(
        served: tuple[int, type[Handler]], monkeypatch: pytest.MonkeyPatch) -> None:
    port, handler = served
    monkeypatch.setattr(idle, "WARM_UP", 2)
    handler.timeout = 1.0

    def memory() -> tuple[int, int]:
        deadline = time.monotonic() + 60
        while established(port) and time.monotonic() < deadline:
            time.sleep(0.01)
        return 1, 1

    growth = Idle().grow(order(port=port, connections=2), Local(()), memory)
    assert growth.count.errors == 4
    assert growth.count.complaint == "4 of 4 connections were closed"


def test_of_a_long_body_the_length_is_compared() -> None:
    long = Page("/response", bytes(site.HASHED_BYTES + 1))
    assert (long.length, long.hash) == (site.HASHED_BYTES + 1, 0)
    assert Page("/100k.bin", bytes(1024)).hash != 0


def test_fnv() -> None:
    assert fnv1a(b"") == 14695981039346656037
    assert fnv1a(b"a") == 0xAF63DC4C8601EC8C

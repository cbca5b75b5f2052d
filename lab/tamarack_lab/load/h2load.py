"""h2load: in HTTP/1.1 a second tool with keep-alive, and the load of HTTP/2."""

from __future__ import annotations

import itertools
import re

from .. import compiled
from ..errors import LabError
from ..histogram import Histogram
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool, complaint, counted_over

FINISHED = re.compile(r"^finished in ([\d.]+)(ms|s|us),", re.MULTILINE)
REQUESTS = re.compile(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout")
# All bytes, and those of bodies.
TRAFFIC = re.compile(r"^traffic: .*?\((\d+)\) total.*?\((\d+)\) data", re.MULTILINE)
STATUS = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", re.MULTILINE)
UNIT = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
# Different URLs of a run in which no two requests are alike: more than it sends in a second.
URLS = 100_000


class H2load(Tool):
    """Keep-alive, several pages in turn."""

    name = "h2load"
    program = "h2load"
    packages = ("nghttp2-client",)

    def version(self, side: Side) -> str:
        """Of its library."""
        return side.first_line([self.program, "--version"])

    def run_one(self, order: Order, side: Side) -> Count:
        """One run by time; its log has every request."""
        log = side.scratch("h2load.log")
        threads = min(order.threads, order.clients)
        output = side.run(
            ["h2load", *self.arguments(order, side), f"-t{threads}", f"-c{order.clients}",
             f"-D{max(1, round(order.seconds))}", f"--log-file={log}",
             f"--connection-active-timeout={REQUEST_TIMEOUT_S}"],
            order.seconds + REQUEST_TIMEOUT_S)
        return count(output, side.take(log), order)

    def arguments(self, order: Order, _side: Side) -> list[str]:
        """The protocol, and what is requested."""
        return ["--h1", order.url(order.pages[0])]


class Streams(H2load):
    """HTTP/2: several requests at a time on each connection, one kind of them, pages in turn."""

    name = "streams"
    many_pages = True
    any_traffic = True

    def arguments(self, order: Order, side: Side) -> list[str]:
        """Streams, fields, and a file of URLs. Fields are the same in all requests: h2load can't
        change them."""
        kind = order.traffic.kinds[0]
        if len(order.traffic.kinds) > 1 or (kind.method, kind.status) != ("GET", 200):
            raise LabError("h2load sends one kind of request, a GET with a 200")
        head = order.traffic.head(kind, order.pages[0], f"{order.host}:{order.port}",
                                  order.validators, order.seed).decode()
        fields = [line for line in head.split("\r\n")[1:]
                  if line and not line.lower().startswith("host:")]
        return [f"-m{order.streams}", *(f"-H{field}" for field in fields),
                f"-i{side.put(compiled.written('urls', urls(order)))}"]


def urls(order: Order) -> str:
    """A URL by line; numbers of the template make them different."""
    kind, host = order.traffic.kinds[0], f"{order.host}:{order.port}"
    total = URLS if "{n}" in kind.target else len(order.pages)
    pages = itertools.islice(itertools.cycle(order.pages), total)
    targets = (kind.target.replace("{path}", page.path).replace("{n}", str(number))
               for number, page in enumerate(pages))
    return "".join(f"{order.scheme}://{host}{target}\n" for target in targets)


def count(output: str, log: str, order: Order) -> Count:
    """What h2load printed, and its log: start µs, status, duration µs by line."""
    took, requests = FINISHED.search(output), REQUESTS.search(output)
    if not took or not requests:
        raise LabError("h2load printed no figures")
    status = STATUS.search(output)
    counted = {"failed": int(requests[2]), "timeout": int(requests[4]),
               "status": sum(int(status[i]) for i in (2, 3, 4)) if status else 0}
    kept, took_us = Histogram(), []
    for line in log.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == "200":
            took_us.append(int(words[2]))
            kept.record(took_us[-1])
    traffic = TRAFFIC.search(output)
    received = int(traffic[1]) if traffic else None
    good, length = int(requests[1]), order.pages[0].length
    # Bodies of all responses, and of those cut off at the end.
    most = (good + order.clients * order.streams) * length
    wrong = int(length >= 0 and traffic is not None and not order.traffic.kinds[0].coding
                and not good * length <= int(traffic[2]) <= most)
    return Count(good, float(took[1]) * UNIT[took[2]], sum(counted.values()), wrong,
                 complaint(counted), received, kept if kept.total else None,
                 over=counted_over(took_us))

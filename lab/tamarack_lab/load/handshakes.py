"""Full TLS handshakes by openssl s_time: each connection is new and sends one request."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

from ..errors import LabError
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool

COUNT = re.compile(r"^(\d+) connections in \d+ real seconds, (\d+) bytes read", re.MULTILINE)
CLIENTS_MAX = 16


class Handshakes(Tool):
    """A number of clients, each a separate process."""

    name = "handshakes"
    program = "openssl"
    packages = ("openssl",)

    def version(self, side: Side) -> str:
        """OpenSSL's."""
        return side.first_line([self.program, "version"])

    def run_one(self, order: Order, side: Side) -> Count:
        """One run, whole seconds."""
        seconds = max(1, round(order.seconds))
        command = ["openssl", "s_time", "-new", "-connect", f"{order.host}:{order.port}", "-www",
                   order.pages[0].path, "-time", str(seconds)]
        clients = min(order.clients, CLIENTS_MAX)
        began = time.monotonic()
        with ThreadPoolExecutor(clients) as pool:
            outputs = list(pool.map(lambda _: side.run(command, seconds + REQUEST_TIMEOUT_S),
                                    range(clients)))
        return count(outputs, time.monotonic() - began, order)


def count(outputs: list[str], took_s: float, order: Order) -> Count:
    """The output of s_time, a text for each client, over the time that they actually took.

    It stops when the clock's second has changed once more than requested: up to a second late.
    """
    found = [COUNT.search(output) for output in outputs]
    if not all(found):
        raise LabError("openssl s_time printed no figures")
    counted = [(int(one[1]), int(one[2])) for one in found if one]
    # Bytes are the mean over a client's connections, including heads.
    wrong = sum(1 for number, received in counted if number and received < order.pages[0].length)
    return Count(sum(number for number, _ in counted), took_s, wrong_bytes=wrong)

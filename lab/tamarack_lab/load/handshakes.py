"""Full TLS handshakes, by openssl s_time: each connection is new and asks once."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from ..errors import LabError
from .side import Side
from .tool import REQUEST_TIMEOUT_S, Count, Order, Tool

COUNT = re.compile(r"^(\d+) connections in \d+ real seconds", re.MULTILINE)


class Handshakes(Tool):
    """So many clients, each a process of its own."""

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
        clients = min(order.clients, 16)
        with ThreadPoolExecutor(clients) as pool:
            outputs = list(pool.map(lambda _: side.run(command, seconds + REQUEST_TIMEOUT_S),
                                    range(clients)))
        counted = [COUNT.search(output) for output in outputs]
        if not all(counted):
            raise LabError("openssl s_time printed no figures")
        return Count(sum(int(found[1]) for found in counted if found), float(seconds))

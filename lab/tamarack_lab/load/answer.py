"""The length of a whole response, head and body, which the sum of a load tool's bytes is compared
with.

The request is the load tool's: its head determines the response's (Connection, Keep-Alive).
"""

from __future__ import annotations

import re
import socket
import ssl

from ..errors import LabError
from ..traffic import Kind, looked_at
from .tool import Order

TIMEOUT_S = 30.0
LENGTH = re.compile(rb"^content-length:\s*(\d+)", re.IGNORECASE | re.MULTILINE)
CHUNKED = re.compile(rb"^transfer-encoding:\s*chunked", re.IGNORECASE | re.MULTILINE)
# A number for the head that no load uses: it begins elsewhere.
NUMBER = 10**12


def lengths(order: Order) -> tuple[tuple[int, int], ...]:
    """The least and the most bytes of a response of each kind, over the checked pages; empty if
    a body's length varies. Raises LabError."""
    kinds, pages = order.traffic.kinds, looked_at(order.pages)
    if any(kind.status == 200 and page.length < 0 for kind in kinds for page in pages):
        return ()
    found = []
    for kind in kinds:
        heads = [order.traffic.head(kind, page, f"{order.host}:{order.port}", order.validators,
                                    NUMBER + at, order.keep_alive)
                 for at, page in enumerate(pages)]
        sizes = [_length(order, kind, head) for head in heads]
        found.append((min(sizes), max(sizes)))
    return tuple(found)


def _length(order: Order, kind: Kind, head: bytes) -> int:
    try:
        with socket.create_connection((order.host, order.port), TIMEOUT_S) as plain, \
                _secured(plain, order) as connection:
            connection.sendall(head + kind.body)
            return len(_whole(connection, kind))
    except OSError as error:
        path = head.split(b" ")[1].decode()
        raise LabError(f"no response to measure of {path}: {error}") from None


def _secured(plain: socket.socket, order: Order) -> socket.socket:
    if order.scheme != "https":
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain)


def _whole(connection: socket.socket, kind: Kind) -> bytes:
    received = b""
    while not _complete(received, kind):
        part = connection.recv(262144)
        if not part:
            break
        received += part
    return received


def _complete(received: bytes, kind: Kind) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return False
    if kind.method == "HEAD" or kind.status == 304:
        return True
    if CHUNKED.search(head):
        return body.endswith(b"\r\n0\r\n\r\n") or body == b"0\r\n\r\n"
    length = LENGTH.search(head)
    # Without a length the response ends with the connection.
    return length is not None and len(body) >= int(length[1])

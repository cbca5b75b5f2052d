"""How long a whole answer is, head and body: what the sum of a load tool's bytes is held against.

The request is the load tool's: its head decides about the answer's (Connection, Keep-Alive).
"""

from __future__ import annotations

import re
import socket
import ssl

from ..errors import LabError
from ..site import Page
from .tool import Order

TIMEOUT_S = 30.0
LENGTH = re.compile(rb"^content-length:\s*(\d+)", re.IGNORECASE | re.MULTILINE)
CHUNKED = re.compile(rb"^transfer-encoding:\s*chunked", re.IGNORECASE | re.MULTILINE)


def lengths(order: Order) -> tuple[int, ...]:
    """Bytes of the answer of each page; empty where a body's length changes. LabError."""
    if any(page.length < 0 for page in order.pages):
        return ()
    return tuple(_length(order, page) for page in order.pages)


def _length(order: Order, page: Page) -> int:
    close = "" if order.keep_alive else "Connection: close\r\n"
    head = f"GET {page.path} HTTP/1.1\r\nHost: {order.host}:{order.port}\r\n{close}\r\n"
    try:
        with socket.create_connection((order.host, order.port), TIMEOUT_S) as plain, \
                _secured(plain, order) as connection:
            connection.sendall(head.encode())
            return len(_whole(connection))
    except OSError as error:
        raise LabError(f"no answer to measure of {page.path}: {error}") from None


def _secured(plain: socket.socket, order: Order) -> socket.socket:
    if order.scheme != "https":
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain)


def _whole(connection: socket.socket) -> bytes:
    received = b""
    while not _complete(received):
        part = connection.recv(262144)
        if not part:
            break
        received += part
    return received


def _complete(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return False
    if CHUNKED.search(head):
        return body.endswith(b"\r\n0\r\n\r\n")
    length = LENGTH.search(head)
    # Without one the answer ends with the connection.
    return length is not None and len(body) >= int(length[1])

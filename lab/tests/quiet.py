"""Python's web server for tests, run by a thread of the test's own process."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Quiet(http.server.ThreadingHTTPServer):
    """Writes nothing about clients that leave early, and waits for none in its accept loop."""

    # A load tool opens all of its connections at once.
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler],
            terms: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serves meanwhile; its port."""
    server = Quiet(("127.0.0.1", 0), handler)
    # A connection that is gone before it is accepted must not hold up the end.
    server.socket.setblocking(False)
    if terms:
        # The handshake belongs to the connection's thread: a client could leave it unfinished.
        server.socket = terms.wrap_socket(server.socket, server_side=True,
                                          do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()

"""wrk's script: latencies are those of requests, and none are invented."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import threading
import time
import unittest

from bench import load


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers at once, but for one pause."""

    protocol_version = "HTTP/1.1"
    count = 0

    def do_GET(self) -> None:
        Handler.count += 1
        if Handler.count == 20:
            time.sleep(0.4)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *given: object) -> None:
        pass


@unittest.skipUnless(shutil.which("wrk"), "wrk is not installed")
class Latencies(unittest.TestCase):
    def test_there_are_as_many_as_requests(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for script in (load.WRK_SCRIPT, load.HEADS_SCRIPT):
                Handler.count = 0
                done = subprocess.run(
                    ["wrk", "-t1", "-c4", "-d1s", "-s", str(script),
                     f"http://127.0.0.1:{server.server_address[1]}/", "--", "4"],
                    capture_output=True, text=True, check=True)
                said = json.loads([line for line in done.stdout.splitlines()
                                   if line.startswith("{")][-1])
                self.assertEqual(said["counted"], said["requests"])
                self.assertLessEqual(said["p50_us"], said["p99_us"])
        finally:
            server.shutdown()
            server.server_close()

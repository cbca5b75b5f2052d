"""The files that are served, and the certificate."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

SMALL = "/1k.html"
LARGE = "/100k.bin"
DEEP = "/one/two/three/four/1k.html"
SMALL_BYTES = 1024
LARGE_BYTES = 100 * 1024
SEED = 1


@dataclass(frozen=True)
class Site:
    """Where everything lies."""

    root: Path
    documents: Path
    certificate: Path
    key: Path

    def body(self, url: str) -> bytes:
        """What a server has to answer for a path."""
        return (self.documents / url.lstrip("/")).read_bytes()


def make(root: Path) -> Site:
    """Writes documents and an ECDSA certificate under a folder that any user can read."""
    root.chmod(0o755)
    site = Site(root, root / "documents", root / "certificate.pem", root / "key.pem")
    deep = site.documents / DEEP.lstrip("/")
    deep.parent.mkdir(parents=True)
    random_bytes = random.Random(SEED).randbytes(LARGE_BYTES)
    text = "".join(chr(32 + byte % 95) for byte in random_bytes)
    (site.documents / SMALL.lstrip("/")).write_text(text[:SMALL_BYTES])
    deep.write_text(text[:SMALL_BYTES])
    (site.documents / LARGE.lstrip("/")).write_bytes(random_bytes)
    # Two .htaccess files that take part in the merge and change nothing in the answer.
    (site.documents / "one/two/.htaccess").write_text("DirectoryIndex index.html\n")
    (site.documents / "one/two/three/four/.htaccess").write_text("AddType text/x-none .none\n")
    _certificate(site)
    return site


def _certificate(site: Site) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "30", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE",
         "-keyout", str(site.key), "-out", str(site.certificate)],
        check=True, capture_output=True)
    # Servers that drop root before they read the key must still be able to.
    site.key.chmod(0o644)

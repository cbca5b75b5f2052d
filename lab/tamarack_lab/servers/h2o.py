"""h2o, a thread per CPU."""

from __future__ import annotations

import os

from .base import Server

TEMPLATE = """\
{user}num-threads: {threads}
max-connections: {connections}
http1-request-timeout: 600
{gzip}listen:
  host: {address}
  port: {port}{tls}
hosts:
  default:
    paths:
      "/":
        file.dir: {documents}
{hosts}{log}"""

# The level of Apache's mod_deflate: the same work for all.
GZIP = """\
compress:
  gzip: 6
"""
HOST = """\
  "{name}":
    paths: {{ "/": {{ file.dir: {documents}/{page}/{name} }} }}
"""


class H2o(Server):
    """Debian's h2o."""

    name = "h2o"
    label = "h2o"
    program = "h2o"
    packages = ("h2o",)
    features = frozenset({"tls", "log", "http2", "gzip", "hosts"})

    def configure(self) -> list[str]:
        """Writes h2o.conf."""
        setup, site, folder = self.setup, self.setup.site, self.setup.folder
        tls = f"\n  ssl:\n    certificate-file: {site.certificate}" \
              f"\n    key-file: {site.key}\n    minimum-version: TLSv1.2"
        text = TEMPLATE.format(
            user="user: www-data\n" if os.geteuid() == 0 else "", threads=len(setup.cpus),
            connections=setup.clients * 2 + 1024, address=setup.address, port=setup.port,
            documents=site.documents, tls=tls if setup.tls else "",
            log=f"access-log: {folder}/access.log\n" if setup.log else "", hosts=self._hosts(),
            gzip=GZIP if setup.feature == "gzip" else "")
        (folder / "h2o.conf").write_text(text)
        return [self.path() or self.program, "-m", "worker", "-c", str(folder / "h2o.conf")]

    def _hosts(self) -> str:
        """A host for each name, and for two more, one a wildcard, where the page says so."""
        setup = self.setup
        if setup.feature != "hosts":
            return ""
        found = []
        for page in setup.pages:
            values = {"documents": setup.site.documents, "page": setup.page}
            found.append(HOST.format(name=page.host, **values))
            if setup.page == "aliases":
                found += [HOST.format(name=page.host, **values).replace(
                    f'"{page.host}"', f'"{more}.{page.host}"', 1) for more in ("www", "*")]
        return "".join(found)

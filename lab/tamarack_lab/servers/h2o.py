"""h2o, a thread per CPU."""

from __future__ import annotations

import os

from .base import Server

TEMPLATE = """\
{user}num-threads: {threads}
max-connections: {connections}
http1-request-timeout: 600
hosts:
  default:
    listen:
      host: {address}
      port: {port}{tls}
    paths:
      "/":
        file.dir: {documents}
{log}"""


class H2o(Server):
    """Debian's h2o."""

    name = "h2o"
    label = "h2o"
    program = "h2o"
    packages = ("h2o",)
    features = frozenset({"tls", "log"})

    def configure(self) -> list[str]:
        """Writes h2o.conf."""
        setup, site, folder = self.setup, self.setup.site, self.setup.folder
        tls = f"\n      ssl:\n        certificate-file: {site.certificate}" \
              f"\n        key-file: {site.key}\n        minimum-version: TLSv1.2"
        text = TEMPLATE.format(
            user="user: www-data\n" if os.geteuid() == 0 else "", threads=len(setup.cpus),
            connections=setup.clients * 2 + 1024, address=setup.address, port=setup.port,
            documents=site.documents, tls=tls if setup.tls else "",
            log=f"access-log: {folder}/access.log\n" if setup.log else "")
        (folder / "h2o.conf").write_text(text)
        return [self.path() or self.program, "-m", "worker", "-c", str(folder / "h2o.conf")]

"""h2o with one thread."""

from __future__ import annotations

import os

from .server import Server, first_line

TEMPLATE = """\
{user}num-threads: 1
max-connections: 20000
http1-request-timeout: 600
hosts:
  default:
    listen:
      host: 127.0.0.1
      port: {port}{tls}
    paths:
      "/":
        file.dir: {documents}
{log}"""


class H2o(Server):
    """Debian's h2o."""

    name = "h2o"
    program = "h2o"

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line(["h2o", "-v"])

    def configure(self) -> list[str]:
        """Writes h2o.conf."""
        site, folder = self.site, self.folder
        tls = f"\n      ssl:\n        certificate-file: {site.certificate}" \
              f"\n        key-file: {site.key}\n        minimum-version: TLSv1.2"
        text = TEMPLATE.format(
            user="user: www-data\n" if os.geteuid() == 0 else "",
            folder=folder, port=self.port, documents=site.documents,
            tls=tls if self.setup.tls else "",
            log=f"access-log: {folder}/access.log\n" if self.setup.log else "")
        (folder / "h2o.conf").write_text(text)
        return ["h2o", "-m", "worker", "-c", str(folder / "h2o.conf")]

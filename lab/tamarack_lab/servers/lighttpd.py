"""lighttpd, a worker per CPU as its manual advises for several."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .base import Server, first_line, output_of

OPENSSL = Path("/usr/lib/lighttpd/mod_openssl.so")

TEMPLATE = """\
server.modules = ({modules})
server.document-root = "{documents}"
server.bind = "{address}"
server.port = {port}
server.errorlog = "{folder}/error.log"
server.max-connections = {connections}
server.max-fds = {descriptors}
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 600
server.listen-backlog = 4096
{user}{workers}mimetype.assign = (".html" => "text/html", ".shtml" => "text/html",
    "" => "application/octet-stream")
{log}{tls}{feature}"""


class Lighttpd(Server):
    """Debian's lighttpd."""

    name = "lighttpd"
    label = "lighttpd"
    program = "lighttpd"
    packages = ("lighttpd",)
    features = frozenset({"tls", "log", "cgi"})

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "-v"]).split(" - ")[0]

    @classmethod
    def flags(cls) -> str:
        """Its features: a + before each."""
        text = output_of([cls.path() or cls.program, "-V"])
        return ", ".join(re.findall(r"^\s+\+ (.*?)(?: support)?$", text, re.MULTILINE))

    @classmethod
    def missing_module(cls, feature: str) -> str:
        """TLS is a package of its own."""
        return "lighttpd-mod-openssl" if feature == "tls" and not OPENSSL.exists() else ""

    def configure(self) -> list[str]:
        """Writes lighttpd.conf."""
        setup, site, folder = self.setup, self.setup.site, self.setup.folder
        modules = [name for name, wanted in (("mod_accesslog", setup.log),
                                             ("mod_openssl", setup.tls),
                                             ("mod_cgi", setup.feature == "cgi")) if wanted]
        text = TEMPLATE.format(
            modules=", ".join(f'"{name}"' for name in modules), documents=site.documents,
            address=setup.address, port=setup.port, folder=folder,
            connections=setup.clients * 2 + 1024, descriptors=setup.clients * 4 + 4096,
            user='server.username = "www-data"\nserver.groupname = "www-data"\n'
            if os.geteuid() == 0 else "",
            workers=f"server.max-worker = {len(setup.cpus)}\n" if len(setup.cpus) > 1 else "",
            log=f'accesslog.filename = "{folder}/access.log"\n' if setup.log else "",
            tls=f'ssl.engine = "enable"\nssl.pemfile = "{site.certificate}"\n'
                f'ssl.privkey = "{site.key}"\n' if setup.tls else "",
            feature='cgi.assign = (".cgi" => "")\n' if setup.feature == "cgi" else "")
        (folder / "lighttpd.conf").write_text(text)
        return [self.path() or self.program, "-D", "-f", str(folder / "lighttpd.conf")]

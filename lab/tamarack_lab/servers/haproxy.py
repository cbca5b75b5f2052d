"""HAProxy in front of nginx: a proxy has no files. Both processes' CPU time counts."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar

from .base import Server, Setup, first_line, free_port, output_of
from .nginx import Nginx

TEMPLATE = """\
global
    # If descriptors are few it warns and takes what is available.
    no strict-limits
    maxconn {connections}
    nbthread {threads}
    {affinity}{user}
defaults
    mode http
    timeout client 600s
    timeout server 60s
    timeout connect 5s
    timeout http-keep-alive 600s
    option http-keep-alive
    http-reuse always
{forwarded}frontend front
    bind {address}:{port}{tls} backlog 4096
    default_backend behind
backend behind
    server behind {behind}
"""


class Haproxy(Server):
    """Debian's haproxy, with the lab's nginx behind it on the same CPUs."""

    name = "haproxy"
    label = "HAProxy before nginx"
    program = "haproxy"
    packages: ClassVar[tuple[str, ...]] = ("haproxy", "nginx")
    # It logs only to syslog: lines sent to a daemon that is not part of the server don't count as a
    # log.
    features = frozenset({"tls", "affinity"})

    @classmethod
    def absent(cls) -> str:
        """Both are needed."""
        return super().absent() or Nginx.absent()

    @classmethod
    def version(cls) -> str:
        """Of both."""
        return f"{first_line([cls.path() or cls.program, '-v'])}; {Nginx.version()}"

    @classmethod
    def flags(cls) -> str:
        """Its build line."""
        lines = output_of([cls.path() or cls.program, "-vv"]).splitlines()
        return next((line.split("=", 1)[1].strip() for line in lines if "CFLAGS" in line), "")

    def configure(self) -> list[str]:
        """Writes haproxy.cfg, and starts nginx first."""
        setup = self.setup
        behind = replace(setup, folder=setup.folder / "behind", port=free_port(), tls=False,
                         log=False, address="127.0.0.1")
        self._start_behind(behind)
        return self._before(f"127.0.0.1:{behind.port}")

    def _before(self, behind: str, forwarded: str = "") -> list[str]:
        """Writes haproxy.cfg for a server behind it; the command."""
        setup, folder, cpus = self.setup, self.setup.folder, self.setup.cpus
        text = TEMPLATE.format(
            connections=setup.clients * 2 + 1024, threads=len(cpus),
            affinity="\n    ".join(f"cpu-map 1/{number + 1} {cpu}"
                                   for number, cpu in enumerate(cpus)) + "\n    "
            if setup.affinity in ("own", "bound") else "",
            user="user www-data\n    group www-data" if os.geteuid() == 0 else "",
            address=setup.address, port=setup.port, behind=behind, forwarded=forwarded,
            tls=f" ssl crt {setup.site.root}/both.pem" if setup.tls else "")
        (folder / "haproxy.cfg").write_text(text)
        return [self.path() or self.program, "-db", "-f", str(folder / "haproxy.cfg")]

    def _start_behind(self, setup: Setup) -> None:
        setup.folder.mkdir()
        setup.folder.chmod(0o777)
        self.launch(Nginx(setup).configure())


class HaproxyAlone(Haproxy):
    """The proxy alone, before the lab's own server."""

    name = "haproxy-alone"
    label = "HAProxy"
    packages = ("haproxy",)
    features = frozenset({"proxied"})

    @classmethod
    def absent(cls) -> str:
        """Only HAProxy is needed."""
        return super(Haproxy, cls).absent()

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "-v"])

    def configure(self) -> list[str]:
        """Writes haproxy.cfg."""
        return self._before(self.setup.behind, "    option forwardfor\n")

"""Small servers of one process: stand-ins for thttpd, which Debian no longer has."""

from __future__ import annotations

import os

from .base import Server, first_line


class Webfs(Server):
    """webfs: one process, one select loop, static files: thttpd's design, and its stand-in here."""

    name = "webfs"
    label = "webfs (one process, select loop)"
    program = "webfsd"
    packages = ("webfs",)
    features = frozenset({"log"})

    @classmethod
    def version(cls) -> str:
        """It has no option for it: the package's."""
        version = first_line(["dpkg-query", "-W", "-f=${Version}", "webfs"])
        return f"webfs {version}"

    def configure(self) -> list[str]:
        """It needs no file."""
        setup = self.setup
        user = ["-u", "www-data", "-g", "www-data"] if os.geteuid() == 0 else []
        log = ["-l", str(setup.folder / "access.log")] if setup.log else []
        return [self.path() or self.program, "-F", "-4", "-i", setup.address, "-p",
                str(setup.port), "-r", str(setup.site.documents), "-c",
                str(min(1000, setup.clients + 64)), *log, *user]


class MiniHttpd(Server):
    """mini_httpd, by thttpd's author: one listener that forks for each connection."""

    name = "mini-httpd"
    label = "mini_httpd (forks)"
    program = "mini_httpd"
    packages = ("mini-httpd",)
    features = frozenset({"cgi"})

    @classmethod
    def version(cls) -> str:
        """What it prints."""
        return first_line([cls.path() or cls.program, "-V"])

    def configure(self) -> list[str]:
        """It needs no file."""
        setup = self.setup
        user = ["-u", "www-data"] if os.geteuid() == 0 else []
        return [self.path() or self.program, "-D", "-h", setup.address, "-p", str(setup.port),
                "-d", str(setup.site.documents), "-c", "cgi-bin/*",
                "-i", str(setup.folder / "pid"), *user]

"""nginx at its best for this work: open_file_cache, sendfile, tcp_nopush."""

from __future__ import annotations

import os

from .server import Server, first_line

TEMPLATE = """\
{user}daemon off;
worker_processes {workers};
worker_rlimit_nofile 65536;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{
    worker_connections 20000;
    multi_accept on;
}}
http {{
    types {{ text/html html; application/octet-stream bin; }}
    default_type text/plain;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    open_file_cache max=1000 inactive=300s;
    open_file_cache_valid 60s;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    access_log {log};
    server {{
        listen 127.0.0.1:{port}{tls}{spread} backlog=4096;
        root {documents};
        {certificate}
    }}
}}
"""


class Nginx(Server):
    """A worker for each CPU that it is given; with the loop shape, one."""

    name = "nginx"
    program = "nginx"

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line(["nginx", "-v"]).removeprefix("nginx version: ")

    def configure(self) -> list[str]:
        """Writes nginx.conf."""
        site, folder = self.site, self.folder
        certificate = (f"ssl_certificate {site.certificate}; ssl_certificate_key {site.key}; "
                       "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:SSL:10m;")
        workers = 1 if self.setup.mpm == "loop" else len(str(self.cpu).split(","))
        text = TEMPLATE.format(
            workers=workers, spread=" reuseport" if workers > 1 else "",
            user="user www-data;\n" if os.geteuid() == 0 else "",
            folder=folder, port=self.port, documents=site.documents,
            tls=" ssl" if self.setup.tls else "",
            certificate=certificate if self.setup.tls else "",
            log=f"{folder}/access.log combined buffer=64k" if self.setup.log else "off")
        (folder / "nginx.conf").write_text(text)
        return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]

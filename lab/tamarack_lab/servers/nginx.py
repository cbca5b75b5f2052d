"""nginx at its best for static files: open_file_cache, sendfile, tcp_nopush."""

from __future__ import annotations

import os

from .base import Server, first_line, output_of

TEMPLATE = """\
{user}daemon off;
worker_processes {workers};
{affinity}worker_rlimit_nofile 65536;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{
    worker_connections {connections};
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
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address}:{port}{tls} backlog=4096{reuse};
        root {documents};
        {certificate}
        location /ssi/ {{ ssi on; default_type text/html; }}
    }}
}}
"""


class Nginx(Server):
    """A worker per CPU."""

    name = "nginx"
    label = "nginx"
    program = "nginx"
    packages = ("nginx",)
    features = frozenset({"tls", "log", "ssi", "affinity"})

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "-v"]).removeprefix("nginx version: ")

    @classmethod
    def flags(cls) -> str:
        """Its configure line."""
        lines = output_of([cls.path() or cls.program, "-V"]).splitlines()
        return next((line.removeprefix("configure arguments: ") for line in lines
                     if line.startswith("configure arguments")), "")

    def configure(self) -> list[str]:
        """Writes nginx.conf."""
        setup, site, folder = self.setup, self.setup.site, self.setup.folder
        certificate = (f"ssl_certificate {site.certificate}; ssl_certificate_key {site.key}; "
                       "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:SSL:10m;")
        masks = " ".join(f"{1 << cpu:b}" for cpu in setup.cpus)
        text = TEMPLATE.format(
            user="user www-data;\n" if os.geteuid() == 0 else "",
            workers=len(setup.cpus), folder=folder, address=setup.address, port=setup.port,
            affinity=f"worker_cpu_affinity {masks};\n" if setup.affinity == "own" else "",
            connections=setup.clients * 2 + 1024, documents=site.documents,
            tls=" ssl" if setup.tls else "", certificate=certificate if setup.tls else "",
            reuse=" reuseport" if len(setup.cpus) > 1 else "",
            log=f"{folder}/access.log combined buffer=64k" if setup.log else "off")
        (folder / "nginx.conf").write_text(text)
        return [self.path() or self.program, "-p", str(folder), "-e", f"{folder}/error.log",
                "-c", str(folder / "nginx.conf")]

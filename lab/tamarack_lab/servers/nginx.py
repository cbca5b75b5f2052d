"""nginx at its best for static files: open_file_cache, sendfile, tcp_nopush."""

from __future__ import annotations

import os
import resource

from .base import Server, first_line, output_of

TEMPLATE = """\
{user}daemon off;
worker_processes {workers};
{affinity}worker_rlimit_nofile {descriptors};
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
    open_file_cache {kept};
    open_file_cache_valid 60s;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    access_log {log};
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{gzip}{upstream}    server {{
        listen {address}:{port}{tls} backlog=4096{reuse};
        root {documents};
        {certificate}
        location ~ ^/(ssi|includes/menu|includes/parts)/ {{ ssi on; default_type text/html; }}
        {login}
{forwarded}    }}
{hosts}}}
"""

# The level of Apache's mod_deflate: the same work for all.
GZIP = """\
    gzip on;
    gzip_comp_level 6;
"""

LOGIN = "location /private/ {{ auth_basic lab; auth_basic_user_file {passwords}; }}"

# Connections are kept, except to PHP-FPM: each would occupy one of its few children.
UPSTREAM = """\
    upstream behind {{ server {behind}; keepalive {clients}; }}
"""
PROXIED = """\
        location /proxied/ {
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }
"""
# The variables of its fastcgi.conf.
VARIABLES = "".join(f"            fastcgi_param {name} {value};\n" for name, value in (
    ("SCRIPT_FILENAME", "$document_root$fastcgi_script_name"), ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"), ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"), ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"), ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"), ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"), ("HTTPS", "$https if_not_empty"),
    ("GATEWAY_INTERFACE", "CGI/1.1"), ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"), ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"), ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"), ("REDIRECT_STATUS", "200")))
FORWARDED = {
    "proxied": PROXIED,
    "fastcgi": "        location /responder/ {\n            fastcgi_pass behind;\n"
               f"            fastcgi_keep_conn on;\n{VARIABLES}        }}\n",
    "php": "        location ~ \\.php$ {\n            fastcgi_pass unix:@behind@;\n"
           f"{VARIABLES}        }}\n",
}

# The names' table as its manual advises for many: larger, and with room for each name.
HOSTS = """\
    server_names_hash_max_size 65536;
    server_names_hash_bucket_size 128;
"""
HOST = """\
    server {{ listen {address}:{port}; server_name {name}{alias}; root {documents}/{page}/{name}; }}
"""
# The minimum number of files that it keeps open.
FILES_MIN = 1000


class Nginx(Server):
    """A worker per CPU."""

    name = "nginx"
    label = "nginx"
    program = "nginx"
    packages = ("nginx",)
    features = frozenset({"tls", "log", "http2", "ssi", "affinity", "gzip", "login", "hosts", "proxied",
                          "fastcgi", "php"})

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "-v"]).removeprefix("nginx version: ")

    def workers(self) -> int:
        """One per CPU."""
        return len(self.setup.cpus)

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
            workers=self.workers(), folder=folder, address=setup.address, port=setup.port,
            affinity=f"worker_cpu_affinity {masks};\n" if setup.affinity in ("own", "bound") else "",
            connections=setup.clients * 2 + 1024, documents=site.documents,
            tls=(" ssl" if setup.tls else "") + (" http2" if setup.http2 else ""), certificate=certificate if setup.tls else "",
            reuse=" reuseport" if self.workers() > 1 else "",
            log=f"{folder}/access.log combined buffer=64k" if setup.log else "off",
            kept=self._kept(), descriptors=65536 + 2 * len(setup.pages),
            gzip=GZIP if setup.feature == "gzip" else "", hosts=self._hosts(),
            upstream=self._upstream(),
            forwarded=FORWARDED.get(setup.feature, "").replace("@behind@", setup.behind),
            login=LOGIN.format(passwords=site.passwords) if setup.feature == "login" else "")
        (folder / "nginx.conf").write_text(text)
        return [self.path() or self.program, "-p", str(folder), "-e", f"{folder}/error.log",
                "-c", str(folder / "nginx.conf")]

    def _upstream(self) -> str:
        """The server behind, if there is one."""
        setup = self.setup
        if setup.feature not in ("proxied", "fastcgi"):
            return ""
        place = f"unix:{setup.behind}" if setup.behind.startswith("/") else setup.behind
        return UPSTREAM.format(behind=place, clients=setup.clients)

    def _kept(self) -> str:
        """Room for all files and folders; none if descriptors are too few for that: requested in
        turn, each would be closed before its next request."""
        wanted = max(FILES_MIN, 2 * len(self.setup.pages))
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 2 * self.setup.clients - 1024
        return "off" if wanted > most else f"max={wanted} inactive=300s"

    def _hosts(self) -> str:
        """A server for each virtual host, which has a wildcard name if the page requires one."""
        setup = self.setup
        if setup.feature != "hosts":
            return ""
        return HOSTS + "".join(HOST.format(
            address=setup.address, port=setup.port, documents=setup.site.documents,
            page=setup.page, name=page.host,
            alias=f" www.{page.host} *.{page.host}" if setup.page == "aliases" else "") for page in setup.pages)


class NginxOne(Nginx):
    """A single worker, regardless of the number of CPUs."""

    name = "nginx-one"
    label = "nginx, one worker"

    def workers(self) -> int:
        """One."""
        return 1

"""Apache with the modules that Debian enables, and the event MPM unless another is asked for."""

from __future__ import annotations

import os
from pathlib import Path

from .server import Server, first_line

MODULES = Path("/usr/lib/apache2/modules")
MIME_TYPES = Path(__file__).parent.parent.parent / "conf" / "mime.types"
DEBIAN_SET = (
    "access_compat", "alias", "auth_basic", "authn_core", "authn_file", "authz_core",
    "authz_host", "authz_user", "autoindex", "deflate", "dir", "env", "filter", "mime",
    "negotiation", "reqtimeout", "setenvif", "status")
TLS_SET = ("socache_shmcb", "ssl")

TEMPLATE = """\
ServerRoot {folder}
{modules}
{user}Listen 127.0.0.1:{port}
ServerName localhost
PidFile {folder}/httpd.pid
ErrorLog {folder}/error.log
LogLevel error
TypesConfig {types}
{numbers}MaxConnectionsPerChild 0
Timeout 60
KeepAlive On
KeepAliveTimeout 600
MaxKeepAliveRequests 0
{log}DocumentRoot {documents}
<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all denied
</Directory>
<Directory {documents}>
    Options Indexes FollowSymLinks
    AllowOverride {override}
    Require all granted
</Directory>
{tls}"""

# More processes or threads than the load has connections, all of them from the start: a process
# of event whose workers are all busy closes kept-alive connections, which the load tool counts as
# errors, and one that ends meanwhile takes its CPU time along.
THREADS = """\
StartServers 1
ServerLimit 1
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers 128
MinSpareThreads 1
MaxSpareThreads 128
"""
EVENT = THREADS + "AsyncRequestWorkerFactor 400\n"
PREFORK = """\
StartServers 80
ServerLimit 128
MaxRequestWorkers 128
MinSpareServers 1
MaxSpareServers 128
"""
NUMBERS = {"event": EVENT, "worker": THREADS, "prefork": PREFORK, "loop": EVENT}

LOG = """\
LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
BufferedLogs On
CustomLog {folder}/access.log combined
"""

TLS = """\
SSLSessionCache shmcb:{folder}/session-cache(1024000)
SSLEngine on
SSLProtocol all -SSLv3
SSLCertificateFile {certificate}
SSLCertificateKeyFile {key}
"""


class Apache(Server):
    """The reference; its configuration is Tamarack's too."""

    name = "apache"
    program = "apache2"

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line(["apache2", "-v"]).removeprefix("Server version: ")

    def configure(self) -> list[str]:
        """Writes httpd.conf."""
        setup, site, folder = self.setup, self.site, self.folder
        names = (f"mpm_{setup.mpm}", *DEBIAN_SET, *(TLS_SET if setup.tls else ()))
        tls = TLS.format(folder=folder, certificate=site.certificate, key=site.key)
        text = TEMPLATE.format(
            folder=folder, port=self.port, documents=site.documents, types=MIME_TYPES,
            modules="\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so"
                              for name in names),
            numbers=NUMBERS[setup.mpm],
            user="User www-data\nGroup www-data\n" if os.geteuid() == 0 else "",
            log=LOG.format(folder=folder) if setup.log else "",
            override="All" if setup.overrides else "None",
            tls=tls if setup.tls else "")
        (folder / "httpd.conf").write_text(text)
        return [self.path() or self.program, "-DFOREGROUND", "-f", str(folder / "httpd.conf")]

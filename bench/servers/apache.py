"""Apache with the event MPM and the modules that Debian enables."""

from __future__ import annotations

import os
from pathlib import Path

from .server import Server, first_line

MODULES = Path("/usr/lib/apache2/modules")
MIME_TYPES = Path(__file__).parent.parent.parent / "conf" / "mime.types"
DEBIAN_SET = (
    "mpm_event", "access_compat", "alias", "auth_basic", "authn_core", "authn_file", "authz_core",
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
# One process with more threads than the load has connections: a process whose workers are all
# busy closes kept-alive connections, which the load tool counts as errors.
StartServers 1
ServerLimit 1
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers 128
MinSpareThreads 1
MaxSpareThreads 128
AsyncRequestWorkerFactor 400
MaxConnectionsPerChild 0
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
        names = DEBIAN_SET + (TLS_SET if setup.tls else ())
        tls = TLS.format(folder=folder, certificate=site.certificate, key=site.key)
        text = TEMPLATE.format(
            folder=folder, port=self.port, documents=site.documents, types=MIME_TYPES,
            modules="\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so"
                              for name in names),
            user="User www-data\nGroup www-data\n" if os.geteuid() == 0 else "",
            log=LOG.format(folder=folder) if setup.log else "",
            override="All" if setup.overrides else "None",
            tls=tls if setup.tls else "")
        (folder / "httpd.conf").write_text(text)
        return [self.path() or self.program, "-DFOREGROUND", "-f", str(folder / "httpd.conf")]

"""Apache httpd, in its three shapes, with the modules that Debian enables."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import ClassVar

from . import pools
from ..site import REPLACED
from .base import Server, first_line, output_of

MODULES = Path("/usr/lib/apache2/modules")
MIME_TYPES = Path(__file__).parent.parent.parent.parent / "conf" / "mime.types"
DEBIAN_SET = (
    "access_compat", "alias", "auth_basic", "authn_core", "authn_file", "authz_core",
    "authz_host", "authz_user", "autoindex", "deflate", "dir", "env", "filter", "mime",
    "negotiation", "reqtimeout", "setenvif", "status")

TEMPLATE = """\
ServerRoot {folder}
{modules}
{user}Listen {address}:{port}
ServerName localhost
PidFile {folder}/httpd.pid
ErrorLog {folder}/error.log
LogLevel error
DefaultRuntimeDir {folder}
TypesConfig {types}
{pools}MaxConnectionsPerChild 0
ListenBacklog 4096
Timeout 60
{affinity}{fair}{http2}{log}{rules}{redirects}DocumentRoot {documents}
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
{feature}{tls}"""

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

CGI = """\
ScriptAlias /cgi-bin/ {documents}/cgi-bin/
{socket}<Directory {documents}/cgi-bin>
    Options ExecCGI
    Require all granted
</Directory>
"""

SSI = """\
<DirectoryMatch ^{documents}/(ssi|includes)>
    Options Includes
    AddType text/html .shtml
    AddOutputFilter INCLUDES .shtml
</DirectoryMatch>
"""

# Beside other servers: they send files by sendfile without being told, and keep no account of each
# request for a status page. The studies' configurations stay word for word.
FAIR = """\
EnableSendfile On
ExtendedStatus Off
"""

# One of a long list, as people have against robots.
RULE = 'SetEnvIf User-Agent "Bad(bot|crawler|spider)[a-z]*{number}/[0-9.]+" robot\n'

# Pages of a folder with rules.
REWRITTEN = ("rules", "moved", "posts")
# Of a host whose pages have moved.
REDIRECT = "RewriteRule ^/old/page-{number:04}$ /new/{number:04} [R=301,L]\n"

# As Debian's deflate.conf has it.
GZIP = """\
AddOutputFilterByType DEFLATE text/html text/plain text/xml text/css text/javascript
"""

# With their default qualities.
BROTLI = """\
AddOutputFilterByType BROTLI_COMPRESS text/html
"""
ZSTD = """\
AddOutputFilterByType ZSTD text/html
"""
SUBSTITUTE = """\
<Files prose.html>
    AddOutputFilterByType SUBSTITUTE text/html
{substitutions}</Files>
"""

LOGIN = """\
<Directory {documents}/private>
    AuthType Basic
    AuthName lab
    AuthBasicProvider file
    AuthUserFile {passwords}
    Require valid-user
</Directory>
"""

# As the manual has them. Connections to PHP-FPM are not kept, which is the default.
PROXIED = """\
ProxyPass /proxied/ {behind}/proxied/
"""
FASTCGI = """\
ProxyPass /responder/ unix:{behind}|fcgi://localhost/responder/ enablereuse=on
"""
PHP = """\
<FilesMatch "\\.php$">
    SetHandler "proxy:unix:{behind}|fcgi://localhost"
</FilesMatch>
"""
# The modules of each feature.
MODULES_OF = {"cgi": ("cgid",), "ssi": ("include",), "app": ("wsgi",),
              "proxied": ("proxy", "proxy_http"), "fastcgi": ("proxy", "proxy_fcgi"), "brotli": ("brotli",), "zstd": ("zstd",),
              "substitute": ("substitute",),
              "php": ("proxy", "proxy_fcgi")}

HOST = """\
<VirtualHost {address}:{port}>
    ServerName {name}
    {more}DocumentRoot {documents}/{page}/{name}
</VirtualHost>
"""

# Three names, one of them a wildcard, and sections.
HOST_MORE = """\
ServerAlias www.{name} *.{name}
    <Directory {documents}/{page}/{name}>
        Options FollowSymLinks
        DirectoryIndex index.html
    </Directory>
    <Location /private>
        Require all denied
    </Location>
    """

# Loaded when a process starts, so that no request of the measurement pays for it. Embedded in
# prefork's children, as published; where requests have threads, mod_wsgi's manual wants processes
# of its own, and they are as many as gunicorn's manual wants, unless the cell says otherwise.
APP = """\
{daemons}WSGIScriptAlias / {application}/application.py
WSGIApplicationGroup %{{GLOBAL}}
WSGIImportScript {application}/application.py process-group={group} \
application-group=%{{GLOBAL}}
<Directory {application}>
    Require all granted
</Directory>
"""
APP_DAEMONS = """\
WSGISocketPrefix {folder}/wsgi
WSGIDaemonProcess lab processes={processes} threads={threads}
WSGIProcessGroup lab
"""


class Apache(Server):
    """Common to all shapes; Tamarack's adapters derive from it, with the very same
    configuration."""

    program = "apache2"
    packages: ClassVar[tuple[str, ...]] = ("apache2",)
    features = frozenset({"tls", "log", "http2", "htaccess", "cgi", "ssi", "app", "gzip", "login",
                          "brotli", "substitute",
                          "hosts", "proxied", "fastcgi", "php"})
    shape: ClassVar[str] = ""

    @classmethod
    def version(cls) -> str:
        """Of the installed package."""
        return first_line([cls.path() or cls.program, "-v"]).removeprefix("Server version: ")

    @classmethod
    def flags(cls) -> str:
        """The defines it was compiled with."""
        text = output_of([cls.path() or cls.program, "-V"])
        return " ".join(re.findall(r"^ (-D [^\n]+)", text, re.MULTILINE))

    @classmethod
    def missing_module(cls, feature: str) -> str:
        """The module's package if an optional module is not installed."""
        wsgi = MODULES / "mod_wsgi.so"
        return "libapache2-mod-wsgi-py3" if feature == "app" and not wsgi.exists() else ""

    def affinity_lines(self) -> str:
        """Directives of its own affinity; httpd has none."""
        return ""

    def module_names(self) -> list[str]:
        """Modules that the setup needs, the shape's first."""
        names = [f"mpm_{self.shape}", *DEBIAN_SET]
        if self.setup.tls:
            names += ["socache_shmcb", "ssl"]
        if self.setup.http2:
            names.append("http2")
        if self.setup.redirects or self.setup.page in REWRITTEN:
            names.append("rewrite")
        if self.setup.feature == "cgi" and self.shape == "prefork":
            return [*names, "cgi"]
        return [*names, *MODULES_OF.get(self.setup.feature, ())]

    def configure(self) -> list[str]:
        """Writes httpd.conf."""
        setup, site = self.setup, self.setup.site
        words = {"folder": setup.folder, "documents": site.documents, "key": site.key,
                 "certificate": site.certificate, "application": site.application,
                 "socket": "" if self.shape == "prefork"
                 else f"ScriptSock {setup.folder}/cgisock\n"}
        embedded = self.shape == "prefork" or setup.app_embedded
        words["group"] = "%{GLOBAL}" if embedded else "lab"
        words["daemons"] = "" if embedded else APP_DAEMONS.format(
            **words, processes=setup.app_workers, threads=setup.app_threads)
        features = {"cgi": CGI, "ssi": SSI, "app": APP, "gzip": GZIP, "login": LOGIN,
                    "hosts": self._hosts(), "proxied": PROXIED, "fastcgi": FASTCGI, "php": PHP,
                    "brotli": BROTLI, "zstd": ZSTD, "substitute": SUBSTITUTE}
        words["substitutions"] = "".join(
            f"    Substitute s/{word}/{by}/n\n" for word, by in REPLACED)
        words["passwords"] = site.passwords
        words["behind"] = setup.behind
        if setup.feature == "proxied":
            words["behind"] = f"http://{setup.behind}" if not setup.behind.startswith("/") else \
                f"unix:{setup.behind}|http://localhost"
        text = TEMPLATE.format(
            **words, address=setup.address, port=setup.port, types=MIME_TYPES,
            modules="\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so"
                              for name in self.module_names()),
            user="User www-data\nGroup www-data\n" if os.geteuid() == 0 else "",
            pools=pools.lines(self.shape, setup), affinity=self.affinity_lines(),
            rules="".join(RULE.format(number=number) for number in range(setup.rules)),
            redirects=self._redirects(),
            http2="Protocols h2 h2c http/1.1\n" if setup.http2 else "",
            fair=FAIR if setup.profile == "fit" else "",
            log=LOG.format(**words) if setup.log else "",
            override="All" if setup.htaccess else "None",
            feature=features[setup.feature].format(**words) if setup.feature in features else "",
            tls=TLS.format(**words) if setup.tls else "")
        (setup.folder / "httpd.conf").write_text(text)
        return [self.path() or self.program, "-DFOREGROUND", "-f",
                str(setup.folder / "httpd.conf")]

    def _redirects(self) -> str:
        if not self.setup.redirects:
            return ""
        return "RewriteEngine On\n" + "".join(
            REDIRECT.format(number=number) for number in range(self.setup.redirects))

    def _hosts(self) -> str:
        """A section for each virtual host, which has names and sections where the page says so."""
        setup = self.setup
        if setup.feature != "hosts":
            return ""
        more = HOST_MORE if setup.page == "aliases" else ""
        return "".join(HOST.format(
            address=setup.address, port=setup.port, documents=setup.site.documents,
            page=setup.page, name=page.host,
            more=more.format(documents=setup.site.documents, page=setup.page, name=page.host))
            for page in setup.pages)


class ApachePrefork(Apache):
    """A process per connection."""

    name = "apache-prefork"
    label = "Apache prefork"
    shape = "prefork"


class ApacheWorker(Apache):
    """A thread per connection."""

    name = "apache-worker"
    label = "Apache worker"
    shape = "worker"


class ApacheEvent(Apache):
    """A thread per request."""

    name = "apache-event"
    label = "Apache event"
    shape = "event"

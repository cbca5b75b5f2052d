"""The pages to serve, and the certificate."""

from __future__ import annotations

import base64
import os
import random
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

SEED = 1
FNV_OFFSET = 14695981039346656037
FNV_PRIME = 1099511628211
# The names that an experiment may request.
PAGES = ("1k", "100k", "deep", "mixed", "cgi", "ssi", "app", "hello", "app-response", "app-upload",
         "site", "folders", "indexes", "text",
         "private", "rules", "moved", "posts", "many", "many-8k", "hosts", "aliases", "few", "prose", "prose-gzip",
         "prose-br", "prose-zstd", "replaced",
         "menu", "parts", "whole", "site-cgi", "proxied", "proxied-unix", "proxied-large", "responder", "php")
# Created only for runs that request them: each is thousands of files, or a large one.
LARGE = frozenset({"many", "many-8k", "hosts", "aliases", "proxied-large"})
# Sizes of the pages of "mixed": from small icons to a picture, as on a site.
MIXED_BYTES = (200, 512, 1024, 2048, 4096, 8192, 16384, 40960, 102400)

# A site: folders of folders with files of 1 KiB.
SITE_FOLDERS, SITE_SUBFOLDERS, SITE_FILES = 10, 5, 2_000
# Pages of many files in one folder, and the size of each in KiB.
MANY_FILES, MANY_KIB = 60_000, {"many": 1, "many-8k": 8}
HOSTS = 5_000
# As many as a page has assets.
FEW_FILES = 64
# Names of pages behind a proxy, which all have the same body, and the size of a large one.
PROXIED_PAGES, PROXIED_BYTES, PROXIED_PART = 2_000, 16 << 20, b"tamarack"
PRIVATE_FILES = 100
RULES_FILES, REDIRECTS, POSTS = 500, 100, 500
# What an application sends and receives at once, beside its page.
APP_BYTES, APP_PART = 10_000_000, b"tamarack"
# Of a longer body load tools compare the length alone.
HASHED_BYTES = 1 << 20
# A page that is worth compressing.
TEXT_BYTES, PROSE_BYTES = 8 * 1024, 20 * 1024
# What is replaced on a page, and by what, in this order.
REPLACED = (("rack", "RACK"), ("server", "machine"), ("page", "leaf"))
SYLLABLES = ("ta", "ma", "rack", "larch", "ser", "ver", "page", "the", "of", "and")

CGI = """\
#!/bin/sh
echo "Content-Type: text/plain"
echo
echo "lab"
"""
SSI = """\
<html><body>
<!--#include virtual="part.html" --> <!--#echo var="DOCUMENT_NAME" -->
</body></html>
"""
PART = "<p>included</p>\n"
# A page of 2003: what is above and below each text is included, and it has the time.
MENU = """\
<!--#include virtual="/includes/above.html" -->
<p>{text}</p>
<p><!--#echo var="DATE_LOCAL" --> <!--#echo var="HTTP_USER_AGENT" --></p>
"""
# The same of files alone.
PARTS = """\
<!--#include virtual="/includes/above.html" -->
<p>{text}</p>
<!--#include virtual="/includes/below.html" -->
"""
INCLUDES_FILES = 200
# The rules of WordPress, after those of a site that has moved often.
RULES = """\
RewriteEngine On
{redirects}RewriteRule .* - [E=HTTP_AUTHORIZATION:%{{HTTP:Authorization}}]
RewriteBase /rules/
RewriteRule ^index\\.php$ - [L]
RewriteCond %{{REQUEST_FILENAME}} !-f
RewriteCond %{{REQUEST_FILENAME}} !-d
RewriteRule . /rules/index.php [L]
"""


@dataclass(frozen=True)
class Login:
    """A user of the private pages: invented, for servers that live for seconds on loopback."""

    user: str
    password: str
    # bcrypt, cost 5: the output of `htpasswd -B`.
    hashed: str

    @property
    def token(self) -> str:
        """As in the field Authorization."""
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def line(self) -> str:
        """As in a password file."""
        return f"{self.user}:{self.hashed}\n"


LOGIN = Login("visitor", "larch", "$2y$05$4RBA72khvADCXoCSurO.DOxrLAbyi8UpEw5PcdoMcTHKRbBsgtPt6")


@dataclass(frozen=True)
class Page:
    """A path with its expected response; `body` None: changes with every request."""

    path: str
    body: bytes | None
    # Must be part of a body that changes.
    contains: bytes = b""
    # The virtual host it belongs to; empty: the main server.
    host: str = ""

    @property
    def length(self) -> int:
        """Bytes of the body, -1 when it changes."""
        return -1 if self.body is None else len(self.body)

    @property
    def hash(self) -> int:
        """64-bit FNV-1a of the body, 0 when it changes or is long."""
        return 0 if self.body is None or self.length > HASHED_BYTES else fnv1a(self.body)

    def fits(self, body: bytes) -> bool:
        """Whether this is the expected response."""
        return self.contains in body and len(body) > 0 if self.body is None else body == self.body


def fnv1a(data: bytes) -> int:
    """64-bit FNV-1a, as the load tool computes it."""
    value = FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return value


@dataclass(frozen=True)
class Site:
    """The folder of all files."""

    root: Path
    documents: Path
    certificate: Path
    key: Path
    application: Path
    # Of the private pages.
    passwords: Path
    pages: dict[str, tuple[Page, ...]]


def make(root: Path, large: frozenset[str] = frozenset()) -> Site:
    """Writes documents and an ECDSA certificate under a folder that any user can read.

    Of the pages in LARGE, only the requested ones are written.
    """
    root.chmod(0o755)
    documents = root / "documents"
    chance = random.Random(SEED)
    pages = {
        "1k": (_file(documents, "/1k.html", _text(chance, 1024)),),
        "100k": (_file(documents, "/100k.bin", chance.randbytes(100 * 1024)),),
        "deep": (_file(documents, "/one/two/three/four/1k.html", _text(chance, 1024)),),
        "mixed": tuple(_file(documents, f"/mixed/{size}.html", _text(chance, size))
                       for size in MIXED_BYTES),
        # In chunks or with its length, as the script's output happens to arrive.
        "cgi": (Page("/cgi-bin/lab.cgi", None, b"lab\n"),),
        "ssi": (Page("/ssi/page.shtml", None, PART.encode()),),
        "app": (Page("/time", None, b"The time is "),),
        "hello": (Page("/hello", b"hello\n"),),
        "app-response": (Page("/response", APP_PART * (APP_BYTES // len(APP_PART))),),
        # It answers how much it has read.
        "app-upload": (Page("/upload", f"{APP_BYTES}\n".encode()),),
        "site": _files(documents, chance, "/site", SITE_FILES),
        "folders": tuple(Page(folder, None) for folder in _folders("/site")),
        "indexes": tuple(_file(documents, f"{folder}/", _text(chance, 1024), "index.html")
                         for folder in _folders("/site")),
        "text": (_file(documents, "/text.html", _prose(chance, TEXT_BYTES)),),
        **_coded(documents, _prose(chance, PROSE_BYTES).replace(b"<p>", b"\n<p>")),
        "private": _files(documents, chance, "/private", PRIVATE_FILES),
    }
    pages["few"] = pages["site"][:FEW_FILES]
    # The same of a server that runs scripts.
    pages["site-cgi"] = pages["site"]
    pages |= _rules(documents, chance)
    pages |= _proxied(documents, chance)
    pages |= _includes(documents, chance)
    pages |= {name: _large(name, documents, chance) for name in sorted(large)}
    # Two .htaccess files that take part in the merge and don't change the response.
    (documents / "one/two/.htaccess").write_text("DirectoryIndex index.html\n")
    (documents / "one/two/three/four/.htaccess").write_text("AddType text/x-none .none\n")
    _file(documents, "/ssi/part.html", PART.encode())
    _file(documents, "/ssi/page.shtml", SSI.encode())
    script = documents / "cgi-bin/lab.cgi"
    _file(documents, "/cgi-bin/lab.cgi", CGI.encode())
    script.chmod(0o755)
    site = Site(root, documents, root / "certificate.pem", root / "key.pem",
                _application(root), root / "passwords", pages)
    site.passwords.write_text(LOGIN.line)
    _certificate(site)
    return site


def _file(documents: Path, url: str, body: bytes, name: str = "") -> Page:
    """Writes the file of a page; `name` is the file's if the URL is a folder's."""
    path = documents / f"{url}{name}".lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    # Older than any cache's notion of "just changed".
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return Page(url, body)


def _folders(root: str) -> list[str]:
    return [f"{root}/d{upper}/e{lower}" for upper in range(SITE_FOLDERS)
            for lower in range(SITE_SUBFOLDERS)]


def _files(documents: Path, chance: random.Random, root: str, count: int) -> tuple[Page, ...]:
    """Files of 1 KiB, no two alike, in folders two levels deep. All URLs are of one length."""
    folders = _folders(root)
    return tuple(_file(documents, f"{folders[number % len(folders)]}/page-{number:05}.html",
                       _text(chance, 1024)) for number in range(count))


def _rules(documents: Path, chance: random.Random) -> dict[str, tuple[Page, ...]]:
    """A folder with rules: its files, its redirects, and names for which the rules have a page."""
    files = _files(documents, chance, "/rules", RULES_FILES)
    index = _file(documents, "/rules/index.php", _text(chance, 1024))
    redirects = "".join(f"RewriteRule ^old/page-{number:03}$ /rules/new-{number:03} [R=301,L]\n"
                        for number in range(REDIRECTS))
    (documents / "rules/.htaccess").write_text(RULES.format(redirects=redirects))
    return {
        "rules": files,
        "moved": tuple(Page(f"/rules/old/page-{number:03}", None) for number in range(REDIRECTS)),
        "posts": tuple(Page(f"/rules/post-{number:05}", index.body) for number in range(POSTS)),
    }


def _includes(documents: Path, chance: random.Random) -> dict[str, tuple[Page, ...]]:
    """Pages with server-side includes, and files whose bytes are such a page's response."""
    above = _file(documents, "/includes/above.html", _text(chance, 256) + b"\n").body or b""
    below = _file(documents, "/includes/below.html", _text(chance, 256) + b"\n").body or b""
    folders = _folders("")
    made: dict[str, list[Page]] = {"menu": [], "parts": [], "whole": []}
    for number in range(INCLUDES_FILES):
        place, text = f"{folders[number % len(folders)]}/page-{number:05}", _text(chance, 512)
        menu = _file(documents, f"/includes/menu{place}.shtml",
                     MENU.format(text=text.decode()).encode())
        made["menu"].append(replace(menu, body=None, contains=above))
        parts = _file(documents, f"/includes/parts{place}.shtml",
                      PARTS.format(text=text.decode()).encode())
        whole = above + b"\n<p>" + text + b"</p>\n" + below + b"\n"
        made["parts"].append(replace(parts, body=whole))
        made["whole"].append(_file(documents, f"/includes/whole{place}.html", whole))
    return {name: tuple(pages) for name, pages in made.items()}


def _proxied(documents: Path, chance: random.Random) -> dict[str, tuple[Page, ...]]:
    """Pages of the servers behind a proxy (behind.py): names of one length, without files."""
    body, folders = _text(chance, 1024), _folders("")
    names = [f"{folders[number % len(folders)]}/page-{number:05}.html"
             for number in range(PROXIED_PAGES)]
    _file(documents, "/php/hello.php", b"<?php echo 'hello';\n")
    http = tuple(Page(f"/proxied{name}", body) for name in names)
    return {
        "proxied": http,
        "proxied-unix": http,
        "responder": tuple(Page(f"/responder{name}", body) for name in names),
        "php": (Page("/php/hello.php", b"hello"),),
    }


def _large(name: str, documents: Path, chance: random.Random) -> tuple[Page, ...]:
    if name in MANY_KIB:
        return tuple(_file(documents, f"/{name}/page-{number:05}.html",
                           _text(chance, 1024) * MANY_KIB[name]) for number in range(MANY_FILES))
    if name == "proxied-large":
        # Its length is not checked by load tools, which would compute a hash of it.
        page = _file(documents, "/proxied/large.bin", PROXIED_PART * (PROXIED_BYTES // 8))
        return (replace(page, body=None, contains=PROXIED_PART),)
    hosts = [f"h{number:04}.test" for number in range(HOSTS)]
    return tuple(replace(_file(documents / name / host, "/1k.html", _text(chance, 1024)),
                         host=host) for host in hosts)


def _prose(chance: random.Random, size: int) -> bytes:
    words = ("".join(chance.choices(SYLLABLES, k=chance.randint(1, 3))) for _ in range(size))
    text = "".join(f"<p>{word} " if chance.random() < 0.02 else f"{word} " for word in words)
    return text.encode()[:size]


def _coded(documents: Path, text: bytes) -> dict[str, tuple[Page, ...]]:
    """A page as it is, for each coding, and with words replaced."""
    replaced = text
    for word, by in REPLACED:
        replaced = replaced.replace(word.encode(), by.encode())
    plain = _file(documents, "/prose.html", text)
    return {**{name: (plain,) for name in ("prose", "prose-gzip", "prose-br", "prose-zstd")},
            "replaced": (replace(plain, body=replaced),)}


def _text(chance: random.Random, size: int) -> bytes:
    return bytes(97 + byte % 26 for byte in chance.randbytes(size))


def _application(root: Path) -> Path:
    """A copy that the servers' users may read, independent of the checkout's location."""
    folder = root / "application"
    folder.mkdir(exist_ok=True)
    source = Path(__file__).parent.parent / "servers" / "application"
    for file in source.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    return folder


def _certificate(site: Site) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "30", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE",
         "-keyout", str(site.key), "-out", str(site.certificate)],
        check=True, capture_output=True)
    # Servers that drop root before they read the key must still be able to read it.
    site.key.chmod(0o644)
    both = site.root / "both.pem"
    both.write_text(site.certificate.read_text() + site.key.read_text())
    both.chmod(0o644)

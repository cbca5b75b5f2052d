"""The requests of a load: their kinds, and the response expected for each.

A target and a field are templates. `{path}` and `{host}` are the page's, `{from}` is the path of
another page, `{n}` is a number that no two requests share, `{etag}` and `{modified}` are the
validators of the server's own response.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .site import APP_BYTES, LOGIN, Page

# Pages to check individually, before and after a load: if there are more, only this many.
CHECKED_PAGES = 9
RANGE_BYTES = 100
# The body of a request consists of these.
BODY_BYTE = b"x"
NAMES = re.compile(r"{(path|host|from|n|etag|modified)}")


@dataclass(frozen=True)
class Kind:
    """One kind of request."""

    name: str
    status: int = 200
    method: str = "GET"
    target: str = "{path}"
    fields: tuple[str, ...] = ()
    # Its weight among all requests of its traffic.
    weight: int = 1
    coding: str = ""
    # Bytes of the request's body.
    sends: int = 0

    @property
    def body(self) -> bytes:
        """The request's body."""
        return BODY_BYTE * self.sends

    def fault(self, page: Page, status: int, coding: str, body: bytes) -> str:
        """What is wrong with a response; empty if it is as intended."""
        if status != self.status:
            return f"with {status} instead of {self.status}"
        if coding != self.coding:
            return f"with the coding {coding or 'identity'} instead of {self.coding or 'identity'}"
        if self.status == 206:
            return "" if body == (page.body or b"")[:RANGE_BYTES] else "with wrong bytes"
        if self.status == 200 and self.method != "HEAD":
            if coding in ("br", "zstd"):
                # Python has no decoder of its own: as many bytes as a compressed page has.
                return "" if 0 < len(body) < page.length // 2 else "with wrong bytes"
            whole = gzip.decompress(body) if coding == "gzip" else body
            return "" if page.fits(whole) else "with wrong bytes"
        return ""


@dataclass(frozen=True)
class Validators:
    """A server's validators of a file, for conditional requests."""

    etag: str = ""
    modified: str = ""


@dataclass(frozen=True)
class Traffic:
    """Requests of one or several kinds, in random order or in turn."""

    name: str
    # For reports, after the number of connections.
    words: str
    kinds: tuple[Kind, ...]
    # Fields of every head in addition to Host.
    fields: tuple[str, ...] = ()
    in_turn: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether every tool can send it: a GET of the page, and nothing that changes."""
        return self.kinds == (GET,) and not self.fields

    @property
    def validates(self) -> bool:
        """Whether it needs the server's validators."""
        return any("{etag}" in self.template(kind) or "{modified}" in self.template(kind)
                   for kind in self.kinds)

    def template(self, kind: Kind, validators: Validators | None = None,
                 keep_alive: bool = True) -> str:
        """The head of a kind, with the names that a tool fills in; the validators, if given."""
        close = () if keep_alive else ("Connection: close",)
        length = (f"Content-Length: {kind.sends}",) if kind.sends else ()
        lines = [f"{kind.method} {kind.target} HTTP/1.1", "Host: {host}", *self.fields,
                 *kind.fields, *length, *close]
        head = "".join(f"{line}\r\n" for line in lines) + "\r\n"
        return head if validators is None else head.replace(
            "{etag}", validators.etag).replace("{modified}", validators.modified)

    def head(self, kind: Kind, page: Page, host: str, validators: Validators, number: int,
             keep_alive: bool = True) -> bytes:
        """One whole head."""
        values = {"path": page.path, "host": page.host or host, "from": page.path,
                  "n": str(number), "etag": validators.etag, "modified": validators.modified}
        template = self.template(kind, None, keep_alive)
        return NAMES.sub(lambda found: values[found[1]], template).encode()


def looked_at(pages: Sequence[Page]) -> Sequence[Page]:
    """The pages themselves if they are few, otherwise a sample of all."""
    if len(pages) <= CHECKED_PAGES:
        return pages
    return [pages[at * (len(pages) - 1) // (CHECKED_PAGES - 1)] for at in range(CHECKED_PAGES)]


GET = Kind("get")
# The head of a browser. A session, the page that the visitor came from and a version of the browser
# make each head different.
BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:{n}) Gecko/20100101 Firefox/128.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br",
    "Referer: http://{host}{from}",
    "Cookie: session={n}; theme=light",
)
# The head that Chromium sends for an asset of a page.
CHROMIUM = (
    "sec-ch-ua: \"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\"",
    "sec-ch-ua-mobile: ?0",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/128.0.0.0 Safari/537.36",
    "sec-ch-ua-platform: \"Linux\"",
    "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
    "Sec-Fetch-Site: same-origin",
    "Sec-Fetch-Mode: no-cors",
    "Sec-Fetch-Dest: image",
    "Referer: https://{host}{from}",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Accept-Language: en-US,en;q=0.9",
    "Cookie: session={n}; theme=light",
)
VERSION = Kind("version", target="{path}?ver={n}")
MODIFIED = Kind("modified", status=304, fields=("If-Modified-Since: {modified}",))
MATCH = Kind("match", status=304, fields=("If-None-Match: {etag}",))
# Names that are requested repeatedly, and names that no request had before.
GONE = Kind("gone", status=404, target="{path}.gone")
UNKNOWN = Kind("unknown", status=404, target="{path}.{n}")


def _each_different(name: str, words: str, kind: Kind, in_turn: bool = False) -> Traffic:
    return Traffic(name, f"{words}, every head different", (kind,), BROWSER, in_turn)


def _weighed(kind: Kind, weight: int) -> Kind:
    return Kind(kind.name, kind.status, kind.method, kind.target, kind.fields, weight)


TRAFFICS: dict[str, Traffic] = {one.name: one for one in (
    Traffic("same", "one request repeated", (GET,)),
    Traffic("unlike", "no two heads alike", (GET,), ("X-Request-ID: {n}",)),
    # A real site's: pages, cache busters, revalidations, broken links.
    Traffic("mixed", "files at random, every head different: of 100 requests 12 with a query, "
            "12 that get a 304, 6 a 404",
            (_weighed(GET, 70), _weighed(VERSION, 12), _weighed(MODIFIED, 6), _weighed(MATCH, 6),
             _weighed(GONE, 4), _weighed(UNKNOWN, 2)), BROWSER),
    _each_different("plain", "files at random", GET),
    _each_different("version", "files at random, a query in each URL", VERSION),
    Traffic("chromium", "files in turn, a query in each URL", (VERSION,), CHROMIUM, True),
    _each_different("range", f"{RANGE_BYTES} bytes of files at random",
                    Kind("range", 206, fields=(f"Range: bytes=0-{RANGE_BYTES - 1}",))),
    _each_different("modified", "If-Modified-Since for files at random", MODIFIED),
    _each_different("match", "If-None-Match for files at random", MATCH),
    _each_different("head", "HEAD of files at random", Kind("head", method="HEAD")),
    _each_different("gone", "names that do not exist, each asked for before", GONE),
    _each_different("unknown", "names that do not exist, none asked for before", UNKNOWN),
    _each_different("moved", "redirects, each asked for before", Kind("moved", 301)),
    _each_different("new", "names that do not exist and have a page, none asked for before",
                    Kind("new", target="{path}.{n}")),
    _each_different("slash", "folders without their slash", Kind("slash", 301)),
    _each_different("turn", "files in turn", GET, in_turn=True),
    _each_different("gzip", "a page that is compressed, a query in each URL",
                    Kind("gzip", target="{path}?ver={n}", coding="gzip")),
    _each_different("brotli", "a page that is compressed, a query in each URL",
                    Kind("brotli", target="{path}?ver={n}", coding="br")),
    _each_different("zstd", "a page that is compressed, a query in each URL",
                    Kind("zstd", target="{path}?ver={n}", fields=("Accept-Encoding: zstd",),
                         coding="zstd")),
    _each_different("login", "files at random, with a name and a password",
                    Kind("login", fields=(f"Authorization: Basic {LOGIN.token}",))),
    Traffic("upload", f"each sends {APP_BYTES // 1_000_000} MB",
            (Kind("upload", method="POST", sends=APP_BYTES),)),
)}
SAME = TRAFFICS["same"]

"""What a crawl may ask for: its settings, URLs that may be requested, and the errors of websites.

URLs are parsed strictly, once, so that no two parsers can differ about the host.

::

    LinkStoreError
    ├── FetchError              a URL that could not be fetched
    │   ├── ForbiddenUrlError   a URL or address that is never asked
    │   ├── UnknownHostError    a host name that does not resolve
    │   └── RobotsError         a robots.txt cannot be read, so nothing may be requested
    └── UnavailableError
        └── SiteUnavailableError  the site does not answer, which ends a run
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from linkstore._version import __version__
from linkstore.core.arguments import (
    MAX_SETTING,
    omit_none,
    require,
    require_at_least,
    require_list,
    require_within,
)
from linkstore.core.text import replace_surrogates
from linkstore.core.urls import join_url
from linkstore.errors import FetchError, ForbiddenUrlError, StrategyError
from linkstore.ingest.settings import PageSettings

USER_AGENT: Final = f"linkstore/{__version__}"
"""The user agent of requests; robots.txt files address it as ``linkstore``."""
_PATTERN_STARTS: Final = ("/", "*", "http://", "https://")
_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 8192
_SHOWN: Final = 200
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE | re.ASCII
)
_AUTHORITY: Final = re.compile(r"(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
_IN_TARGETS: Final = re.compile(r"[!-~]*", re.ASCII)
_IPV4_HOST: Final = re.compile(r"https?://(?:[^/]*@)?([0-9]+(?:\.[0-9]+){3})(?:[:/]|\Z)", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class UnknownHostError(FetchError):
    """The name of a host does not resolve: it is misspelled, or there is no network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings(PageSettings):
    """How a website is crawled, and how its pages are read.

    How pages are named and read is set as for other sources: see :class:`~linkstore.ingest.PageSettings`.
    Without a ``prefix`` the pages of a site are known by their paths alone, so give each of several sites its
    own. ``bases`` are where else it lies in public: links to pages below these URLs lead to its own pages.

    A change of what says which pages there are, or how they are read or named, makes the next run read
    all of them again.

    Patterns are those of robots.txt: one that begins with ``/`` or ``*`` stands for the beginning of a URL's
    path and query, one that begins with ``http://`` or ``https://`` for that of the whole URL; ``*`` is
    anything, ``$`` at the end is the end.

    Args:
        allow: Patterns of the pages to index; with none, all of the site, that is below the folder of
            the start page. A pattern with a host adds pages of another site.
        deny: Patterns of the pages to leave out, whatever ``allow`` says.
        follow_links: Whether to index the pages that the start page leads to; False: the start page alone.
        max_depth: How many links from a start page a page may be; default any number.
        max_pages: How many pages are indexed at most; default 10,000.
        rate: Requests a second, at most; default 4. A longer ``Crawl-delay`` in robots.txt wins.
        retries: How often a request is made again that failed, or was answered by status 429, 500, 502,
            503 or 504; default 3.
        patience: Seconds to wait for a server that asks for it by ``Retry-After``, at most; default 120. A
            site that wants longer between any two requests is not crawled.
        allow_private: Whether loopback and private addresses may be asked.
        ignore_noindex: Whether to index pages that ask robots not to index them. They are indexed anyway if
            the start page asks that too, or if an ``llms.txt`` names them.
        user_agent: What the requests say they come from.
        timeout: Seconds for one request, from connecting to the last byte; default 30.
        max_redirects: On the way to one page; default 10.

    Raises:
        StrategyError: If a number is out of range, or a pattern begins otherwise.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    follow_links: bool = True
    max_depth: int | None = None
    max_pages: int = 10_000
    rate: float = 4.0
    retries: int = 3
    patience: float = 120.0
    allow_private: bool = False
    ignore_noindex: bool = False
    user_agent: str = USER_AGENT
    timeout: float = 30.0
    max_redirects: int = 10

    def __post_init__(self) -> None:
        PageSettings.__post_init__(self)
        require_list("patterns", allow=self.allow, deny=self.deny)
        require_at_least(1, max_pages=self.max_pages)
        counts = omit_none(retries=self.retries, max_redirects=self.max_redirects, max_depth=self.max_depth)
        require_at_least(0, **counts)
        require_within(0, MAX_SETTING, patience=self.patience)
        for name in ("rate", "timeout"):
            require((int, float), "a number", **{name: getattr(self, name)})
            if not getattr(self, name) > 0:
                raise StrategyError(f"{name} must be more than 0, not {getattr(self, name)}")
        for pattern in (*self.allow, *self.deny):
            if not pattern.startswith(_PATTERN_STARTS):
                raise StrategyError(
                    f"the pattern {pattern!r} must begin with '/', '*' or 'https://', such as '/docs/'"
                )
        if not self.user_agent.isascii() or not self.user_agent.isprintable() or not self.user_agent.strip():
            raise StrategyError(f"user_agent must be printable ASCII, not {self.user_agent!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTarget:
    """The target of a request.

    Args:
        scheme: ``http`` or ``https``.
        host: A host name in lower case, without a dot at its end, or an IP address without brackets.
        port: 1 to 65535.
        path: Path and query, as sent.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port as the ``Host`` header names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a robots.txt is for."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The URL in this spelling."""
        return f"{self.origin}{self.path}"


def read_target(url: str, ports: frozenset[int] = frozenset()) -> RequestTarget:
    """Return the target of a request for an absolute URL.

    The scheme must be http or https, without a user name. The host is a name of letters, digits, hyphens,
    underscores and dots, an IPv4 address of four decimal numbers (other spellings, such as ``127.1`` or
    ``0x7f000001``, are for hiding), or an IPv6 address without zone. The port is 80 or 443, or one of
    ``ports``. The rest is printable ASCII. The URL has at most 8 KiB.

    Raises:
        ForbiddenUrlError: If a rule is broken. The message says which.
    """
    shown = url if len(url) <= _SHOWN else f"{url[:_SHOWN]}…"
    match = _URL.fullmatch(url) if len(url) <= _LONGEST else None
    if match is None:
        raise ForbiddenUrlError(f"{shown!r} is not an http or https URL of at most {_LONGEST:,} characters")
    scheme, authority = match["scheme"].lower(), match["authority"].lower()
    if "@" in authority:
        raise ForbiddenUrlError(f"{shown!r} is not requested: it holds a user name")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not _IN_TARGETS.fullmatch(match["target"]):
        raise ForbiddenUrlError(f"{shown!r} is not requested: its host or path is malformed")
    port = int(parts["port"] or _PORTS[scheme])
    if port not in _PORTS.values() and port not in ports:
        raise ForbiddenUrlError(
            f"{shown!r} is not requested: port {port} is neither 80, 443 nor the site's own"
        )
    path = match["target"]
    return RequestTarget(
        scheme=scheme,
        host=_check_host(parts["host"], shown),
        port=port,
        path=path if path.startswith("/") else f"/{path}",
    )


def make_absolute_url(href: str, base: str) -> str:
    """Return the absolute URL of a link, fit to be asked: without fragment and default port, encoded.

    Backslashes count as slashes and the white space around is ignored, as in browsers.

    Args:
        href: As written in the page, or in a ``Location`` header.
        base: The absolute URL it is relative to.

    Raises:
        ForbiddenUrlError: If its host is an IPv4 address that is not written as four decimal numbers.
        FetchError: If it cannot be parsed.
    """
    try:
        url = join_url(base, replace_surrogates(href))
    except ValueError as error:
        raise FetchError(
            f"{href[:_SHOWN]!r} is not a URL, such as https://example.org/guide/: {error}"
        ) from error
    match = _IPV4_HOST.match(url)
    if match is not None and match[1] not in href and match[1] not in base:
        raise ForbiddenUrlError(f"{href[:_SHOWN]!r} is not requested: its host hides an IPv4 address")
    return url


def _check_host(host: str, shown: str) -> str:
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except AddressValueError as error:
            raise ForbiddenUrlError(f"{shown!r} is not requested: its host is not an IPv6 address") from error
    name = host.removesuffix(".")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        try:
            return str(IPv4Address(name))
        except AddressValueError as error:
            raise ForbiddenUrlError(f"{shown!r} is not requested: its host hides an IPv4 address") from error
    if not name or ".." in name or name.startswith("."):
        raise ForbiddenUrlError(f"{shown!r} is not requested: it names no host")
    return name

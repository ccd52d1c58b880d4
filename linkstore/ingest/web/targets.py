"""URLs that may be requested, parsed strictly; the errors of websites.

The errors of websites.

::

    LinkStoreError
    ├── WebSettingsError        settings of a crawl that cannot work
    └── FetchError              a URL that could not be fetched
        ├── ForbiddenUrlError   a URL or address that is never asked
        ├── RobotsError         a robots.txt cannot be read, so nothing may be requested
        └── SiteUnavailableError  the site stopped answering in the middle of a run

URLs that may be requested: parsed strictly, once, so that no two parsers can differ about the host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from w3lib.url import safe_url_string

from linkstore.core.urls import join_url
from linkstore.errors import LinkStoreError, StrategyError, UnavailableError


class WebSettingsError(StrategyError):
    """Settings of a crawl contradict each other or are out of range."""


class FetchError(LinkStoreError):
    """A URL could not be fetched.

    Args:
        message: Why.
        again: Whether it may go better later: a lost connection rather than a body that is too large.
    """

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class ForbiddenUrlError(FetchError):
    """A URL is not requested: another scheme than http(s), a private address, a user name, an odd port."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class RobotsError(FetchError, UnavailableError):
    """The robots.txt of a host cannot be read or followed, so nothing is requested from the host."""


class SiteUnavailableError(FetchError, UnavailableError):
    """A site does not answer, or stopped answering in a run; what was stored of it stays."""

    def __init__(self, message: str) -> None:
        super().__init__(message, again=True)


_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 8192
_SHOWN: Final = 200
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE | re.ASCII
)
_AUTHORITY: Final = re.compile(r"(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
_IN_TARGETS: Final = re.compile(r"[!-~]*", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


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
    found = _URL.fullmatch(url) if len(url) <= _LONGEST else None
    if found is None:
        raise ForbiddenUrlError(f"{shown!r} is not an http or https URL of at most {_LONGEST:,} characters")
    scheme, authority = found["scheme"].lower(), found["authority"].lower()
    if "@" in authority:
        raise ForbiddenUrlError(f"{shown!r} is not requested: it holds a user name")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not _IN_TARGETS.fullmatch(found["target"]):
        raise ForbiddenUrlError(f"{shown!r} is not requested: its host or path is malformed")
    port = int(parts["port"] or _PORTS[scheme])
    if port not in _PORTS.values() and port not in ports:
        raise ForbiddenUrlError(
            f"{shown!r} is not requested: port {port} is neither 80, 443 nor the site's own"
        )
    path = found["target"]
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
        FetchError: If it cannot be parsed.
    """
    written = href.strip().partition("#")[0].replace("\\", "/")
    try:
        url = safe_url_string(join_url(base, written))
    except ValueError as error:
        raise FetchError(f"{href[:_SHOWN]!r} is not a URL: {error}") from error
    found = _URL.fullmatch(url)
    if found is None:
        return url
    scheme, authority = found["scheme"].lower(), found["authority"].lower()
    return f"{scheme}://{authority.removesuffix(f':{_PORTS[scheme]}')}{found['target']}"


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

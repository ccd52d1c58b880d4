"""Requests politely: at a limited rate, by robots.txt, with retries only where they may help.

Requests politely: at a limited rate, with retries only where they may help.

Reads robots.txt files (RFC 9309).

Settings of a crawl.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final

from linkstore._version import __version__
from linkstore.core.arguments import omit_none, require, require_list
from linkstore.core.urls import DEFAULT_POLICY, UrlPolicy
from linkstore.extract.html import find_encoding
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits
from linkstore.ingest.web.fetching import Fetcher, Response
from linkstore.ingest.web.libraries import Protego
from linkstore.ingest.web.network import Network
from linkstore.ingest.web.targets import (
    FetchError,
    ForbiddenUrlError,
    RobotsError,
    SiteUnavailableError,
    WebSettingsError,
    read_target,
)

_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
_OVERLOADED: Final = frozenset({429, 503})
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_FAILURES: Final = 10
"""Number of URLs in a row without an answer (or with 429 or 503) after which the site is unavailable."""


class Client:
    """Makes the requests of one crawl, one after the other.

    Args:
        fetcher: Makes a single request.
        rate: Requests a second, at most.
        retries: How often a request is made again.
        patience: Seconds to wait for a server that asks for it, or between requests, at most.
        network: Tells the time and waits.
    """

    def __init__(
        self, fetcher: Fetcher, *, rate: float, retries: int, patience: float, network: Network | None = None
    ) -> None:
        self._fetcher = fetcher
        self._interval = 1.0 / rate
        self._retries = retries
        self._patience = patience
        self._network = network or Network()
        self._last = -math.inf
        self._failures = 0

    def slow_down(self, interval: float) -> None:
        """Leave at least this many seconds between requests from now on.

        Raises:
            FetchError: If that takes more patience than there is.
        """
        if not interval <= self._patience:
            raise FetchError(
                f"it asks for {interval:,.0f} s between requests, more than {self._patience:,.0f}"
            )
        self._interval = max(self._interval, interval)

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        follow: Callable[[str], bool] | None = None,
        wanted: Callable[[Mapping[str, str]], bool] | None = None,
        max_bytes: int | None = None,
    ) -> Response:
        """Ask for a URL, see :meth:`Fetcher.fetch`, after waiting for its turn, and ask again if need be.

        Raises:
            ForbiddenUrlError: If it must not be asked.
            FetchError: If there is no acceptable answer after all tries.
            SiteUnavailableError: If this is the tenth URL in a row without an answer.
        """

        def paced(location: str) -> bool:
            going = follow is None or follow(location)
            if going:
                self._wait_for_turn()
            return going

        ask = partial(
            self._fetcher.fetch, url, headers=headers, follow=paced, wanted=wanted, max_bytes=max_bytes
        )
        attempt = 0
        while True:
            self._wait_for_turn()
            found, problem = _try_request(ask)
            answered = found is not None and found.status not in _OVERLOADED
            self._failures = 0 if answered else self._failures
            if found is not None and problem is None:
                return found
            retry_after = found.headers.get("retry-after") if found is not None else None
            if problem is not None and not self._waited(attempt, retry_after):
                raise problem if answered else self._failed(problem)
            attempt += 1

    def _wait_for_turn(self) -> None:
        now = self._network.clock()
        turn = max(now, self._last + self._interval)
        if turn > now:
            self._network.sleep(turn - now)
        self._last = turn

    def _waited(self, attempt: int, retry_after: str | None) -> bool:
        """Wait before the next try, or return False if there is to be none."""
        if attempt >= self._retries:
            return False
        seconds = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT)
        asked = _parse_retry_after(retry_after)
        if asked is not None:
            if asked > self._patience:
                return False
            seconds = max(seconds, asked)
        self._network.sleep(seconds)
        return True

    def _failed(self, error: FetchError) -> FetchError:
        self._failures += 1
        if self._failures < _FAILURES:
            return error
        return SiteUnavailableError(
            f"the site has not answered {_FAILURES} requests in a row, the last time because: {error}."
            " What was stored stays; run the same again later to go on"
        )


def _try_request(ask: Callable[[], Response]) -> tuple[Response | None, FetchError | None]:
    """Return the answer, if there is one, and why to ask again, if there is a reason."""
    try:
        found = ask()
    except FetchError as error:
        if not error.again:
            raise
        return None, error
    if found.status in _RETRIED:
        return found, FetchError(f"the server answers {found.status}", again=True)
    return found, None


def _parse_retry_after(retry_after: str | None) -> float | None:
    """Return how long a ``Retry-After`` (RFC 9110, section 10.2.3) asks to wait, None if it does not say."""
    written = (retry_after or "").strip()
    if written.isdecimal():
        return float(written)
    try:
        moment = parsedate_to_datetime(written)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.fromtimestamp(time.time(), UTC)).total_seconds())


_SERVER_ERROR: Final = 500
_READ: Final = 500 * 1024
"""Crawlers must read at least this many bytes of a robots.txt; what follows is not read."""


class Robots:
    """The robots.txt of each host that is visited, read once.

    Without one (status 400 to 499) everything is allowed; where it cannot be read, nothing is. A redirect
    is followed wherever it leads, as long as that may be asked.

    Args:
        client: Asks for the files, and is slowed down as they wish.
        user_agent: The user agent that they apply to.
        ports: Allowed ports besides 80 and 443.
    """

    def __init__(self, client: Client, user_agent: str, ports: frozenset[int] = frozenset()) -> None:
        self._client = client
        self._user_agent = user_agent
        self._ports = ports
        self._read: dict[str, Protego | str] = {}

    def allows(self, url: str) -> bool:
        """Say whether a URL may be asked.

        Raises:
            ForbiddenUrlError: If the URL must not be requested.
            FetchError: If the robots.txt cannot be read, or asks for a longer delay than allowed.
        """
        target = read_target(url, self._ports)
        return self._rules(target.origin).can_fetch(target.url, self._user_agent)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the robots.txt of a URL's host names.

        Raises:
            ForbiddenUrlError: If the URL must not be requested.
            FetchError: If the robots.txt cannot be read, or asks for a longer delay than allowed.
        """
        return tuple(dict.fromkeys(self._rules(read_target(url, self._ports).origin).sitemaps))

    def _rules(self, origin: str) -> Protego:
        if origin not in self._read:
            self._read[origin] = self._fetched(origin)
        rules = self._read[origin]
        if isinstance(rules, Protego):
            return rules
        raise RobotsError(f"{origin}/robots.txt cannot be followed, so nothing is allowed: {rules}")

    def _fetched(self, origin: str) -> Protego | str:
        try:
            rules = _parse_robots(self._client.get(f"{origin}/robots.txt"))
            self._client.slow_down(_compute_delay(rules, self._user_agent))
        except (ForbiddenUrlError, SiteUnavailableError):
            raise
        except FetchError as error:
            return str(error)
        return rules


def _parse_robots(found: Response) -> Protego:
    if found.status >= _SERVER_ERROR:
        raise FetchError(f"the server answers {found.status}")
    return Protego.parse(found.body[:_READ].decode("utf-8-sig", "replace"))


def _compute_delay(rules: Protego, user_agent: str) -> float:
    """Return the seconds between requests, by ``Crawl-delay`` or ``Request-rate``."""
    rate = rules.request_rate(user_agent)
    by_rate = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
    return max(rules.crawl_delay(user_agent) or 0.0, by_rate)


USER_AGENT: Final = f"linkstore/{__version__}"
"""The user agent of requests; robots.txt files address it as ``linkstore``."""

_PATTERN_STARTS: Final = ("/", "*", "http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """How a website is crawled, and how its pages are read.

    A change of what says which pages there are, or how they are read or named, makes the next run read
    all of them again.

    Patterns are those of robots.txt: one that begins with ``/`` or ``*`` stands for the beginning of a URL's
    path and query, one that begins with ``http://`` or ``https://`` for that of the whole URL; ``*`` is
    anything, ``$`` at the end is the end.

    Args:
        prefix: Path below which the site is stored, next to other sources, such as ``python-3.13``; see
            :class:`~linkstore.core.urls.Site`.
            Without, its pages are known by their paths alone, so give each
            of several sites its own.
        allow: Patterns of the pages to index; with none, all of the site, that is below the folder of
            the start page. A pattern with a host adds pages of another site.
        deny: Patterns of the pages to leave out, whatever ``allow`` says.
        bases: Where else the site lies in public: links to pages below these URLs lead to its own pages.
        encoding: Of all pages, whatever they and their server declare; a byte-order mark still wins. None
            (default) takes what is declared, else UTF-8, else windows-1252, as browsers do.
        limits: How long chunks are.
        policy: What makes two URLs the same page.
        max_depth: How many links from a start page a page may be; default any number.
        max_pages: How many pages are indexed at most; default 10,000.
        rate: Requests a second, at most; default 4. A longer ``Crawl-delay`` in robots.txt wins.
        retries: How often a request is made again that failed, or was answered by status 429, 500, 502,
            503 or 504; default 3.
        patience: Seconds to wait for a server that asks for it by ``Retry-After``, at most; default 120. A
            site that wants longer between any two requests is not crawled.
        allow_private: Whether loopback and private addresses may be asked.
        user_agent: What the requests say they come from.
        max_bytes: A larger page is skipped; default 16 MiB.
        timeout: Seconds for one request, from connecting to the last byte; default 30.
        max_redirects: On the way to one page; default 10.

    Raises:
        WebSettingsError: If a number is out of range, or a pattern begins otherwise.
    """

    prefix: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    encoding: str | None = None
    limits: ChunkLimits = DEFAULT_LIMITS
    policy: UrlPolicy = DEFAULT_POLICY
    max_depth: int | None = None
    max_pages: int = 10_000
    rate: float = 4.0
    retries: int = 3
    patience: float = 120.0
    allow_private: bool = False
    user_agent: str = USER_AGENT
    max_bytes: int = 16 * 2**20
    timeout: float = 30.0
    max_redirects: int = 10

    def __post_init__(self) -> None:
        require_list("patterns", allow=self.allow, deny=self.deny)
        require_list("URLs", bases=self.bases)
        for name in ("max_pages", "max_bytes", "rate", "timeout", "retries", "patience", "max_redirects"):
            require((int, float), "a number", **{name: getattr(self, name)})
        require(int, "an integer", **omit_none(max_depth=self.max_depth))
        require(str, "the name of an encoding", **omit_none(encoding=self.encoding))
        if self.encoding is not None:
            find_encoding(self.encoding)
        for pattern in (*self.allow, *self.deny):
            if not pattern.startswith(_PATTERN_STARTS):
                raise WebSettingsError(
                    f"the pattern {pattern!r} must begin with '/', '*' or 'https://', such as '/docs/'"
                )
        for name in ("max_pages", "max_bytes", "rate", "timeout"):
            if not getattr(self, name) > 0:
                raise WebSettingsError(f"{name} must be more than 0, not {getattr(self, name)}")
        for name in ("max_depth", "retries", "patience", "max_redirects"):
            if (getattr(self, name) or 0) < 0:
                raise WebSettingsError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not self.user_agent.isascii() or not self.user_agent.isprintable() or not self.user_agent.strip():
            raise WebSettingsError(f"user_agent must be printable ASCII, not {self.user_agent!r}")

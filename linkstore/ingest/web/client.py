"""Requests politely: at a limited rate, by robots.txt (RFC 9309), with retries only where they may help."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from protego import Protego

from linkstore.ingest.web.fetching import Fetcher, Network, Response
from linkstore.ingest.web.targets import (
    FetchError,
    ForbiddenUrlError,
    RobotsError,
    SiteUnavailableError,
    WebSettings,
    read_target,
)

_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
_OVERLOADED: Final = frozenset({429, 503})
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_FAILURES: Final = 10
"""Number of URLs in a row without an answer (or with 429 or 503) after which the site is unavailable."""
_SERVER_ERROR: Final = 500
_READ: Final = 500 * 1024
"""Crawlers must read at least this many bytes of a robots.txt; what follows is not read."""


class Client:
    """Makes the requests of one crawl, one after the other.

    Args:
        fetcher: Makes a single request.
        settings: How often requests are made, and made again.
        network: Tells the time and waits.
    """

    def __init__(self, fetcher: Fetcher, settings: WebSettings, network: Network | None = None) -> None:
        self._fetcher = fetcher
        self._interval = 1.0 / settings.rate
        self._retries = settings.retries
        self._patience = settings.patience
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

        attempt = 0
        while True:
            self._wait_for_turn()
            found: Response | None = None
            try:
                found = self._fetcher.fetch(
                    url, headers=headers, follow=paced, wanted=wanted, max_bytes=max_bytes
                )
            except FetchError as error:
                if not error.again:
                    raise
                problem = error
            else:
                problem = FetchError(f"the server answers {found.status}", again=True)
            answered = found is not None and found.status not in _OVERLOADED
            self._failures = 0 if answered else self._failures
            if found is not None and found.status not in _RETRIED:
                return found
            retry_after = found.headers.get("retry-after") if found is not None else None
            if not self._waited(attempt, retry_after):
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

    def _failed(self, error: FetchError) -> FetchError | SiteUnavailableError:
        self._failures += 1
        if self._failures < _FAILURES:
            return error
        return SiteUnavailableError(
            f"the site has not answered {_FAILURES} requests in a row, the last time because: {error}."
            " What was stored stays; run the same again later to go on"
        )


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
            found = self._client.get(f"{origin}/robots.txt")
            if found.status >= _SERVER_ERROR:
                return f"the server answers {found.status}"
            rules = Protego.parse(found.body[:_READ].decode("utf-8-sig", "replace"))
            rate = rules.request_rate(self._user_agent)
            by_rate = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
            self._client.slow_down(max(rules.crawl_delay(self._user_agent) or 0.0, by_rate))
        except ForbiddenUrlError:
            raise
        except FetchError as error:
            return str(error)
        return rules

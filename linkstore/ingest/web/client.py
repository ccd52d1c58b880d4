"""Requests a website politely: in turn, as robots.txt allows (RFC 9309), and again only if that may help."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Unpack

from protego import Protego

from linkstore.errors import FetchError, ForbiddenUrlError, RobotsError, SiteUnavailableError
from linkstore.ingest.web.fetching import Fetcher, Network, RequestOptions, Response
from linkstore.ingest.web.targets import UnknownHostError, WebSettings, read_target

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
    """Makes the requests of one crawl, one after the other, as the robots.txt of each host allows.

    A robots.txt is read once. Without one (status 400 to 499) everything is allowed; where it cannot be read,
    nothing is. A redirect is followed wherever it leads, as long as that may be asked.

    Args:
        fetcher: Makes a single request.
        settings: How often requests are made, and made again, and as whom.
        network: Tells the time and waits.
    """

    def __init__(self, fetcher: Fetcher, settings: WebSettings, network: Network | None = None) -> None:
        self._fetcher = fetcher
        self._settings = settings
        self._network = network or Network()
        self._interval = 1.0 / settings.rate
        self._last = -math.inf
        self._failures = 0
        self._robots: dict[str, Protego | str] = {}

    def ask(
        self,
        url: str,
        *,
        follow: Callable[[str], bool] = lambda _: True,
        heed: bool = True,
        **options: Unpack[RequestOptions],
    ) -> Response | None:
        """Ask for a URL after waiting for its turn, and ask again if need be; see :meth:`Fetcher.fetch`.

        Args:
            url: See :meth:`Fetcher.fetch`.
            follow: See :meth:`Fetcher.fetch`.
            heed: Whether to ask for nothing that a robots.txt does not allow, also not after a redirect.
            options: Those of :meth:`Fetcher.fetch`.

        Returns:
            The answer, or None if it is not allowed to ask.

        Raises:
            ForbiddenUrlError: If it must not be asked.
            RobotsError: If the robots.txt cannot be read, or asks for a longer delay than allowed.
            FetchError: If there is no acceptable answer after all tries.
            SiteUnavailableError: If this is the tenth URL in a row without an answer.
        """

        def follow_in_turn(location: str) -> bool:
            going = follow(location) and (not heed or self._allows(location))
            if going:
                self._wait_for_turn()
            return going

        if heed and not self._allows(url):
            return None
        attempt = 0
        while True:
            self._wait_for_turn()
            response: Response | None = None
            try:
                response = self._fetcher.fetch(url, follow=follow_in_turn, **options)
                problem = FetchError(f"the server answers {response.status}", again=True)
            except FetchError as error:
                if not error.again:
                    raise
                problem = error
            answered = response is not None and response.status not in _OVERLOADED
            self._failures = 0 if answered else self._failures
            if response is not None and response.status not in _RETRIED:
                return response
            if not self._wait(attempt, response):
                break
            attempt += 1
        self._failures += not answered
        if answered or self._failures < _FAILURES:
            raise problem
        raise SiteUnavailableError(
            f"the site has not answered {_FAILURES} requests in a row, the last time because: {problem}."
            " What was stored stays; run the same again later to go on"
        )

    def _allows(self, url: str) -> bool:
        target = read_target(url, self._fetcher.ports)
        return self._read_rules(target.origin).can_fetch(target.url, self._settings.user_agent)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the robots.txt of a URL's host names, as written.

        Raises:
            ForbiddenUrlError: If the URL must not be requested.
            RobotsError: If the robots.txt cannot be read, or asks for a longer delay than allowed.
        """
        origin = read_target(url, self._fetcher.ports).origin
        return tuple(dict.fromkeys(self._read_rules(origin).sitemaps))

    def _wait_for_turn(self) -> None:
        now = self._network.clock()
        turn = max(now, self._last + self._interval)
        if turn > now:
            self._network.sleep(turn - now)
        self._last = turn

    def _wait(self, attempt: int, found: Response | None) -> bool:
        """Wait before the next try as long as the answer asks, or return False if there is to be none."""
        asked = 0.0 if found is None else _parse_retry_after(found.headers.get("retry-after", ""))
        if attempt >= self._settings.retries or asked > self._settings.patience:
            return False
        self._network.sleep(max(asked, min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT)))
        return True

    def _read_rules(self, origin: str) -> Protego:
        if origin not in self._robots:
            self._robots[origin] = self._fetch_rules(f"{origin}/robots.txt")
        rules = self._robots[origin]
        if isinstance(rules, Protego):
            return rules
        raise RobotsError(f"{rules} (for {origin}/robots.txt, without which nothing is requested)")

    def _fetch_rules(self, url: str) -> Protego | str:
        """Read a robots.txt and slow down as it wishes, or return why it cannot be followed."""
        try:
            response = self.ask(url, heed=False)
        except (ForbiddenUrlError, UnknownHostError):
            raise
        except FetchError as error:
            return str(error)
        assert response is not None, "it is asked for in any case"
        if response.status >= _SERVER_ERROR:
            return f"the server answers {response.status}"
        rules = Protego.parse(response.body[:_READ].decode("utf-8-sig", "replace"))
        agent, patience = self._settings.user_agent, self._settings.patience
        rate = rules.request_rate(agent)
        by_rate = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
        interval = max(rules.crawl_delay(agent) or 0.0, by_rate)
        if not interval <= patience:
            return f"it asks for {interval:,.0f} s between requests, more than {patience:,.0f}"
        self._interval = max(self._interval, interval)
        return rules


def _parse_retry_after(written: str) -> float:
    """Return how long a ``Retry-After`` (RFC 9110, section 10.2.3) asks to wait, 0 if it does not say."""
    if written.strip().isdecimal():
        return float(written)
    try:
        moment = parsedate_to_datetime(written)
    except (ValueError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(time.time(), UTC)).total_seconds()

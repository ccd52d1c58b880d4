"""Requests politely: at a limited rate, with retries only where they may help."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final

from linkstore.ingest.web.errors import FetchError, SiteUnavailableError
from linkstore.ingest.web.fetching import Fetcher, Response
from linkstore.ingest.web.network import Network

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
            found, problem = _tried(ask)
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
        asked = _seconds(retry_after)
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


def _tried(ask: Callable[[], Response]) -> tuple[Response | None, FetchError | None]:
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


def _seconds(retry_after: str | None) -> float | None:
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

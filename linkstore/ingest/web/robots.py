"""Reads robots.txt files (RFC 9309)."""

from __future__ import annotations

from typing import Final

from linkstore.ingest.web.client import Client
from linkstore.ingest.web.errors import FetchError, ForbiddenUrlError, RobotsError, SiteUnavailableError
from linkstore.ingest.web.fetching import Response
from linkstore.ingest.web.libraries import Protego
from linkstore.ingest.web.targets import read_target

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
            rules = _parsed(self._client.get(f"{origin}/robots.txt"))
            self._client.slow_down(_delay(rules, self._user_agent))
        except (ForbiddenUrlError, SiteUnavailableError):
            raise
        except FetchError as error:
            return str(error)
        return rules


def _parsed(found: Response) -> Protego:
    if found.status >= _SERVER_ERROR:
        raise FetchError(f"the server answers {found.status}")
    return Protego.parse(found.body[:_READ].decode("utf-8-sig", "replace"))


def _delay(rules: Protego, user_agent: str) -> float:
    """Return the seconds between requests, by ``Crawl-delay`` or ``Request-rate``."""
    rate = rules.request_rate(user_agent)
    by_rate = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
    return max(rules.crawl_delay(user_agent) or 0.0, by_rate)

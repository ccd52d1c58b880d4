"""The errors of websites.

::

    LinkStoreError
    ├── WebSettingsError        settings of a crawl that cannot work
    └── FetchError              a URL that could not be fetched
        ├── ForbiddenUrlError   a URL or address that is never asked
        ├── RobotsError         a robots.txt cannot be read, so nothing may be requested
        └── SiteUnavailableError  the site stopped answering in the middle of a run
"""

from __future__ import annotations

from linkstore.errors import LinkStoreError


class WebSettingsError(LinkStoreError, ValueError):
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


class RobotsError(FetchError):
    """The robots.txt of a host cannot be read or followed, so nothing is requested from the host."""


class SiteUnavailableError(FetchError, ConnectionError):
    """A site stopped answering in the middle of a run; what was stored of it stays."""

    def __init__(self, message: str) -> None:
        super().__init__(message, again=True)

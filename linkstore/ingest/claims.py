"""Decides which further URLs that a page claims are accepted.

A page may claim further URLs: by ``rel=canonical``, by a ``url`` in its metadata, by an incoming link. Links
to these URLs then lead to the page. This is normal within a site, but a page that claims a URL of another
site could redirect that site's links to itself. So such claims are accepted only if the user declares the
author of the source trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

from linkstore.arguments import refusal
from linkstore.ingest.source import BadInput
from linkstore.urls import normalize_url

ClaimPolicy = Literal["own", "any"]
"""``"own"``: a page may claim URLs of its own site; ``"any"``: all claims are accepted."""


def origin(url: str) -> str | None:
    """Return host and port of an absolute URL, whether by http or https, or None for anything else."""
    normal = normalize_url(url)
    return None if normal is None else normal.partition("://")[2].partition("/")[0]


class Refusals:
    """Counts claims that were not accepted."""

    def __init__(self) -> None:
        self._count = 0
        self._example = ("", "")

    def note(self, page: str, url: str) -> None:
        """Count that a page was not believed to have a URL."""
        self._example = self._example if self._count else (page, url)
        self._count += 1

    def report(self) -> Iterator[BadInput]:
        """Report the refused claims, in one line."""
        if self._count:
            page, url = self._example
            number = "1 page says" if self._count == 1 else f"{self._count:,} pages say"
            reason = (
                f"{number} to be a page of another site, as {page} does of {url}; that is believed only with"
                ' --trust-claims (Python: claims="any")'
            )
            yield BadInput(name="(claims)", reason=reason)


class Claims:
    """Judges the claims of one run.

    Args:
        policy: Which claims are believed.
        urls: Where the source lies in public. None: its origin is that of the first claim.

    Raises:
        ArgumentError: If there is no such policy.
    """

    def __init__(self, policy: ClaimPolicy, urls: Iterable[str] | None = ()) -> None:
        if policy not in get_args(ClaimPolicy):
            raise refusal("claims", f"one of {', '.join(get_args(ClaimPolicy))}", policy)
        self.policy: Final = policy
        self._own = None if urls is None else frozenset(filter(None, map(origin, urls)))
        self._refusals = Refusals()

    def believed(self, url: str) -> bool:
        """Say whether a page of the source may have this URL. Paths within the source are always its own.

        Args:
            url: Absolute, or a tag within the site.
        """
        if self.policy == "any" or "://" not in url:
            return True
        claimed = origin(url) or url
        if self._own is None:
            self._own = frozenset({claimed})
        return claimed in self._own

    def accepted(self, url: str, page: str) -> bool:
        """Say whether a claim is :meth:`believed`, and count one that is not, for :meth:`report`."""
        believed = self.believed(url)
        if not believed:
            self._refusals.note(page, url)
        return believed

    def report(self) -> Iterator[BadInput]:
        """Report the refused claims, in one line."""
        yield from self._refusals.report()

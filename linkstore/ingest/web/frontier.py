"""The URLs of a site that are still to be requested."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from linkstore.ingest.web.memory import Memory
from linkstore.ingest.web.scope import Scope

_MOST: Final = 500_000
_LONGEST: Final = 2048
"""Characters of a URL, as in sitemaps; together with their number, what a hostile site can make us hold."""
_SPELLINGS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A URL that may lead to a page.

    Args:
        url: As it is asked.
        key: What it is known by.
        depth: How many links it is from a start page.
        via: The URL of the page it was found on; empty for a start page.
    """

    url: str
    key: str
    depth: int
    via: str = ""


class Frontier:
    """Gives each URL once: first those that no page is stored of, then those to be asked for changes.

    Args:
        scope: Which URLs belong to the crawl.
        known: What is remembered of stored pages, by URL.
        max_depth: How many links from a start page a URL may be.
    """

    def __init__(self, scope: Scope, known: Mapping[str, Memory], *, max_depth: int | None) -> None:
        self._scope = scope
        self._max_depth = max_depth
        self._fresh: deque[Candidate] = deque()
        self._recheck: deque[Candidate] = deque()
        self._spellings: dict[str, tuple[str, ...]] = {}
        self._claims: dict[str, str] = {}
        self.left_out = 0
        """URLs that found no room."""
        self._remember(known)

    def waiting(self) -> Iterator[Candidate]:
        """Yield the URLs that were not taken."""
        yield from self._fresh
        yield from self._recheck

    def add(self, url: str, *, depth: int = 0, via: str = "") -> str | None:
        """Add a URL, if it belongs to the crawl, and return its key if it does."""
        key = self._scope.key(url)
        if key is None or self._too_deep(depth):
            return None
        written = self._spellings.get(key)
        if written is None:
            if len(self._spellings) >= _MOST or len(url) > _LONGEST:
                self.left_out += 1
                return None
            self._spellings[key] = (url,)
            self._fresh.append(Candidate(url=url, key=key, depth=depth, via=via))
        elif url not in written and len(written) < _SPELLINGS and len(url) <= _LONGEST:
            self._spellings[key] = (*written, url)
        return key

    def take(self, room: int) -> Candidate | None:
        """Return the next URL, or None if there is none, or no room for more pages.

        Args:
            room: How many pages may still be indexed. Those that are stored come first in that, though
                they are asked last.
        """
        if self._fresh and len(self._recheck) < room:
            return self._fresh.popleft()
        if self._recheck and room > 0:
            return self._recheck.popleft()
        return None

    def other_spelling(self, candidate: Candidate) -> Candidate | None:
        """Return the same page by the next URL that was seen for it, such as ``/a/`` for ``/a``."""
        written = self._spellings.get(candidate.key, ())
        after = written[written.index(candidate.url) + 1 :] if candidate.url in written else ()
        if not after:
            return None
        return Candidate(url=after[0], key=candidate.key, depth=candidate.depth, via=candidate.via)

    def claim(self, page: str, urls: Iterable[str]) -> tuple[str, ...]:
        """Return those of the URLs found on a page that no other page has claimed.

        Args:
            page: The key of the page.
            urls: As they are asked.
        """
        mine: dict[str, str] = {}
        for key in filter(None, map(self._scope.key, urls)):
            if key in self._spellings and self._claims.setdefault(key, page) == page:
                mine[key] = self._spellings[key][0]
        return tuple(mine.values())

    def _too_deep(self, depth: int) -> bool:
        return self._max_depth is not None and depth > self._max_depth

    def _remember(self, known: Mapping[str, Memory]) -> None:
        for url, memory in known.items():
            key = self._scope.key(url)
            if key is not None and key not in self._spellings and not self._too_deep(memory.depth):
                self._spellings[key] = (url,)
                self._recheck.append(Candidate(url=url, key=key, depth=memory.depth))
        for url, memory in known.items():
            page = self._scope.key(url)
            for child in memory.children if page is not None else ():
                key = self.add(child, depth=memory.depth + 1, via=url)
                if key is not None and page is not None:
                    self._claims.setdefault(key, page)
            for one in memory.moved:
                self.add(one, depth=memory.depth)

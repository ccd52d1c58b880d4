"""Reads the pages of a source: here if there are few, in other processes if there are many."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from time import perf_counter
from typing import Any, Final

from linkstore.arguments import given, require_at_least
from linkstore.cores import cores
from linkstore.extraction import LinkExtractor
from linkstore.ingest.documents import Linkers
from linkstore.ingest.readpage import ReadPage, read_page
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.workers import Workers, found_by

PATIENCE: Final = 1.0
"""Seconds of reading after which processes are started; that takes each of them half a second."""
_GLIMPSE: Final = 0.1
"""Seconds of reading that tell how long the rest will take, where a source says how many pages it has."""
_MUCH: Final = 3.0
"""Seconds that the rest is to take for processes to be started earlier."""
_WAITING: Final = 4
"""Pages offered ahead, for each process."""

Offered = SourcePage | BadInput
_Pending = tuple[Offered, Future[bytes | str] | None]


class ReadAhead:
    """Reads pages, in order, some of them before they are asked for.

    Args:
        linkers: The link extractors of the run.
        links: The same, as the run was given them. Processes make those that are given by name.
        jobs: How many processes read; 1: none, pages are read here; None: as many as there are cores.

    Raises:
        StrategyError: If there are to be fewer than one.
    """

    def __init__(self, linkers: Linkers, links: Sequence[str | LinkExtractor[Any]], jobs: int | None) -> None:
        require_at_least(1, **given(jobs=jobs))
        self._linkers = linkers
        self._links = tuple(one for one in links if isinstance(one, str))
        able = len(self._links) == len(links) and bool(sys.executable) and not hasattr(sys, "frozen")
        self._jobs = (cores() if jobs is None else jobs) if able else 1
        self._spent = 0.0
        self._offered = 0
        self._workers: Workers | None = None

    def pages(
        self, offers: Iterator[Offered], is_new: Callable[[SourcePage], bool], about: int = 0
    ) -> Generator[tuple[Offered, ReadPage | None], None, None]:
        """Yield what a source offers, in order, each with what was read, or None for what is not to be read.

        If the source raises, what it offered before is given first.

        Args:
            offers: Of the source.
            is_new: Whether a page is to be read.
            about: How many pages there are, 0 if that is not known.

        Raises:
            LinkStoreError: As :func:`~linkstore.ingest.readpage.read_page`.
        """
        pending: deque[_Pending] = deque()
        try:
            while True:
                try:
                    offered = next(offers)
                except StopIteration:
                    break
                except Exception:
                    yield from self._read(pending, is_new, 0)
                    raise
                self._offered += 1
                pending.append((offered, self._begun(offered, is_new, about)))
                yield from self._read(pending, is_new, self._jobs * _WAITING if self._workers else 0)
            yield from self._read(pending, is_new, 0)
        finally:
            if self._workers is not None:
                self._workers.close()

    def _begun(
        self, offered: Offered, is_new: Callable[[SourcePage], bool], about: int
    ) -> Future[bytes | str] | None:
        if isinstance(offered, BadInput) or self._jobs == 1 or not is_new(offered):
            return None
        if self._workers is None and self._is_much(about):
            self._workers = Workers.started(self._jobs, self._links, self._linkers.site, offered)
            if self._workers is None:
                self._jobs = 1
        return None if self._workers is None else self._workers.submit(offered)

    def _is_much(self, about: int) -> bool:
        """Say whether there is enough to read for processes, judged by what was read so far."""
        left = about - self._offered
        return self._spent >= PATIENCE or (
            self._spent >= _GLIMPSE and self._spent * left >= _MUCH * self._offered
        )

    def _read(
        self, pending: deque[_Pending], is_new: Callable[[SourcePage], bool], waiting: int
    ) -> Iterator[tuple[Offered, ReadPage | None]]:
        """Yield pages until only this many are waiting, and those that are read already."""
        while pending and (len(pending) > waiting or pending[0][1] is None or pending[0][1].done()):
            offered, future = pending.popleft()
            if isinstance(offered, BadInput) or not is_new(offered):
                yield offered, None
            else:
                found = None if future is None else found_by(future.result())
                yield offered, found or self._read_here(offered)

    def _read_here(self, page: SourcePage) -> ReadPage:
        begun = perf_counter()
        found = read_page(page.url, page.read, self._linkers)
        self._spent += perf_counter() - begun
        return found

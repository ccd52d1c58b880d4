"""Parts of a source, each of which a process of its own indexes: ``linkstore index --partition 3/16``.

A part has its pages, and reports what is wrong with them. What needs all pages is left to a run of the whole
source: to remove those that are gone, and to make the links of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import xxhash

from linkstore.core.arguments import require_at_least
from linkstore.core.urls import Site
from linkstore.errors import StrategyError
from linkstore.ingest.source import BadInput, OpenedSource, Source, SourcePage


@dataclass(frozen=True, slots=True)
class Partition:
    """One of several parts of a source.

    Args:
        number: Which of them, from 1.
        count: How many there are.

    Raises:
        StrategyError: If there is no such part.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        require_at_least(1, number=self.number, count=self.count)
        if self.number > self.count:
            raise StrategyError(f"there is no part {self.number} of {self.count}; parts are numbered from 1")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, url: str) -> bool:
        """Say whether a page belongs to this part, by a hash of what it is called."""
        return xxhash.xxh3_64_intdigest(url.encode(errors="replace")) % self.count == self.number - 1

    def slice(self, length: int) -> slice:
        """Return the part of a sequence of this length that belongs to this part."""
        return slice(length * (self.number - 1) // self.count, length * self.number // self.count)


@runtime_checkable
class Divisible(Source, Protocol):
    """A source that divides itself, so that a part reads less than the whole."""

    def divide(self, partition: Partition) -> Source:
        """Return a part of it."""
        ...


def divide_source(source: Source, partition: Partition) -> Source:
    """Return a part of a source, which lists the whole and reads its own pages if it cannot divide itself."""
    return source.divide(partition) if isinstance(source, Divisible) else _Part(source, partition)


@dataclass(frozen=True, slots=True)
class _Part:
    """The pages of a source whose names a partition has."""

    source: Source
    partition: Partition

    @property
    def name(self) -> str:
        return self.source.name

    @contextmanager
    def open(self) -> Iterator[OpenedSource]:
        with self.source.open() as opened:
            yield _OpenedPart(opened, self.partition)


@dataclass(frozen=True, slots=True)
class _OpenedPart:
    """The same, in one run."""

    whole: OpenedSource
    partition: Partition

    @property
    def site(self) -> Site:
        return self.whole.site

    @property
    def unread(self) -> Mapping[str, int]:
        return self.whole.unread

    def __len__(self) -> int:
        return len(self.whole) // self.partition.count

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        for offered in self.whole.pages(known):
            if self.partition.has(offered.name if isinstance(offered, BadInput) else offered.url):
                yield offered

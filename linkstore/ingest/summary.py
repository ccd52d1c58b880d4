"""What an indexing run reports to its caller: progress on the way, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from linkstore.errors import LinkStoreError
from linkstore.urls import is_internal

if TYPE_CHECKING:
    from linkstore.backends.base import LinkedPage, Survey

_MOST: Final = 10


class Progress(Protocol):
    """Called after each page."""

    def __call__(self, done: int, total: int, page: str) -> None:
        """Report that ``done`` of about ``total`` pages are read, the last of which was ``page``.

        ``total`` is 0 where it is not known.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCounts:
    """The numbers of pages by outcome; skipped pages are in :attr:`Summary.skipped`."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0

    @property
    def total(self) -> int:
        """The number of pages of the source that are stored."""
        return self.added + self.updated + self.unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Dangling:
    """Links that lead to no document of the store.

    Args:
        internal: To a page or fragment of a site that is not there.
        external: To other sites.
    """

    internal: int = 0
    external: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Text of pages that is in none of their chunks, for it was taken for navigation or the like.

    Args:
        letters: How many characters there are of it, white space not counted.
        pages: On how many of the pages that were read.
        kinds: How many by what they were taken for, most first: ``"navigation"``, ``"sidebars"``,
            ``"tables of contents"``, ``"headers"``, ``"footers"``, ``"search forms"``, ``"hidden text"``,
            ``"text of most pages"``, ``"text outside the main content"``.
        most: The ten pages with most of it, most first.
    """

    letters: int = 0
    pages: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Mapping[str, Mapping[str, int]]) -> LeftOut:
        """Sum up how many letters of each kind were left out of each page."""
        pages = Counter({page: sum(kinds.values()) for page, kinds in found.items()})
        kinds: Counter[str] = Counter()
        for of_page in found.values():
            kinds.update(of_page)
        return cls(
            letters=pages.total(),
            pages=len(pages),
            kinds=dict(sorted(kinds.items(), key=_most_first)),
            most=dict(sorted(pages.items(), key=_most_first)[:_MOST]),
        )


def _most_first(one: tuple[str, int]) -> tuple[int, str]:
    return -one[1], one[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encodings:
    """The doubtful points in the decoding of the pages that were read.

    Args:
        replaced: How many characters stand for bytes that are not in the encoding of their page, as U+FFFD.
        pages: On how many pages.
        most: The ten pages with most of them, most first.
        guessed: How many pages declare no encoding, are not UTF-8, and were read as windows-1252.
    """

    replaced: int = 0
    pages: int = 0
    most: Mapping[str, int] = field(default_factory=dict)
    guessed: int = 0

    @classmethod
    def of(cls, found: Mapping[str, int], guessed: int) -> Encodings:
        """Sum up how many characters of each page were replaced."""
        most = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:_MOST]
        return cls(replaced=sum(found.values()), pages=len(found), most=dict(most), guessed=guessed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result of a run of :func:`~linkstore.ingest.index_source`.

    Args:
        pages: Counts of the source's pages.
        chunks: Documents written.
        links: Links written, by kind.
        dangling: Hyperlinks that lead to nothing, in the whole store; not counted by a dry run.
        skipped: What could not be read or stored, by name, with the reason. What was stored of it
            before stays.
        unseen: The names of those of them that could not be seen at all, such as a folder that may not be
            read, a page that the server fails to give, the rest of a crawl that was cut short. Pages may be
            hidden there, so none of them was removed. Empty after a complete run.
        left_out: What was taken for navigation or the like on the pages that were read, and not stored.
        encodings: Which bytes were no text, and which encodings were guessed.
        unread: How many files that people read are of a kind that this source does not read, by kind, most
            first, such as ``{".rst": 3}``.
        linked: The ten pages of the store that most hyperlinks lead to from other pages, most first; not
            counted by a dry run.
        dry_run: Whether nothing was written: the counts are of what would have been.
    """

    pages: PageCounts
    chunks: int
    links: Mapping[str, int]
    skipped: Mapping[str, str]
    unseen: tuple[str, ...] = ()
    left_out: LeftOut = LeftOut()
    encodings: Encodings = Encodings()
    unread: Mapping[str, int] = field(default_factory=dict)
    dangling: Dangling = Dangling()
    linked: tuple[LinkedPage, ...] = ()
    dry_run: bool = False


class IndexingError(LinkStoreError):
    """A run ended without what was asked for; what it did is kept.

    Args:
        message: What is wrong.
        summary: What was done.
    """

    def __init__(self, message: str, summary: Summary) -> None:
        super().__init__(message)
        self.summary = summary


class NothingIndexedError(IndexingError):
    """A source has nothing to index, and nothing of it is stored."""


class RemovalRefusedError(IndexingError):
    """More than half of a source's stored pages are gone at once; they were kept."""


def count_dangling(survey: Survey, kind: str = "hyperlink") -> Dangling:
    """Count the dangling links of a kind, by where they lead."""
    internal = external = 0
    for found, tag, links in survey.dangling:
        if found == kind:
            internal, external = (
                (internal + links, external) if is_internal(tag) else (internal, external + links)
            )
    return Dangling(internal=internal, external=external)

"""The protocols of ingest: sources, their pages, and what a run reports.

A source lists its pages and reads each of them. :class:`linkstore.store.LinkStore` is what pages are indexed
into. A run calls back after each page, and gives a summary at the end. :func:`staleness` says how the stored
pages of a source differ from what it has now.

A source can be indexed in parts, each by a process of its own: ``linkstore index --partition 3/16``. A part
has its pages, and reports what is wrong with them. What needs all pages is left to a run of the whole source:
to remove those that are gone, and to make the links of the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import xxhash
from langchain_core.documents import Document

from linkstore.core.arguments import require, require_at_least, require_having
from linkstore.core.display import escape_html, format_count, format_kinds
from linkstore.core.text import escape_surrogates
from linkstore.core.urls import Site, is_internal_tag
from linkstore.errors import LinkError, LinkStoreError, StrategyError
from linkstore.extract.protocol import Chunk
from linkstore.ingest.suffixes import describe_unread

if TYPE_CHECKING:
    from linkstore.engines.contract import LinkedPage, Survey, WriteCounts
    from linkstore.store.core import CoreStore

PageReader = Callable[[], Sequence[Chunk] | Sequence[Document]]
"""Reads a page: chunks, or documents that are stored as they are."""
MAX_SHOWN_SKIPPED: Final = 10
"""Number of skipped pages that a summary lists; :attr:`Summary.skipped` has all."""
_MOST: Final = 10
_MAX_NAMED: Final = 3
NAMES_OF_PARTS: Final = ("(claims)", "(encoding)", "(front matter)", "(link)")
"""What the names of parts end with that were left out of pages that are stored."""
_FIRST_LINES: Final = ("pages", "chunk", "links")


class UnreadablePageError(ValueError):
    """A page cannot be read; the message says why, for the report on skipped pages."""


class EmptyPageError(UnreadablePageError):
    """A page could be read, and has no text: what is stored of it goes, as if it had been deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """A page that a source offers.

    Args:
        url: Names the page within its source, and stays the same from run to run.
        digest: Changes whenever the page would be read otherwise; compared with that of the last run.
        read: Reads the page: chunks, or documents that are stored as they are (with the links of
            extractors added). It may raise UnreadablePageError or OSError: the page is then reported
            and skipped.
        again: Whether the page was offered before in this run, with less known of it.
        size: About how many bytes are to be read, 0 if that is not known. Large pages are read in a process
            of their own, which ends if that takes too long.
        apart: Whether it has such a process however small it is, since what reads it may crash.
        outline: What the source wants to be told of the page at the next run: see :class:`Resumable`.
    """

    url: str
    digest: str
    read: PageReader
    again: bool = False
    size: int = 0
    apart: bool = False
    outline: str = ""

    @property
    def name(self) -> str:
        """The name by which it is reported: its URL."""
        return self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class BadInput:
    """Something in a source that is not a readable page. It is reported by name; the rest is indexed.

    Args:
        name: Where it is: a page's URL, a line of a file. What is stored of a page of this name stays, unless
            it is ``empty``.
        reason: What is wrong with it.
        hides: Says that this part of the source could not be seen: pages whose URLs begin with one of these
            may be there, and are not removed. An empty string stands for any page, an empty tuple for none
            that is stored. None (default): the input was seen, and is bad.
        guessed: Whether the part may as well be gone, such as an empty folder. It is reported only if pages
            of it are stored, and ``prune`` removes them.
        empty: Whether it is a page that was read and has no text.
    """

    name: str
    reason: str
    hides: tuple[str, ...] | None = None
    guessed: bool = False
    empty: bool = False


class OpenedSource(Protocol):
    """A source during a run."""

    @property
    def site(self) -> Site:
        """How the source names its pages, as extractors of hyperlinks and sections are told."""
        ...

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of documents for people that are not read here, by kind: ``{".rst": 3}``."""
        ...

    def __len__(self) -> int:
        """Return about how many pages there are, for progress, 0 if that is not known beforehand."""
        ...

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each page, once or, if more is known of it at the end, ``again``.

        A stored page that is not offered is gone, and is removed from the store, unless it is reported as
        bad, or part of what is reported as not seen. So a source must report whatever it could not look into.
        A source that raises removes nothing.

        Args:
            known: The digest of each page at the last run, by URL; empty for one that is to be read anew. A
                source that can tell that a page has not changed without reading it offers it with its digest.
        """
        ...


@runtime_checkable
class Selective(OpenedSource, Protocol):
    """An opened source whose settings may leave out pages stored by an earlier run."""

    def leaves_out(self, url: str) -> bool:
        """Say whether the settings leave out a page, which is then known to go."""
        ...


class Source(Protocol):
    """Where pages come from, and how they are read. Nothing is looked at before it is opened."""

    @property
    def name(self) -> str:
        """The name of the source within the store, where nothing else is asked for."""
        ...

    def open(self) -> AbstractContextManager[OpenedSource]:
        """Open the source for one run.

        Raises:
            SourceNotFoundError: If there is no such source.
        """
        ...


@runtime_checkable
class Resumable(Source, Protocol):
    """A source that reads less if it is given the outlines of its pages."""

    def resume(self, outlines: Mapping[str, str]) -> AbstractContextManager[OpenedSource]:
        """Open the source for one run.

        Args:
            outlines: The last :attr:`SourcePage.outline` of each stored page, by its name in the store.
        """
        ...


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
    """A source that can be divided into smaller parts."""

    def divide(self, partition: Partition) -> Source:
        """Return a part of it."""
        ...


def name_source(source: Source, given: str | None) -> str:
    """Return the name of a source in a store. A path need not be Unicode, and is spelled out then.

    Args:
        source: Whose own name it is by default.
        given: The name that the user gave, if any.

    Raises:
        ArgumentError: If this is not a source.
    """
    require_having("open", "a Source, such as FolderSource(path)", source=source)
    if given is not None:
        require(str, "a string", source=given)
    return escape_surrogates(source.name if given is None else given)


def open_again(source: Source, states: Mapping[str, tuple[str, str]]) -> AbstractContextManager[OpenedSource]:
    """Open a source for a run, given the digests and outlines of its stored pages."""
    if isinstance(source, Resumable):
        return source.resume({page: outline for page, (_, outline) in states.items() if outline})
    return source.open()


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

    def __str__(self) -> str:
        (kind, count), *others = self.kinds.items()
        rest = "".join(f", {count:,} of {kind}" for kind, count in others)
        return f"{format_count(count, 'letter')} of {kind}{rest} on {format_count(self.pages, 'page')}"

    @classmethod
    def of(cls, found: Mapping[str, Mapping[str, int]]) -> LeftOut:
        """Sum up how many letters of each kind were left out of each page."""
        pages = {page: sum(kinds.values()) for page, kinds in found.items()}
        kinds: Counter[str] = Counter()
        for of_page in found.values():
            kinds.update(of_page)
        return cls(
            letters=kinds.total(),
            pages=len(pages),
            kinds=_sort_by_count(kinds),
            most=_sort_by_count(pages, _MOST),
        )


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
        most = _sort_by_count(found, _MOST)
        return cls(replaced=sum(found.values()), pages=len(found), most=most, guessed=guessed)


def _sort_by_count(counts: Mapping[str, int], most: int | None = None) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result of a run of :func:`~linkstore.ingest.index`.

    Args:
        pages: How many pages of the source were added, updated, and removed.
        chunks: Documents written.
        links: Links written, by kind.
        dangling: Hyperlinks that lead to nothing, in the whole store. None for a dry run and for a part of a
            source, which do not count them.
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
            counted by a dry run or for a part.
        dry_run: Whether nothing was written: the counts are of what would have been.
    """

    pages: WriteCounts
    chunks: int
    links: Mapping[str, int]
    skipped: Mapping[str, str]
    unseen: tuple[str, ...] = ()
    left_out: LeftOut = LeftOut()
    encodings: Encodings = Encodings()
    unread: Mapping[str, int] = field(default_factory=dict)
    dangling: Dangling | None = None
    linked: tuple[LinkedPage, ...] = ()
    dry_run: bool = False

    def __repr__(self) -> str:
        first = [" ".join(line.split()) for line, _ in self.list_lines() if line[:5] in _FIRST_LINES]
        return f"<Summary: {'; '.join(first)}>"

    def __str__(self) -> str:
        return "\n".join(line for line, _ in self.list_lines())

    def _repr_html_(self) -> str:
        """Return the summary for a notebook, as the command line prints it."""
        return f"<pre>{escape_html(str(self))}</pre>"

    def list_lines(self) -> Iterator[tuple[str, bool]]:
        """Yield the lines of a report, each with whether it is about something that went wrong."""
        pages, encodings = self.pages, self.encodings
        done = "to write" if self.dry_run else "written"
        if self.dry_run:
            yield "dry run   nothing was written", False
        yield (
            (
                f"pages     {pages.added:,} added, {pages.updated:,} updated, {pages.unchanged:,} unchanged,"
                f" {pages.removed:,} removed"
            ),
            False,
        )
        yield f"chunks    {self.chunks:,} {done}", False
        yield f"links     {format_kinds(self.links)} {done}", False
        if self.dangling is not None:
            yield f"dangling  {self.dangling.internal:,} internal, {self.dangling.external:,} external", False
        if self.left_out.letters:
            yield f"left out  {self.left_out}", False
        if self.unread:
            yield f"left out  {describe_unread(self.unread)}", False
        if encodings.replaced:
            lost, on = format_count(encodings.replaced, "character"), format_count(encodings.pages, "page")
            most = list_first(list(encodings.most), encodings.pages)
            yield f"encoding  {lost} replaced by U+FFFD on {on} ({most})", True
        if encodings.guessed:
            on = format_count(encodings.guessed, "page")
            yield (
                (f"encoding  {on} without a declaration read as windows-1252; --encoding names another"),
                True,
            )
        for number, page in enumerate(self.linked):
            title = "linked  " if number == 0 else " " * 8
            yield f"{title}{page.links:>6,}  {page.url}", False
        for name, reason in list(self.skipped.items())[:MAX_SHOWN_SKIPPED]:
            yield f"{'left out' if name.endswith(NAMES_OF_PARTS) else 'skipped':<10}{name}: {reason}", True
        if len(self.skipped) > MAX_SHOWN_SKIPPED:
            more = len(self.skipped) - MAX_SHOWN_SKIPPED
            yield f"          (+{more:,} more; --report FILE writes all)", True


def list_first(names: Sequence[str], count: int) -> str:
    """List a few of ``count`` names."""
    return ", ".join(names[:_MAX_NAMED]) + (", …" if count > _MAX_NAMED else "")


class IndexingError(LinkStoreError):
    """A run ended without the requested result; its work so far is kept.

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
    counts = {True: 0, False: 0}
    for dangling_kind, tag, links in survey.dangling:
        if dangling_kind == kind:
            counts[is_internal_tag(tag)] += links
    return Dangling(internal=counts[True], external=counts[False])


@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """How the stored pages of a source differ from it, each page by its name in the store.

    Args:
        source: Name of the source in the store.
        unchanged: How many pages are as they were.
        changed: Pages that have changed, or lost documents in the store.
        added: Pages of the source that are not stored; those that indexing skips are not among them.
        gone: Stored pages that the source does not have any more.
        unread: What could not be looked at, by name, with the reason.
    """

    source: str
    unchanged: int
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def fresh(self) -> bool:
        """Whether the store has what the source has."""
        return not (self.changed or self.added or self.gone or self.unread)


def staleness(store: CoreStore, source: Source, name: str | None = None) -> Staleness:
    """Compare the digests of a source's pages with those of the last run.

    The settings by which pages become documents are not compared, since the store does not record them.
    Indexing again with others writes all pages anew. Only pages that are not stored are parsed. A source on
    disk hashes the others. One that has other marks of a change, such as a website, does not load those that
    have not changed.

    Args:
        store: Where the source was indexed to.
        source: The source, made with the settings that it was indexed with.
        name: Name of the source in the store, default the name it has by itself.

    Raises:
        SourceNotFoundError: If there is no such source.
    """
    require_having("survey", "a store, such as LinkStore.open('kb')", store=store)
    name = name_source(source, name)
    states = store.pages.states(name)
    with open_again(source, states) as opened:
        return _compare({page: digest for page, (digest, _) in states.items()}, opened, name)


def _compare(pages: Mapping[str, str], source: OpenedSource, name: str) -> Staleness:
    site = source.site
    stored = {page: digest.partition(":")[2] for page, digest in pages.items()}
    lead = site.place("")
    digests = {page.removeprefix(lead): digest for page, digest in stored.items()}
    left, hidden, unchanged = set(stored), set[str](), 0
    changed, added, unread = set[str](), set[str](), set[tuple[str, str]]()
    for offered in source.pages(digests):
        page = site.place(offered.name)
        if isinstance(offered, SourcePage):
            left.discard(page)
            if page in stored and stored[page] == offered.digest:
                unchanged += not offered.again
            elif page in stored:
                changed.add(page)
            else:
                try:
                    added |= {page} if offered.read() else set()
                except (UnreadablePageError, LinkError):
                    pass  # indexing skips it too, and reports it
                except OSError as error:
                    unread.add((offered.url, str(error)))
        elif offered.hides is not None:
            hidden.update(site.place(hide) if hide else "" for hide in offered.hides)
            unread |= set() if offered.guessed else {(offered.name, offered.reason)}
        elif page in left:  # a stored page has become unreadable
            left.discard(page)
            changed.add(page)
    return Staleness(
        source=name,
        unchanged=unchanged,
        changed=tuple(sorted(changed)),
        added=tuple(sorted(added)),
        gone=tuple(sorted(page for page in left if not page.startswith(tuple(hidden)))),
        unread=tuple(sorted(unread)),
    )

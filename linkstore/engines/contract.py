"""The contract between linkstore and a storage engine, stated case by case in docs/contract.md.

An engine answers a plan with a reader, which has a method for each kind of fetch. A method is a generator of
whatever the engine waits for. An engine that computes its answers in place writes
plain methods and marks them :func:`as_operation`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from linkstore.core.arrays import Bools, Floats, Ints
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.links import Link
from linkstore.core.plans import (
    Candidates,
    Documents,
    EngineOperation,
    Fetch,
    Find,
    Groups,
    Ids,
    Lexical,
    LexicalMatches,
    Matching,
    Members,
    Memberships,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    StoredDocument,
    Tags,
    Vectors,
)
from linkstore.core.vocabulary import Vocabulary
from linkstore.errors import EmbeddingError

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A document ready to be stored.

    Args:
        id: Not empty, no NUL, valid Unicode.
        text: The content of the document.
        metadata: Plain JSON; its ``links`` are as the document's author wrote them.
        vector: (d,) float32 of unit length.
        links: The links in its metadata, read and merged.
    """

    id: str
    text: str
    metadata: Mapping[str, Any]
    vector: Floats
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEntry:
    """The record of an indexed page.

    Args:
        source: The site or folder it belongs to.
        url: The page within its source.
        digest: Hash of what was indexed.
        ids: The documents made of it.
    """

    source: str
    url: str
    digest: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPage:
    """An indexed page and the number of links to it.

    Args:
        source: The site or folder it belongs to.
        url: The page within its source.
        links: How many links lead to its documents from documents of other pages.
    """

    source: str
    url: str
    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBatch:
    """One write. Each document is written whole or not at all; for the change as a whole see W-7.

    Args:
        put: Records to add, or to replace by id; of several with the same id the last counts.
        remove: Ids to remove; unknown ones are ignored.
        put_pages: Page entries to add or replace.
        remove_pages: (source, url) of page entries to remove.
    """

    put: Sequence[Record] = ()
    remove: Sequence[str] = ()
    put_pages: Sequence[PageEntry] = ()
    remove_pages: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCounts:
    """The effect of changes, in numbers of documents or pages; those of several changes can be added."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0

    @property
    def total(self) -> int:
        """The number of documents or pages passed that are stored now."""
        return self.added + self.updated + self.unchanged

    def __add__(self, other: WriteCounts) -> WriteCounts:
        if not isinstance(other, WriteCounts):
            return NotImplemented
        return WriteCounts(
            added=self.added + other.added,
            updated=self.updated + other.updated,
            unchanged=self.unchanged + other.unchanged,
            removed=self.removed + other.removed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The settings that a store records: its embedding and dimension.

    Args:
        embedding: Name of the embedding it was built with; None before the first document.
        dimension: Length of its vectors; None before the first document.
    """

    embedding: str | None = None
    dimension: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The counts of a store's content.

    Args:
        documents: How many documents.
        pages: How many page entries.
        links: Links by kind; a bidirectional link counts once.
        groups: Link groups with at least one member.
        dangling: (kind, tag, links) of groups that links point at and no document answers to.
    """

    documents: int
    pages: int
    links: Mapping[str, int]
    groups: int
    dangling: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem that ``verify`` found.

    Args:
        problem: What is wrong, in words.
        count: How many times.
        examples: A few of the places.
    """

    problem: str
    count: int
    examples: tuple[str, ...] = ()


_MAX_EXAMPLES: Final = 5


def make_findings(problem: str, places: Sequence[str]) -> list[Finding]:
    """Return the finding of a problem in these places, with the first as examples; none without places."""
    examples = tuple(places[:_MAX_EXAMPLES])
    return [Finding(problem=problem, count=len(places), examples=examples)] if places else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of ``verify`` or ``repair``; a store without findings is sound."""

    findings: tuple[Finding, ...] = field(default=())

    @property
    def sound(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class StoredLinks:
    """The links of all documents, as columns.

    Where a document has several links with one tag, one of them may lead out or in for the others.

    Args:
        ids: The ids of all documents.
        groups: Kind and tag of each link group.
        document: (m,) for each link the position of its document in ``ids``.
        group: (m,) for each link the position of its link group in ``groups``.
        leads_out: (m,) whether it leads from its document to others.
        leads_in: (m,) whether it leads from others to its document.
    """

    ids: Sequence[str]
    groups: Sequence[tuple[str, str]]
    document: Ints
    group: Ints
    leads_out: Bools
    leads_in: Bools


class StorageEngine(ABC):
    """What only a storage engine can do. ``bookkeeping.Backend`` adds what all engines do alike.

    Beside documents and page entries an engine keeps notes, short texts by name.
    """

    @abstractmethod
    def manifest(self) -> EngineOperation[Manifest]:
        """Return the recorded name and dimension of the embedding."""

    @abstractmethod
    def claim(self, manifest: Manifest) -> EngineOperation[Manifest]:
        """Record the embedding if none is recorded yet, and return the recorded one."""

    @abstractmethod
    def write(self, change: WriteBatch) -> EngineOperation[WriteCounts]:
        """Apply a change, and record the names that it brings. An acknowledged change is durable."""

    @abstractmethod
    def relink(
        self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
    ) -> EngineOperation[WriteCounts]:
        """Replace the links of some kinds in stored documents, and keep everything else in them.

        The links are replaced in the current version of each document: an acknowledged update is kept, and
        a removed document stays removed.

        Args:
            kinds: Links of these kinds are removed.
            links: The links that replace them, by document id. Ids that are not stored are ignored.
        """

    @abstractmethod
    def touch(self, times: Mapping[str, int]) -> EngineOperation[int]:
        """Record when documents were last accessed, in microseconds since 1970 (UTC).

        Return how many of the documents are stored, ignore the others, and keep the latest time of each.
        """

    @abstractmethod
    def accessed(self, ids: Sequence[str]) -> EngineOperation[dict[str, int]]:
        """Return when documents were last accessed, without documents for which no access is recorded."""

    @abstractmethod
    def pages(
        self, source: str | None, urls: Sequence[str] | None = None
    ) -> EngineOperation[list[PageEntry]]:
        """Return the page entries of a source (None: of all) with these urls (None: all), by source and url.

        With urls, the cost follows the number of urls and the number of sources.
        """

    @abstractmethod
    def scan(self, after: str | None, limit: int) -> EngineOperation[list[Record]]:
        """Return up to ``limit`` records after this id (None: from the first), in the engine's order."""

    @abstractmethod
    def links(self) -> EngineOperation[StoredLinks]:
        """Return the links of all documents, at a cost that follows the size of the store."""

    @abstractmethod
    def read_notes(self, names: Sequence[str] | None) -> EngineOperation[dict[str, str]]:
        """Return the notes with these names (None: all)."""

    @abstractmethod
    def add_notes(self, names: Collection[str]) -> EngineOperation[None]:
        """Add notes without a text, each of which records a name, unless they exist."""

    @abstractmethod
    def exchange_note(
        self, name: str, value: str | None, expected: str | None
    ) -> EngineOperation[str | None]:
        """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards.

        If two clients set the same text at the same time, both get that text back.
        """

    @abstractmethod
    def collect_names(self) -> EngineOperation[Vocabulary]:
        """Return the names that the stored documents use, read from all readable ones."""

    @abstractmethod
    def flush(self) -> EngineOperation[None]:
        """Bring all derived data up to date with the documents."""

    @abstractmethod
    def compact(self) -> EngineOperation[None]:
        """Erase deleted and replaced content from all files, and shrink the files.

        An engine whose storage does this by itself, in its own time, does nothing.
        """

    @abstractmethod
    def inspect(self, *, repair: bool) -> EngineOperation[list[Finding]]:
        """Derive again what is derived from the documents, and return how the stored data differ from it.

        Args:
            repair: Whether to replace what differs. Otherwise nothing is changed.
        """

    @abstractmethod
    def run(self, operation: EngineOperation[T]) -> T:
        """Drive one of the engine's own operations, blocking."""

    @abstractmethod
    async def arun(self, operation: EngineOperation[T]) -> T:
        """Drive one of the engine's own operations without blocking the event loop."""

    @abstractmethod
    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> EngineOperation[T]:
        """Answer a plan from one consistent view.

        Args:
            plan: The plan.
            scope: The condition that a document must pass to exist for the plan. All answers are those of a
                store with only such documents: results, word frequencies, and sizes of link groups.
        """

    @abstractmethod
    def close(self) -> None:
        """Release everything. Further use raises StoreClosedError, and closing twice is fine."""


def check_dimension(records: Iterable[Record], dimension: int | None) -> None:
    """Check that the vectors of records have the claimed dimension.

    Raises:
        EmbeddingError: If none was claimed, or a vector has another one, with the document in the message.
    """
    for record in records:
        if dimension is None or len(record.vector) != dimension:
            raise EmbeddingError(
                f"document {record.id!r} has a vector of dimension {len(record.vector)};"
                f" the store holds {'none yet: claim one first' if dimension is None else dimension}"
            )


P = ParamSpec("P")
Self_ = TypeVar("Self_")


class Reader(ABC):
    """A view of a store in which no document changes, and only documents of the scope exist.

    The refs that it returns are valid while it is open.
    """

    @abstractmethod
    def nearest(self, fetch: Nearest) -> EngineOperation[Candidates]:
        """Answer a :class:`linkstore.core.plans.Nearest`."""

    @abstractmethod
    def find(self, fetch: Find) -> EngineOperation[Candidates]:
        """Answer a :class:`linkstore.core.plans.Find`."""

    @abstractmethod
    def groups(self, fetch: Groups) -> EngineOperation[Memberships]:
        """Answer a :class:`linkstore.core.plans.Groups`."""

    @abstractmethod
    def resolve(self, fetch: Resolve) -> EngineOperation[Ints]:
        """Answer a :class:`linkstore.core.plans.Resolve`."""

    @abstractmethod
    def members(self, fetch: Members) -> EngineOperation[ReachedMembers]:
        """Answer a :class:`linkstore.core.plans.Members`."""

    @abstractmethod
    def matching(self, fetch: Matching) -> EngineOperation[Bools]:
        """Answer a :class:`linkstore.core.plans.Matching`."""

    @abstractmethod
    def vectors(self, fetch: Vectors) -> EngineOperation[Floats]:
        """Answer a :class:`linkstore.core.plans.Vectors`."""

    @abstractmethod
    def ids(self, fetch: Ids) -> EngineOperation[list[str]]:
        """Answer a :class:`linkstore.core.plans.Ids`."""

    @abstractmethod
    def tags(self, fetch: Tags) -> EngineOperation[list[tuple[str, str]]]:
        """Answer a :class:`linkstore.core.plans.Tags`."""

    @abstractmethod
    def documents(self, fetch: Documents) -> EngineOperation[list[StoredDocument]]:
        """Answer a :class:`linkstore.core.plans.Documents`."""

    @abstractmethod
    def lexical(self, fetch: Lexical) -> EngineOperation[LexicalMatches]:
        """Answer a :class:`linkstore.core.plans.Lexical`.

        Raises:
            CapabilityError: If the store has no lexical search; the message says what to do.
        """

    def answer(self, fetch: Fetch[A]) -> EngineOperation[A]:
        """Return the operation that answers a fetch."""
        operation: EngineOperation[A] = getattr(self, _METHODS[type(fetch)])(fetch)
        return operation


_METHODS: Final[Mapping[type[Fetch[Any]], str]] = {
    Nearest: "nearest",
    Find: "find",
    Groups: "groups",
    Resolve: "resolve",
    Members: "members",
    Matching: "matching",
    Vectors: "vectors",
    Ids: "ids",
    Tags: "tags",
    Documents: "documents",
    Lexical: "lexical",
}
"""The names of the methods of readers that answer fetches."""


def as_operation(
    method: Callable[Concatenate[Self_, P], T],
) -> Callable[Concatenate[Self_, P], EngineOperation[T]]:
    """Make an operation of a method that computes its answer without waiting."""

    @functools.wraps(method)
    def operation(self: Self_, /, *args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, T]:
        yield from ()
        return method(self, *args, **kwargs)

    return operation

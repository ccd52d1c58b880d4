"""The protocol of link extractors, and finding the installed ones.

The links of some extractors depend on a document, and on the number of documents of the corpus that have each
of certain *keys*, such as names or phrases. When documents are added or removed, the links of others can
change only if they have a key whose count changed. A *review* finds these documents in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from langchain_core.documents import Document

from linkstore.core.links import Link
from linkstore.errors import ExtractionError

ENTRY_POINT_GROUP: Final = "linkstore.extractors"
"""Packages register a factory (class or function) for each extractor under this group."""
FOR_DOCUMENTS: Final = " (LinkStore.from_documents finds the links in LangChain's documents)"
"""What the message says where an extractor is given something else than it reads."""
SourceT_contra = TypeVar("SourceT_contra", contravariant=True)
Review = Callable[[Document], bool]
"""Shown a stored document, takes it into account and says whether its links may have changed."""


class Hyperlink(NamedTuple):
    """A hyperlink as the author wrote it.

    Attributes:
        href: The target, unresolved.
        label: The anchor text, white space folded; may be empty.
    """

    href: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The properties that the chunks of one page have in common.

    Args:
        url: Where the page lies: its path from the root of the site, or an absolute URL.
        title: The page's title; may be empty.
        base: What ``<base href>`` says, if anything.
        aliases: Further URLs of the same page: its canonical URL, redirects that end here.
        metadata: What else its documents carry; plain JSON.
        left_out: How many of its letters are in no chunk, by what they are taken for: ``"navigation"``.
        disbelieved: URLs of other sites that it says are its own; links to them do not lead to it.
        replaced: How many characters stand for bytes that are not in its encoding, as U+FFFD.
        guessed: Whether it declares no encoding, and was read as windows-1252.
        problem: Which part of it could not be read and why, as ``"front matter: …"``; None if all could.
    """

    url: str
    title: str = ""
    base: str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    disbelieved: tuple[str, ...] = ()
    replaced: int = 0
    guessed: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One piece of a page, as it will be stored.

    Args:
        page: The page it belongs to.
        text: Its text, headings included.
        index: Its place on the page, from 0; the bare page URL leads to chunk 0.
        fragment: The fragment that leads to this chunk in its own URL; None for the page itself.
        headings: The headings above it, outermost first.
        anchors: The fragments (``id``, ``name``) that lie inside this chunk.
        hyperlinks: The hyperlinks in it, in order.
        section: A name for the chunk that is unique on its page.
        parent: ``section`` of the chunk with the enclosing heading, if any.
        previous: ``section`` of the chunk before, if any.
        next: ``section`` of the chunk after, if any.
        links: Links that its source knows of by itself, such as categories.
    """

    page: Page
    text: str
    index: int = 0
    fragment: str | None = None
    headings: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    hyperlinks: tuple[Hyperlink, ...] = ()
    section: str = ""
    parent: str | None = None
    previous: str | None = None
    next: str | None = None
    links: tuple[Link, ...] = ()


@runtime_checkable
class LinkExtractor(Protocol[SourceT_contra]):
    """Reads a source of one type and says which links it carries."""

    def extract(self, source: SourceT_contra) -> tuple[Link, ...]:
        """Return the links of ``source``, in order of appearance. The same source gives the same links."""
        ...


@runtime_checkable
class CorpusExtractor(LinkExtractor[SourceT_contra], Protocol[SourceT_contra]):
    """An extractor that needs the corpus; it may observe in several parts, before extracting."""

    def observe(self, sources: Iterable[SourceT_contra]) -> None:
        """Take these sources into account from now on."""
        ...


@runtime_checkable
class QueryExtractor(Protocol):
    """Says which links a question names, such as identifiers and keywords."""

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return links to start a search from, none if the question names none."""
        ...


def extractor_names() -> tuple[str, ...]:
    """Return the names of all installed extractors, sorted."""
    _list_entry_points.cache_clear()  # one may have been installed
    return tuple(sorted(_list_entry_points()))


def load_extractor(name: str, **options: Any) -> LinkExtractor[Any]:
    """Make an installed extractor.

    Args:
        name: Its entry-point name, such as ``"hyperlink"``.
        options: Handed to the factory. What it does not know raises TypeError there.

    Raises:
        ExtractionError: If the extractor is not installed or has no extract() method.
        MissingExtraError: If it needs an optional dependency.
    """
    factory: Callable[..., Any] = _find_entry_point(name).load()
    extractor = factory(**options)
    if not isinstance(extractor, LinkExtractor):
        raise ExtractionError(
            f"extractor {name!r} makes a {type(extractor).__name__}, which has no extract() method"
        )
    return extractor


@cache
def _list_entry_points() -> Mapping[str, EntryPoint]:
    """Look for extractors in all installed packages, which takes longer than reading a few pages."""
    return {point.name: point for point in reversed(list(entry_points(group=ENTRY_POINT_GROUP)))}


def _find_entry_point(name: str) -> EntryPoint:
    if name not in _list_entry_points() and name not in (names := extractor_names()):
        installed = ", ".join(names) or "none"
        raise ExtractionError(f"no extractor named {name!r} is installed; installed: {installed}")
    return _list_entry_points()[name]


@runtime_checkable
class UpkeepExtractor(CorpusExtractor[Document], Protocol):
    """A corpus extractor whose links are kept up to date as documents come and go.

    A run with this extractor replaces all links of its kinds, including those that you wrote: give links of
    your own another kind.
    """

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the links that the extractor makes; they are its own."""
        ...

    def keys(self, document: Document) -> frozenset[str]:
        """Return the keys whose counts the document increases by 1."""
        ...

    def review(self, before: Mapping[str, int], after: Mapping[str, int]) -> Review:
        """Begin a pass over the whole corpus, instead of :meth:`observe`, by an extractor that is new.

        Once every document was shown to the review, :meth:`extract` gives the links of the documents that it
        found, and of those whose keys are in ``after``.

        Args:
            before: How many of the documents that were replaced or removed had each key.
            after: How many of those that were added or came in their place have it.
        """
        ...

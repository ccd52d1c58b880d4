"""The protocol of a source: it lists its pages, and reads each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from langchain_core.documents import Document

from linkstore.arguments import require, require_having
from linkstore.extraction import Chunk
from linkstore.text import in_unicode
from linkstore.urls import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """A page that a source offers.

    Args:
        url: Names the page within its source, and stays the same from run to run.
        digest: Changes whenever the page would be read otherwise; compared with that of the last run.
        read: Reads the page: chunks, or documents that are stored as they are (with the links of
            extractors added). It may raise UnreadablePageError or OSError: the page is then reported
            and skipped.
    """

    url: str
    digest: str
    read: Callable[[], Sequence[Chunk] | Sequence[Document]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadInput:
    """Something in a source that is not a readable page. It is reported by name; the rest is indexed.

    Args:
        name: Where it is: a page's URL, a line of a file. What is stored of a page of this name stays.
        reason: What is wrong with it.
        hides: Says that this part of the source could not be seen: a page whose URL begins with this may be
            there, and is not removed. Empty: any page. None (default): nothing is hidden, the input is bad.
        guessed: Whether the part may as well be gone, such as an empty folder. It is reported only if pages
            of it are stored, and ``prune`` removes them.
    """

    name: str
    reason: str
    hides: str | None = None
    guessed: bool = False


class Source(Protocol):
    """Where pages come from."""

    @property
    def name(self) -> str:
        """The name of the source within the store, where nothing else is asked for."""
        ...

    @property
    def site(self) -> Site:
        """How the source names its pages, as extractors of hyperlinks and sections are told."""
        ...

    def __len__(self) -> int:
        """Return about how many pages there are, for progress, 0 if that is not known beforehand."""
        ...

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each page once.

        A stored page that is not offered is gone, and is removed from the store, unless it is reported as
        bad, or part of what is reported as not seen. So a source must report whatever it could not look into.
        A source that raises removes nothing.

        Args:
            known: The digest of each page at the last run, by URL. A source that can tell that a page
                has not changed without reading it offers it with that digest.

        Raises:
            SourceNotFoundError: If there is no such source.
        """
        ...


@runtime_checkable
class Selective(Protocol):
    """A source that does not read everything in it that people read."""

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of such files, by kind, most first: ``{".rst": 3}``."""
        ...


def name_of(source: Source, given: str | None) -> str:
    """Return the name of a source in a store. A path need not be Unicode, and is spelled out then.

    Args:
        source: Whose own name it is by default.
        given: The name that the user gave, if any.

    Raises:
        ArgumentError: If this is not a source.
    """
    require_having("pages", "a Source, such as FolderSource(path)", source=source)
    if given is not None:
        require(str, "a string", source=given)
    return in_unicode(source.name if given is None else given)

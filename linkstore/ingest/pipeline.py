"""Index a source: read what changed, store it page by page, remove what is gone.

Pages stream from the source to the store. What is held of each page, beside those on their way, is its
URL and digest as of the last run: about 300 bytes a page, none on a first run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import xxhash
from langchain_core.documents import Document

from linkstore.errors import LinkError
from linkstore.extraction import LinkExtractor
from linkstore.ingest.documents import Linkers, extractor_name, page_documents
from linkstore.ingest.handover import handed_over, looked_over, with_corpus
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.relink import Upkeep
from linkstore.ingest.sink import PageDocuments, PageStore
from linkstore.ingest.source import BadInput, Source, SourcePage
from linkstore.ingest.summary import Dangling, PageCounts, Progress, Summary, count_dangling
from linkstore.links import LINKS_KEY
from linkstore.urls import Site

PIPELINE_VERSION: Final = 6
"""Raised whenever the same page would give other documents, so that all are read again."""

DEFAULT_LINKS: Final = ("hyperlink", "section", "citation")
"""The extractors used unless others are named; ``"keyword"`` is there for the asking."""

_REMOVED_AT_ONCE: Final = 512


def index_source(
    store: PageStore,
    source: Source,
    *,
    name: str | None = None,
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> Summary:
    """Bring a store up to date with a source of pages.

    Each page is replaced as a whole or not at all; pages that have not changed since the last run are
    left alone, and pages that are gone are removed with their links. What cannot be read or stored is
    reported by name, and what was stored of it before stays. A run that ends early keeps what was
    written; the next one goes on from there.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        source: Where they come from.
        name: Names the source within the store; default the name it has by itself.
        links: Names of link extractors, or extractors. With one that needs the corpus, such as
            ``"keyword"``, the documents of the run are held in memory until all are read; those of
            ``"mention"`` and ``"entity"`` are linked once they are stored, see
            :class:`~linkstore.ingest.relink.Upkeep`.
        progress: Called after each page.
        dry_run: Say what would be done, and write nothing. Pages are read, but nothing is embedded.

    Returns:
        What was done; counts of a dry run are of what would have been.

    Raises:
        SourceNotFoundError: If there is no such source.
        SourceConflictError: If another source of the store has a page of the same name.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    name = source.name if name is None else name
    linkers = Linkers(links, source.site)
    last = _LastRun.read(store, name, _salt(source, links), source.site)
    tally = _Tally()
    pages = _changed(source, last, linkers, tally, progress)
    if linkers.need_corpus:
        pages = with_corpus(store, linkers, pages)
    upkeep = Upkeep(store, () if dry_run else linkers.kept_up)
    outcomes = looked_over(store, name, pages) if dry_run else handed_over(upkeep, name, pages)
    for page, problem in outcomes:
        if problem is None:
            tally.stored(page, before=last.had(page.url))
        else:
            tally.skipped[page.url.removeprefix(last.lead)] = problem
    gone = [] if last.hidden else sorted(last.left)
    if dry_run:
        return tally.summary(None, removed=len(gone))
    for start in range(0, len(gone), _REMOVED_AT_ONCE):
        upkeep.remove_pages(name, gone[start : start + _REMOVED_AT_ONCE])
    tally.links.update(upkeep.settle().links)
    return tally.summary(store, removed=len(gone))


def _salt(source: Source, links: Sequence[str | LinkExtractor[Any]]) -> str:
    """Stands before each stored digest: of what the run says about how pages become documents."""
    names = [extractor_name(one) for one in links]
    said = repr((PIPELINE_VERSION, source.site, names))
    return f"{xxhash.xxh3_64(said.encode(errors='replace')).hexdigest()}:"


@dataclass(slots=True)
class _LastRun:
    """What the store knows of a source's pages, by their names in the store.

    Args:
        lead: What stands before the URLs of the source in their names.
        salt: Of this run.
        known: URL within the source → the source's digest, of pages that were indexed as they would be now.
        outdated: Pages that were indexed otherwise.
        left: Stored pages that the source has not offered yet.
        hidden: Whether some of them may only be hidden in bad input.
    """

    lead: str
    salt: str
    known: Mapping[str, str]
    outdated: frozenset[str]
    left: set[str]
    hidden: bool = False

    @classmethod
    def read(cls, store: PageStore, name: str, salt: str, site: Site) -> _LastRun:
        stored = store.pages(name)
        lead = site.placed("")
        known = {
            page.removeprefix(lead): digest.removeprefix(salt)
            for page, digest in stored.items()
            if digest.startswith(salt)
        }
        outdated = frozenset(page for page, digest in stored.items() if not digest.startswith(salt))
        return cls(lead=lead, salt=salt, known=known, outdated=outdated, left=set(stored))

    def had(self, page: str) -> bool:
        """Whether a page was there."""
        return page in self.outdated or page.removeprefix(self.lead) in self.known


@dataclass(slots=True)
class _Tally:
    """Counts of a run in progress."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    chunks: int = 0
    links: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)

    def stored(self, page: PageDocuments, *, before: bool) -> None:
        self.updated += before
        self.added += not before
        self.chunks += len(page.documents)
        self.links.update(
            link["kind"] for document in page.documents for link in document.metadata[LINKS_KEY]
        )

    def summary(self, store: PageStore | None, *, removed: int) -> Summary:
        """The summary; without a store nothing was written."""
        return Summary(
            pages=PageCounts(
                added=self.added, updated=self.updated, unchanged=self.unchanged, removed=removed
            ),
            chunks=self.chunks,
            links=dict(sorted(self.links.items())),
            skipped=self.skipped,
            dangling=Dangling() if store is None else count_dangling(store.survey()),
            linked=() if store is None else tuple(store.linked()),
            dry_run=store is None,
        )


def _changed(
    source: Source, last: _LastRun, linkers: Linkers, tally: _Tally, progress: Progress | None
) -> Iterator[PageDocuments]:
    """The pages that are new or changed, read; counts the others."""
    about = len(source)
    for done, offered in enumerate(source.pages(last.known), start=1):
        name = offered.name if isinstance(offered, BadInput) else offered.url
        placed = source.site.placed(name)
        last.left.discard(placed)
        if isinstance(offered, BadInput):
            tally.skipped[name] = offered.reason
            last.hidden |= offered.hides
        elif last.known.get(name) == offered.digest:
            tally.unchanged += 1
        elif documents := _read(offered, linkers, tally):
            yield PageDocuments(url=placed, digest=f"{last.salt}{offered.digest}", documents=documents)
        if progress is not None:
            progress(done, max(about, done) if about else 0, name)


def _read(page: SourcePage, linkers: Linkers, tally: _Tally) -> tuple[Document, ...]:
    """The page's documents; none if it cannot be read, which is noted."""
    try:
        documents = page_documents(page.read(), linkers)
    except (UnreadablePageError, LinkError, OSError) as error:
        tally.skipped[page.url] = str(error)
        return ()
    if not documents:
        tally.skipped[page.url] = "it has no text"
    return documents

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

from linkstore.extraction import LinkExtractor
from linkstore.ingest.documents import Linkers, extractor_name, page_documents
from linkstore.ingest.handover import handed_over, with_corpus
from linkstore.ingest.html_pages import UnreadablePageError
from linkstore.ingest.sink import PageDocuments, PageStore
from linkstore.ingest.source import BadInput, Source, SourcePage
from linkstore.ingest.summary import Dangling, PageCounts, Progress, Summary, count_dangling
from linkstore.links import LINKS_KEY

PIPELINE_VERSION: Final = 2
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
            ``"keyword"``, the documents of the run are held in memory until all are read.
        progress: Called after each page.
        dry_run: Say what would be done, and write nothing. Pages are read, but nothing is embedded.

    Returns:
        What was done; counts of a dry run are of what would have been.

    Raises:
        SourceNotFoundError: If there is no such source.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    name = source.name if name is None else name
    linkers = Linkers(links, source.site)
    last = _LastRun.read(store, name, _salt(source, links))
    tally = _Tally()
    pages = _changed(source, last, linkers, tally, progress)
    if linkers.need_corpus:
        pages = with_corpus(store, linkers, pages)
    for page, problem in ((page, None) for page in pages) if dry_run else handed_over(store, name, pages):
        if problem is None:
            tally.stored(page, last)
        else:
            tally.skipped[page.url] = problem
    gone = sorted(last.left)
    for start in range(0, 0 if dry_run else len(gone), _REMOVED_AT_ONCE):
        store.remove_pages(name, gone[start : start + _REMOVED_AT_ONCE])
    return tally.summary(None if dry_run else store, removed=len(gone))


def _salt(source: Source, links: Sequence[str | LinkExtractor[Any]]) -> str:
    """Stands before each stored digest: of what the run says about how pages become documents."""
    names = [extractor_name(one) for one in links]
    said = repr((PIPELINE_VERSION, source.site, names))
    return f"{xxhash.xxh3_64(said.encode(errors='replace')).hexdigest()}:"


@dataclass(slots=True)
class _LastRun:
    """What the store knows of a source's pages.

    Args:
        salt: Of this run.
        known: URL → the source's digest, of pages that were indexed as they would be now.
        outdated: URLs of those that were indexed otherwise.
        left: URLs of stored pages that the source has not offered yet.
    """

    salt: str
    known: Mapping[str, str]
    outdated: frozenset[str]
    left: set[str]

    @classmethod
    def read(cls, store: PageStore, name: str, salt: str) -> _LastRun:
        stored = store.pages(name)
        known = {url: digest.removeprefix(salt) for url, digest in stored.items() if digest.startswith(salt)}
        outdated = frozenset(stored.keys() - known.keys())
        return cls(salt=salt, known=known, outdated=outdated, left=set(stored))

    def __contains__(self, url: str) -> bool:
        return url in self.known or url in self.outdated


@dataclass(slots=True)
class _Tally:
    """Counts of a run in progress."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    chunks: int = 0
    links: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)

    def stored(self, page: PageDocuments, last: _LastRun) -> None:
        self.updated += page.url in last
        self.added += page.url not in last
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
            dry_run=store is None,
        )


def _changed(
    source: Source, last: _LastRun, linkers: Linkers, tally: _Tally, progress: Progress | None
) -> Iterator[PageDocuments]:
    """The pages that are new or changed, read; counts the others."""
    about = len(source)
    for done, offered in enumerate(source.pages(last.known), start=1):
        if isinstance(offered, BadInput):
            last.left.discard(offered.name)
            tally.skipped[offered.name] = offered.reason
            shown = offered.name
        else:
            shown = offered.url
            last.left.discard(shown)
            if last.known.get(shown) == offered.digest:
                tally.unchanged += 1
            else:
                documents = _read(offered, linkers, tally)
                if documents:
                    yield PageDocuments(url=shown, digest=f"{last.salt}{offered.digest}", documents=documents)
        if progress is not None:
            progress(done, max(about, done) if about else 0, shown)


def _read(page: SourcePage, linkers: Linkers, tally: _Tally) -> tuple[Document, ...]:
    """The page's documents; none if it cannot be read, which is noted."""
    try:
        documents = page_documents(page.read(), linkers)
    except (UnreadablePageError, OSError) as error:
        tally.skipped[page.url] = str(error)
        return ()
    if not documents:
        tally.skipped[page.url] = "it has no text"
    return documents

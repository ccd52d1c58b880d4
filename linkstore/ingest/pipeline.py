"""Indexes a source: reads what changed, stores it page by page, removes what is certainly gone.

Pages stream from the source to the store, in batches, which are embedded and written while the next are read.
Apart from the pages on their way, only the URL and the digest of each page from the last run are in memory:
about 300 bytes per page, nothing on a first run.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Protocol, TypedDict

import xxhash

from linkstore.core.arguments import require_having
from linkstore.core.batches import Progress, split_batches
from linkstore.core.display import format_count
from linkstore.core.documents import PageDocuments
from linkstore.core.links import LINKS_KEY
from linkstore.core.processes import slow_collector
from linkstore.core.urls import Site
from linkstore.errors import DocumentError, LinkError
from linkstore.extract.protocol import LinkExtractor, Page
from linkstore.ingest.documents import Linkers, Refusals, name_extractor
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.relink import Upkeep
from linkstore.ingest.source import (
    BadInput,
    Dangling,
    Encodings,
    LeftOut,
    Mending,
    NothingIndexedError,
    PageCounts,
    PageStore,
    PageWriter,
    RemovalRefusedError,
    Selective,
    Source,
    SourcePage,
    Summary,
    count_dangling,
    name_source,
)
from linkstore.ingest.workers import ReadAhead

PIPELINE_VERSION: Final = 10
"""Raised whenever the same page would give other documents, so that all are read again."""
DEFAULT_LINKS: Final = ("hyperlink", "section", "citation")
"""The extractors used unless others are named; ``"keyword"`` is there for the asking."""
_BATCH_DOCUMENTS: Final = 512
_BATCH_CHARACTERS: Final = 4 * 2**20
_WAITING: Final = 2
"""Batches that wait to be written."""
_REMOVED_AT_ONCE: Final = 512
_LOG: Final = logging.getLogger("linkstore.ingest")

Outcome = tuple[PageDocuments, str | None]
"""A page, and why it could not be stored: None if it was."""


class IndexOptions(TypedDict, total=False):
    """What all functions that index take: see :func:`index_source`."""

    links: Sequence[str | LinkExtractor[Any]]
    """Names of link extractors, or extractors."""
    progress: Progress | None
    """Called after each page."""
    dry_run: bool
    """Return what would be done, and write nothing."""
    prune: bool
    """Remove missing pages even if they are more than half of those stored."""
    jobs: int | None
    """How many processes read."""


@slow_collector()
def index_source(
    store: PageStore,
    source: Source,
    *,
    name: str | None = None,
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    progress: Progress | None = None,
    dry_run: bool = False,
    prune: bool = False,
    jobs: int | None = None,
) -> Summary:
    """Bring a store up to date with a source of pages.

    Each page is replaced as a whole or not at all. Pages that have not changed since the last run are left
    alone. What cannot be read or stored is reported by name, and what was stored of it before stays. A run
    that ends early keeps what was written, and the next one goes on from there.

    Pages are removed, with their links, only if they are known to be gone: nothing is removed of a part of
    the source that could not be seen (:attr:`Summary.unseen`), and nothing at all if more than half of the
    stored pages would go, unless ``prune`` says so.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        source: Where they come from.
        name: Names the source within the store, default the name it has by itself.
        links: Names of link extractors, or extractors. With one that needs the corpus, such as
            ``"keyword"``, the documents of the run are held in memory until all are read. Those of
            ``"mention"`` and ``"entity"`` are linked once they are stored, see
            :class:`~linkstore.ingest.relink.Upkeep`.
        progress: Called after each page.
        dry_run: Return what would be done, and write nothing. Pages are read, but nothing is embedded.
        prune: Remove missing pages even if they are more than half of those stored, or if their folder is
            empty now.
        jobs: How many processes read pages, once reading has shown that there is enough to do.
            1 reads in this process, None (default) has one for each core. The result is the same. With
            extractors that are not given by name, pages are read in this process. A page that takes one of
            the processes more than 10 s, or ends it, is reported and skipped.

    Returns:
        What was done, or for a dry run what would have been done.

    Raises:
        ArgumentError: If an argument has the wrong type, such as a path instead of a store or a source.
        SourceNotFoundError: If there is no such source.
        NothingIndexedError: If there is nothing in it that can be indexed, and nothing of it is stored.
        RemovalRefusedError: If more than half of its stored pages are gone. All else was done.
        SourceConflictError: If another source of the store has a page of the same name.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    require_having("check_pages", "a store, such as LinkStore.open('kb')", store=store)
    name = name_source(source, name)
    summary = _IngestRun(store, source, name, links, dry_run, jobs).run(progress, prune=prune)
    late = source.late() if isinstance(source, Mending) and not dry_run else None
    if late is None:
        return summary
    mended = _IngestRun(store, late, name, links, dry_run, jobs).run(None, mends=True)
    skipped = {**summary.skipped, **mended.skipped}
    return replace(summary, dangling=mended.dangling, linked=mended.linked, skipped=skipped)


class _IngestRun:
    """One run: reads and writes pages, and counts."""

    def __init__(
        self,
        store: PageStore,
        source: Source,
        name: str,
        links: Sequence[str | LinkExtractor[Any]],
        dry_run: bool,
        jobs: int | None,
    ) -> None:
        self.store = store
        self.source = source
        self.name = name
        self.linkers = Linkers(links, source.site)
        self.last = _LastRun(store.pages(name), _make_salt(source, links), source.site)
        self.upkeep = Upkeep(store, () if dry_run else self.linkers.kept_up)
        self.ahead = ReadAhead(self.linkers, links, jobs)
        self.dry_run = dry_run
        self.refusals = Refusals()
        self.added = self.updated = self.unchanged = self.chunks = self.guessed = 0
        self.links = Counter[str]()
        self.skipped: dict[str, str] = {}
        self.left_out: dict[str, Mapping[str, int]] = {}
        self.replaced: dict[str, int] = {}

    def run(self, progress: Progress | None, *, prune: bool = False, mends: bool = False) -> Summary:
        """Store the pages that changed, remove what is gone, unless that is most of the source.

        Args:
            progress: Called after each page.
            prune: See :func:`index_source`.
            mends: Whether this mends pages of a run that went before, and so removes nothing.
        """
        with closing(self._read_changed(progress)) as changed:
            self._store(changed)
        if mends:
            return self._end([])
        gone, stored = self.last.gone(prune=prune), self.last.stored
        refused = not prune and 2 * len(gone) > stored
        summary = self._end([] if refused else gone)
        if refused:
            raise RemovalRefusedError(
                f"{len(gone):,} of the {stored:,} stored pages of {self.name} are missing from it; they were"
                " kept, because the source may be incomplete. To remove them, use --prune (Python:"
                " prune=True)",
                summary,
            )
        if not stored and not summary.pages.total:
            raise NothingIndexedError(
                f"nothing was indexed from {self.name}: {_explain_nothing(summary)}", summary
            )
        return summary

    def _store(self, pages: Iterator[PageDocuments]) -> None:
        if self.linkers.need_corpus:
            pages = add_corpus_links(self.store, self.linkers, pages)
        outcomes = (
            preview_pages(self.store, self.name, pages)
            if self.dry_run
            else write_pages(self.upkeep, self.name, pages)
        )
        for page, problem in outcomes:
            if problem is not None:
                self._skip(page.url.removeprefix(self.last.lead), problem)
                continue
            if self.last.had(page.url):
                self.updated += 1
            else:
                self.added += 1
            self.chunks += len(page.documents)
            links = chain.from_iterable(document.metadata[LINKS_KEY] for document in page.documents)
            self.links.update(map(itemgetter("kind"), links))
            _LOG.info("stored %s: %s", page.url, format_count(len(page.documents), "document"))

    def _end(self, gone: Sequence[str]) -> Summary:
        """Remove what is gone, bring the links of the corpus up to date, and return what was done."""
        self.skipped.update(self.last.hiding(gone))
        for batch in () if self.dry_run else split_batches(gone, _REMOVED_AT_ONCE):
            self.upkeep.remove_pages(self.name, batch)
            _LOG.info("removed %s", ", ".join(batch))
        if not self.dry_run:
            self.links.update(self.upkeep.settle().links)
        return Summary(
            pages=PageCounts(
                added=self.added, updated=self.updated, unchanged=self.unchanged, removed=len(gone)
            ),
            chunks=self.chunks,
            links=dict(sorted(self.links.items())),
            skipped=self.skipped,
            unseen=tuple(sorted(self.last.unseen)),
            left_out=LeftOut.of(self.left_out),
            encodings=Encodings.of(self.replaced, self.guessed),
            unread=self.source.unread if isinstance(self.source, Selective) else {},
            dangling=Dangling() if self.dry_run else count_dangling(self.store.survey()),
            linked=() if self.dry_run else tuple(self.store.most_linked_pages()),
            dry_run=self.dry_run,
        )

    def _read_changed(self, progress: Progress | None) -> Generator[PageDocuments, None, None]:
        """Read and yield the pages that are new or changed, and count the others."""
        source, last = self.source, self.last
        about = len(source)
        offers = self.ahead.pages(source.pages(last.known), last.lacks, about)
        with closing(offers):
            for done, (offered, found) in enumerate(offers, start=1):
                name = offered.name if isinstance(offered, BadInput) else offered.url
                last.left.discard(source.site.placed(name))
                if isinstance(offered, BadInput):
                    self._take_down(offered)
                elif found is None:
                    self.unchanged += 1
                else:
                    if found.page is not None:
                        self._note(found.page, name)
                    if found.problem is None:
                        digest, url = f"{last.salt}{offered.digest}", source.site.placed(name)
                        yield PageDocuments(url=url, digest=digest, documents=found.documents)
                    else:
                        hides = name if found.unseen else None
                        self._take_down(BadInput(name=name, reason=found.problem, hides=hides))
                if progress is not None:
                    progress(done, max(about, done) if about else 0, name)
        for refused in self.refusals.report():
            self._take_down(refused)

    def _take_down(self, bad: BadInput) -> None:
        if bad.guessed and bad.hides is not None:
            self.last.guessed[bad.name] = (self.source.site.placed(bad.hides), bad.reason)
            return
        self._skip(bad.name, bad.reason)
        if bad.hides is not None:
            self.last.unseen[bad.name] = self.source.site.placed(bad.hides) if bad.hides else ""

    def _skip(self, name: str, reason: str) -> None:
        self.skipped[name] = reason
        _LOG.info("skipped %s: %s", name, reason)

    def _note(self, page: Page, url: str) -> None:
        """Count the parts of a page that are not stored, or not as they were meant."""
        for claimed in page.disbelieved:
            self.refusals.note(url, claimed)
        if page.left_out:
            self.left_out[url] = page.left_out
        if page.replaced:
            self.replaced[url] = page.replaced
        self.guessed += page.guessed


def _explain_nothing(summary: Summary) -> str:
    """Explain why nothing was indexed, in one line."""
    if not summary.skipped:
        return "it offers no page"
    (name, reason), *others = summary.skipped.items()
    more = f" (and {len(others):,} more like this)" if others else ""
    return f"{reason}{more}" if name == "." else f"{name}: {reason}{more}"


def _make_salt(source: Source, links: Sequence[str | LinkExtractor[Any]]) -> str:
    """Return the prefix of stored digests: a hash of the settings by which pages become documents."""
    names = [name_extractor(one) for one in links]
    said = repr((PIPELINE_VERSION, source.site, names))
    return f"{xxhash.xxh3_64(said.encode(errors='replace')).hexdigest()}:"


class _LastRun:
    """The stored pages of a source, by their names in the store.

    Args:
        pages: Their digests.
        salt: Of this run.
        site: How the source names its pages.
    """

    def __init__(self, pages: Mapping[str, str], salt: str, site: Site) -> None:
        self.salt = salt
        self.lead = site.placed("")
        self.stored = len(pages)
        self.left = set(pages)
        """Stored pages that the source has not offered yet."""
        self.known = {
            page.removeprefix(self.lead): digest.removeprefix(salt)
            for page, digest in pages.items()
            if digest.startswith(salt)
        }
        """URL within the source → the source's digest, of pages that were indexed as they would be now."""
        self.outdated = {page for page, digest in pages.items() if not digest.startswith(salt)}
        self.unseen: dict[str, str] = {}
        """Name of what could not be seen → what the names of pages there begin with; empty: any page."""
        self.guessed: dict[str, tuple[str, str]] = {}
        """The same of what may as well be gone, with the reason to keep it."""

    def lacks(self, page: SourcePage) -> bool:
        """Say whether a page is not stored as it would be now."""
        return self.known.get(page.url) != page.digest

    def had(self, page: str) -> bool:
        """Say whether a page was there."""
        return page in self.outdated or page.removeprefix(self.lead) in self.known

    def gone(self, *, prune: bool) -> list[str]:
        """Return the stored pages that are known to be gone, in order.

        A source that asks for each page it knows, such as a crawl, is not told of outdated ones. While
        anything was not seen, those may have been behind it.
        """
        hidden = set(self.unseen.values())
        if "" in hidden:
            return []
        hidden.update(() if prune else (lead for lead, _ in self.guessed.values()))
        leads = tuple(hidden)
        left = self.left - self.outdated if self.unseen else self.left
        return sorted(page for page in left if not page.startswith(leads))

    def hiding(self, gone: Collection[str]) -> dict[str, str]:
        """Return the parts whose pages may be gone but stay stored, with the reason to keep them."""
        kept = self.left.difference(gone)
        found = {
            name: reason
            for name, (lead, reason) in self.guessed.items()
            if any(page.startswith(lead) for page in kept)
        }
        self.unseen.update({name: self.guessed[name][0] for name in found})
        return found


def write_pages(store: PageWriter, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Write pages, and yield each once the store has acknowledged or refused it.

    Embedding and SQLite leave Python free, so one thread reads pages while another embeds a batch and a third
    writes the one before. If the run is interrupted, the batches that were handed over are still written.
    """

    def embed(batch: Sequence[PageDocuments]) -> Sequence[PageDocuments]:
        return store.embed_pages(source, batch)

    def put(batch: Sequence[PageDocuments]) -> Sequence[PageDocuments]:
        store.put_pages(source, batch)
        return batch

    def write(embedding: Future[list[Outcome]]) -> list[Outcome]:
        embedded = embedding.result()
        if all(problem is None for _, problem in embedded):
            return _try_batch(put, [page for page, _ in embedded])
        return [
            outcome
            for page, problem in embedded
            for outcome in (_try_batch(put, [page]) if problem is None else [(page, problem)])
        ]

    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-index") as writer,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-embed") as embedder,
    ):
        writing: deque[Future[list[Outcome]]] = deque()
        for batch in batch_pages(pages):
            writing.append(writer.submit(write, embedder.submit(_try_batch, embed, batch)))
            if len(writing) > _WAITING:
                yield from writing.popleft().result()
        for future in writing:
            yield from future.result()


def _try_batch(
    change: Callable[[Sequence[PageDocuments]], Sequence[PageDocuments]], batch: Sequence[PageDocuments]
) -> list[Outcome]:
    """Embed or write a batch at once, or page by page if one of its pages is not fit to be stored."""
    try:
        return [(page, None) for page in change(batch)]
    except (DocumentError, LinkError) as error:
        if len(batch) == 1:
            return [(batch[0], str(error))]
        return [outcome for page in batch for outcome in _try_batch(change, [page])]


def preview_pages(store: PageStore, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Yield the results of :func:`write_pages`, as far as they are known without writing."""
    for batch in batch_pages(pages):
        store.check_pages(source, [page.url for page in batch])
        yield from ((page, None) for page in batch)


def batch_pages(pages: Iterator[PageDocuments]) -> Iterator[list[PageDocuments]]:
    """Yield pages in batches of about 512 documents, or of about 4 Mi characters."""
    batch: list[PageDocuments] = []
    documents = characters = 0
    for page in pages:
        batch.append(page)
        documents += len(page.documents)
        characters += sum(len(document.page_content) for document in page.documents)
        if documents >= _BATCH_DOCUMENTS or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, documents, characters = [], 0, 0
    if batch:
        yield batch


def add_corpus_links(
    store: PageStore, linkers: Linkers, pages: Iterator[PageDocuments]
) -> Iterator[PageDocuments]:
    """Yield the pages with the links that need the corpus, which is the stored pages and the new ones."""
    read = list(pages)
    if not read:
        return
    replaced = {page.url for page in read}
    new = {document.id for page in read for document in page.documents}
    linkers.observe(
        document
        for document in store.scan()
        if document.id not in new and document.metadata.get("page") not in replaced
    )
    linkers.observe(document for page in read for document in page.documents)
    for page in read:
        for document in page.documents:
            linkers.complete(document)
        yield page


class DigestStore(Protocol):
    """A store that remembers the digests of indexed pages."""

    def pages(self, source: str) -> dict[str, str]:
        """Return the pages stored for a source: URL → digest of what was indexed."""
        ...


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


def staleness(store: DigestStore, source: Source, name: str | None = None) -> Staleness:
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
    require_having("pages", "a store, such as LinkStore.open('kb')", store=store)
    name, site = name_source(source, name), source.site
    stored = {page: digest.partition(":")[2] for page, digest in store.pages(name).items()}
    lead = site.placed("")
    known = {page.removeprefix(lead): digest for page, digest in stored.items() if digest}
    left, hidden, unchanged = set(stored), set[str](), 0
    changed, added, unread = list[str](), list[str](), list[tuple[str, str]]()
    for offered in source.pages(known):
        if isinstance(offered, SourcePage):
            page = site.placed(offered.url)
            left.discard(page)
            if page in stored and stored[page] == offered.digest:
                unchanged += 1
            elif page in stored:
                changed.append(page)
            else:
                try:
                    added += [page] if offered.read() else []
                except (UnreadablePageError, LinkError):
                    pass  # indexing skips it too, and reports it
                except OSError as error:
                    unread.append((offered.url, str(error)))
        elif offered.hides is not None:
            hidden.add(site.placed(offered.hides) if offered.hides else "")
            unread += [] if offered.guessed else [(offered.name, offered.reason)]
        elif (page := site.placed(offered.name)) in left:  # a stored page has become unreadable
            left.discard(page)
            changed.append(page)
    return Staleness(
        source=name,
        unchanged=unchanged,
        changed=tuple(sorted(changed)),
        added=tuple(sorted(added)),
        gone=tuple(sorted(page for page in left if not page.startswith(tuple(hidden)))),
        unread=tuple(sorted(unread)),
    )

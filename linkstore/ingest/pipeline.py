"""Indexes a source: reads what changed, stores it page by page, removes what is certainly gone.

Pages stream from the source to the store. Apart from the pages on their way, only the URL and the digest of
each page from the last run are in memory: about 300 bytes per page, nothing on a first run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import xxhash

from linkstore.core.display import format_count
from linkstore.core.documents import PageDocuments
from linkstore.core.links import LINKS_KEY
from linkstore.core.processes import slow_collector
from linkstore.core.urls import Site
from linkstore.extract.protocol import LinkExtractor
from linkstore.ingest.batches import add_corpus_links, preview_pages, write_pages
from linkstore.ingest.documents import Linkers, Refusals, name_extractor
from linkstore.ingest.relink import Upkeep
from linkstore.ingest.source import (
    BadInput,
    Dangling,
    Encodings,
    LeftOut,
    NothingIndexedError,
    PageCounts,
    PageStore,
    Progress,
    RemovalRefusedError,
    Selective,
    Source,
    SourcePage,
    Summary,
    check_store,
    count_dangling,
    name_source,
)
from linkstore.ingest.worker import ReadPage
from linkstore.ingest.workers import ReadAhead

PIPELINE_VERSION: Final = 10
"""Raised whenever the same page would give other documents, so that all are read again."""

DEFAULT_LINKS: Final = ("hyperlink", "section", "citation")
"""The extractors used unless others are named; ``"keyword"`` is there for the asking."""

_REMOVED_AT_ONCE: Final = 512
_LOG: Final = logging.getLogger("linkstore.ingest")


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
    check_store(store)
    run = _IngestRun.begun(store, source, name_source(source, name), links, dry_run=dry_run, jobs=jobs)
    run.read(progress)
    return run.concluded(prune=prune)


@slow_collector()
def index_again(
    store: PageStore,
    source: Source,
    *,
    name: str | None,
    links: Sequence[str | LinkExtractor[Any]],
    jobs: int | None = None,
) -> Summary:
    """Read pages once more that are due for it, after :func:`index_source`, and remove nothing."""
    run = _IngestRun.begun(store, source, name_source(source, name), links, dry_run=False, jobs=jobs)
    run.read(None)
    return run.ended([])


def _explain_nothing(summary: Summary) -> str:
    """Explain why nothing was indexed, in one line."""
    if not summary.skipped:
        return "it offers no page"
    (name, reason), *others = summary.skipped.items()
    more = f" (and {len(others):,} more like this)" if others else ""
    return f"{reason}{more}" if name == "." else f"{name}: {reason}{more}"


@dataclass(slots=True, kw_only=True)
class _IngestRun:
    """One run: reads and writes pages, and counts."""

    store: PageStore
    source: Source
    name: str
    linkers: Linkers
    last: _LastRun
    tally: _Tally
    upkeep: Upkeep
    ahead: ReadAhead
    dry_run: bool
    refusals: Refusals = field(default_factory=Refusals)

    @classmethod
    def begun(
        cls,
        store: PageStore,
        source: Source,
        name: str,
        links: Sequence[str | LinkExtractor[Any]],
        *,
        dry_run: bool,
        jobs: int | None,
    ) -> _IngestRun:
        linkers = Linkers(links, source.site)
        return cls(
            store=store,
            source=source,
            name=name,
            linkers=linkers,
            last=_LastRun.read(store, name, _make_salt(source, links), source.site),
            tally=_Tally(unread=source.unread if isinstance(source, Selective) else {}),
            upkeep=Upkeep(store, () if dry_run else linkers.kept_up),
            ahead=ReadAhead(linkers, links, jobs),
            dry_run=dry_run,
        )

    def read(self, progress: Progress | None) -> None:
        """Read and store the pages that changed."""
        with closing(self._changed(progress)) as changed:
            self._store(changed)

    def _store(self, pages: Iterator[PageDocuments]) -> None:
        if self.linkers.need_corpus:
            pages = add_corpus_links(self.store, self.linkers, pages)
        outcomes = (
            preview_pages(self.store, self.name, pages)
            if self.dry_run
            else write_pages(self.upkeep, self.name, pages)
        )
        for page, problem in outcomes:
            if problem is None:
                self.tally.stored(page, before=self.last.had(page.url))
                _LOG.info("stored %s: %s", page.url, format_count(len(page.documents), "document"))
            else:
                self._skip(page.url.removeprefix(self.last.lead), problem)

    def concluded(self, *, prune: bool) -> Summary:
        """Remove what is gone, unless that is most of the source, and return what was done."""
        gone, stored = self.last.gone(prune=prune), self.last.stored
        refused = not prune and 2 * len(gone) > stored
        summary = self.ended([] if refused else gone)
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

    def ended(self, gone: Sequence[str]) -> Summary:
        """Remove what is gone, bring the links of the corpus up to date, and return what was done."""
        self.tally.skipped.update(self.last.hiding(gone))
        unseen = tuple(sorted(self.last.unseen))
        if self.dry_run:
            return self.tally.summary(None, removed=len(gone), unseen=unseen)
        for start in range(0, len(gone), _REMOVED_AT_ONCE):
            batch = gone[start : start + _REMOVED_AT_ONCE]
            self.upkeep.remove_pages(self.name, batch)
            _LOG.info("removed %s", ", ".join(batch))
        self.tally.links.update(self.upkeep.settle().links)
        return self.tally.summary(self.store, removed=len(gone), unseen=unseen)

    def _changed(self, progress: Progress | None) -> Generator[PageDocuments, None, None]:
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
                    self.tally.unchanged += 1
                elif page := self._taken(offered, found):
                    yield page
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
        self.tally.skipped[name] = reason
        _LOG.info("skipped %s: %s", name, reason)

    def _taken(self, page: SourcePage, found: ReadPage) -> PageDocuments | None:
        """Return the page as it is stored, or None if it could not be read, which is noted."""
        self._note(page.url, found)
        if found.problem is None:
            digest = f"{self.last.salt}{page.digest}"
            return PageDocuments(
                url=self.source.site.placed(page.url), digest=digest, documents=found.documents
            )
        if found.unseen:
            self._take_down(BadInput(name=page.url, reason=found.problem, hides=page.url))
        else:
            self._skip(page.url, found.problem)
        return None

    def _note(self, url: str, found: ReadPage) -> None:
        """Count the parts of a page that are not stored, or not as they were meant."""
        for claimed in found.disbelieved:
            self.refusals.note(url, claimed)
        if found.left_out:
            self.tally.left_out[url] = found.left_out
        if found.replaced:
            self.tally.replaced[url] = found.replaced
        self.tally.guessed += found.guessed
        if found.plain:
            reason = f"too much of it; {found.plain:,} characters were read as plain text, without links"
            self._skip(f"{url} (markup)", reason)


def _make_salt(source: Source, links: Sequence[str | LinkExtractor[Any]]) -> str:
    """Return the prefix of stored digests: a hash of the settings by which pages become documents."""
    names = [name_extractor(one) for one in links]
    said = repr((PIPELINE_VERSION, source.site, names))
    return f"{xxhash.xxh3_64(said.encode(errors='replace')).hexdigest()}:"


@dataclass(slots=True)
class _LastRun:
    """The stored pages of a source, by their names in the store.

    Args:
        lead: What stands before the URLs of the source in their names.
        salt: Of this run.
        known: URL within the source → the source's digest, of pages that were indexed as they would be now.
        outdated: Pages that were indexed otherwise.
        left: Stored pages that the source has not offered yet.
        stored: How many pages are stored.
        unseen: Name of what could not be seen → what the names of pages there begin with; empty: any page.
        guessed: The same of what may as well be gone, with the reason to keep it.
    """

    lead: str
    salt: str
    known: Mapping[str, str]
    outdated: frozenset[str]
    left: set[str]
    stored: int
    unseen: dict[str, str] = field(default_factory=dict)
    guessed: dict[str, tuple[str, str]] = field(default_factory=dict)

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
        return cls(lead=lead, salt=salt, known=known, outdated=outdated, left=set(stored), stored=len(stored))

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


@dataclass(slots=True)
class _Tally:
    """Counts of a run in progress."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    chunks: int = 0
    links: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Mapping[str, int]] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    guessed: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)

    def stored(self, page: PageDocuments, *, before: bool) -> None:
        self.updated += before
        self.added += not before
        self.chunks += len(page.documents)
        links = chain.from_iterable(document.metadata[LINKS_KEY] for document in page.documents)
        self.links.update(map(itemgetter("kind"), links))

    def summary(self, store: PageStore | None, *, removed: int, unseen: tuple[str, ...]) -> Summary:
        """Return the summary. Without a store nothing was written."""
        return Summary(
            pages=PageCounts(
                added=self.added, updated=self.updated, unchanged=self.unchanged, removed=removed
            ),
            chunks=self.chunks,
            links=dict(sorted(self.links.items())),
            skipped=self.skipped,
            unseen=unseen,
            left_out=LeftOut.of(self.left_out),
            encodings=Encodings.of(self.replaced, self.guessed),
            unread=self.unread,
            dangling=Dangling() if store is None else count_dangling(store.survey()),
            linked=() if store is None else tuple(store.most_linked_pages()),
            dry_run=store is None,
        )

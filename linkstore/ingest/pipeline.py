"""Indexes a source: reads the changed pages, stores them, and removes those certainly gone.

Pages stream from the source to the store, in batches, which are embedded and written while the next are read.
Apart from the pages on their way, only the URL, the digest and the outline of each page from the last run are
in memory: some hundred bytes, nothing on a first run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

from linkstore.core.arguments import require, require_having
from linkstore.core.calls import Progress as Progress
from linkstore.core.calls import run_until_stopped, split_batches
from linkstore.core.display import format_count, show_progress
from linkstore.core.documents import PageDocuments
from linkstore.core.links import LINKS_KEY
from linkstore.core.processes import infrequent_gc
from linkstore.core.urls import Site
from linkstore.engines.contract import WriteCounts as WriteCounts
from linkstore.errors import ExtractionError
from linkstore.extract.protocol import LinkExtractor
from linkstore.ingest.batches import add_corpus_links, preview_pages, write_pages
from linkstore.ingest.documents import Linkers, Refusals, name_extractor
from linkstore.ingest.relink import CorpusLinks
from linkstore.ingest.settings import hash_values
from linkstore.ingest.source import (
    BadInput,
    Divisible,
    Encodings,
    LeftOut,
    NothingIndexedError,
    OpenedSource,
    Partition,
    RemovalRefusedError,
    Selective,
    Source,
    SourcePage,
    Summary,
    count_dangling,
    name_source,
    open_again,
)
from linkstore.ingest.suffixes import describe_unread
from linkstore.ingest.workers import ReadAhead, ReadPage
from linkstore.store.base import PATIENCE
from linkstore.store.pages import MAX_LISTED, IndexRun

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

PIPELINE_VERSION: Final = 1
"""Raised whenever the same page would give other documents, so that all are read again."""
DEFAULT_LINKS: Final = ("hyperlink", "section", "citation")
"""The extractors used unless others are named; ``"keyword"`` is there for the asking."""
_CHANGED_AT_ONCE: Final = 512
_LOG: Final = logging.getLogger("linkstore.ingest")


class IndexOptions(TypedDict, total=False):
    """What all functions that index take: see :func:`index`."""

    name: str | None
    """Names the source within the store, default the name it has by itself."""
    links: Sequence[str | LinkExtractor[Any]]
    """Names of link extractors, or extractors."""
    progress: Progress | Literal["auto"] | None
    """Called after each page; default a bar, where somebody sees it."""
    dry_run: bool
    """Return what would be done, and write nothing."""
    prune: bool | Callable[[str], bool]
    """Remove missing pages even if they are more than half of those stored: all, or those it says."""
    jobs: int | None
    """How many processes read."""
    partition: Partition | None
    """The part of the source to index."""


def index(
    store: CoreStore,
    source: Source,
    *,
    name: str | None = None,
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    progress: Progress | Literal["auto"] | None = "auto",
    dry_run: bool = False,
    prune: bool | Callable[[str], bool] = False,
    jobs: int | None = None,
    partition: Partition | None = None,
    stop: Event | None = None,
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
        source: Where they come from, such as ``FolderSource("site")``.
        name: Names the source within the store, default the name it has by itself, which is its absolute path
            or URL. A later run with the same name replaces its pages.
        links: Names of link extractors, or extractors. With one that needs the corpus, such as
            ``"keyword"``, the documents of the run are held in memory until all are read. Those of
            ``"mention"`` and ``"entity"`` are linked once they are stored, see
            :class:`~linkstore.ingest.relink.CorpusLinks`.
        progress: Called after each page. ``"auto"`` (default) shows a bar in a terminal and, with tqdm, in a
            notebook; None shows none.
        dry_run: Return what would be done, and write nothing. Pages are read, but nothing is embedded.
        prune: Remove missing pages even if they are more than half of those stored, or if their folder is
            empty now. A function says of each, by its URL within the source, whether it is known to be gone.
        jobs: How many processes read pages, once reading has shown that there is enough to do.
            1 reads in this process, None (default) has one for each core. The result is the same. With
            extractors that are not given by name, pages are read in this process. A page that takes one of
            the processes more than 10 s of its time, or ends it, is reported and skipped.
        partition: Index one of several parts of the source, while other processes index the others. Nothing
            is removed, and the links of ``"mention"`` and ``"entity"`` are not made: run once more without
            ``partition`` for that. Pages that have not changed are not embedded again.
        stop: Ends the run once it is set, after the pages in hand are stored.

    Returns:
        What was done, or for a dry run what would have been done.

    Raises:
        ArgumentError: If an argument has the wrong type, such as a path instead of a store or a source.
        SourceNotFoundError: If there is no such source.
        NothingIndexedError: If there is nothing in it that can be indexed, and nothing of it is stored.
        RemovalRefusedError: If more than half of its stored pages are gone. All else was done.
        SourceConflictError: If another source of the store has a page of the same name.
        ExtractionError: If an extractor is not installed, or cannot be used here, as ``"keyword"`` in a part.
        FetchError: If a website cannot be started.
        SiteUnavailableError: If a website does not answer, or stops answering.
        CancelledError: That of ``concurrent.futures``, if ``stop`` was set.
    """
    require_having("survey", "a store, such as LinkStore.open('kb')", store=store)
    name, chosen = name_source(source, name), partition
    if partition is not None:
        require(Partition, "a Partition, such as Partition(3, 16)", partition=partition)
        if isinstance(source, Divisible):
            source, chosen = source.divide(partition), None
    with infrequent_gc(), ExitStack() as stack:
        advance = stack.enter_context(show_progress()) if progress == "auto" else progress
        states = store.pages.states(name)
        opened = stack.enter_context(open_again(source, states))
        return _IngestRun(
            store=store,
            source=opened,
            states=states,
            name=name,
            links=links,
            progress=advance,
            dry_run=dry_run,
            prune=prune if callable(prune) else lambda _: bool(prune),
            jobs=jobs,
            is_part=partition is not None or isinstance(source, Excerpt),
            chosen=chosen,
            stop=stop or Event(),
        ).run()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some pages of a source, that are stored before a run looks at the whole source.

    As in a run of a part, nothing is removed, and links that need all pages are left to the next run.

    Args:
        name: Of the source.
        site: How the source names its pages.
        offers: The pages.
    """

    name: str
    site: Site
    offers: Sequence[SourcePage | BadInput]
    unread: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.offers)

    def open(self) -> AbstractContextManager[Excerpt]:
        """Return the pages."""
        return nullcontext(self)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages."""
        return iter(self.offers)


async def aindex(store: CoreStore, source: Source, **options: Unpack[IndexOptions]) -> Summary:
    """Do as :func:`index`, in a thread of its own; ``progress`` is called there.

    A task that is cancelled ends as a run that is interrupted, once the pages in hand are stored.

    Args:
        store: Where the documents go.
        source: Where they come from.
        options: Those of :func:`index`.
    """
    return await run_until_stopped(lambda stop: index(store, source, stop=stop, **options))


@dataclass(kw_only=True, eq=False)
class _IngestRun:
    """One run: reads and writes pages, and counts.

    Args:
        is_part: Whether other runs index the rest of the source.
        chosen: Has the pages of ``source`` that are read; None: all.
        states: The digests and outlines of its stored pages.

    The others are those of :func:`index`.
    """

    store: CoreStore
    source: OpenedSource
    states: Mapping[str, tuple[str, str]]
    name: str
    links: Sequence[str | LinkExtractor[Any]]
    progress: Progress | None
    dry_run: bool
    prune: Callable[[str], bool]
    jobs: int | None
    is_part: bool
    chosen: Partition | None
    stop: Event

    def __post_init__(self) -> None:
        site = self.source.site
        self.linkers = Linkers(self.links, site)
        names = [name_extractor(link) for link in self.links]
        if self.is_part and self.linkers.need_corpus:
            raise ExtractionError(
                f"a part of a source cannot be indexed with links of {', '.join(names)}, one of which needs"
                " all documents; index the whole source, or leave that one out"
            )
        salt = f"{hash_values(PIPELINE_VERSION, site, names)}:"
        self.last = _LastRun(self.states, salt, site)
        self.upkeep = CorpusLinks(self.store, () if self.dry_run else self.linkers.kept_up)
        self.ahead = ReadAhead(self.linkers, self.links, self.jobs)
        self.refusals = Refusals()
        self.pages = Counter[str]()
        self.chunks = self.guessed = 0
        self.written = Counter[str]()
        self.skipped: dict[str, str] = {}
        self.left_out: dict[str, Mapping[str, int]] = {}
        self.replaced: dict[str, int] = {}
        self.again: set[str] = set()
        self.renewed: dict[str, tuple[str, str]] = {}
        self.changed: dict[str, list[str]] = {"added": [], "updated": [], "removed": []}

    def run(self) -> Summary:
        """Store changed pages and remove missing ones, and record them, also of a run that ends early."""
        try:
            return self._run()
        finally:
            count = sum(map(len, self.changed.values()))
            if count and not self.dry_run:
                most = MAX_LISTED // len(self.changed)
                shown = {name: tuple(pages[:most]) for name, pages in self.changed.items()}
                more = count - sum(map(len, shown.values()))
                self.store.pages.record(IndexRun(at=datetime.now(UTC), source=self.name, more=more, **shown))

    def _run(self) -> Summary:
        """Store changed pages and remove missing ones, unless most of the source is missing."""
        with closing(self._read_changed()) as changed:
            self._store(changed)
        if self.stop.is_set():
            raise CancelledError(f"indexing {self.name} was cancelled")
        if self.is_part:
            return self._end([])
        gone, doubted = self.last.gone(self._is_known_to_go)
        stored = self.last.stored
        refused = 2 * doubted > stored
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

    def _is_known_to_go(self, url: str) -> bool:
        source = self.source
        return self.prune(url) or (isinstance(source, Selective) and source.leaves_out(url))

    def _store(self, pages: Iterator[PageDocuments]) -> None:
        if self.linkers.need_corpus:
            pages = add_corpus_links(self.store, self.linkers, pages)
        outcomes = (
            preview_pages(self.store, self.name, pages)
            if self.dry_run
            else write_pages(self.upkeep, self.name, pages, PATIENCE if self.is_part else 0)
        )
        for page, problem in outcomes:
            if problem is not None:
                self._skip(page.url.removeprefix(self.last.lead), problem)
                continue
            _LOG.info("stored %s: %s", page.url, format_count(len(page.documents), "document"))
            if page.digest in self.again:  # it was counted when it was offered first
                continue
            done = "updated" if self.last.had(page.url) else "added"
            self.pages[done] += 1
            self.changed[done].append(page.url)
            self.chunks += len(page.documents)
            links = chain.from_iterable(document.metadata[LINKS_KEY] for document in page.documents)
            self.written.update(map(itemgetter("kind"), links))

    def _end(self, gone: Sequence[str]) -> Summary:
        """Remove the pages that are gone, update the corpus links, and return a summary.

        A part leaves that to the run of the whole source: it stays recorded as begun.
        """
        complete = not self.dry_run and not self.is_part
        if not self.dry_run:
            self._renew_states()
        self.skipped.update(self.last.keep(gone))
        for batch in () if self.dry_run else split_batches(gone, _CHANGED_AT_ONCE):
            self.upkeep.remove(batch, self.name)
            self.changed["removed"].extend(batch)
            _LOG.info("removed %s", ", ".join(batch))
        if complete:
            self.written.update(self.upkeep.finish().links)
        survey, linked = self.store.pages.survey() if complete else (None, ())
        return Summary(
            pages=WriteCounts(**self.pages, removed=len(gone)),
            chunks=self.chunks,
            links=dict(sorted(self.written.items())),
            skipped=self.skipped,
            unseen=tuple(sorted(self.last.hidden)),
            left_out=LeftOut.of(self.left_out),
            encodings=Encodings.of(self.replaced, self.guessed),
            unread=self.source.unread,
            dangling=None if survey is None else count_dangling(survey),
            linked=tuple(linked),
            dry_run=self.dry_run,
        )

    def _keep(self, page: SourcePage, url: str) -> None:
        """Count an unchanged page, and take its digest and outline if they are not the stored ones."""
        self.pages["unchanged"] += not page.again
        state = f"{self.last.salt}{page.digest}", page.outline
        if self.states.get(url) != state:
            self.renewed[url] = state

    def _renew_states(self) -> None:
        """Record the digests and outlines of pages whose documents stay as they are."""
        for urls in split_batches(self.renewed, _CHANGED_AT_ONCE):
            self.store.pages.renew(self.name, {url: self.renewed[url] for url in urls})

    def _read_changed(self) -> Generator[PageDocuments, None, None]:
        """Read and yield the pages that are new or changed, and count the others."""
        source, last = self.source, self.last
        about, offers = len(source), source.pages(last.known)
        if (chosen := self.chosen) is not None:
            about //= chosen.count
            offers = (offer for offer in offers if chosen.has(offer.name))
        with closing(self.ahead.pages(offers, last.lacks)) as read:
            for done, (offered, page) in enumerate(read, start=1):
                name = offered.name
                url = source.site.place(name)
                last.record_offer(url, offered if isinstance(offered, BadInput) else page)
                if isinstance(offered, BadInput):
                    self._take_down(offered)
                elif page is None:
                    self._keep(offered, url)
                elif self._record(page, name):
                    digest = f"{last.salt}{offered.digest}"
                    if offered.again:
                        self.again.add(digest)
                    yield PageDocuments(
                        url=url, digest=digest, documents=page.documents, outline=offered.outline
                    )
                if self.progress is not None:
                    self.progress(done, max(about, done) if about else 0, name)
                if self.stop.is_set():
                    return
        for refused in self.refusals.report():
            self._take_down(refused)

    def _take_down(self, bad: BadInput) -> None:
        if bad.hides is not None:
            leads = tuple(self.source.site.place(hide) if hide else "" for hide in bad.hides)
            self.last.hidden[bad.name] = replace(bad, hides=leads)
        if not bad.guessed:
            self._skip(bad.name, bad.reason)

    def _skip(self, name: str, reason: str) -> None:
        self.skipped[name] = reason
        _LOG.info("skipped %s: %s", name, reason)

    def _record(self, found: ReadPage, url: str) -> bool:
        """Count the parts of a page that are not stored, or not as they were meant; say whether any is."""
        page = found.page
        if page is not None:
            for claimed in page.disbelieved:
                self.refusals.count(url, claimed)
            if page.left_out:
                self.left_out[url] = page.left_out
            if page.replaced:
                self.replaced[url] = page.replaced
            self.guessed += page.guessed
            if page.problem is not None:
                part, _, reason = page.problem.partition(": ")
                self._skip(f"{url} ({part})", reason)
        if found.problem is not None:
            hides = (url,) if found.unseen else None
            self._take_down(BadInput(name=url, reason=found.problem, hides=hides))
        return found.problem is None


def _explain_nothing(summary: Summary) -> str:
    """Explain why nothing was indexed, in one line."""
    if not summary.skipped:
        left_out = f"; left out: {describe_unread(summary.unread)}" if summary.unread else ""
        return f"it offers no page{left_out}"
    (name, reason), *others = summary.skipped.items()
    more = f" (and {len(others):,} more like this)" if others else ""
    return f"{reason}{more}" if name == "." else f"{name}: {reason}{more}"


class _LastRun:
    """The stored pages of a source, by their names in the store.

    Args:
        pages: Their digests and outlines.
        salt: Of this run.
        site: How the source names its pages.
    """

    def __init__(self, pages: Mapping[str, tuple[str, str]], salt: str, site: Site) -> None:
        self.salt = salt
        self.lead = site.place("")
        self.stored = len(pages)
        self.left = set(pages)
        """Stored pages that the source has not offered yet."""
        self.known = {
            page.removeprefix(self.lead): digest.removeprefix(salt) if digest.startswith(salt) else ""
            for page, (digest, _) in pages.items()
            if page.startswith(self.lead) or "://" in page
        }
        """URL within the source → the source's digest, empty for a page that would be indexed otherwise."""
        self.hidden: dict[str, BadInput] = {}
        """What could not be seen, by name, with what the names of pages there begin with in the store."""

    def lacks(self, page: SourcePage) -> bool:
        """Say whether a page is not stored as it would be now."""
        return self.known.get(page.url) != page.digest

    def record_offer(self, page: str, offered: BadInput | ReadPage | None) -> None:
        """Record that a page was offered; a stored one stays, unless it was read and has no text any more."""
        if offered is None or not offered.empty:
            self.left.discard(page)

    def had(self, page: str) -> bool:
        """Say whether a page was there."""
        return page.removeprefix(self.lead) in self.known

    def gone(self, known: Callable[[str], bool]) -> tuple[list[str], int]:
        """Return the stored pages that go, in order, and how many of them are not known to be gone."""
        hidden, doubtful = (
            tuple(lead for bad in self.hidden.values() if bad.guessed == guessed for lead in bad.hides or ())
            for guessed in (False, True)
        )
        missing = sorted(page for page in self.left if not page.startswith(hidden))
        sure = {page for page in missing if known(page.removeprefix(self.lead))}
        gone = [page for page in missing if page in sure or not page.startswith(doubtful)]
        return gone, len(gone) - len(sure)

    def keep(self, gone: Collection[str]) -> dict[str, str]:
        """Take the parts whose pages may be gone, and stay stored, for unseen; return them with the reason.

        The other parts that may be gone are forgotten.
        """
        kept = self.left.difference(gone)
        doubtful = {name: bad for name, bad in self.hidden.items() if bad.guessed}
        for name, bad in doubtful.items():
            if not any(page.startswith(bad.hides or ()) for page in kept):
                del self.hidden[name]
        return {name: bad.reason for name, bad in doubtful.items() if name in self.hidden}

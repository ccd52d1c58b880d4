"""The pages of a store: what each source was indexed as, put and removed as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Final

import numpy as np
import orjson

from linkstore.core.arrays import Floats, as_matrix
from linkstore.core.calls import Operation, arun, call_engine, run
from linkstore.core.documents import PageDocuments, keep_storable
from linkstore.core.plans import EngineOperation
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import LinkedPage, PageEntry, Survey, WriteBatch, WriteCounts
from linkstore.errors import SourceConflictError, StoreBusyError
from linkstore.store.documents import check_count, check_text, embed_drafts, prepare_drafts, record_writing
from linkstore.store.embedding import StoreEmbedding
from linkstore.store.schema_graph import check_documents

RUNS_NOTE: Final = "runs of index"
"""The note that holds what the last runs changed."""
MAX_LISTED: Final = 2_000
"""How many changed pages are listed, of one run and of all runs together."""
MAX_RUNS: Final = 500
_LISTS: Final = ("added", "updated", "removed")
_MAX_TRIES: Final = 10
_OUTLINE: Final = "\noutline: "
"""Stands between the digest of a page and its outline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRun:
    """What a run of :func:`linkstore.ingest.index` changed.

    Args:
        at: When it ended, in UTC.
        source: The name of its source.
        added: The first of the pages that were new.
        updated: The first of the pages that had changed.
        removed: The first of the pages that were gone.
        more: How many further pages changed, which are not listed.
    """

    at: datetime
    source: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    more: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the run as a plain JSON dict."""
        return {**asdict(self), "at": self.at.isoformat(timespec="seconds")}


class StorePages:
    """The indexed pages of a store: ``store.pages``.

    :func:`linkstore.ingest.index` writes them. A page is a URL or a path, with a digest of its content and
    the documents that were made of it.
    """

    __slots__ = ("_backend", "_embedding")

    def __init__(self, backend: Backend, embedding: StoreEmbedding) -> None:
        self._backend = backend
        self._embedding = embedding

    def digests(self, source: str | None = None) -> dict[str, str]:
        """Return the indexed pages of a source (None: of all sources), as a dict of URL → digest."""
        return _take_digests(self._backend.run(self._backend.digests(source)))

    async def adigests(self, source: str | None = None) -> dict[str, str]:
        """Return the indexed pages of a source: see :meth:`digests`."""
        return _take_digests(await self._backend.arun(self._backend.digests(source)))

    def states(self, source: str) -> dict[str, tuple[str, str]]:
        """Return the indexed pages of a source, as a dict of URL → digest and outline."""
        states = self._backend.run(self._backend.digests(source))
        return {url: _split_state(state) for url, state in states.items()}

    def sources(self) -> dict[str, int]:
        """Return the sources that pages were indexed from, each with its number of pages."""
        return _count_sources(self._backend.run(self._backend.pages(None)))

    async def asources(self) -> dict[str, int]:
        """Return the sources that pages were indexed from: see :meth:`sources`."""
        return _count_sources(await self._backend.arun(self._backend.pages(None)))

    def ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of indexed pages' documents (source None: of any source), as a dict of URL → ids."""
        return {entry.url: entry.ids for entry in self._backend.run(self._backend.pages(source, urls))}

    async def aids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of the documents of pages: see :meth:`ids`."""
        return {entry.url: entry.ids for entry in await self._backend.arun(self._backend.pages(source, urls))}

    def changes(self, since: datetime | None = None) -> list[IndexRun]:
        """Return what runs of :func:`linkstore.ingest.index` changed, the oldest first.

        The last runs are kept, up to 500, which list up to 2,000 pages together; runs that changed nothing
        are not. It does not tell documents that were written or deleted in other ways.

        Args:
            since: Only those that ended at this time or later; without a time zone, in UTC. Default all.
        """
        return self._backend.run(self._read_runs(since))

    async def achanges(self, since: datetime | None = None) -> list[IndexRun]:
        """Return what runs changed: see :meth:`changes`."""
        return await self._backend.arun(self._read_runs(since))

    def record(self, done: IndexRun) -> None:
        """Keep what a run changed, for :meth:`changes`.

        Raises:
            StoreBusyError: If others keep recording theirs at the same time.
        """

        def add(text: str | None) -> str:
            runs = [*orjson.loads(text or "[]"), done.to_dict()][-MAX_RUNS:]
            listed = list(accumulate(sum(len(run[key]) for key in _LISTS) for run in reversed(runs)))
            return orjson.dumps(runs[-max(1, sum(count <= MAX_LISTED for count in listed)) :]).decode()

        if not self._backend.run(self._backend.change_note(RUNS_NOTE, add, _MAX_TRIES)):
            raise StoreBusyError("others keep recording what they changed; what this run changed is not kept")

    def survey(self, kind: str = "hyperlink", take: int = 10) -> tuple[Survey, list[LinkedPage]]:
        """Return the survey and the most linked pages, for which all links are read once."""
        return self._backend.run(self._backend.survey_pages(kind, take))

    def check(self, source: str, urls: Sequence[str]) -> None:
        """Check that :meth:`put` would not replace a page of another source.

        Raises:
            SourceConflictError: If it would.
        """
        run(self._read_entries(source, urls))

    def embed(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages, and return the pages with these vectors.

        :meth:`put` embeds nothing then, so one thread can embed the next pages while another stores the
        last ones.

        Raises:
            SourceConflictError: If another source has a page of the same name.
            DocumentError: If a text cannot be stored.
        """
        return run(self._embed(source, pages))

    async def aembed(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages: see :meth:`embed`."""
        return await arun(self._embed(source, pages))

    def put(self, source: str, pages: Sequence[PageDocuments]) -> WriteCounts:
        """Replace whole pages in one change, and remove documents that the pages no longer have.

        Raises:
            SourceConflictError: If another source has a page of the same name.
        """
        return run(self._put(source, pages))

    async def aput(self, source: str, pages: Sequence[PageDocuments]) -> WriteCounts:
        """Replace whole pages: see :meth:`put`."""
        return await arun(self._put(source, pages))

    def renew(self, source: str, states: Mapping[str, tuple[str, str]]) -> None:
        """Replace the digests and outlines of pages, by url, whose documents stay as they are."""
        run(self._renew(source, states))

    def remove(self, urls: Sequence[str], source: str | None = None) -> WriteCounts:
        """Remove indexed pages with all their documents, in one change. Unknown pages are ignored.

        The next run of :func:`linkstore.ingest.index` restores the pages that their source still has.

        Args:
            urls: Pages, as in ``metadata["page"]`` of their documents.
            source: The source of the pages. None: any source.
        """
        return run(self._remove(source, keep_storable("urls", urls)))

    async def aremove(self, urls: Sequence[str], source: str | None = None) -> WriteCounts:
        """Remove indexed pages: see :meth:`remove`."""
        return await arun(self._remove(source, keep_storable("urls", urls)))

    def _read_runs(self, since: datetime | None) -> EngineOperation[list[IndexRun]]:
        start = since if since is None or since.tzinfo else since.replace(tzinfo=UTC)
        rows = orjson.loads((yield from self._backend.note(RUNS_NOTE)) or "[]")
        runs = [
            IndexRun(
                **{**row, "at": datetime.fromisoformat(row["at"]), **{key: tuple(row[key]) for key in _LISTS}}
            )
            for row in rows
        ]
        return [run for run in runs if start is None or run.at >= start]

    def _read_entries(self, source: str, urls: Sequence[str]) -> Operation[list[PageEntry]]:
        """Return the entries of the pages with these names, none of which may be of another source."""
        entries = yield from call_engine(self._backend, self._backend.pages(None, urls))
        for entry in entries:
            if entry.source != source:
                raise SourceConflictError(
                    f"the page {entry.url!r} was already indexed from the source {entry.source!r}; to update"
                    f" that source, use its name; to keep both pages, index one source with a prefix"
                )
        return entries

    def _embed(self, source: str, pages: Sequence[PageDocuments]) -> Operation[list[PageDocuments]]:
        yield from self._read_entries(source, [page.url for page in pages])
        documents = [document for page in pages for document in page.documents]
        if not documents:
            return list(pages)
        for document in documents:
            check_text(document.id or "", document.page_content)
        texts = [document.page_content for document in documents]
        vectors = as_matrix((yield from self._embedding.embed_documents(texts)))
        check_count(vectors, documents)
        ends = accumulate(len(page.documents) for page in pages)
        return [
            replace(page, vectors=vectors[end - len(page.documents) : end])
            for page, end in zip(pages, ends, strict=True)
        ]

    def _put(self, source: str, pages: Sequence[PageDocuments]) -> Operation[WriteCounts]:
        entries = yield from self._read_entries(source, [page.url for page in pages])
        before = {id for entry in entries for id in entry.ids}
        documents = [document for page in pages for document in page.documents]
        drafts = prepare_drafts(documents, [document.id for document in documents])
        yield from check_documents(self._backend, drafts)
        records = yield from embed_drafts(self._backend, self._embedding, drafts, _join_vectors(pages))
        change = WriteBatch(
            put=records,
            remove=sorted(before - {record.id for record in records}),
            put_pages=[
                PageEntry(
                    source=source,
                    url=page.url,
                    digest=_join_state(page.digest, page.outline),
                    ids=tuple(str(document.id) for document in page.documents),
                )
                for page in pages
            ],
        )
        written = yield from call_engine(self._backend, self._backend.write(change))
        yield from record_writing(self._backend, drafts)
        return written

    def _renew(self, source: str, states: Mapping[str, tuple[str, str]]) -> Operation[None]:
        entries = yield from call_engine(self._backend, self._backend.pages(source, list(states)))
        renewed = [replace(entry, digest=_join_state(*states[entry.url])) for entry in entries]
        yield from call_engine(self._backend, self._backend.write(WriteBatch(put_pages=renewed)))

    def _remove(self, source: str | None, urls: Sequence[str]) -> Operation[WriteCounts]:
        gone = yield from call_engine(self._backend, self._backend.pages(source, urls))
        change = WriteBatch(
            remove=[id for entry in gone for id in entry.ids],
            remove_pages=[(entry.source, entry.url) for entry in gone],
        )
        return (yield from call_engine(self._backend, self._backend.write(change)))


def _join_state(digest: str, outline: str) -> str:
    """Return the digest of a page with its outline, as an engine keeps them."""
    return f"{digest}{_OUTLINE}{outline}" if outline else digest


def _split_state(state: str) -> tuple[str, str]:
    digest, _, outline = state.partition(_OUTLINE)
    return digest, outline


def _take_digests(states: Mapping[str, str]) -> dict[str, str]:
    return {url: _split_state(state)[0] for url, state in states.items()}


def _count_sources(entries: Iterable[PageEntry]) -> dict[str, int]:
    return dict(sorted(Counter(entry.source for entry in entries).items()))


def _join_vectors(pages: Sequence[PageDocuments]) -> Floats | None:
    """Return the vectors of the documents of pages, if all of them were embedded."""
    vectors = [page.vectors for page in pages if page.vectors is not None]
    return np.concatenate(vectors) if vectors and len(vectors) == len(pages) else None

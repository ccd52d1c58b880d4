"""Brings the facts of a store up to date: one operation, which waits for stores and for an extractor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.documents import Document

from linkstore.agents.elements import settled
from linkstore.agents.facts import (
    FACTS,
    ElementNames,
    Extracted,
    FactExtractor,
    Failed,
    digest,
    fact_page,
    page_of_chunk,
)
from linkstore.drivers import in_thread
from linkstore.embeddings.encoder import Encoder
from linkstore.errors import ExtractionError
from linkstore.gc_pause import collection_paused
from linkstore.operations import as_document
from linkstore.pagedocuments import PageDocuments
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.twins import Twin, of_backend
from linkstore.variants import Variants

_SCANNED: Final = 500
_BATCH: Final = 256
"""Chunks whose facts are extracted and written at once by an extractor that calls no model."""
_BATCH_OF_CALLS: Final = 32
"""The same with a model: what an interrupted run may have to pay again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSummary:
    """The result of indexing facts, or of a dry run.

    Args:
        chunks: Chunks in the store.
        extracted: Chunks whose facts were extracted; in a dry run, those that would be.
        unchanged: Chunks that have not changed since.
        removed: Chunks that are gone, with their facts.
        facts: Facts that were written.
        elements_added: Key elements that several facts name now; in a dry run, those that facts which are
            stored name, and that a run which was killed has not added.
        elements_removed: Key elements that no longer have several facts.
        failed: Chunks whose facts could not be extracted.
        calls: Calls of a model, one for each chunk; a call that is repeated is not counted.
        prompt_tokens: Tokens sent with these calls, by the tokenizer of Llama 2.
        dry_run: Whether nothing was done.
    """

    chunks: int = 0
    extracted: int = 0
    unchanged: int = 0
    removed: int = 0
    facts: int = 0
    elements_added: int = 0
    elements_removed: int = 0
    failed: tuple[Failed, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    dry_run: bool = False


@dataclass(slots=True)
class _Run:
    """The counts of one run so far."""

    chunks: int = 0
    extracted: int = 0
    facts: int = 0
    prompt_tokens: int = 0
    failed: list[Failed] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


class Indexing:
    """One run.

    Args:
        store: Holds the chunks.
        facts: Holds their facts.
        extractor: Extracts them.
        variants: Joins spellings of key elements.
        dry_run: Whether to count only.
    """

    def __init__(
        self, store: LinkStore, facts: LinkStore, extractor: FactExtractor, variants: Variants, dry_run: bool
    ) -> None:
        self._store, self._facts = store, facts
        self._extractor, self._names = extractor, ElementNames(variants)
        self._dry_run = dry_run

    def operation(self) -> Operation[FactSummary]:
        """Extract the facts of new and changed chunks, remove those of chunks that are gone."""
        facts = self._facts
        known: dict[str, str] = yield Twin(facts.pages, facts.apages, (FACTS,))
        run = _Run()
        waiting: list[Document] = []
        after: str | None = None
        most = _BATCH_OF_CALLS if self._extractor.calls_model else _BATCH
        while records := (yield self._scan(after)):
            after = records[-1].id
            waiting += self._select_changed(run, map(as_document, records), known)
            while len(waiting) >= most:
                yield from self._write(run, waiting[:most])
                waiting = waiting[most:]
        if waiting:
            yield from self._write(run, waiting)
        gone = sorted(known.keys() - run.seen)
        if gone and not self._dry_run:
            yield Twin(facts.remove_pages, facts.aremove_pages, (FACTS, gone))
        return (yield from self._summarize(run, len(gone)))

    def _scan(self, after: str | None) -> Twin:
        return of_backend(self._store, self._store.backend.scan(after, _SCANNED))

    def _select_changed(self, run: _Run, chunks: Iterator[Document], known: dict[str, str]) -> list[Document]:
        """Return the chunks that are new or have changed, and count all of them."""
        found = []
        for chunk in chunks:
            run.chunks += 1
            url = page_of_chunk(chunk.id or "")
            run.seen.add(url)
            if known.get(url) != digest(chunk, self._extractor.name):
                found.append(chunk)
        return found

    def _write(self, run: _Run, chunks: Sequence[Document]) -> Operation[None]:
        """Extract and write the facts of some chunks."""
        extractor = self._extractor
        run.prompt_tokens += extractor.prompt_tokens(chunks)
        run.extracted += len(chunks)
        if self._dry_run:
            return
        found: list[Extracted] = yield Twin(extractor.extract, extractor.aextract, (chunks,))
        failed = [one for one in found if isinstance(one, Failed)]
        if failed and len(failed) == len(chunks) and not run.facts:
            raise ExtractionError(f"no facts could be extracted: {failed[0].reason}")
        run.failed += failed
        run.extracted -= len(failed)
        run.facts += yield Twin(self._put, self._aput, (chunks, found))

    def _put(self, chunks: Sequence[Document], found: Sequence[Extracted]) -> int:
        """Write facts, and return how many.

        If their vectors are computed in this process, garbage collection is paused: it would visit all of
        them after each step, for a tenth of the time.
        """

        def put() -> int:
            pages = self._make_pages(chunks, found)
            self._facts.put_pages(FACTS, pages)
            return sum(len(page.documents) for page in pages)

        return collection_paused(put) if isinstance(self._facts.embeddings, Encoder) else put()

    async def _aput(self, chunks: Sequence[Document], found: Sequence[Extracted]) -> int:
        return await in_thread(self._put, chunks, found)

    def _make_pages(self, chunks: Sequence[Document], found: Sequence[Extracted]) -> list[PageDocuments]:
        """Return the pages to write: the facts of chunks, without those that failed."""
        return [
            fact_page(chunk, digest(chunk, self._extractor.name), facts, self._names)
            for chunk, facts in zip(chunks, found, strict=True)
            if not isinstance(facts, Failed)
        ]

    def _summarize(self, run: _Run, gone: int) -> Operation[FactSummary]:
        """Settle the key elements and sum up the run, also after a run that was killed."""
        added, removed = yield from settled(self._facts, count_only=self._dry_run)
        return FactSummary(
            chunks=run.chunks,
            extracted=run.extracted,
            unchanged=run.chunks - run.extracted - len(run.failed),
            removed=gone,
            facts=run.facts,
            elements_added=added,
            elements_removed=removed,
            failed=tuple(run.failed),
            calls=(run.extracted + len(run.failed)) * self._extractor.calls_model,
            prompt_tokens=run.prompt_tokens,
            dry_run=self._dry_run,
        )

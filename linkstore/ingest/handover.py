"""Pages on their way to the store: in batches, which are embedded and written while the next are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from linkstore.errors import DocumentError, LinkError
from linkstore.ingest.documents import Linkers
from linkstore.ingest.sink import PageDocuments, PageStore, PageWriter

_BATCH_DOCUMENTS: Final = 512
_BATCH_CHARACTERS: Final = 4 * 2**20
_WAITING: Final = 2

Outcome = tuple[PageDocuments, str | None]
"""A page, and why it could not be stored: None if it was."""


def handed_over(store: PageWriter, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Write pages, and yield each once the store has acknowledged or refused it.

    Embedding and SQLite leave Python free, so one thread reads pages while another embeds a batch and a third
    writes the one before. If the run is interrupted, the batches that were handed over are still written.
    """
    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-index") as writer,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-embed") as embedder,
    ):
        writing: deque[Future[list[Outcome]]] = deque()
        for batch in batches(pages):
            embedding = embedder.submit(_embedded, store, source, batch)
            writing.append(writer.submit(_written, store, source, embedding))
            if len(writing) > _WAITING:
                yield from writing.popleft().result()
        for future in writing:
            yield from future.result()


def looked_over(store: PageStore, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Yield the results of :func:`handed_over`, as far as they are known without writing."""
    for batch in batches(pages):
        store.check_pages(source, [page.url for page in batch])
        yield from ((page, None) for page in batch)


def with_corpus(
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


def _embedded(store: PageWriter, source: str, batch: Sequence[PageDocuments]) -> list[Outcome]:
    """Embed a batch at once, or page by page if one of its pages is not fit to be stored."""
    try:
        return [(page, None) for page in store.embed_pages(source, batch)]
    except DocumentError as error:
        if len(batch) == 1:
            return [(batch[0], str(error))]
        return [outcome for page in batch for outcome in _embedded(store, source, [page])]


def _written(store: PageWriter, source: str, embedding: Future[list[Outcome]]) -> list[Outcome]:
    """Write a batch once it is embedded."""
    embedded = embedding.result()
    if all(problem is None for _, problem in embedded):
        return _put(store, source, [page for page, _ in embedded])
    return [
        outcome
        for page, problem in embedded
        for outcome in (_put(store, source, [page]) if problem is None else [(page, problem)])
    ]


def _put(store: PageWriter, source: str, batch: Sequence[PageDocuments]) -> list[Outcome]:
    """Write a batch in one change, or page by page if one of its pages is not fit to be stored."""
    try:
        store.put_pages(source, batch)
    except (DocumentError, LinkError) as error:
        if len(batch) == 1:
            return [(batch[0], str(error))]
        return [outcome for page in batch for outcome in _put(store, source, [page])]
    return [(page, None) for page in batch]


def batches(pages: Iterator[PageDocuments]) -> Iterator[list[PageDocuments]]:
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

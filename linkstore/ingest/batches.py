"""Stores the pages of a run in batches, which are embedded and written while the next are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from linkstore.core.documents import PageDocuments
from linkstore.errors import DocumentError, LinkError
from linkstore.ingest.documents import Linkers
from linkstore.ingest.relink import CorpusLinks
from linkstore.store.base import retry
from linkstore.store.pages import StorePages

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

_BATCH_DOCUMENTS: Final = 512
_BATCH_CHARACTERS: Final = 4 * 2**20
_WAITING: Final = 2
"""Batches that wait to be written."""
Outcome = tuple[PageDocuments, str | None]
"""A page, and why it could not be stored: None if it was."""


def write_pages(
    target: CorpusLinks | StorePages, source: str, pages: Iterator[PageDocuments], patience: float = 0
) -> Iterator[Outcome]:
    """Write pages, and yield each once the store has acknowledged or refused it.

    Embedding and SQLite leave Python free, so one thread reads pages while another embeds a batch and a third
    writes the one before. If the run is interrupted, the batches that were handed over are still written.

    Args:
        target: Where they go.
        source: The name of their source.
        pages: In the order in which they are written.
        patience: Seconds for which a batch is tried again while others write, or no server answers.
    """

    def embed(batch: Sequence[PageDocuments]) -> Sequence[PageDocuments]:
        return retry(partial(target.embed, source, batch), patience)

    def put(batch: Sequence[PageDocuments]) -> Sequence[PageDocuments]:
        retry(partial(target.put, source, batch), patience)
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


def preview_pages(store: CoreStore, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Yield the results of :func:`write_pages`, as far as they are known without writing."""
    for batch in batch_pages(pages):
        store.pages.check(source, [page.url for page in batch])
        yield from ((page, None) for page in batch)


def batch_pages(pages: Iterator[PageDocuments]) -> Iterator[list[PageDocuments]]:
    """Yield pages in batches of about 512 documents, or of about 4 Mi characters."""
    batch: list[PageDocuments] = []
    urls: set[str] = set()
    documents = characters = 0
    for page in pages:
        if page.url in urls:  # it is replaced as a whole, once it is stored
            yield batch
            batch, urls, documents, characters = [], set(), 0, 0
        batch.append(page)
        urls.add(page.url)
        documents += len(page.documents)
        characters += sum(len(document.page_content) for document in page.documents)
        if documents >= _BATCH_DOCUMENTS or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, urls, documents, characters = [], set(), 0, 0
    if batch:
        yield batch


def add_corpus_links(
    store: CoreStore, linkers: Linkers, pages: Iterator[PageDocuments]
) -> Iterator[PageDocuments]:
    """Yield the pages with the links that need the corpus: the stored pages and the new ones."""
    read = list({page.url: page for page in pages}.values())
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

"""Pages on their way to the store in batches, and which of them changed since the last run.

Pages on their way to the store: in batches, which are embedded and written while the next are read.

Checks whether a source changed since it was indexed, by the digests of its pages; writes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from linkstore.core.arguments import require_having
from linkstore.core.documents import PageDocuments
from linkstore.core.urls import Site
from linkstore.errors import DocumentError, LinkError
from linkstore.ingest.documents import Linkers
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput, PageStore, PageWriter, Source, SourcePage, name_source

_BATCH_DOCUMENTS: Final = 512
_BATCH_CHARACTERS: Final = 4 * 2**20
_WAITING: Final = 2

Outcome = tuple[PageDocuments, str | None]
"""A page, and why it could not be stored: None if it was."""


def write_pages(store: PageWriter, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Write pages, and yield each once the store has acknowledged or refused it.

    Embedding and SQLite leave Python free, so one thread reads pages while another embeds a batch and a third
    writes the one before. If the run is interrupted, the batches that were handed over are still written.
    """
    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-index") as writer,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-embed") as embedder,
    ):
        writing: deque[Future[list[Outcome]]] = deque()
        for batch in batch_pages(pages):
            embedding = embedder.submit(_embed_batch, store, source, batch)
            writing.append(writer.submit(_write_embedded, store, source, embedding))
            if len(writing) > _WAITING:
                yield from writing.popleft().result()
        for future in writing:
            yield from future.result()


def preview_pages(store: PageStore, source: str, pages: Iterator[PageDocuments]) -> Iterator[Outcome]:
    """Yield the results of :func:`write_pages`, as far as they are known without writing."""
    for batch in batch_pages(pages):
        store.check_pages(source, [page.url for page in batch])
        yield from ((page, None) for page in batch)


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


def _embed_batch(store: PageWriter, source: str, batch: Sequence[PageDocuments]) -> list[Outcome]:
    """Embed a batch at once, or page by page if one of its pages is not fit to be stored."""
    try:
        return [(page, None) for page in store.embed_pages(source, batch)]
    except DocumentError as error:
        if len(batch) == 1:
            return [(batch[0], str(error))]
        return [outcome for page in batch for outcome in _embed_batch(store, source, [page])]


def _write_embedded(store: PageWriter, source: str, embedding: Future[list[Outcome]]) -> list[Outcome]:
    """Write a batch once it is embedded."""
    embedded = embedding.result()
    if all(problem is None for _, problem in embedded):
        return _put_batch(store, source, [page for page, _ in embedded])
    return [
        outcome
        for page, problem in embedded
        for outcome in (_put_batch(store, source, [page]) if problem is None else [(page, problem)])
    ]


def _put_batch(store: PageWriter, source: str, batch: Sequence[PageDocuments]) -> list[Outcome]:
    """Write a batch in one change, or page by page if one of its pages is not fit to be stored."""
    try:
        store.put_pages(source, batch)
    except (DocumentError, LinkError) as error:
        if len(batch) == 1:
            return [(batch[0], str(error))]
        return [outcome for page in batch for outcome in _put_batch(store, source, [page])]
    return [(page, None) for page in batch]


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
    name = name_source(source, name)
    stored = {page: digest.partition(":")[2] for page, digest in store.pages(name).items()}
    lead = source.site.placed("")
    known = {page.removeprefix(lead): digest for page, digest in stored.items() if digest}
    look = _StalenessCheck(stored, source.site)
    for offered in source.pages(known):
        if isinstance(offered, BadInput):
            look.at_bad(offered)
        else:
            look.at_page(offered)
    return look.seen(name)


class _StalenessCheck:
    """A look at a source, page by page.

    Args:
        stored: The digests of the stored pages, by name in the store.
        site: How the source names its pages.
    """

    def __init__(self, stored: Mapping[str, str], site: Site) -> None:
        self._stored = stored
        self._site = site
        self._left = set(stored)
        self._hidden = set[str]()
        self._changed = list[str]()
        self._added = list[str]()
        self._unread = list[tuple[str, str]]()
        self._unchanged = 0

    def at_page(self, offered: SourcePage) -> None:
        """Compare a page."""
        page = self._site.placed(offered.url)
        self._left.discard(page)
        if page not in self._stored:
            self._at_new(page, offered)
        elif self._stored[page] == offered.digest:
            self._unchanged += 1
        else:
            self._changed.append(page)

    def _at_new(self, page: str, offered: SourcePage) -> None:
        """Count a page that is not stored as new, unless indexing would skip it."""
        try:
            if offered.read():
                self._added.append(page)
        except (UnreadablePageError, LinkError):
            pass  # indexing skips it too, and reports it
        except OSError as error:
            self._unread.append((offered.url, str(error)))

    def at_bad(self, bad: BadInput) -> None:
        """Note what cannot be read. A stored page that has become unreadable has changed."""
        page = self._site.placed(bad.name)
        if bad.hides is not None:
            self._hidden.add(self._site.placed(bad.hides) if bad.hides else "")
            if not bad.guessed:
                self._unread.append((bad.name, bad.reason))
        elif page in self._left:
            self._left.discard(page)
            self._changed.append(page)

    def seen(self, name: str) -> Staleness:
        """Return the result."""
        hidden = tuple(self._hidden)
        return Staleness(
            source=name,
            unchanged=self._unchanged,
            changed=tuple(sorted(self._changed)),
            added=tuple(sorted(self._added)),
            gone=tuple(sorted(page for page in self._left if not page.startswith(hidden))),
            unread=tuple(sorted(self._unread)),
        )

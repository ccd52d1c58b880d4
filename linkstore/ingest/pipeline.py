"""Index a folder: read what changed, store it page by page, remove what is gone.

Whether a page changed is decided by a hash of its bytes, not by its size and time of change: reading
and hashing costs little beside embedding, and a build may well write another text in the same second.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import xxhash
from langchain_core.documents import Document

from linkstore.extraction import LinkExtractor, Page
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits, make_chunks
from linkstore.ingest.documents import Linkers, extractor_name, page_documents
from linkstore.ingest.html_pages import PageContent, UnreadablePageError, read_html_page
from linkstore.ingest.markdown_pages import read_markdown_page
from linkstore.ingest.relink import Upkeep
from linkstore.ingest.sink import PageDocuments, PageStore, PageWriter
from linkstore.ingest.sources import PageFile, detect_bases, page_files
from linkstore.ingest.summary import PageCounts, Progress, Summary, count_dangling
from linkstore.links import LINKS_KEY
from linkstore.urls import DEFAULT_POLICY, Site, UrlPolicy, split_tag

PIPELINE_VERSION: Final = 1
"""Raised whenever the same page would give other documents, so that all are read again."""

DEFAULT_LINKS: Final = ("hyperlink", "section", "citation")
"""The extractors used unless others are named; ``"keyword"`` is there for the asking."""

_BATCH: Final = 512
_WAITING: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """How pages are read; a change makes the next run read all of them again.

    Args:
        bases: Where the site lies in public; None (default) finds it by ``rel=canonical``.
        policy: For URLs that leave the site.
        limits: How long chunks are.
        max_bytes: A larger file is skipped; default 16 MiB.
        encoding: Of pages that declare none; default UTF-8.
    """

    bases: tuple[str, ...] | None = None
    policy: UrlPolicy = DEFAULT_POLICY
    limits: ChunkLimits = DEFAULT_LIMITS
    max_bytes: int = 16 * 2**20
    encoding: str = "utf-8"


def index_folder(
    store: PageStore,
    path: str | Path,
    *,
    source: str | None = None,
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    settings: IngestSettings | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Index the pages of a folder of built HTML and Markdown.

    Each page is replaced as a whole; pages that have not changed since the last run are left alone,
    and pages that are gone are removed. A page that cannot be read is reported and skipped.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        path: The folder.
        source: Names the folder within the store; default its absolute path.
        links: Names of link extractors, or extractors. With one that needs the corpus, such as
            ``"keyword"``, the documents of the run are held in memory until all are read; those of
            ``"mention"`` and ``"entity"`` are linked once they are stored, see
            :class:`~linkstore.ingest.relink.Upkeep`.
        settings: How pages are read.
        progress: Called after each page.

    Raises:
        SourceNotFoundError: If there is no such folder.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    root = Path(path)
    files = page_files(root)
    run = _Run.prepare(files, links, settings or IngestSettings())
    name = source if source is not None else root.resolve().as_posix()
    known = store.pages(name)
    tally = _Tally()
    upkeep = Upkeep(store, run.linkers.kept_up)
    pages = _changed(run, known, tally, progress)
    if run.linkers.need_corpus:
        pages = _with_corpus(store, run.linkers, pages)
    _store(upkeep, name, pages, tally)
    gone = sorted(set(known) - {file.url for file in files})
    if gone:
        upkeep.remove_pages(name, gone)
    tally.links.update(upkeep.settle().links)
    return tally.summary(store, removed=len(gone))


@dataclass(slots=True)
class _Tally:
    """Counts of a run in progress."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    chunks: int = 0
    links: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)

    def written(self, documents: Sequence[Document]) -> None:
        self.chunks += len(documents)
        self.links.update(link["kind"] for document in documents for link in document.metadata[LINKS_KEY])

    def summary(self, store: PageStore, *, removed: int) -> Summary:
        return Summary(
            pages=PageCounts(
                added=self.added, updated=self.updated, unchanged=self.unchanged, removed=removed
            ),
            chunks=self.chunks,
            links=dict(sorted(self.links.items())),
            dangling=count_dangling(store.survey()),
            skipped=self.skipped,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What all pages of a run have in common."""

    files: Sequence[PageFile]
    site: Site
    linkers: Linkers
    settings: IngestSettings
    salt: str
    own_tags: frozenset[str]

    @classmethod
    def prepare(
        cls, files: Sequence[PageFile], links: Sequence[str | LinkExtractor[Any]], settings: IngestSettings
    ) -> _Run:
        bases = detect_bases(files) if settings.bases is None else settings.bases
        site = Site(bases=bases, policy=settings.policy)
        names = [extractor_name(one) for one in links]
        return cls(
            files=files,
            site=site,
            linkers=Linkers(links, site),
            settings=settings,
            salt=repr((PIPELINE_VERSION, site, settings.limits, settings.encoding, names)),
            own_tags=frozenset(filter(None, (site.page_tag(file.url) for file in files))),
        )

    def read(self, file: PageFile) -> bytes:
        size = file.path.stat().st_size
        if size > self.settings.max_bytes:
            raise UnreadablePageError(
                f"it has {size:,} bytes, more than the {self.settings.max_bytes:,} allowed"
            )
        return file.path.read_bytes()

    def digest(self, file: PageFile, content: bytes) -> str:
        digest = xxhash.xxh3_128(f"{self.salt}{file.url}{file.aliases}".encode())
        digest.update(content)
        return digest.hexdigest()

    def documents(self, file: PageFile, content: bytes) -> tuple[Document, ...]:
        reader = read_markdown_page if file.is_markdown else read_html_page
        found = reader(content, encoding=self.settings.encoding)
        page = Page(
            url=file.url,
            title=found.title or file.page,
            base=found.base,
            aliases=(*file.aliases, *self._canonical(file, found)),
        )
        return page_documents(make_chunks(page, found.blocks, self.settings.limits), self.linkers)

    def _canonical(self, file: PageFile, found: PageContent) -> tuple[str, ...]:
        """The page's canonical URL, unless it is another page of the folder (as where all name the home)."""
        tag = self.site.tag(found.canonical, page=file.url, base=found.base) if found.canonical else None
        if tag is None or split_tag(tag)[0] in self.own_tags:
            return ()
        return (split_tag(tag)[0],)


def _changed(
    run: _Run, known: dict[str, str], tally: _Tally, progress: Progress | None
) -> Iterator[PageDocuments]:
    """The pages that are new or changed, read; counts all."""
    for done, file in enumerate(run.files, start=1):
        try:
            content = run.read(file)
            digest = run.digest(file, content)
            if known.get(file.url) == digest:
                tally.unchanged += 1
            else:
                yield PageDocuments(url=file.url, digest=digest, documents=run.documents(file, content))
                tally.updated += file.url in known
                tally.added += file.url not in known
        except (UnreadablePageError, OSError) as error:
            tally.skipped[file.page] = str(error)
        if progress is not None:
            progress(done, len(run.files), file.page)


def _store(store: PageWriter, source: str, pages: Iterator[PageDocuments], tally: _Tally) -> None:
    """Write pages in batches, so that they are embedded together, while the next pages are read.

    Embedding leaves Python free, so one thread reads pages while another embeds and writes.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-index") as writer:
        writing: deque[Future[object]] = deque()
        for batch in _batches(pages, tally):
            writing.append(writer.submit(store.put_pages, source, batch))
            if len(writing) > _WAITING:
                writing.popleft().result()
        for future in writing:
            future.result()


def _batches(pages: Iterator[PageDocuments], tally: _Tally) -> Iterator[list[PageDocuments]]:
    """Pages in batches of about ``_BATCH`` documents, counted."""
    batch: list[PageDocuments] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.documents)
        tally.written(page.documents)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _with_corpus(
    store: PageStore, linkers: Linkers, pages: Iterator[PageDocuments]
) -> Iterator[PageDocuments]:
    """The pages with the links that need the corpus: what is stored, and what is new."""
    read = list(pages)
    if not read:
        return
    replaced = {page.url for page in read}
    linkers.observe(document for document in store.scan() if document.metadata.get("page") not in replaced)
    linkers.observe(document for page in read for document in page.documents)
    for page in read:
        for document in page.documents:
            linkers.complete(document)
        yield page

"""Makes the documents that are stored for a page: chunks with metadata and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.arguments import require_list
from linkstore.errors import ExtractionError, LinkError
from linkstore.extraction import Chunk, CorpusExtractor, LinkExtractor, load_extractor
from linkstore.extraction.upkeep import UpkeepExtractor
from linkstore.ingest.chunks import unused
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.links import LINKS_KEY, get_links, merge_links
from linkstore.urls import Site, quote_fragment, with_fragment

_SITE_AWARE: Final = frozenset({"hyperlink", "section"})
"""Installed extractors that are told how the site names its pages."""


class Linkers:
    """The link extractors of a run, by what they read.

    An extractor says what it reads by an attribute ``source``: :class:`~linkstore.extraction.Chunk`,
    or LangChain's Document, which is what one without the attribute gets.

    Args:
        chosen: Names of installed extractors, or extractors.
        site: How the site names its pages, and documents.

    Raises:
        ExtractionError: If an extractor is not installed, or reads something else.
    """

    def __init__(self, chosen: Sequence[str | LinkExtractor[Any]], site: Site) -> None:
        self.site = site
        self._of_chunks: list[LinkExtractor[Chunk]] = []
        self._of_documents: list[LinkExtractor[Document]] = []
        self._of_corpus: list[CorpusExtractor[Document]] = []
        self.kept_up: list[UpkeepExtractor] = []
        require_list("extractors", links=chosen)
        for one in chosen:
            self._sort(_loaded(one, site))

    @property
    def need_corpus(self) -> bool:
        """Whether an extractor must observe all documents before any is extracted."""
        return bool(self._of_corpus)

    def document(self, chunk: Chunk, id: str) -> Document:
        """Make the document stored for a chunk, with all links but those that need the corpus."""
        document = self._document(chunk, id)
        links = list(chunk.links)
        for of_chunk in self._of_chunks:
            links.extend(of_chunk.extract(chunk))
        for of_document in self._of_documents:
            links.extend(of_document.extract(document))
        document.metadata[LINKS_KEY] = [link.to_dict() for link in merge_links(links)]
        return document

    def linked(self, document: Document) -> Document:
        """Copy a document that is stored as it is, with the links that are read from documents.

        Raises:
            LinkError: If a link it carries is invalid.
        """
        links = list(get_links(document))
        for of_document in self._of_documents:
            links.extend(of_document.extract(document))
        written = [link.to_dict() for link in merge_links(links)]
        metadata = {**document.metadata, **self._own_fields(), LINKS_KEY: written}
        id = self.site.placed(document.id or "")
        return document.model_copy(update={"id": id, "metadata": metadata})

    def observe(self, documents: Iterable[Document]) -> None:
        """Show documents to the extractors that need the corpus."""
        if self._of_corpus:
            seen = list(documents)
            for extractor in self._of_corpus:
                extractor.observe(seen)

    def complete(self, document: Document) -> None:
        """Add the links that need the corpus, in place."""
        links = [link for extractor in self._of_corpus for link in extractor.extract(document)]
        if links:
            merged = merge_links((*document.metadata[LINKS_KEY], *links))
            document.metadata[LINKS_KEY] = [link.to_dict() for link in merged]

    def _document(self, chunk: Chunk, id: str) -> Document:
        placed = self.site.placed
        return Document(
            id=placed(id),
            page_content=chunk.text,
            metadata={
                **chunk.page.metadata,
                **self._own_fields(),
                "url": placed(_url(chunk)),
                "title": chunk.page.title,
                "headings": list(chunk.headings),
                "page": placed(chunk.page.url),
            },
        )

    def _own_fields(self) -> dict[str, str]:
        """Return the metadata that distinguish the documents of this site from others in the store."""
        return {"site": self.site.prefix} if self.site.prefix else {}

    def _sort(self, extractor: LinkExtractor[Any]) -> None:
        source = getattr(extractor, "source", Document)
        if source is Chunk:
            self._of_chunks.append(extractor)
        elif source is not Document:
            raise ExtractionError(
                f"the extractor {type(extractor).__name__} reads {source}; ingest offers Chunk or Document"
            )
        elif isinstance(extractor, UpkeepExtractor):
            self.kept_up.append(extractor)
        elif isinstance(extractor, CorpusExtractor):
            self._of_corpus.append(extractor)
        else:
            self._of_documents.append(extractor)


def page_documents(read: Iterable[Chunk | Document], linkers: Linkers) -> tuple[Document, ...]:
    """Make the documents of a page, in order.

    Args:
        read: What its source read. A chunk's id is its URL, numbered where that is taken. A document has
            one already.
        linkers: Find the links.

    Raises:
        UnreadablePageError: If a document has no id, or an invalid link.
    """
    taken: dict[str, int] = {}
    return tuple(
        linkers.document(one, unused(_url(one), taken)) if isinstance(one, Chunk) else _as_it_is(one, linkers)
        for one in read
    )


def _as_it_is(document: Document, linkers: Linkers) -> Document:
    if not document.id:
        raise UnreadablePageError("it has a document without id")
    try:
        return linkers.linked(document)
    except LinkError as error:
        raise UnreadablePageError(str(error)) from error


def extractor_name(chosen: str | LinkExtractor[Any]) -> str:
    """Return the name under which an extractor counts among the options of a run."""
    return chosen if isinstance(chosen, str) else f"{type(chosen).__module__}.{type(chosen).__qualname__}"


def _loaded(chosen: str | LinkExtractor[Any], site: Site) -> LinkExtractor[Any]:
    if not isinstance(chosen, str):
        return chosen
    return load_extractor(chosen, site=site) if chosen in _SITE_AWARE else load_extractor(chosen)


def _url(chunk: Chunk) -> str:
    return with_fragment(chunk.page.url, quote_fragment(chunk.fragment or ""))

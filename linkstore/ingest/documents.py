"""From a page to the documents that are stored for it: chunks with metadata and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.errors import ExtractionError
from linkstore.extraction import Chunk, CorpusExtractor, LinkExtractor, load_extractor
from linkstore.extraction.upkeep import UpkeepExtractor
from linkstore.ingest.chunks import unused
from linkstore.links import LINKS_KEY, merge_links
from linkstore.urls import Site, quote_fragment, with_fragment

_SITE_AWARE: Final = frozenset({"hyperlink", "section"})
"""Installed extractors that are told how the site names its pages."""


class Linkers:
    """The link extractors of a run, by what they read.

    An extractor says what it reads by an attribute ``source``: :class:`~linkstore.extraction.Chunk`,
    or LangChain's Document, which is what one without the attribute gets.

    Args:
        chosen: Names of installed extractors, or extractors.
        site: How the site names its pages.

    Raises:
        ExtractionError: If an extractor is not installed, or reads something else.
    """

    def __init__(self, chosen: Sequence[str | LinkExtractor[Any]], site: Site) -> None:
        self._of_chunks: list[LinkExtractor[Chunk]] = []
        self._of_documents: list[LinkExtractor[Document]] = []
        self._of_corpus: list[CorpusExtractor[Document]] = []
        self.kept_up: list[UpkeepExtractor] = []
        for one in chosen:
            self._sort(_loaded(one, site))

    @property
    def need_corpus(self) -> bool:
        """Whether an extractor must observe all documents before any is extracted."""
        return bool(self._of_corpus)

    def document(self, chunk: Chunk, name: str) -> Document:
        """The document stored for a chunk, with all links but those that need the corpus."""
        document = _document(chunk, name)
        links = list(chunk.links)
        for of_chunk in self._of_chunks:
            links.extend(of_chunk.extract(chunk))
        for of_document in self._of_documents:
            links.extend(of_document.extract(document))
        document.metadata[LINKS_KEY] = [link.to_dict() for link in merge_links(links)]
        return document

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


def page_documents(chunks: Iterable[Chunk], linkers: Linkers) -> tuple[Document, ...]:
    """The documents of a page, in order; each id is the chunk's URL, numbered where that is taken."""
    taken: set[str] = set()
    return tuple(linkers.document(chunk, unused(_url(chunk), taken)) for chunk in chunks)


def extractor_name(chosen: str | LinkExtractor[Any]) -> str:
    """The name under which an extractor counts among the options of a run."""
    return chosen if isinstance(chosen, str) else f"{type(chosen).__module__}.{type(chosen).__qualname__}"


def _loaded(chosen: str | LinkExtractor[Any], site: Site) -> LinkExtractor[Any]:
    if not isinstance(chosen, str):
        return chosen
    return load_extractor(chosen, site=site) if chosen in _SITE_AWARE else load_extractor(chosen)


def _document(chunk: Chunk, name: str) -> Document:
    return Document(
        id=name,
        page_content=chunk.text,
        metadata={
            **chunk.page.metadata,
            "url": _url(chunk),
            "title": chunk.page.title,
            "headings": list(chunk.headings),
            "page": chunk.page.url,
        },
    )


def _url(chunk: Chunk) -> str:
    return with_fragment(chunk.page.url, quote_fragment(chunk.fragment or ""))

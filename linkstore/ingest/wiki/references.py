"""The works that the references of a page cite, found by the installed citation extractor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from langchain_core.documents import Document

from linkstore.extraction import Chunk, Hyperlink, LinkExtractor, load_extractor
from linkstore.ingest.wiki.article import Article, Reference, Resolve, read_reference
from linkstore.ingest.wiki.findings import Cited
from linkstore.links import Link, merge_links

EXTRACTOR = "citation"


class References:
    """Puts what references cite into the chunks that refer to them.

    Footnotes are not part of the running text, so the extractor of citations does not see them there: it is
    given each chunk's footnotes as the reference list of a document.

    Args:
        resolve: What the target of a link names.
        cite: Whether to find the works; else only the links of references are kept.

    Raises:
        ExtractionError: If works are to be found and no extractor of citations is installed.
    """

    def __init__(self, resolve: Resolve, *, cite: bool) -> None:
        self._resolve = resolve
        self._extractor: LinkExtractor[Document] | None = load_extractor(EXTRACTOR) if cite else None

    def resolved(self, chunks: list[Chunk], article: Article) -> list[Chunk]:
        """Return the chunks with the links and works of their references in place of :class:`Cited`."""
        read: dict[str, Reference] = {}

        def reference(key: str) -> Reference:
            if key not in read:
                text = article.references.get(key, "")
                read[key] = read_reference(text, title=chunks[0].page.title, resolve=self._resolve)
            return read[key]

        return [self._resolved(chunk, reference) for chunk in chunks]

    def _resolved(self, chunk: Chunk, reference: Callable[[str], Reference]) -> Chunk:
        cited = dict.fromkeys(link.key for link in chunk.hyperlinks if isinstance(link, Cited))
        if not cited:
            return chunk
        works = [reference(key) for key in cited]
        return replace(
            chunk,
            hyperlinks=tuple(_hyperlinks(chunk, reference)),
            links=(*chunk.links, *self._works([work.text for work in works if work.text])),
        )

    def _works(self, texts: list[str]) -> tuple[Link, ...]:
        if self._extractor is None or not texts:
            return ()
        listed = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
        found = self._extractor.extract(Document(page_content=f"References\n\n{listed}"))
        return merge_links(link for link in found if link.direction == "out")


def _hyperlinks(chunk: Chunk, reference: Callable[[str], Reference]) -> Iterator[Hyperlink]:
    for link in chunk.hyperlinks:
        if isinstance(link, Cited):
            yield from reference(link.key).links
        else:
            yield link

"""The links of the documents of a corpus: those of its rows, or those that extractors find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.arguments import given, require, require_list
from linkstore.errors import EvaluationError
from linkstore.extraction import CorpusExtractor, LinkExtractor, extractor_names, load_extractor
from linkstore.links import LINKS_KEY, copy_with_links

DERIVED: Final = ("mention", "entity")
"""The extractors that find links in texts: what a corpus without links gets unless others are named."""


def with_links(documents: Sequence[Document], links: Sequence[str] | None = None) -> list[Document]:
    """Return copies of documents with the links that are wanted.

    Args:
        documents: A corpus.
        links: Names. Links of these kinds are kept, all others dropped. Where no document carries links of
            a name, the link extractor of that name is run over the corpus, if it reads documents. None: all
            links that the documents carry, or if they carry none, those that :data:`DERIVED` find.

    Raises:
        EvaluationError: If a name is neither a kind that is carried nor an installed extractor.
    """
    require_list("documents", documents=documents)
    for document in documents:
        require(Document, "a Document", document=document)
    require_list("names", **given(links=links))
    carried = {link["kind"] for document in documents for link in document.metadata.get(LINKS_KEY, ())}
    if links is None and carried:
        return list(documents)
    installed = extractor_names()
    wanted = [name for name in DERIVED if name in installed] if links is None else list(links)
    unknown = [name for name in wanted if name not in carried and name not in installed]
    if unknown:
        raise EvaluationError(
            f"no document carries links of kind {', '.join(unknown)}, and no extractor of that name is"
            f" installed; carried: {', '.join(sorted(carried)) or 'none'}; installed: {', '.join(installed)}"
        )
    extractors = [load_extractor(name) for name in dict.fromkeys(wanted) if name not in carried]
    kept = [_only(document, frozenset(wanted)) for document in documents]
    return _derived(kept, [one for one in extractors if getattr(one, "source", Document) is Document])


def _only(document: Document, kinds: frozenset[str]) -> Document:
    """Return a copy of a document with its links of some kinds."""
    links = [link for link in document.metadata.get(LINKS_KEY, ()) if link["kind"] in kinds]
    return document.model_copy(update={"metadata": {**document.metadata, LINKS_KEY: links}})


def _derived(documents: list[Document], extractors: Sequence[LinkExtractor[Any]]) -> list[Document]:
    """Return copies with the links that extractors find, after they have observed the whole corpus."""
    for extractor in extractors:
        if isinstance(extractor, CorpusExtractor):
            extractor.observe(documents)
    if not extractors:
        return documents
    return [
        copy_with_links(document, *(extractor.extract(document) for extractor in extractors))
        for document in documents
    ]

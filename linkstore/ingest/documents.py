"""Makes the documents that are stored for a page: chunks with titles, metadata and links.

A page may claim further URLs: by ``rel=canonical``, by a ``url`` in its metadata, by an incoming link. Links
to these URLs then lead to the page. This is normal within a site, but a page that claims a URL of another
site could redirect that site's links to itself. So such claims are accepted only if the user declares the
author of the source trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, get_args

from langchain_core.documents import Document

from linkstore.core.arguments import make_argument_error, require_list
from linkstore.core.links import LINKS_KEY, Link, get_links, merge_links
from linkstore.core.urls import Site, add_fragment, normalize_url, quote_fragment
from linkstore.errors import ExtractionError
from linkstore.extract.protocol import Chunk, CorpusExtractor, LinkExtractor, UpkeepExtractor, load_extractor
from linkstore.ingest.chunks import choose_unused_name
from linkstore.ingest.source import BadInput, UnreadablePageError

_SITE_AWARE: Final = frozenset({"hyperlink", "section"})
"""Installed extractors that are told how the site names its pages."""
ClaimPolicy = Literal["own", "any"]
"""``"own"``: a page may claim URLs of its own site; ``"any"``: all claims are accepted."""


class Linkers:
    """The link extractors of a run, by what they read.

    An extractor says what it reads by an attribute ``source``: :class:`~linkstore.extract.Chunk`,
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
        for extractor in chosen:
            options = {"site": site} if isinstance(extractor, str) and extractor in _SITE_AWARE else {}
            self._sort(load_extractor(extractor, **options) if isinstance(extractor, str) else extractor)

    @property
    def need_corpus(self) -> bool:
        """Whether an extractor must observe all documents before any is extracted."""
        return bool(self._of_corpus)

    def make_documents(self, read: Iterable[Chunk | Document]) -> tuple[Document, ...]:
        """Make the documents of a page, in order, with all links that do not need the corpus.

        Args:
            read: What its source read. A chunk's id is its URL, numbered where that is taken. A document is
                copied, with the links that it has and those that are read from it.

        Raises:
            UnreadablePageError: If a document has no id.
            LinkError: If a document has an invalid link.
        """
        taken: dict[str, int] = {}
        return tuple(
            self._make_document(item, choose_unused_name(_get_chunk_url(item), taken))
            if isinstance(item, Chunk)
            else self._copy_document(item)
            for item in read
        )

    def _make_document(self, chunk: Chunk, id: str) -> Document:
        placed = self.site.place
        document = Document(
            id=placed(id),
            page_content=chunk.text,
            metadata={
                **chunk.page.metadata,
                **self._own_fields(),
                "url": placed(_get_chunk_url(chunk)),
                "title": chunk.page.title,
                "headings": list(chunk.headings),
                "page": placed(chunk.page.url),
            },
        )
        links = [*chunk.links, *(link for extractor in self._of_chunks for link in extractor.extract(chunk))]
        return self._link(document, links)

    def _copy_document(self, document: Document) -> Document:
        if not document.id:
            raise UnreadablePageError("it has a document without id")
        placed = {"id": self.site.place(document.id), "metadata": {**document.metadata, **self._own_fields()}}
        return self._link(document.model_copy(update=placed), get_links(document))

    def _link(self, document: Document, links: Iterable[Link]) -> Document:
        """Give a document these links and the links read from it."""
        read = (link for extractor in self._of_documents for link in extractor.extract(document))
        document.metadata[LINKS_KEY] = [link.to_dict() for link in merge_links([*links, *read])]
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


def name_extractor(chosen: str | LinkExtractor[Any]) -> str:
    """Return the name under which an extractor counts among the options of a run."""
    return chosen if isinstance(chosen, str) else f"{type(chosen).__module__}.{type(chosen).__qualname__}"


def _get_chunk_url(chunk: Chunk) -> str:
    return add_fragment(chunk.page.url, quote_fragment(chunk.fragment or ""))


def get_origin(url: str) -> str | None:
    """Return host and port of an absolute URL, whether by http or https, or None for anything else."""
    normal = normalize_url(url)
    return None if normal is None else normal.partition("://")[2].partition("/")[0]


class Refusals:
    """Counts claims that were not accepted."""

    def __init__(self) -> None:
        self._count = 0
        self._example = ("", "")

    def count(self, page: str, url: str) -> None:
        """Count that a page was not believed to have a URL."""
        self._example = self._example if self._count else (page, url)
        self._count += 1

    def report(self) -> Iterator[BadInput]:
        """Report the refused claims, in one line."""
        if self._count:
            page, url = self._example
            number = "1 page names" if self._count == 1 else f"{self._count:,} pages name"
            reason = (
                f"{number} an address on another site as its own (rel=canonical), as {page} does {url}; links"
                " to such an address do not lead to the page. If that is where the pages are published, use"
                ' --trust-claims (Python: claims="any")'
            )
            yield BadInput(name="(claims)", reason=reason)


class Claims:
    """Judges the claims of one run.

    Args:
        policy: Which claims are believed.
        urls: Where the source lies in public. None: its origin is that of the first claim.

    Raises:
        ArgumentError: If there is no such policy.
    """

    def __init__(self, policy: ClaimPolicy, urls: Iterable[str] | None = ()) -> None:
        if policy not in get_args(ClaimPolicy):
            raise make_argument_error("claims", f"one of {', '.join(get_args(ClaimPolicy))}", policy)
        self.policy: Final = policy
        self._own = None if urls is None else frozenset(filter(None, map(get_origin, urls)))
        self.refusals: Final = Refusals()

    def trusts(self, url: str) -> bool:
        """Say whether a page of the source may have this URL. Paths within the source are always its own.

        Args:
            url: Absolute, or a tag within the site.
        """
        if self.policy == "any" or "://" not in url:
            return True
        claimed = get_origin(url) or url
        if self._own is None:
            self._own = frozenset({claimed})
        return claimed in self._own

    def accepts(self, url: str, page: str) -> bool:
        """Say whether a claim is :meth:`believed`, and count one that is not among the refusals."""
        believed = self.trusts(url)
        if not believed:
            self.refusals.count(page, url)
        return believed

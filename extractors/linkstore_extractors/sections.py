"""Links between the sections of a page (parent, next and previous), and their headings as names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from linkstore.core.arguments import require
from linkstore.core.links import Link
from linkstore.core.text import STOP_WORDS, tokenize
from linkstore.core.urls import Site, add_fragment, quote_fragment
from linkstore.errors import ExtractionError
from linkstore.extract.protocol import FOR_DOCUMENTS, Chunk

_DEFAULT_SITE = Site()
_NAMING_WORDS: Final = 2
_MOST_WORDS: Final = 12


class SectionExtractor:
    """Says where a chunk stands on its page.

    A chunk's incoming link names it, by its page and its section name: ``/pep-0008#intro``, or
    ``/pep-0008`` where the name is empty. Outgoing links name the chunk of the enclosing heading, the
    next and the previous one, and say so in their label.

    The innermost heading above a chunk is a name for it: a question that contains the heading's words is led
    there by an incoming link whose tag they are, in lower case. Headings of more than 12 words are not names,
    nor are those with fewer than two that are neither stop words nor numbers, such as "Notes".

    Args:
        site: Names the pages, as for hyperlinks.
        kind: Kind of the links between sections; default ``"section"``.
        heading_kind: Kind of the links by heading; default ``"heading"``.
    """

    source = Chunk

    def __init__(
        self, site: Site = _DEFAULT_SITE, *, kind: str = "section", heading_kind: str = "heading"
    ) -> None:
        self._site = site
        self._kind = kind
        self._heading_kind = heading_kind

    def extract(self, source: Chunk) -> tuple[Link, ...]:
        """Return the chunk's own names, then parent, next and previous, as far as there are.

        Raises:
            ArgumentError: If this is no chunk, such as a document of LangChain.
            ExtractionError: If the page's URL cannot be one.
        """
        require(Chunk, f"a Chunk{FOR_DOCUMENTS}", source=source)
        page = _get_page_tag(self._site, source.page.url)
        if page is None:
            raise ExtractionError(f"the page's URL {source.page.url!r} is neither a path nor an absolute URL")
        own = Link.incoming(kind=self._kind, tag=self._tag(page, source.section))
        return (own, *self._yield_heading(source), *self._neighbours(page, source))

    def _yield_heading(self, chunk: Chunk) -> Iterator[Link]:
        words = tokenize(chunk.headings[-1]) if chunk.headings else []
        naming = [word for word in words if word not in STOP_WORDS and not word.isnumeric()]
        if len(naming) >= _NAMING_WORDS and len(words) <= _MOST_WORDS:
            yield Link.incoming(kind=self._heading_kind, tag=" ".join(words))

    def _neighbours(self, page: str, chunk: Chunk) -> Iterator[Link]:
        near: dict[str, str] = {}
        for label, section in (("parent", chunk.parent), ("next", chunk.next), ("previous", chunk.previous)):
            if section is not None:
                near.setdefault(section, label)
        for section, label in near.items():
            yield Link.outgoing(kind=self._kind, tag=self._tag(page, section), label=label)

    @staticmethod
    def _tag(page: str, section: str) -> str:
        return add_fragment(page, quote_fragment(section))


@lru_cache(maxsize=64)
def _get_page_tag(site: Site, url: str) -> str | None:
    """Return the tag of a page. Its chunks ask for it one after the other."""
    return site.page_tag(url)

"""Hyperlinks of the chunks of a site. Each chunk has incoming links for the fragments that it contains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from linkstore.extraction import Chunk
from linkstore.links import Link, merge_links
from linkstore.urls import Site, anchor_fragments, is_short, with_fragment

_DEFAULT_SITE = Site()


class HyperlinkExtractor:
    """Reads the hyperlinks of a chunk, so that ``page#section`` leads to the chunk with the section.

    A chunk's incoming links are its page with each anchor it owns; the first chunk of a page also has
    the bare page, under all its URLs. Its outgoing links are what its hyperlinks lead to, with the
    anchor text as label, including those to other sections of the same page.

    Args:
        site: Names the pages; links inside it have tags like ``/pep-0008#intro``.
        kind: Kind of the links; default ``"hyperlink"``.
    """

    source = Chunk

    def __init__(self, site: Site = _DEFAULT_SITE, *, kind: str = "hyperlink") -> None:
        self._site = site
        self._kind = kind

    def extract(self, source: Chunk) -> tuple[Link, ...]:
        """Return the chunk's incoming links, then its outgoing ones in order."""
        return merge_links((*self._incoming(source), *self._outgoing(source)))

    def _incoming(self, chunk: Chunk) -> Iterator[Link]:
        pages = _names(self._site, chunk.page.url, chunk.page.aliases)
        if chunk.index == 0:
            for name in pages:
                yield Link.incoming(kind=self._kind, tag=name)
        for anchor in chunk.anchors:
            for fragment, name in product(anchor_fragments(anchor), pages):
                tag = with_fragment(name, fragment)
                if is_short(tag):
                    yield Link.incoming(kind=self._kind, tag=tag)

    def _outgoing(self, chunk: Chunk) -> Iterator[Link]:
        tags: dict[str, str | None] = {}
        labelled: set[str] = set()
        for link in chunk.hyperlinks:
            if link.href not in tags:
                tags[link.href] = self._site.tag(link.href, page=chunk.page.url, base=chunk.page.base)
            tag = tags[link.href]
            if tag is not None and tag not in labelled:  # else merging would drop it
                yield Link.outgoing(kind=self._kind, tag=tag, label=link.label or None)
                if link.label:
                    labelled.add(tag)


@lru_cache(maxsize=64)
def _names(site: Site, url: str, aliases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of a page under all its URLs."""
    return tuple(dict.fromkeys(tag for one in (url, *aliases) for tag in site.page_tags(one)))

"""Hyperlinks: of a whole HTML page by absolute URL, and of the chunks of a site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, Protocol, runtime_checkable

from linkstore.core.arguments import require
from linkstore.core.links import Link, merge_links
from linkstore.core.urls import (
    DEFAULT_POLICY,
    Site,
    UrlPolicy,
    add_fragment,
    is_short_tag,
    list_fragments,
    normalize_url,
    split_tag,
)
from linkstore.errors import ExtractionError
from linkstore.extract.elements import Tree
from linkstore.extract.html import (
    find_base_href,
    find_canonical_href,
    find_page_anchors,
    find_page_links,
    parse_html,
)
from linkstore.extract.protocol import FOR_DOCUMENTS, Chunk

_DEFAULT_SITE = Site()
_BETWEEN_LABELS = "; "
_MOST_LABELS = 5
"""Texts of links from one chunk to one place that are kept; a list of names may have thousands."""


@runtime_checkable
class Soup(Protocol):
    """The interface of BeautifulSoup objects; the package itself is not needed."""

    def find_all(self, name: str) -> object:
        """Return elements by name."""
        ...

    def decode(self) -> str:
        """Return the document as HTML."""
        ...


@dataclass(frozen=True, slots=True)
class HtmlInput:
    """An HTML page and where it lies, with the names and order of langchain-community's ``HtmlInput``.

    Args:
        content: HTML as a string, as bytes (decoded as browsers do), or a BeautifulSoup object.
        base_url: The page's absolute URL.
    """

    content: str | bytes | Soup
    base_url: str


@runtime_checkable
class HtmlInputLike(Protocol):
    """The interface of langchain-community's ``HtmlInput``, accepted as well."""

    @property
    def content(self) -> str | bytes | Soup:
        """The page's HTML."""
        ...

    @property
    def base_url(self) -> str:
        """The page's absolute URL."""
        ...


class HtmlLinkExtractor:
    """Reads the hyperlinks of an HTML page.

    The page's incoming links are its URL, its canonical URL if that is of the same site, and each of these
    with every fragment the page owns (``id``, ``name`` of ``<a>``). ``<base href>`` says what its links are
    relative to, never what the page is. Its outgoing links are what its hyperlinks lead to, with
    the anchor text as label. All tags are absolute URLs in the spelling of
    :func:`linkstore.core.urls.normalize_url`.

    Args:
        kind: Kind of the links; default ``"hyperlink"``.
        policy: What makes two URLs the same page.
        noise: Whether to keep the links in navigation, header, footer and sidebars; default False.
        claims: Which canonical URLs are believed: ``"own"`` (default) those of the page's host, ``"any"``
            all of them, where whoever wrote the pages is to be trusted.

    Raises:
        ExtractionError: If ``claims`` is neither.
    """

    source = HtmlInput

    def __init__(
        self,
        *,
        kind: str = "hyperlink",
        policy: UrlPolicy = DEFAULT_POLICY,
        noise: bool = False,
        claims: Literal["own", "any"] = "own",
    ) -> None:
        if claims not in {"own", "any"}:
            raise ExtractionError(f"claims must be 'own' or 'any', not {claims!r}")
        self._claims = claims
        self._kind = kind
        self._policy = policy
        self._noise = noise

    def extract(self, source: HtmlInputLike) -> tuple[Link, ...]:
        """Return the incoming links of the page, then its outgoing ones in order, none to the page itself.

        Raises:
            ArgumentError: If this is no page, such as a document of LangChain.
            ExtractionError: If the page's URL is not absolute, or its content is not HTML.
        """
        require(HtmlInputLike, f"an HtmlInput(html, url){FOR_DOCUMENTS}", source=source)
        url = source.base_url
        own_url = normalize_url(url, policy=self._policy)
        if own_url is None:
            raise ExtractionError(
                f"the page's URL {url!r} is not absolute; give one like 'https://host/page'"
            )
        tree = parse_html(_get_markup(source.content))
        base = normalize_url(find_base_href(tree) or "", base=url) or url
        own = dict.fromkeys(self._own_tags(tree, own_url, base))
        incoming = (Link.incoming(kind=self._kind, tag=tag) for tag in own)
        return (*incoming, *merge_links(self._yield_outgoing(tree, base, own)))

    def extract_one(self, input: HtmlInputLike) -> set[Link]:
        """Return the links of a page as a set, as in langchain-community: see :meth:`extract`."""
        return set(self.extract(input))

    def extract_many(self, inputs: Iterable[HtmlInputLike]) -> Iterator[set[Link]]:
        """Yield the links of each page, in order: see :meth:`extract_one`."""
        return map(self.extract_one, inputs)

    def _own_tags(self, tree: Tree, url: str, base: str) -> Iterator[str]:
        named = find_canonical_href(tree)
        canonical = normalize_url(named, base=base, policy=self._policy) if named else None
        believed = canonical and (self._claims == "any" or _get_host(canonical) == _get_host(url))
        names = dict.fromkeys(split_tag(name)[0] for name in (url, canonical if believed else None) if name)
        yield from names
        if self._policy.fragment == "drop":
            return
        yield from _tag_anchors(find_page_anchors(tree), names)

    def _yield_outgoing(self, tree: Tree, base: str, own: dict[str, None]) -> Iterator[Link]:
        for href, label in find_page_links(tree, noise=self._noise).items():
            tag = normalize_url(href, base=base, policy=self._policy)
            if tag is not None and tag not in own:
                yield Link.outgoing(kind=self._kind, tag=tag, label=label or None)


def _tag_anchors(anchors: Iterable[str], pages: Iterable[str]) -> Iterator[str]:
    """Yield the tags of anchors on a page that has several names."""
    for anchor in anchors:
        for fragment, name in product(list_fragments(anchor), pages):
            tag = add_fragment(name, fragment)
            if is_short_tag(tag):
                yield tag


def _get_host(url: str) -> str:
    """Return host and port of a normal URL, whether by http or https."""
    return url.partition("://")[2].partition("/")[0]


def _get_markup(content: object) -> str | bytes:
    if isinstance(content, str | bytes):
        return content
    if isinstance(content, Soup):
        return content.decode()
    raise ExtractionError(
        f"the page's content is a {type(content).__name__}; expected HTML as str or bytes, or a BeautifulSoup"
    )


class HyperlinkExtractor:
    """Reads the hyperlinks of a chunk, so that ``page#section`` leads to the chunk with the section.

    A chunk's incoming links are its page with each anchor it owns; the first chunk of a page also has
    the bare page, under all its URLs. Its outgoing links are what its hyperlinks lead to, with the
    anchor text as label, including those to other sections of the same page. Several texts that lead to one
    place are its label together: ``"the tower; Space Needle"``, five of them at most.

    Args:
        site: Names the pages; links inside it have tags like ``/pep-0008#intro``.
        kind: Kind of the links; default ``"hyperlink"``.
    """

    source = Chunk

    def __init__(self, site: Site = _DEFAULT_SITE, *, kind: str = "hyperlink") -> None:
        self._site = site
        self._kind = kind

    def extract(self, source: Chunk) -> tuple[Link, ...]:
        """Return the chunk's incoming links, then its outgoing ones in order.

        Raises:
            ArgumentError: If this is no chunk, such as a document of LangChain.
        """
        require(Chunk, f"a Chunk{FOR_DOCUMENTS}", source=source)
        return merge_links((*self._yield_incoming(source), *self._yield_outgoing(source)))

    def _yield_incoming(self, chunk: Chunk) -> Iterator[Link]:
        pages = _list_page_tags(self._site, chunk.page.url, chunk.page.aliases)
        if chunk.index == 0:
            for name in pages:
                yield Link.incoming(kind=self._kind, tag=name)
        for tag in _tag_anchors(chunk.anchors, pages):
            yield Link.incoming(kind=self._kind, tag=tag)

    def _yield_outgoing(self, chunk: Chunk) -> Iterator[Link]:
        tags: dict[str, str | None] = {}
        labels: dict[str, dict[str, str]] = {}
        for link in chunk.hyperlinks:
            if link.href not in tags:
                tags[link.href] = self._site.tag(link.href, page=chunk.page.url, base=chunk.page.base)
            if (tag := tags[link.href]) is not None:
                texts = labels.setdefault(tag, {})
                if link.label and len(texts) < _MOST_LABELS:
                    texts.setdefault(link.label.casefold(), link.label)
        for tag, texts in labels.items():  # merging would keep the first text alone
            yield Link.outgoing(kind=self._kind, tag=tag, label=_BETWEEN_LABELS.join(texts.values()) or None)


@lru_cache(maxsize=64)
def _list_page_tags(site: Site, url: str, aliases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of a page under all its URLs."""
    return tuple(dict.fromkeys(tag for page_url in (url, *aliases) for tag in site.page_tags(page_url)))

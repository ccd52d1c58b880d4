"""What HTML pages have in common, for the link extractor and for ingest: decoding, head, links, anchors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from linkstore.extraction.bounds import bounded
from linkstore.extraction.decoding import decode_html
from linkstore.extraction.noise import find_noise, inside, permalinks
from linkstore.extraction.texts import link_label, squeezed

Tree = LexborHTMLParser
Node = LexborNode

_BACKLINKS: Final = ":is(.toc-backref, [role=doc-backlink])"
_LINKS: Final = "a[href], area[href]"
"""Also selects ``<a xlink:href>`` of SVG."""
_ANCHORS: Final = "[id], a[name]:not([id])"
_UNSEEN: Final = "script, style, iframe"


def parse_html(content: str | bytes) -> Tree:
    """Parse a page. Bytes are decoded leniently, as browsers do.

    Args:
        content: HTML, whole or in part. Bytes are read in the encoding that their byte-order mark or
            ``<meta charset>`` names, else as UTF-8 or windows-1252. What does not decode becomes U+FFFD.

    Returns:
        The page. Scripts, styles and frames in it are empty.

    Raises:
        UnboundedPageError: If the page would take far more time or memory to parse than its length says.
    """
    text = decode_html(content).text if isinstance(content, bytes) else content
    tree = LexborHTMLParser(bounded(text))
    for element in tree.css(_UNSEEN):
        if (inner := element.first_child) is not None:
            inner.decompose()
    return tree


def base_href(tree: Tree) -> str | None:
    """Return the value of ``<base href>``, or None."""
    return _attribute(tree, "base[href]", "href")


def canonical_href(tree: Tree) -> str | None:
    """Return the value of ``<link rel=canonical>``, or None."""
    return _attribute(tree, "link[rel~=canonical i][href]", "href")


def head_title(tree: Tree) -> str:
    """Return the text of ``<title>``, empty without one."""
    found = None if tree.head is None else tree.head.css_first("title")
    return "" if found is None else squeezed(found.text())


def page_anchors(tree: Tree) -> Iterator[str]:
    """Yield the fragments a page owns, in order: every ``id``, and the ``name`` of every ``<a>``."""
    for node in tree.css(_ANCHORS):
        yield from node_anchors(node)


def node_anchors(node: Node) -> Iterator[str]:
    """Yield the fragments that lead to an element: its ``id``, and its ``name`` if it is an ``<a>``."""
    anchor = node.id
    if anchor:
        yield anchor
    if node.tag == "a":
        name = node.attributes.get("name")
        if name and name != anchor:
            yield name


def page_links(tree: Tree, *, noise: bool = False) -> dict[str, str]:
    """Return the hyperlinks of a page in order, each ``href`` once, with the first anchor text it has.

    Link noise is left out, unless asked for.
    """
    skipped = set() if noise else set(find_noise(tree).kinds)
    if not noise:
        skipped.update(link.mem_id for link, _ in permalinks(tree))
        skipped.update(link.mem_id for link in tree.css(_BACKLINKS))
    links: dict[str, str] = {}
    known: dict[int, bool] = {}
    for node in tree.css(_LINKS):
        attributes = node.attributes
        href = link_target(attributes)
        if href and not links.get(href) and not (skipped and inside(node, skipped, known)):
            links[href] = link_label(node)
    return links


def link_target(attributes: dict[str, str | None]) -> str | None:
    """Return the target of a link, from its attributes. Links of SVG may have ``xlink:href``."""
    return attributes.get("href") or attributes.get("xlink:href")


def is_backlink(attributes: dict[str, str | None]) -> bool:
    """Say whether a link leads back to what led here: a heading to the contents, a footnote to its mark."""
    return attributes.get("role") == "doc-backlink" or "toc-backref" in (attributes.get("class") or "")


def _attribute(tree: Tree, selector: str, name: str) -> str | None:
    node = None if tree.head is None else tree.head.css_first(selector)
    value = None if node is None else node.attributes.get(name)
    return value.strip() or None if value else None

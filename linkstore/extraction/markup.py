"""What HTML pages have in common, for the link extractor and for ingest: decoding, head, link noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode
from w3lib.encoding import html_body_declared_encoding, read_bom

Tree = LexborHTMLParser
Node = LexborNode

# Landmarks (HTML Living Standard, section 4.3; WAI-ARIA 1.2, section 5.3.4). docutils writes footnotes
# and admonitions as <aside>, which are content.
_LANDMARKS: Final = (
    "nav",
    "footer",
    "header:not(main header, article header)",
    "aside:not(.footnote, .footnote-list, .citation, .citation-list, .admonition, .topic, .system-message)",
)
_ROLES: Final = "[role=navigation], [role=banner], [role=contentinfo], [role=complementary], [role=search]"
# Sidebars, link bars and tables of contents of well-known site builders.
_WIDGETS: Final = (
    ".sphinxsidebar, .related, .breadcrumb, .breadcrumbs, .sidebar, .navbar, .navbox, .pagination, .nosearch,"
    " .toc, .table-of-contents, .contents.topic, .contents.local, .mw-editsection, .mw-jump-link,"
    " .nav, #hd, #ft, #sidebar, #toc, #TOC, #footer, #contents:has(> details)"
)
_UNSEEN: Final = "span.visually-hidden, span.sr-only, a.visually-hidden, a.sr-only"
# Naming the elements keeps the parser from trying every selector on every <span> of a code block.
_BOXES: Final = "div, section, ul, ol, dl, table, form, details, p"

NOISE: Final = f":is({', '.join(_LANDMARKS)}, :is({_BOXES}):is({_ROLES}, {_WIDGETS}), {_UNSEEN})"
"""Selects what surrounds a page's content: navigation, header, footer, sidebars, tables of contents."""

PERMALINKS: Final = ":is(a.headerlink, a.hash-link, a.anchorjs-link, a.header-anchor)"
"""Selects the small links beside headings that lead to the heading itself."""

_BACKLINKS: Final = ":is(.toc-backref, [role=doc-backlink])"
_NOISY_LINKS: Final = f"a[href]:is({NOISE} *, {NOISE}, {PERMALINKS}, {_BACKLINKS})"
_LINKS: Final = "a[href], area[href]"
_ANCHORS: Final = "[id], a[name]:not([id])"


def parse_html(content: str | bytes) -> Tree:
    """Parse a page; bytes are decoded leniently, as browsers do.

    Args:
        content: HTML, whole or in part. Bytes are read in the encoding that their byte-order mark or
            ``<meta charset>`` names, else as UTF-8; what does not decode becomes U+FFFD.
    """
    if isinstance(content, bytes):
        return LexborHTMLParser(decode_html(content, errors="replace"))
    return LexborHTMLParser(content)


def decode_html(content: bytes, *, fallback: str = "utf-8", errors: str = "strict") -> str:
    """Decode a page by its byte-order mark, else its ``<meta charset>``, else ``fallback``.

    Raises:
        UnicodeDecodeError: If the bytes are not in that encoding and ``errors`` is ``"strict"``.
    """
    marked, mark = read_bom(content)
    if marked is not None and mark is not None:
        return content[len(mark) :].decode(marked, errors)
    return content.decode(html_body_declared_encoding(content) or fallback, errors)


def squeezed(text: str) -> str:
    """Text with its white space folded to single spaces, as HTML shows it."""
    return " ".join(text.split())


def base_href(tree: Tree) -> str | None:
    """What ``<base href>`` says, if anything."""
    return _attribute(tree, "base[href]", "href")


def canonical_href(tree: Tree) -> str | None:
    """What ``<link rel=canonical>`` says, if anything."""
    return _attribute(tree, "link[rel~=canonical i][href]", "href")


def head_title(tree: Tree) -> str:
    """The text of ``<title>``; empty without one."""
    found = None if tree.head is None else tree.head.css_first("title")
    return "" if found is None else squeezed(found.text())


def page_anchors(tree: Tree) -> Iterator[str]:
    """The fragments a page owns, in order: every ``id``, and the ``name`` of every ``<a>``."""
    for node in tree.css(_ANCHORS):
        yield from node_anchors(node)


def node_anchors(node: Node) -> Iterator[str]:
    """The fragments that lead to this element: its ``id``, and its ``name`` if it is an ``<a>``."""
    anchor = node.id
    if anchor:
        yield anchor
    if node.tag == "a":
        name = node.attributes.get("name")
        if name and name != anchor:
            yield name


def page_links(tree: Tree, *, noise: bool = False) -> dict[str, str]:
    """The hyperlinks of a page in order, each ``href`` once, with the first anchor text it has.

    Without link noise, unless asked for.
    """
    skipped = set() if noise else {node.mem_id for node in tree.css(_NOISY_LINKS)}
    links: dict[str, str] = {}
    for node in tree.css(_LINKS):
        if node.mem_id not in skipped:
            attributes = node.attributes
            href = attributes["href"]
            if href and not links.get(href):
                links[href] = squeezed(node.text() or attributes.get("title") or "")
    return links


def noise_ids(tree: Tree) -> set[int]:
    """The identities (``mem_id``) of the elements that hold link noise."""
    return {node.mem_id for node in tree.css(NOISE)}


def is_backlink(attributes: dict[str, str | None]) -> bool:
    """Whether a link leads back to what led here: a heading to the contents, a footnote to its mark."""
    return attributes.get("role") == "doc-backlink" or "toc-backref" in (attributes.get("class") or "")


def _attribute(tree: Tree, selector: str, name: str) -> str | None:
    node = None if tree.head is None else tree.head.css_first(selector)
    value = None if node is None else node.attributes.get(name)
    return value.strip() or None if value else None

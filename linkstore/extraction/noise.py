"""The surroundings of a page's content: navigation, banners, footers, tables of contents, permalinks.

Landmarks and roles are reliable. Class names are only a hint: an element with such a name is noise only if it
looks like navigation, and never if it contains most of the page's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from linkstore.extraction.texts import letters

# Landmarks (HTML Living Standard, section 4.3; WAI-ARIA 1.2, section 5.3.4). docutils writes footnotes
# and admonitions as <aside>, which are content.
_CERTAIN: Final = "nav, :is(div, section, ul, ol, dl, table, form, details, p)[role=navigation]"
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
    " .nav, .footer, #hd, #ft, #sidebar, #toc, #TOC, #footer, #contents:has(> details)"
)
_CONTENTS: Final = ".toc, .table-of-contents, .contents, #toc, #TOC, #contents"
_UNSEEN: Final = "span.visually-hidden, span.sr-only, a.visually-hidden, a.sr-only"
# Naming the elements keeps the parser from trying every selector on every <span> of a code block.
_BOXES: Final = "div, section, ul, ol, dl, table, form, details, p"
_AROUND: Final = f":is({', '.join(_LANDMARKS)}, :is({_BOXES}):is({_ROLES}, {_WIDGETS}), {_UNSEEN})"
_NAMED: Final = f":is([class*=nav i], [id*=nav i]):is({_BOXES})"
"""The attributes come first because few elements have them, and comparing names takes longer."""
_NAV_WORD: Final = re.compile(
    r"(?:^|[\s_-])nav(?:bar|igation|header|footer|path|panel|list|links|menu|tree)?(?:[\s_-]|$)",
    re.IGNORECASE,
)
_SEQUENCE: Final = frozenset(
    {"next", "prev", "previous", "up", "start", "home", "first", "last", "top", "contents", "index"}
)
"""Values of ``rel`` on links that lead through a sequence of pages (HTML 4.01, section 6.12, and since)."""
_SEQUENCE_KEYS: Final = frozenset("hnptu")
"""Access keys that DocBook, Texinfo and GTK-Doc give such links."""
_SEQUENCE_LINKS: Final = "a[rel][href], a[accesskey][href]"
_TABULAR: Final = frozenset({"td", "th", "tr", "tbody", "thead", "tfoot", "table", "li"})
_ENDS: Final = frozenset({"body", "html", "main", "article"})
_INLINE_BOXES: Final = frozenset({"span", "b", "i", "em", "strong", "small", "font", "code", "tt"})
_LONGEST_BAR: Final = 600
_MOST_BESIDE_LINKS: Final = 300
_FEW_LETTERS: Final = 40
_HIGHEST_BAR: Final = 12
_TIMES: Final = 16
_LEAST_BUDGET: Final = 2**16

_PERMALINKS: Final = (
    "a:is(.headerlink, .hash-link, .anchorjs-link, .header-anchor, .copiable-link, .anchor-link, [href^='#'])"
)
_PERMALINK_CLASSES: Final = frozenset(
    {"headerlink", "hash-link", "anchorjs-link", "header-anchor", "copiable-link", "anchor-link"}
)
_NO_PERMALINKS: Final = frozenset("*†‡↑↩^")
"""Signs of links to footnotes and back."""
_LONGEST_SIGN: Final = 3
_NEAR: Final = 4
_HEADING_LIKE: Final = frozenset(
    {"h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "caption", "figcaption"}
)


def noise_ids(tree: LexborHTMLParser, *, certain: bool = False) -> set[int]:
    """The identities (``mem_id``) of the elements that hold link noise.

    Args:
        tree: The page.
        certain: Only what says itself that it is navigation.
    """
    if certain or tree.body is None:
        return {node.mem_id for node in tree.css(_CERTAIN)}
    page = _Scale(tree.body)
    found = {node.mem_id for node in tree.css(_AROUND) if _is_certain(node) or not page.is_most(node)}
    for node in tree.css(_NAMED):
        if node.mem_id not in found and page.is_named_navigation(node) and not page.is_most(node):
            found.add(node.mem_id)
    _add_bars(tree, page, found)
    return found


def contents_ids(tree: LexborHTMLParser) -> set[int]:
    """The identities of tables of contents, by name."""
    return {node.mem_id for node in tree.css(_CONTENTS)}


def _is_certain(node: LexborNode) -> bool:
    return node.tag == "nav" or node.attributes.get("role") == "navigation"


def permalinks(tree: LexborHTMLParser) -> Iterator[tuple[LexborNode, LexborNode | None]]:
    """The small links that lead to the very place they stand at, each with the heading it stands in, if any.

    They are known by their class, or by a text that is only a sign (``¶``, ``#``, ``§``) and a target that
    is the heading they stand in or an element around them.
    """
    for link in tree.css(_PERMALINKS):
        attributes = link.attributes
        href = attributes.get("href") or ""
        heading = _heading_of(link)
        if not _PERMALINK_CLASSES.isdisjoint((attributes.get("class") or "").split()) or (
            _is_sign(link) and (heading is not None or _is_around(link, href[1:]))
        ):
            yield link, heading


def inside(node: LexborNode, found: set[int], known: dict[int, bool]) -> bool:
    """Whether an element is one of those found, or lies in one.

    Args:
        node: The element.
        found: Identities of elements.
        known: What earlier calls found out of the elements around; the same one for all calls.
    """
    path = []
    here: LexborNode | None = node
    answer = False
    while here is not None:
        name = here.mem_id
        if name in known:
            answer = known[name]
            break
        path.append(name)
        if name in found:
            answer = True
            break
        here = here.parent
    known.update(dict.fromkeys(path, answer))
    return answer


class _Scale:
    """Tells what an element is by how much of its text are links, at a cost linear in the page."""

    def __init__(self, body: LexborNode) -> None:
        self._body = body
        self._length = len(body.text())
        self._weight: int | None = None
        self._budget = _TIMES * self._length + _LEAST_BUDGET

    def is_most(self, node: LexborNode) -> bool:
        """Whether an element holds most of the page's text outside of links."""
        if self._budget < 0:
            return True
        text = node.text()
        self._budget -= len(text)
        if len(text) * 4 < self._length:
            return False
        if self._weight is None:
            self._weight = _beside_links(self._body)
        self._budget -= len(text)
        return _beside_links(node) * 2 > self._weight

    def is_named_navigation(self, node: LexborNode) -> bool:
        """Whether an element is named navigation by its class or id, and looks like it."""
        attributes = node.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        if _NAV_WORD.search(names) is None or self._budget < 0:
            return False
        size = letters(node.text())
        self._budget -= 2 * size
        beside = _beside_links(node)
        return beside * 2 <= size or (size <= _LONGEST_BAR and beside <= 2 * (size - beside))

    def bar_around(self, link: LexborNode) -> LexborNode | None:
        """The largest element around a link that is only a bar; it grows by no text but within a table."""
        best: LexborNode | None = None
        beside = 0
        for here in _ancestors(link):
            if here.tag in _ENDS or self._budget < 0:
                break
            text = here.text()
            size = letters(text) if len(text) <= 4 * _LONGEST_BAR else len(text)
            self._budget -= len(text)
            if size > _LONGEST_BAR:
                break
            now = _beside_links(here)
            if best is not None and now > beside and here.tag not in _TABULAR:
                break
            if here.tag not in _INLINE_BOXES:
                if not _is_bar(here, size, now):
                    break
                best, beside = here, now
        return best if best is not None and best.tag not in {"td", "th"} else None


def _beside_links(node: LexborNode) -> int:
    """How many letters of an element are neither in links nor in scripts."""
    other = sum(letters(part.text()) for part in node.css("a[href], script, style, noscript, template"))
    return max(0, letters(node.text()) - other)


def _add_bars(tree: LexborHTMLParser, page: _Scale, found: set[int]) -> None:
    """Find the bars of links to the pages before, after and above."""
    seen: set[int] = set()
    for link in tree.css(_SEQUENCE_LINKS):
        around = link.parent
        if around is None or around.mem_id in seen or not _in_sequence(link):
            continue
        seen.add(around.mem_id)
        if not any(one.mem_id in found for one in _ancestors(link)):
            bar = page.bar_around(link)
            if bar is not None:
                found.add(bar.mem_id)


def _ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """The nearest elements around one, innermost first."""
    here = node.parent
    for _ in range(_HIGHEST_BAR):
        if here is None:
            return
        yield here
        here = here.parent


def _in_sequence(link: LexborNode) -> bool:
    attributes = link.attributes
    rel = (attributes.get("rel") or "").lower().split()
    return not _SEQUENCE.isdisjoint(rel) or (attributes.get("accesskey") or "").lower() in _SEQUENCE_KEYS


def _is_bar(node: LexborNode, size: int, beside: int) -> bool:
    most = _MOST_BESIDE_LINKS if node.tag in _TABULAR else max(_FEW_LETTERS, size - beside)
    if beside > most or node.css_first("h1, h2, h3, pre") is not None:
        return False
    links = node.css("a[href]")
    return 2 * sum(map(_in_sequence, links)) >= len(links)


def _is_sign(link: LexborNode) -> bool:
    text = link.text()
    if len(text) > 4 * _LONGEST_SIGN:
        return False
    sign = "".join(text.split())
    return (
        0 < len(sign) <= _LONGEST_SIGN
        and not any(map(str.isalnum, sign))
        and sign[0] not in "[("
        and _NO_PERMALINKS.isdisjoint(sign)
    )


def _heading_of(link: LexborNode) -> LexborNode | None:
    here = link.parent
    for _ in range(_NEAR):
        if here is None or here.tag in _HEADING_LIKE:
            return here
        here = here.parent
    return None


def _is_around(link: LexborNode, target: str) -> bool:
    """Whether a target is the link itself, an element around it, or its neighbour."""
    if not target:
        return False
    if link.id == target:
        return True
    here = link.parent
    for _ in range(_NEAR):
        if here is None:
            return False
        if here.id == target:
            return True
        here = here.parent
    near = (link.prev, link.next, None if link.parent is None else link.parent.prev)
    return any(one is not None and one.is_element_node and one.id == target for one in near)

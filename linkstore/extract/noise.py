"""What surrounds a page's content: navigation, banners, footers, tables of contents, permalinks.

A landmark, a role, a class or an id makes an element suspect, and no more: sections are called "Footer" or
"TOC", and boxes in the text are sidebars and asides. A suspect is noise if it is mostly links, or only a
label at the frame of the page. It never is if it has paragraphs or code, or if a link leads to a heading in
it; of one that has them beside a menu, the menu goes. What is kept of it is noise only if it repeats from
page to page, which one page does not tell: see :class:`~linkstore.ingest.html.pages.Chrome`. The functions
that read the text of an element, with marks for what begins in it, are here too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

MARK: Final = "\ufdd1"
"""Stands where an anchor or a link begins; a noncharacter, which no text is meant to have."""
BREAK: Final = "\v"
"""``<br>``, and where a block begins or ends: the only vertical tab that does not come from the source."""
_SILENT_NAMES: Final = (
    "script style template noscript svg math head title button select textarea input iframe object video"
    " audio canvas img map frameset -comment"
)
SILENT: Final = frozenset(_SILENT_NAMES.split())
_BLOCK_NAMES: Final = (
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre search section summary"
    " table tbody td tfoot th thead tr ul"
)
BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
"""Elements that are shown on lines of their own, or in cells."""
_APART: Final = BLOCKS | {"br"}
NAVIGATION: Final = "navigation"
SIDEBARS: Final = "sidebars"
CONTENTS: Final = "tables of contents"
HEADERS: Final = "headers"
FOOTERS: Final = "footers"
SEARCH: Final = "search forms"
HIDDEN: Final = "hidden text"
_CERTAIN: Final = "nav, :is(div, section, ul, ol, dl, table, form, details, p)[role=navigation]"
# Landmarks (HTML Living Standard, section 4.3; WAI-ARIA 1.2, section 5.3.4); a header within a section is
# that section's. A note or a source that is only a link is content all the same.
_LANDMARKS: Final = (
    "nav",
    "footer",
    "header:not(main header, article header, section header)",
    "aside:not(.footnote, .footnote-list, .footnotes, .citation, .citation-list, .admonition, .topic,"
    " .system-message, [role=note], [role=doc-endnotes], [role=doc-footnote])",
)
_ROLES: Final = "[role=navigation], [role=banner], [role=contentinfo], [role=complementary], [role=search]"
# Sidebars, link bars and tables of contents of well-known site builders.
_WIDGETS: Final = (
    ".sphinxsidebar, .related, .breadcrumb, .breadcrumbs, .sidebar, .navbar, .navbox, .pagination, .nosearch,"
    " .toc, .table-of-contents, .contents.topic, .contents.local, .mw-editsection, .mw-jump-link,"
    " .nav, .footer, #hd, #ft, #sidebar, #toc, #TOC, #footer, #contents:has(> details)"
)
_UNSEEN: Final = "span.visually-hidden, span.sr-only, a.visually-hidden, a.sr-only"
# Naming the elements keeps the parser from trying every selector on every <span> of a code block.
_BOXES: Final = "div, section, ul, ol, dl, table, form, details, p"
_AROUND: Final = f":is({', '.join(_LANDMARKS)}, :is({_BOXES}):is({_ROLES}, {_WIDGETS}), {_UNSEEN})"
_NAMED: Final = f":is([class*=nav i], [id*=nav i]):is({_BOXES})"
"""The attributes come first because few elements have them, and comparing names takes longer."""
_KINDS: Final = (
    (CONTENTS, frozenset({"toc", "TOC", "table-of-contents", "contents", "doc-toc"})),
    (NAVIGATION, frozenset({"nav", "navigation"})),
    (SIDEBARS, frozenset({"aside", "complementary", "sidebar", "sphinxsidebar"})),
    (FOOTERS, frozenset({"footer", "contentinfo", "ft"})),
    (HEADERS, frozenset({"header", "banner", "hd"})),
    (SEARCH, frozenset({"search", "nosearch"})),
    (HIDDEN, frozenset({"visually-hidden", "sr-only"})),
)
"""What an element is called by its tag, role, class or id."""
_IN_TEXT: Final = frozenset({"aside", "sidebar", "related", "complementary", "toc", "contents"})
"""Tags, roles and classes of boxes in the text; labels in others are the frame of the page."""
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
_LEAST_SENTENCE: Final = 12
_LEAST_PARAGRAPH: Final = 25
_LEAST_TEXT: Final = 40
"""Letters of a paragraph: with a full stop, in a <p> without one, and elsewhere without one."""
_LINES: Final = frozenset({"p", "pre", "li", "dd", "dt", "td", "th", "blockquote", "figure"})
_ENTRIES: Final = frozenset({"nav", "li", "dt", "td", "th", "caption", "summary", "figcaption"})
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SENTENCE: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964][^\w.]{0,3}$")
_RIGHTS: Final = re.compile(r"\W{0,3}(?:\u00a9|\(c\)|copyright\b)", re.IGNORECASE)
_TIMES: Final = 16
_LEAST_BUDGET: Final = 2**16
_PERMALINKS: Final = (
    "a:is(.headerlink, .hash-link, .anchorjs-link, .header-anchor, .copiable-link, .anchor-link, [href^='#'])"
)
_PERMALINK_CLASSES: Final = frozenset(
    {"headerlink", "hash-link", "anchorjs-link", "header-anchor", "copiable-link", "anchor-link"}
)
_SIGNS: Final = frozenset("¶#§🔗⚓∞☍◆⛓⌗")
"""Other signs are names of operators."""
_NEAR: Final = 4
_HEADING_LIKE: Final = frozenset(
    {"h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "caption", "figcaption"}
)


def fold_whitespace(text: str) -> str:
    """Fold the white space of a text to single spaces, as HTML shows it."""
    return " ".join(text.split())


def count_letters(text: str) -> int:
    """Count the characters of a text that are not white space."""
    return len("".join(text.split()))


def fold_lines(text: str) -> str:
    """Return a text as HTML shows it: white space folded, a new line at each break."""
    if BREAK not in text:
        return fold_whitespace(text)
    return "\n".join(filter(None, map(fold_whitespace, text.split(BREAK))))


def remove_marks(text: str, marks: int) -> tuple[str, tuple[int, ...]]:
    """Return a text without its marks, and how many letters stand before each of them.

    Args:
        text: A text with marks.
        marks: How many there must be. If there are others, nothing is said of their places.
    """
    if MARK not in text:
        return text, ()
    pieces = text.split(MARK)
    counts = tuple(accumulate(map(count_letters, pieces[:-1])))
    return "".join(pieces), counts if len(counts) == marks else ()


def read_inner_text(
    node: LexborNode, wanted: Container[int] = frozenset(), silent: frozenset[str] = SILENT
) -> tuple[str, dict[int, int]]:
    """Return the text in an element, with a break at each end of a block in it.

    Args:
        node: The element.
        wanted: Identities of elements to mark.
        silent: Names of elements to leave out.

    Returns:
        The text, and the number of each mark by the identity of its element.
    """
    parts: list[str] = []
    numbers: dict[int, int] = {}
    inner = [node.iter(include_text=True)]
    ends = [""]
    while inner:
        child = next(inner[-1], None)
        if child is None:
            inner.pop()
            parts.append(ends.pop())
            continue
        tag = child.tag or ""
        if tag == "-text":
            parts.append(child.text_content or "")
        elif tag == "br":
            parts.append(BREAK)
        elif tag not in silent:
            end = BREAK if tag in BLOCKS else ""
            if end and parts and not parts[-1].endswith((BREAK, "\n")):
                parts.append(BREAK)
            if child.mem_id in wanted:
                numbers[child.mem_id] = len(numbers)
                parts.append(MARK)
            inner.append(child.iter(include_text=True))
            ends.append(end)
    return "".join(parts), numbers


def empty_element(node: LexborNode) -> None:
    """Remove all that is in an element."""
    for child in list(node.iter(include_text=True)):
        child.decompose()


def get_link_label(node: LexborNode) -> str:
    """Return the label of a link, white space folded: its text, else its ``title``. It may be empty."""
    only = node.first_child
    simple = only is None or only.next is None or not any(child.tag in _APART for child in node.iter())
    text = node.text() if simple else read_inner_text(node)[0]
    return fold_whitespace(text) or fold_whitespace(node.attributes.get("title") or "")


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a page, by the identities (``mem_id``) of its elements.

    Args:
        kinds: What is noise, and what it is called: ``"navigation"``, ``"sidebars"``.
        suspects: What is named like noise but is not, unless other pages of the site say the same; called
            likewise.
        titles: Those of the suspects that hold the page's title.
    """

    kinds: Mapping[int, str] = field(default_factory=dict)
    suspects: Mapping[int, str] = field(default_factory=dict)
    titles: frozenset[int] = frozenset()

    def without_contents(self) -> Noise:
        """Return the same noise, with tables of contents for content."""
        kinds = {name: kind for name, kind in self.kinds.items() if kind != CONTENTS}
        return Noise(kinds, self.suspects, self.titles)


def find_noise(tree: LexborHTMLParser, *, certain: bool = False) -> Noise:
    """Find the noise on a page.

    Args:
        tree: The page.
        certain: Only what says itself that it is navigation, whatever is in it.
    """
    if certain or tree.body is None:
        return Noise({node.mem_id: NAVIGATION for node in tree.css(_CERTAIN)})
    found = _NoiseFinder(tree, tree.body)
    for node in tree.css(_AROUND):
        found.judge(node)
    for node in tree.css(_NAMED):
        found.judge_name(node)
    found.add_bars()
    return Noise(found.kinds, found.suspects, frozenset(found.titles))


def is_prose(text: str, linked: int, tag: str = "li") -> bool:
    """Say whether a line is a paragraph rather than a label, an entry of a menu or a notice of rights.

    Args:
        text: The line, without its links.
        linked: How many letters its links have.
        tag: What it is in.
    """
    size = count_letters(text)
    if size < max(_LEAST_SENTENCE, linked) or tag in _HEADINGS or _RIGHTS.match(text):
        return False
    if _SENTENCE.search(text.rstrip()):
        return True
    return tag not in _ENTRIES and size >= (_LEAST_PARAGRAPH if tag == "p" else _LEAST_TEXT)


def find_permalinks(tree: LexborHTMLParser) -> Iterator[tuple[LexborNode, LexborNode | None]]:
    """Yield the links that lead to the very place they stand at, each with the heading it is in, if any.

    Permalinks are known by their class, or by a text that is only a sign (``¶``, ``#``, ``§``) and a target
    that is the heading they stand in or an element around them. A link that is the whole text of its heading
    is none.
    """
    for link in tree.css(_PERMALINKS):
        attributes = link.attributes
        href = attributes.get("href") or ""
        heading = next((one for one in iter_ancestors(link, _NEAR) if one.tag in _HEADING_LIKE), None)
        text = fold_whitespace(link.text())
        if heading is not None and text and text == fold_whitespace(heading.text()):
            continue
        by_class = not _PERMALINK_CLASSES.isdisjoint((attributes.get("class") or "").split())
        is_sign = text.replace(" ", "").rstrip("\ufe0e\ufe0f") in _SIGNS  # a second one chooses its colours
        if by_class or (is_sign and (heading is not None or _is_target_near(link, href[1:]))):
            yield link, heading


def is_inside(node: LexborNode, found: set[int], known: dict[int, bool]) -> bool:
    """Say whether an element is one of those found, or lies in one.

    Args:
        node: The element.
        found: Identities of elements.
        known: What earlier calls found out of the elements around, the same one for all calls.
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


class _NoiseFinder:
    """Judges the suspects of a page by how much of their text is links, at a cost linear in the page."""

    def __init__(self, tree: LexborHTMLParser, body: LexborNode) -> None:
        self.kinds: dict[int, str] = {}
        self.suspects: dict[int, str] = {}
        self.titles: set[int] = set()
        self._tree = tree
        self._body = body
        self._length = len(body.text())
        self._weight: int | None = None
        self._budget = _TIMES * self._length + _LEAST_BUDGET
        self._targets: Counter[str] | None = None

    def judge_name(self, node: LexborNode) -> None:
        """Judge an element that may have a word for navigation in its class or id."""
        attributes = node.attributes
        known = node.mem_id in self.kinds or node.mem_id in self.suspects
        if not known and _NAV_WORD.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}"):
            self.judge(node, framed=False)

    def judge(self, node: LexborNode, *, framed: bool = True) -> None:
        """Decide whether a suspect is noise, as a whole or in part.

        Args:
            node: The suspect.
            framed: Whether a mere label in it is the frame of the page.
        """
        name, called = node.mem_id, _get_suspect_names(node)
        kind = next((kind for kind, names in _KINDS if not names.isdisjoint(called)), NAVIGATION)
        certain = kind == HIDDEN or node.tag == "nav" or node.attributes.get("role") == "navigation"
        if self._budget < 0:
            if certain:
                self.kinds[name] = kind
            return
        text = node.text()
        self._budget -= 3 * len(text)
        if not certain and self._is_most(node, text):
            return
        linked = sum(count_letters(link.text()) for link in node.css("a[href]"))
        beside = _count_beside_links(node)
        known = kind == HIDDEN or beside < _LEAST_SENTENCE
        prose, labels = (False, beside) if known else _read_lines(node)
        led = not certain and self._is_led_to(node)
        titled = kind == HEADERS and self._is_title(node)
        if prose or led or titled or node.css_first("pre") is not None:
            self.suspects[name] = kind
            if titled:
                self.titles.add(name)
            if (certain or linked > beside) and not led:
                self._leave_out_menus(node, kind)
            return
        boxed = not _IN_TEXT.isdisjoint(called - {node.id}) or _is_section(node)
        label = framed and labels <= _FEW_LETTERS and not boxed
        menu = linked >= beside or (count_letters(text) <= _LONGEST_BAR and 0 < beside <= 2 * linked)
        if certain or menu or label:
            self.kinds[name] = kind
        else:
            self.suspects[name] = kind

    def _leave_out_menus(self, menu: LexborNode, kind: str) -> None:
        """Leave out the parts without paragraphs of a menu that has some, and the headings of these parts."""
        parts = [menu]
        while parts:
            headings: list[LexborNode] = []
            for child in parts.pop().iter():
                if child.tag in _HEADINGS:
                    headings.append(child)
                elif child.tag in BLOCKS:
                    self._budget -= 2 * len(child.text())
                    if self._budget < 0 or child.css_first("pre") is not None or _read_lines(child)[0]:
                        headings = headings[:-1]
                        if child.tag not in _LINES:
                            parts.append(child)
                    else:
                        self.kinds[child.mem_id] = kind
                    self.kinds.update((heading.mem_id, kind) for heading in headings)
                    headings = []
            self.kinds.update((heading.mem_id, kind) for heading in headings)

    def _is_led_to(self, node: LexborNode) -> bool:
        """Say whether a link elsewhere on the page leads to a heading in an element, or to its section."""
        headings = node.css(", ".join(_HEADINGS))
        if not headings:
            return False
        if self._targets is None:
            self._targets = _count_targets(self._body)
        anchors: set[str] = set()
        for heading in headings:
            anchors.update(name for one in heading.css("[id], a[name]") for name in _get_anchors(one))
            around = heading.parent
            first = None if around is None else next(around.iter(), None)
            if around is not None and first is not None and first.mem_id == heading.mem_id:
                anchors.update(_get_anchors(around))
        outside = self._targets
        if not any(outside[anchor] for anchor in anchors):
            return False
        inside = _count_targets(node)
        return any(outside[anchor] > inside[anchor] for anchor in anchors)

    def _is_title(self, node: LexborNode) -> bool:
        """Say whether a header holds the page's main heading: one that its <title>, if any, begins with."""
        head = None if self._tree.head is None else self._tree.head.css_first("title")
        named = "" if head is None else fold_whitespace(head.text())
        for heading in node.css("h1"):
            text = fold_whitespace(heading.text())
            if text and heading.css_first("a[href]") is None and (not named or named.startswith(text)):
                return True
        return False

    def _is_most(self, node: LexborNode, text: str) -> bool:
        """Say whether an element holds most of the page's text outside of links."""
        if len(text) * 4 < self._length:
            return False
        if self._weight is None:
            self._weight = _count_beside_links(self._body)
        self._budget -= len(text)
        return _count_beside_links(node) * 2 > self._weight

    def add_bars(self) -> None:
        """Find the bars of links to the pages before, after and above."""
        seen: set[int] = set()
        for link in self._tree.css(_SEQUENCE_LINKS):
            around = link.parent
            if around is None or around.mem_id in seen or not _is_in_sequence(link):
                continue
            seen.add(around.mem_id)
            if not any(one.mem_id in self.kinds for one in iter_ancestors(link, _HIGHEST_BAR)):
                bar = self._bar_around(link)
                if bar is not None:
                    self.kinds[bar.mem_id] = NAVIGATION

    def _bar_around(self, link: LexborNode) -> LexborNode | None:
        """Return the largest element around a link that is only a bar. Its text grows only within a table."""
        best: LexborNode | None = None
        beside = 0
        for here in iter_ancestors(link, _HIGHEST_BAR):
            if here.tag in _ENDS or self._budget < 0:
                break
            text = here.text()
            size = count_letters(text) if len(text) <= 4 * _LONGEST_BAR else len(text)
            self._budget -= len(text)
            if size > _LONGEST_BAR:
                break
            now = _count_beside_links(here)
            if best is not None and now > beside and here.tag not in _TABULAR:
                break
            if here.tag not in _INLINE_BOXES:
                if not _is_bar(here, size, now):
                    break
                best, beside = here, now
        return best if best is not None and best.tag not in {"td", "th"} else None


def _count_beside_links(node: LexborNode) -> int:
    """Count the letters of an element that are neither in links nor in scripts."""
    other = sum(count_letters(part.text()) for part in node.css("a[href], script, style, noscript, template"))
    return max(0, count_letters(node.text()) - other)


def _get_suspect_names(node: LexborNode) -> set[str]:
    """Return the names by which an element may be suspect: its tag, role, classes and id."""
    attributes = node.attributes
    return {
        node.tag or "",
        attributes.get("role") or "",
        node.id or "",
        *(attributes.get("class") or "").split(),
    }


def _is_section(node: LexborNode) -> bool:
    """Say whether an element without a role is a section, whose id may be its heading's."""
    first = next(node.iter(), None)
    return first is not None and first.tag in _HEADINGS and "role" not in node.attributes


def _get_anchors(node: LexborNode) -> list[str]:
    return [name for name in (node.id, node.attributes.get("name")) if name]


def _count_targets(node: LexborNode) -> Counter[str]:
    """Count the links that lead to each fragment of their own page."""
    return Counter(unquote((link.attributes.get("href") or "")[1:]) for link in node.css("a[href^='#']"))


def _read_lines(node: LexborNode) -> tuple[bool, int]:
    """Say whether an element has a paragraph, and count its letters beside links and notices of rights."""
    prose, count = False, 0
    parts: list[str] = []
    linked = 0
    around: list[tuple[str, Iterator[LexborNode]]] = [(node.tag or "", node.iter(include_text=True))]
    blocks = [node.tag or ""]
    while around:
        tag, inner = around[-1]
        child = next(inner, None)
        if child is not None and child.tag == "-text":
            parts.append(child.text_content or "")
            continue
        if child is not None and child.tag == "a" and "href" in child.attributes:
            linked += count_letters(child.text())
            parts.append(" ")
            continue
        if child is not None and child.tag in SILENT:
            continue
        if (tag if child is None else child.tag) in BLOCKS or (child is None and len(around) == 1):
            text = fold_whitespace("".join(parts))
            if text:
                prose = prose or is_prose(text, linked, blocks[-1])
                count += 0 if _RIGHTS.match(text) else count_letters(text)
            parts.clear()
            linked = 0
        if child is None:
            around.pop()
            if tag in BLOCKS:
                blocks.pop()
        else:
            around.append((child.tag or "", child.iter(include_text=True)))
            if child.tag in BLOCKS:
                blocks.append(child.tag or "")
    return prose, count


def iter_ancestors(node: LexborNode, most: int = 8) -> Iterator[LexborNode]:
    """Yield the nearest elements around one, innermost first."""
    here = node.parent
    for _ in range(most):
        if here is None:
            return
        yield here
        here = here.parent


def _is_in_sequence(link: LexborNode) -> bool:
    attributes = link.attributes
    rel = (attributes.get("rel") or "").lower().split()
    return not _SEQUENCE.isdisjoint(rel) or (attributes.get("accesskey") or "").lower() in _SEQUENCE_KEYS


def _is_bar(node: LexborNode, size: int, beside: int) -> bool:
    most = _MOST_BESIDE_LINKS if node.tag in _TABULAR else max(_FEW_LETTERS, size - beside)
    if beside > most or node.css_first("h1, h2, h3, pre") is not None:
        return False
    links = node.css("a[href]")
    return 2 * sum(map(_is_in_sequence, links)) >= len(links)


def _is_target_near(link: LexborNode, target: str) -> bool:
    """Say whether a target is the link itself, an element around it, or its neighbour."""
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

"""What surrounds a page's content: navigation, banners, footers, tables of contents.

A landmark, a role, a class or an id makes an element suspect, and no more: sections are called "Footer" or
"TOC", and boxes in the text are sidebars and asides. A suspect is noise if it is mostly links, or only a
label at the frame of the page. It never is if it has paragraphs or code, or if a link leads to a heading in
it; of one that has them beside a menu, the menu goes. What is kept of it is noise only if it repeats from
page to page, which one page does not tell: see :class:`~linkstore.ingest.html.chrome.Chrome`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from linkstore.extract.blocks import BAR, Block, Box, count_letters
from linkstore.extract.elements import HEADINGS, Node, Tree

NAVIGATION: Final = "navigation"
SIDEBARS: Final = "sidebars"
CONTENTS: Final = "tables of contents"
HEADERS: Final = "headers"
FOOTERS: Final = "footers"
SEARCH: Final = "search forms"
# Landmarks (HTML Living Standard, section 4.3; WAI-ARIA 1.2, section 5.3.4); a header within a section is
# that section's. A note or a source that is only a link is content all the same.
_LANDMARKS: Final = (
    "nav, footer, header:not(main header, article header, section header),"
    " aside:not(.footnote, .footnote-list, .footnotes, .citation, .citation-list, .admonition, .topic,"
    " .system-message, [role=note], [role=doc-endnotes], [role=doc-footnote])"
)
_ROLES: Final = "[role=navigation], [role=banner], [role=contentinfo], [role=complementary], [role=search]"
# Sidebars, link bars and tables of contents of well-known site builders.
_WIDGETS: Final = (
    ".sphinxsidebar, .related, .breadcrumb, .breadcrumbs, .sidebar, .navbox, .pagination, .nosearch,"
    " .contents.topic, .contents.local, .footer, #hd, #ft, #sidebar, #footer"
)
_BOXES: Final = "div, section, ul, ol, dl, table, td, form, details, p"
"""Naming the elements keeps the parser from trying every selector on every <span> of a code block."""
_CALLED: Final = f":is({_LANDMARKS}, :is({_BOXES}):is({_ROLES}, {_WIDGETS}))"
_LIKELY: Final = (
    ":is([class*=toc i], [id*=toc i], [class*=nav i], [id*=nav i], [class*=menu i], [id*=menu i])"
    f":is({_BOXES})"
)
"""The attributes come first because few elements have them, and comparing names takes longer."""
_NAMED: Final = re.compile(
    r"(?:^|[\s_-])(?:nav[a-z]*|menu(?:bar|list)?"
    r"|(?<!-)(?:local|side|page)?toc(?:set|list|view|box|s)?|table-of-contents)(?:[\s_-]|$)",
    re.IGNORECASE,
)
_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")
"""Where a word ends in a name such as ``subNavList``."""
_UNSEEN: Final = (
    ":is(span, a):is(.visually-hidden, .visuallyhidden, .sr-only, .mw-editsection, .mw-jump-link)"
)
_KINDS: Final = (
    (CONTENTS, re.compile(r"toc|(?:^| )(?:table-of-)?contents(?: |$)", re.IGNORECASE)),
    (NAVIGATION, re.compile(r"(?:^| )nav(?:igation)?(?: |$)")),
    (SIDEBARS, re.compile(r"(?:^| )(?:aside|complementary|sidebar|sphinxsidebar)(?: |$)")),
    (FOOTERS, re.compile(r"(?:^| )(?:footer|contentinfo|ft)(?: |$)")),
    (HEADERS, re.compile(r"(?:^| )(?:header|banner|hd)(?: |$)")),
    (SEARCH, re.compile(r"(?:^| )(?:search|nosearch)(?: |$)")),
)
"""What an element is called by its tag, role, class or id."""
_IN_TEXT: Final = frozenset({"aside", "sidebar", "related", "complementary", "toc", "contents"})
"""Tags, roles and classes of boxes in the text; labels in others are the frame of the page."""
_LONGEST_BAR: Final = 600
_FEW_LETTERS: Final = 40
_LEAST_SENTENCE: Final = 12
_LEAST_PARAGRAPH: Final = 25
_LEAST_TEXT: Final = 40
"""Letters of a paragraph: with a full stop, in a <p> without one, and elsewhere without one."""
_LONGEST_CONTENTS: Final = 200
_CONTENTS_NAMES: Final = frozenset(
    """contents|table of contents|toc|on this page|in this article|inhalt|inhaltsverzeichnis|sommaire
    |table des matières|contenido|contenidos|índice|tabla de contenidos|sumário|indice|sommario|inhoud
    |inhoudsopgave|spis treści|obsah|innehåll|indhold|innhold|sisällys|содержание|оглавление|зміст|içindekiler
    |目次|目录|目錄|차례|목차""".replace("\n    ", "").split("|")
)
_CONTENTS_IDS: Final = frozenset({"toc", "contents", "table-of-contents", "table_of_contents", "TOC"})
"""What headings of tables of contents say, and what leads to them."""
_LEAST_CONTENTS: Final = 3
"""How many entries a list of the headings below it has at least; one less where it can be folded away."""
_NUMBER_LETTERS: Final = 8
"""How many letters such an entry may have beside its link: the number of its section."""
_BAR_CELLS: Final = frozenset({BAR, "tr", "td", "th"})
_ENTRIES: Final = frozenset({"nav", "li", "dt", "td", "th", "tr", "caption", "summary", "figcaption"})
_SENTENCE: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964][^\w.]{0,3}$")
_RIGHTS: Final = re.compile(r"\W{0,3}(?:\u00a9|\(c\)|copyright\b)", re.IGNORECASE)


class Suspect(NamedTuple):
    """An element that is named like noise.

    Attributes:
        kind: What it is called.
        certain: Whether it says itself that it is navigation.
        framed: Whether a mere label in it is the frame of the page.
    """

    kind: str
    certain: bool
    framed: bool


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a page.

    Args:
        left_out: Which blocks are noise, and what it is called: ``"navigation"``, ``"sidebars"``.
        suspects: Which blocks are in what is named like noise but is not, unless other pages of the site say
            the same: the number of the element, from 1, and what it is called.
        titled: Which blocks are in a header that has the page's title.
    """

    left_out: Mapping[int, str] = field(default_factory=dict)
    suspects: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    titled: frozenset[int] = frozenset()


def find_suspects(tree: Tree) -> dict[int, Suspect]:
    """Find what is named like noise, by identity (``mem_id``)."""
    likely = (node for node in tree.css(_LIKELY) if _NAMED.search(_get_names(node)))
    return {node.mem_id: _describe(node) for node in (*tree.css(_CALLED), *likely)}


def find_unseen(tree: Tree) -> frozenset[int]:
    """Find the elements in lines that only screen readers or editors get to see, by identity."""
    return frozenset(node.mem_id for node in tree.css(_UNSEEN))


def _get_names(node: Node) -> str:
    names = f"{node.attributes.get('class') or ''} {node.id or ''}"
    return f"{names} {_HUMP.sub('-', names)}"


def _describe(node: Node) -> Suspect:
    tag, role = node.tag or "", node.attributes.get("role") or ""
    called = f"{tag} {role} {_get_names(node)}"
    kind = next((kind for kind, pattern in _KINDS if pattern.search(called)), NAVIGATION)
    first = next(node.iter(), None)
    is_section = not role and first is not None and first.tag in HEADINGS
    boxed = is_section or not _IN_TEXT.isdisjoint((tag, role, *(node.attributes.get("class") or "").split()))
    certain = tag == "nav" or role == "navigation"
    return Suspect(kind, certain, framed=not boxed)


def is_prose(text: str, size: int, linked: int, tag: str = "li") -> bool:
    """Say whether a line is a paragraph rather than a label, an entry of a menu or a notice of rights.

    Args:
        text: The line.
        size: How many of its letters are in no link.
        linked: How many are.
        tag: What it is in.
    """
    if size < max(_LEAST_SENTENCE, linked) or tag in HEADINGS or _RIGHTS.match(text):
        return False
    if _SENTENCE.search(text.rstrip()):
        return True
    return tag not in _ENTRIES and size >= (_LEAST_PARAGRAPH if tag == "p" else _LEAST_TEXT)


def count_own_letters(block: Block) -> int:
    """Count the letters of a block, without the dash before an item."""
    return count_letters(block.text) - (block.tight and block.text.startswith("- "))


def count_linked(block: Block) -> int:
    """Count the letters of a block that are in links."""
    return sum([count_letters(link.label) for link in block.links])


def _measure(
    blocks: Sequence[Block], boxes: Sequence[Box]
) -> tuple[list[int], list[int], list[int], list[bool], list[bool]]:
    """Return the contribution of each block to the sums by which a box is judged.

    Returns:
        Letters; those in links; of blocks in boxes, those in no link unless it is a notice of rights, and
        whether it is content, a paragraph or code; whether it only leads to other pages.
    """
    letters = list(map(count_own_letters, blocks))
    linked = [
        min(size, count_linked(block)) if block.links else 0
        for block, size in zip(blocks, letters, strict=True)
    ]
    labels, content = [0] * len(blocks), [False] * len(blocks)
    for at in _iter_inside(boxes):
        text, tag, beside = blocks[at].text, blocks[at].tag, letters[at] - linked[at]
        labels[at] = 0 if _RIGHTS.match(text) else beside
        content[at] = tag == "pre" or is_prose(text.removeprefix("- "), beside, linked[at], tag)
    return letters, linked, labels, content, [block.tag == BAR for block in blocks]


def _find_led(blocks: Sequence[Block]) -> list[tuple[int, ...]]:
    """Return, in order, where each heading that links lead to is, and the first and last of these links."""
    targets: dict[str, list[int]] = {}
    for at, block in enumerate(blocks):
        for href, _ in block.links:
            if href.startswith("#"):
                targets.setdefault(href[1:], []).append(at)
    return [
        (at, targets[name][0], targets[name][-1])
        for at, block in enumerate(blocks)
        if block.level and targets
        for name in (*block.anchors, block.fragment)
        if name in targets
    ]


def _iter_inside(boxes: Sequence[Box]) -> Iterator[int]:
    """Yield each block that is in a box, once."""
    end = 0
    for box in boxes:
        yield from range(max(end, box.start), box.end)
        end = max(end, box.end)


def find_noise(
    blocks: Sequence[Block],
    boxes: Sequence[Box],
    suspects: Mapping[int, Suspect],
    title: str = "",
    *,
    certain: bool = False,
) -> Noise:
    """Find the noise among the blocks of a page.

    Args:
        blocks: Of the page.
        boxes: Where suspects are, each after those that it is in.
        suspects: Which elements are named like noise.
        title: What the page says in ``<title>``.
        certain: Whether only what says itself that it is navigation is noise, and all else stays a suspect.
    """
    left_out: dict[int, str] = {at: NAVIGATION for at, block in enumerate(blocks) if block.tag == BAR}
    boxes = [box for box in boxes if box.start < box.end and box.node in suspects]
    measures = _measure(blocks if boxes else (), boxes)
    sums = [list(accumulate(column, initial=0)) for column in measures]
    led_to = _find_led(blocks) if boxes else []
    in_suspect: dict[int, tuple[int, str]] = {}
    titled: set[int] = set()
    number = 0
    for box in boxes:
        suspect = suspects[box.node]
        inside = range(box.start, box.end)
        if all(at in left_out for at in (box.start, box.end - 1)):
            continue
        letters, linked, labels, content, bars = (of[box.end] - of[box.start] for of in sums)
        beside = letters - linked
        kept = certain and not suspect.certain
        if not (suspect.certain or kept) and beside * 2 > sums[0][-1] - sums[1][-1]:
            continue  # it holds most of the page
        led_here = led_to[bisect_left(led_to, (box.start,)) : bisect_left(led_to, (box.end,))]
        led = not suspect.certain and any(first < box.start or last >= box.end for _, first, last in led_here)
        has_title = any(_is_title(blocks[at], title, header=suspect.kind == HEADERS) for at in inside)
        menu = linked >= beside or (letters <= _LONGEST_BAR and (0 < beside <= 2 * linked or bars))
        label = suspect.framed and labels <= _FEW_LETTERS
        cells = bars and letters <= _LONGEST_BAR and all(blocks[at].tag in _BAR_CELLS for at in inside)
        if cells:  # whatever the names of the pages around it are
            left_out.update(dict.fromkeys(inside, suspect.kind))
        elif kept or content or led or has_title or not (suspect.certain or menu or label):
            number += 1
            in_suspect.update(dict.fromkeys(inside, (number, suspect.kind)))
            titled.update(inside if has_title else ())
            if (suspect.certain or linked > beside) and not (kept or led) and content:
                left_out.update(dict.fromkeys(_find_menus(blocks, measures[3], inside), suspect.kind))
        else:
            left_out.update({at: suspect.kind for at in inside if at not in left_out})
    contents = next((at for at, block in enumerate(blocks) if at not in left_out and block.level != 1), None)
    if contents is not None and _is_contents(blocks[contents]):
        left_out[contents] = CONTENTS
    left_out.update(dict.fromkeys(_find_contents(blocks, left_out), CONTENTS))
    left_out.update(dict.fromkeys(_find_contents_headings(blocks, left_out), CONTENTS))
    return Noise(left_out, in_suspect, frozenset(titled))


def _find_contents(blocks: Sequence[Block], left_out: Container[int]) -> Iterator[int]:
    """Yield the entries of a list whose links all lead to headings below it, and the label above the list."""
    headings = {
        name: at
        for at, block in enumerate(blocks)
        if block.level
        for name in (*block.anchors, block.fragment)
    }
    entries: list[int] = []
    for at, block in enumerate(blocks):
        if at not in left_out and _leads_below(block, at, headings):
            entries.append(at)
            continue
        if entries:
            label = blocks[entries[0] - 1] if entries[0] else blocks[0]
            folded = label.tag == "summary" and not label.links
            if len(entries) >= _LEAST_CONTENTS - (folded or _names_contents(label)):
                yield from (entries[0] - 1, *entries) if folded else entries
        entries = []


def _find_contents_headings(blocks: Sequence[Block], left_out: Mapping[int, str]) -> Iterator[int]:
    """Yield the headings of tables of contents: with nothing else below, in their names or in sections.

    Below a heading that is called so, all that only leads to the page is an entry, wherever it leads.
    """
    headings = [at for at, block in enumerate(blocks) if block.level and at not in left_out]
    for at, following in pairwise([*headings, len(blocks)]):
        below, named = range(at + 1, following), _names_contents(blocks[at])
        if below and all(left_out.get(n) == CONTENTS or (named and _is_entry(blocks[n])) for n in below):
            alone = following == len(blocks) or blocks[following].level <= blocks[at].level
            if named or (alone and at != headings[0]):
                yield from (at, *below)


def _names_contents(heading: Block) -> bool:
    """Say whether a heading is called "Contents"."""
    text = heading.text.strip(" :.").casefold()
    return bool(heading.level) and (text in _CONTENTS_NAMES or heading.fragment in _CONTENTS_IDS)


def _leads_below(block: Block, at: int, headings: Mapping[str | None, int]) -> bool:
    """Say whether an item of a list is only links to headings that come later."""
    return _is_entry(block) and all(headings.get(link.href[1:], -1) > at for link in block.links)


def _is_entry(block: Block) -> bool:
    """Say whether an item of a list is only links to places on its own page."""
    return (
        block.tag == "li"
        and bool(block.links)
        and all(link.href[:1] == "#" for link in block.links)
        and count_own_letters(block) - count_linked(block) <= _NUMBER_LETTERS
    )


def _find_menus(blocks: Sequence[Block], content: Sequence[bool], inside: range) -> Iterator[int]:
    """Yield the blocks of a menu that are no paragraphs, and the headings with only such below."""
    headings: list[int] = []
    below = False
    for at in inside:
        if content[at] or blocks[at].tag == "aside":
            headings, below = [], False
        elif not blocks[at].level:
            below = True
            yield at
        elif below:
            yield from headings
            headings, below = [at], False
        else:
            headings.append(at)
    if below:
        yield from headings


def _is_title(block: Block, title: str, *, header: bool) -> bool:
    """Say whether a block is the page's main heading: its <title>, or in a header the start of it."""
    if not block.level or block.links:
        return False
    return block.text == title or (
        header and block.level == 1 and (not title or title.startswith(block.text))
    )


def _is_contents(block: Block) -> bool:
    """Say whether a line is only links, several of them, and all to places on its own page."""
    if (
        block.level
        or block.tag in {"li", "td"}
        or len(block.text) > _LONGEST_CONTENTS
        or len(block.links) < 2
    ):
        return False
    labels = sum(sum(map(str.isalnum, link.label)) for link in block.links)
    return labels == sum(map(str.isalnum, block.text)) and all(
        link.href.startswith("#") for link in block.links
    )

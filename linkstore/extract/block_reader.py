"""Reads an HTML page's content as a flat list of blocks.

A block keeps what lies in it: the fragments that lead to it and its hyperlinks, each with its place in the
text. Both wait until the block is complete. Boxes say which blocks stand in elements that matter as a whole:
the main content, and what is named like navigation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from linkstore.extract.blocks import (
    BAR,
    BREAK,
    TITLE,
    Block,
    Box,
    count_letters,
    fold_lines,
    fold_whitespace,
    join_cells,
)
from linkstore.extract.elements import (
    BLOCKS,
    HEADINGS,
    SILENT,
    Node,
    Tree,
    empty_permalinks,
    get_link_label,
    get_link_target,
    get_only_text,
    has_blocks,
    is_box_title,
    is_in_sequence,
    read_inner_text,
)
from linkstore.extract.protocol import Hyperlink

MARK: Final = "\ufdd1"
"""Stands where an anchor or a link begins; a noncharacter, which no text is meant to have."""
_DOXYGEN_TITLE: Final = "div.headertitle > div.title"
"""The name of a page, in Doxygen's pages; what projects put above it may be an ``<h1>``."""
_AT_START: Final = -1
_LEAVES: Final = frozenset({"p", "pre", "listing", "xmp", "plaintext"})
_LEAVES_WITHOUT_BLOCKS: Final = frozenset({"dt", "figcaption", "caption", "summary", "legend", *HEADINGS})
_CODE: Final = frozenset({"pre", "listing", "xmp", "plaintext"})
_SECTIONS: Final = frozenset({"section", "article"})
_LEADS: Final = {"li": "- ", "dd": ""}
_MAX_DEPTH: Final = 128
"""Elements nested deeper are read as one block of text; Python's stack would not hold them."""
_IN_CODE: Final = "a, br, [id], script, style, button, div, p, li, tr"
_LONGEST_LEAD: Final = 200
_FEW_LETTERS: Final = 40
_LONGEST_BAR: Final = 300
_BACKLINK: Final = "toc-backref"


def read_blocks(
    tree: Tree, watched: frozenset[int] = frozenset(), unseen: frozenset[int] = frozenset()
) -> tuple[list[Block], list[Box]]:
    """Read the blocks of a page, in order.

    Args:
        tree: The page. Its permalinks (``¶``) are removed.
        watched: Identities of elements to tell the blocks of.
        unseen: Identities of elements in lines to leave out.

    Returns:
        The blocks, and the elements to tell the blocks of, each after those that it is in.
    """
    titles = frozenset(node.mem_id for node in tree.css(_DOXYGEN_TITLE))
    reader = _BlockReader(empty_permalinks(tree), titles, watched, unseen)
    if tree.body is not None:
        reader.walk(tree.body, "body", 0)
    blocks = reader.finish()
    return blocks, sorted(reader.boxes, key=lambda box: (box.start, -box.end))


class _PendingMarks:
    """Anchors and links of the next block, each with the number of its mark in the text, or _AT_START.

    Each is looked at a bounded number of times, however many blocks without text come before the next one.

    Attributes:
        named: The anchors that are no links.
        sequence: How many of the links lead through a sequence of pages.
    """

    def __init__(self) -> None:
        self.anchors: list[tuple[str, int]] = []
        self.named: set[str] = set()
        self.links: list[tuple[Hyperlink, int]] = []
        self.sequence = 0
        self._settled = [0, 0]

    def settle(self) -> None:
        """Move everything that waits to the start, as the block it was in has no text."""
        anchors, links = self._settled
        self.anchors[anchors:] = [(anchor, _AT_START) for anchor, _ in self.anchors[anchors:]]
        own = [] if self.sequence else self.links[links:]  # a bar of pictures
        self.links[links:] = [(link, _AT_START) for link, _ in own]
        self.sequence = 0
        self._settled = [len(self.anchors), len(self.links)]

    def drop_links(self, start: int = 0, *, own_page: bool = False) -> None:
        """Forget the links from a position on, or only those to a place on their own page."""
        self.links[start:] = [
            link for link in self.links[start:] if own_page and not link[0].href.startswith("#")
        ]
        self._settled[1] = min(self._settled[1], len(self.links))


class _BlockReader:
    """Walks a page; anchors and links wait until the block they belong to is complete.

    What waits has a number: its mark in the text of the block, or _AT_START.
    """

    def __init__(
        self,
        permalinks: dict[int, str],
        titles: frozenset[int],
        watched: frozenset[int],
        unseen: frozenset[int],
    ) -> None:
        self._permalinks = permalinks
        self._titles = titles
        self._watched = watched
        self._unseen = unseen
        self._blocks: list[Block] = []
        self._line: list[str] = []
        self._blank = True
        self._marks = 0
        self._waiting = _PendingMarks()
        self._lead: str | None = None
        self._headed: list[int | None] = []
        self._in_columns = False
        self._term = self._last_term = ""
        self._links = self._sequence = 0
        """How many links the page has up to here, and how many that lead through a sequence of pages."""
        self._last_anchors: frozenset[str] = frozenset()
        """Empty named anchors behind the text of the last block; a heading may follow that they name."""
        self.boxes: list[Box] = []

    def finish(self) -> list[Block]:
        """Return all blocks. Anchors and links that still wait belong to the last one."""
        self._flush("body")
        waiting = self._waiting
        if self._blocks and (waiting.anchors or waiting.links):
            anchors = [anchor for anchor, _ in waiting.anchors]
            links = [link for link, _ in waiting.links]
            self._blocks[-1] = self._blocks[-1].with_at_end(anchors, links)
        return self._blocks

    def walk(self, node: Node, around: str, depth: int) -> None:
        """Read the children of an element.

        Args:
            node: The element.
            around: The block it is in.
            depth: How deep it lies.
        """
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag == "-text":
                self._add_text(child.text_content or "")
            elif tag == "br":
                self._line.append(BREAK)
            elif tag in SILENT:
                self._read_silent(child, tag, around, depth)
            elif tag in BLOCKS or depth >= _MAX_DEPTH:
                self._flush(around)
                self._read_block(child, tag, depth + 1)
            elif not (self._unseen and child.mem_id in self._unseen):
                only = self._read_inline(child, tag)
                if only is None:
                    self.walk(child, around, depth + 1)
                elif only:
                    self._add_text(only)

    def _read_inline(self, node: Node, tag: str) -> str | None:
        """Keep the targets of an element in a line; return its text, None if what is in it is to be read."""
        steps = self._sequence
        if tag == "a" or node.id:
            self._keep_targets(node, tag, self._mark())
        if self._sequence > steps:  # what is in it is no block of the page
            return read_inner_text(node, unseen=self._unseen).replace(BREAK, " ")
        return get_only_text(node)

    def _add_text(self, text: str) -> None:
        if self._blank:
            if text.isspace():
                if self._line:
                    self._line.append(text)
                return
            self._blank = False
        self._line.append(text)

    def _mark(self) -> int:
        """Put a mark in the line for the element that begins here, and return its number."""
        self._line.append(MARK)
        self._marks += 1
        return self._marks - 1

    def _read_silent(self, node: Node, tag: str, around: str, depth: int) -> None:
        """Keep the links of drawings and the headings in buttons, and leave out other unseen elements."""
        if tag == "svg":
            for link in node.css("a"):
                self._keep_targets(link, "a", self._mark())
        elif tag == "button" and node.css_first(", ".join(HEADINGS)) is not None:
            self._flush(around)
            self._read_block(node, "div", depth + 1)

    def _read_block(self, node: Node, tag: str, depth: int) -> None:
        start = len(self._blocks)
        watched = node.mem_id in self._watched
        if watched:
            self._keep_links_before(0)
        if tag in HEADINGS and not is_box_title(node):
            self._read_heading(node, HEADINGS[tag])
        elif tag == "div" and node.mem_id in self._titles:
            self._read_title(node, depth)
        elif depth > _MAX_DEPTH or tag in _LEAVES or (tag in _LEAVES_WITHOUT_BLOCKS and not has_blocks(node)):
            text, counts = self._collect(node, tag)
            code = text.replace(BREAK, "\n").strip("\r\n").rstrip() if tag in _CODE else fold_lines(text)
            self._emit(code, counts, "pre" if tag in _CODE else tag)
        elif tag == "tr":
            self._read_row(node, depth)
        else:
            self._read_container(node, tag, depth)
        if watched:
            self._keep_links_before(start)
            self.boxes.append(Box(node.mem_id, start, len(self._blocks)))

    def _keep_links_before(self, start: int) -> None:
        """Give links without text, such as pictures, to the last block from a place on."""
        links = [link for link, _ in self._waiting.links]
        if links:
            self._waiting.drop_links()
            if len(self._blocks) > start:
                self._blocks[-1] = self._blocks[-1].with_at_end((), links)

    def _read_container(self, node: Node, tag: str, depth: int) -> None:
        self._keep_targets(node, tag)
        self._lead = _LEADS.get(tag, self._lead)
        around = self._term
        if tag == "dd":
            self._term = self._last_term
        own = tag in _SECTIONS or (tag == "div" and bool(node.id))
        start = len(self._blocks)
        if own:
            self._headed.append(None)
        self.walk(node, tag, depth)
        self._flush(tag)
        self._lead = None
        if tag == "table":
            self._name_columns(start)
        if own:
            heading = self._headed.pop()
            if heading is not None and tag == "div" and self._headed and self._headed[-1] is None:
                self._headed[-1] = heading
            if heading is not None and start < heading < len(self._blocks):
                self._put_ahead(start, heading, node)
        self._term = around

    def _name_columns(self, start: int) -> None:
        """Give the rows of a table the row that heads them as their term."""
        header = ""
        for at in range(start, len(self._blocks)):
            block = self._blocks[at]
            if block.tag == "th":
                header = block.text
            elif header and block.tag == "tr" and not block.term:
                self._blocks[at] = block._replace(term=header)

    def _put_ahead(self, start: int, at: int, section: Node) -> None:
        """Move what precedes a section's heading below the heading."""
        heading, before = self._blocks[at], self._blocks[start:at]
        if any(block.level for block in before) or (
            section.tag == "div" and sum(len(block.text) for block in before) > _LONGEST_LEAD
        ):
            return
        if any(0 < block.level <= heading.level for block in self._blocks[at + 1 :]):
            return
        self._blocks[start:at] = [block._replace(ahead=True) for block in before]
        self._blocks[at] = heading._replace(fragment=heading.fragment or section.id or None)

    def _read_heading(self, node: Node, level: int) -> None:
        waiting = self._waiting
        if self._last_anchors:
            self._blocks[-1], anchors = self._blocks[-1].split_anchors(self._last_anchors)
            waiting.anchors[:0] = [(anchor, _AT_START) for anchor in anchors]
        nearest, before = waiting.anchors[-1][0] if waiting.anchors else None, len(waiting.links)
        text, counts = self._collect(node, f"h{level}")
        if not text or text.isspace():
            text = " ".join(button.text() for button in node.css("button"))
        text = fold_whitespace(text.replace(BREAK, " "))
        # A link from a heading to a place on its own page leads to itself or to the contents.
        waiting.drop_links(before, own_page=True)
        fragment = self._permalinks.get(node.mem_id) or node.id or nearest
        if fragment is None and waiting.anchors:
            fragment = waiting.anchors[0][0]
        if text and self._headed and self._headed[-1] is None:
            self._headed[-1] = len(self._blocks)
        self._emit(text, counts, f"h{level}", level=level, fragment=fragment)

    def _read_title(self, node: Node, depth: int) -> None:
        """Read a page's name as a heading, and below it the blocks in it, which name its groups."""
        self._keep_targets(node, "div")
        children = list(node.iter(include_text=True))
        text = "".join(child.text() for child in children if child.tag not in BLOCKS)
        self._emit(fold_whitespace(text), (), TITLE, level=1, fragment=node.id)
        for child in children:
            if child.tag in BLOCKS:
                self._read_block(child, child.tag or "", depth)

    def _read_row(self, node: Node, depth: int) -> None:
        """Read a table row as one line, unless a cell holds more than one."""
        self._keep_targets(node, "tr")
        start = len(self._blocks)
        simple, around = True, self._in_columns
        links, sequence = self._links, self._sequence
        # A cell next to others is data, even if it has only links; a table of contents has its own row.
        children = list(node.iter())
        self._in_columns = around or len(children) > 1
        for cell in children:
            before = len(self._blocks)
            self._read_block(cell, "td" if self._in_columns else "div", depth)
            simple = simple and len(self._blocks) - before <= 1
        self._in_columns = around
        cells = self._blocks[start:]
        if cells and simple and not any(cell.level for cell in cells):
            row = join_cells(cells)
            beside = len(row.text) - sum(len(link.label) for link in row.links)
            if self._links - links <= 2 * (self._sequence - sequence) > 0 and beside <= _LONGEST_BAR:
                row = row._replace(tag=BAR)
            elif len(children) > 1 and all(cell.tag == "th" for cell in children):
                row = row._replace(tag="th")
            self._blocks[start:] = [row]
            self.boxes = [box for box in self.boxes if box.start < start]

    def _collect(self, node: Node, tag: str) -> tuple[str, tuple[int, ...]]:
        """Return the text of an element without blocks, and the places of its marks.

        The anchors and links of the element wait for it to be emitted.
        """
        self._keep_targets(node, tag)
        only = get_only_text(node)
        if only is not None:
            return _remove_marks(only, 0)
        if tag in _CODE and node.css_first(_IN_CODE) is None:  # highlighted: a <span> for each token
            return _remove_marks(node.text(), 0)
        marks = 0

        def mark(child: Node, tag: str, parts: list[str]) -> None:
            nonlocal marks
            if tag != "a" and tag != "svg" and (tag in SILENT or not child.id):
                return
            for node in child.css("a") if tag == "svg" else (child,):
                self._keep_targets(node, node.tag or "", marks)
                parts.append(MARK)
                marks += 1

        text = read_inner_text(node, mark, self._unseen)
        return _remove_marks(text, marks)

    def _keep_targets(self, node: Node, tag: str, number: int = _AT_START) -> None:
        """Keep an element's anchors and link for the block in the making."""
        waiting, own = self._waiting, node.id
        if own:
            waiting.anchors.append((own, number))
        if tag != "a":
            return
        attributes = node.attributes
        name, href = attributes.get("name"), get_link_target(attributes)
        if name and name != own:
            waiting.anchors.append((name, number))
            if href is None and number != _AT_START:
                waiting.named.add(name)
        backlink = attributes.get("role") == "doc-backlink" or _BACKLINK in (attributes.get("class") or "")
        if href and not backlink:
            waiting.links.append((Hyperlink(href, get_link_label(node)), number))
            in_sequence = len(attributes) > 1 and is_in_sequence(attributes)
            waiting.sequence += in_sequence
            self._sequence += in_sequence
            self._links += 1

    def _flush(self, tag: str) -> None:
        if self._line:
            text, counts = _remove_marks("".join(self._line), self._marks)
            self._line.clear()
            self._blank, self._marks = True, 0
            self._emit(fold_lines(text), counts, tag)

    def _emit(
        self, text: str, counts: Sequence[int], tag: str, *, level: int = 0, fragment: str | None = None
    ) -> None:
        waiting = self._waiting
        if not text:
            waiting.settle()
            return
        if waiting.sequence and not level and tag != "pre":
            linked = sum([count_letters(link.label) for link, _ in waiting.links])
            beside = count_letters(text) - linked
            if beside <= max(_FEW_LETTERS, linked) and 2 * waiting.sequence >= len(waiting.links):
                tag = BAR
        lead = ("" if level else self._lead) or ""
        tight = self._lead is not None and not level
        if tight:
            self._lead = None
        if tag == "dt":
            self._last_term = text
        anchors: dict[str, int] = {}
        links: tuple[Hyperlink, ...] = ()
        places: tuple[int, ...] = ()
        if waiting.anchors or waiting.links:
            shift = len(lead.strip())
            placed = [count and count + shift for count in (*counts, 0)]  # the last one is that of _AT_START
            for anchor, number in waiting.anchors:
                anchors.setdefault(anchor, placed[number])
            links = tuple([link for link, _ in waiting.links])
            places = (*anchors.values(), *[placed[number] for _, number in waiting.links])
            self._waiting = _PendingMarks()
        end = count_letters(lead + text) if waiting.named and not level else 0
        self._last_anchors = frozenset(name for name in waiting.named if end and anchors.get(name) == end)
        waiting.sequence = 0
        starts = 0 in anchors.values()
        names = tuple(anchors)
        self._blocks.append(
            Block(
                lead + text, level, names, links, starts, fragment, tight, places, False, 0, tag, self._term
            )
        )


def _remove_marks(text: str, marks: int) -> tuple[str, tuple[int, ...]]:
    """Return a text without its marks, and how many letters stand before each of them.

    Args:
        text: A text with marks.
        marks: How many there must be. If there are others, all are said to stand at the start.
    """
    if MARK not in text:
        return text, ()
    pieces = text.split(MARK)
    counts = tuple(accumulate(map(count_letters, pieces[:-1])))
    return "".join(pieces), counts if len(counts) == marks else (0,) * marks

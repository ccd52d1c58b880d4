"""Reads an HTML page's content as a flat list of blocks: headings, paragraphs, list items, table rows.

A block keeps what lies in it: the fragments that lead to it and its hyperlinks, each with its place in the
text. Both wait until the block is complete. The page is walked once; paragraphs and other blocks without
blocks in them are read by the parser in one go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from linkstore.extract.html import Node, Tree, find_node_anchors, get_link_target, is_backlink
from linkstore.extract.noise import (
    BLOCKS,
    BREAK,
    CONTENTS,
    MARK,
    SILENT,
    Noise,
    count_letters,
    empty_element,
    find_permalinks,
    fold_lines,
    fold_whitespace,
    get_link_label,
    read_inner_text,
    remove_marks,
)
from linkstore.extract.protocol import Hyperlink

AT_START: Final = -1
"""Stands for the start of the block."""
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_HEADING: Final = ", ".join(_HEADINGS)
_BOXES: Final = frozenset({"note", "tip", "warning", "caution", "important"})
"""Classes of DocBook's boxes: what begins one is written as a heading, and heads no section."""
_LEAVES: Final = frozenset({"p", "pre", "dt", "figcaption", "caption", "summary", "legend"})
_MAY_HOLD_BLOCKS: Final = _LEAVES - {"p", "pre"}
_SECTIONS: Final = frozenset({"section", "article"})
_INLINE_NAMES: Final = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span"
    " strike strong sub sup time tt u var wbr"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
_APART: Final = SILENT | BLOCKS | {"br"}
"""Elements that prevent the parser from reading a text in one go."""
_LEADS: Final = {"li": "- ", "dd": ""}
_MAX_DEPTH: Final = 128
"""Elements nested deeper are read as one block of text; Python's stack would not hold them."""
_IN_CODE: Final = "a, br, [id], script, style, button, div, p, li, tr"
_EMPTY_ANCHORS: Final = ":is(a, span):is([id], [name]):empty"
_MOST_IN_NOISE: Final = 8
_BRIEF: Final = 120
"""A text of this length is not divided, so that the places of what is in it do not matter."""
_LONGEST_LEAD: Final = 200


class Block(NamedTuple):
    """A piece of a page that is not divided unless it is too long.

    Attributes:
        text: Its text; only that of ``<pre>`` keeps its white space.
        level: 1 to 6 for a heading, 0 for everything else.
        anchors: The fragments (``id``, ``name``) that lead to it or to what is in it.
        links: The hyperlinks in it, in order.
        starts: Whether an anchor stands at its start.
        fragment: Of a heading, the fragment that leads to it, if any.
        tight: Whether it follows what is before without a blank line.
        places: Where the anchors and then the links stand: after how many characters of the text that are
            not white space. Empty where that is not known, or where all stand at the start.
        ahead: Whether it stands before the heading of the section it belongs to.
        suspect: The number of the element it is in that is noise if it repeats from page to page; else 0.
    """

    text: str
    level: int = 0
    anchors: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()
    starts: bool = False
    fragment: str | None = None
    tight: bool = False
    places: tuple[int, ...] = ()
    ahead: bool = False
    suspect: int = 0

    def placed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the places of its anchors and links, the start of the block if they are not known."""
        places = self.places or (0,) * (len(self.anchors) + len(self.links))
        return places[: len(self.anchors)], places[len(self.anchors) :]

    def with_at_end(self, anchors: Sequence[str], links: Sequence[Hyperlink] = ()) -> Block:
        """Return the block with further anchors and links, which stand behind its text."""
        end = count_letters(self.text)
        of_anchors, of_links = self.placed()
        return self._replace(
            anchors=(*self.anchors, *anchors),
            links=(*self.links, *links),
            places=(*of_anchors, *(end for _ in anchors), *of_links, *(end for _ in links)),
        )


def join_cells(cells: Sequence[Block]) -> Block:
    """Join the cells of a table row into one line."""
    text = " | ".join([cell.text for cell in cells])
    starts = cells[0].starts
    if not any(cell.anchors or cell.links for cell in cells):
        return Block(text, starts=starts, tight=True, suspect=cells[0].suspect)
    anchors: list[int] = []
    links: list[int] = []
    before = 0
    for cell in cells:
        of_anchors, of_links = cell.placed()
        anchors.extend(before + place for place in of_anchors)
        links.extend(before + place for place in of_links)
        before += count_letters(cell.text) + 1
    return Block(
        text=text,
        anchors=tuple(anchor for cell in cells for anchor in cell.anchors),
        links=tuple(link for cell in cells for link in cell.links),
        starts=starts,
        tight=True,
        places=(*anchors, *links),
        suspect=cells[0].suspect,
    )


class PendingMarks:
    """Anchors and links of the next block, each with the number of its mark in the text, or AT_START.

    Each is looked at a bounded number of times, however many blocks without text come before the next one.

    Attributes:
        starts: Whether one of the anchors stands at the start of the block.
    """

    def __init__(self) -> None:
        self.anchors: list[tuple[str, int]] = []
        self.links: list[tuple[Hyperlink, int]] = []
        self.starts = False
        self._settled = [0, 0]

    def settle(self) -> None:
        """Move everything that waits to the start, as the block it was in has no text."""
        for at in range(self._settled[0], len(self.anchors)):
            self.anchors[at] = (self.anchors[at][0], AT_START)
        for at in range(self._settled[1], len(self.links)):
            self.links[at] = (self.links[at][0], AT_START)
        self._settled = [len(self.anchors), len(self.links)]

    def drop_links(self) -> None:
        """Forget the links."""
        self.links = []
        self._settled[1] = 0

    def drop_links_to_own_page(self, start: int) -> None:
        """Forget the links from a position on that lead to a place on their own page."""
        self.links[start:] = [link for link in self.links[start:] if not link[0].href.startswith("#")]

    def given_away(
        self, counts: Sequence[int]
    ) -> tuple[tuple[str, ...], tuple[Hyperlink, ...], tuple[int, ...]]:
        """Return the anchors, the links and the places of a block, and let none wait any more.

        Args:
            counts: How many letters of its text stand before each mark, empty if that is not known.
        """
        if not self.anchors and not self.links:
            return (), (), ()
        anchors: dict[str, int] = {}
        for anchor, number in self.anchors:
            anchors.setdefault(anchor, number)
        links = tuple([link for link, _ in self.links])
        numbers = (*anchors.values(), *[number for _, number in self.links]) if counts else ()
        places = tuple([0 if number < 0 else counts[number] for number in numbers])
        self.anchors, self.links, self.starts = [], [], False
        self._settled = [0, 0]
        return tuple(anchors), links, places

    def is_contents(self, text: str) -> bool:
        """Say whether a line is only links, several of them, and all to places on its own page."""
        links = [link for link, _ in self.links]
        return (
            len(links) > 1
            and all(link.href.startswith("#") for link in links)
            and _count_alphanumeric(text) == sum(_count_alphanumeric(link.label) for link in links)
        )


def _count_alphanumeric(text: str) -> int:
    """Count the letters and digits of a text."""
    return sum(map(str.isalnum, text))


@dataclass(frozen=True, slots=True)
class PageBlocks:
    """The content read from a page.

    Args:
        blocks: In order, without link noise.
        ranges: Of the elements to look out for, by identity: where their blocks begin and end.
        left_out: How many letters there were in noise, by what it is called.
        suspects: What the suspects are called, by the numbers that blocks name.
    """

    blocks: list[Block]
    ranges: Mapping[int, tuple[int, int]]
    left_out: Counter[str]
    suspects: Mapping[int, str]


def read_blocks(tree: Tree, content: Node, noise: Noise, watched: frozenset[int] = frozenset()) -> PageBlocks:
    """Read the blocks of a page, in order, without link noise.

    Args:
        tree: The page. Its permalinks (``¶``) are removed.
        content: The element to read.
        noise: The elements to leave out, and those to mark.
        watched: Identities of elements of which to note where their blocks begin and end.
    """
    reader = _BlockReader(noise, _empty_permalinks(tree), watched)
    reader.walk(content, 0)
    return PageBlocks(reader.finished(), reader.ranges, reader.left_out, reader.suspects)


def _empty_permalinks(tree: Tree) -> dict[int, str]:
    """Empty permalinks, so that only their anchors stay, and return where they lead, by their heading."""
    fragments: dict[int, str] = {}
    for link, heading in list(find_permalinks(tree)):
        around = heading or link.parent
        target = link.attributes.get("href") or ""
        if around is not None and target.startswith("#"):
            fragments[around.mem_id] = target[1:]
        if any(find_node_anchors(link)):
            empty_element(link)
            if "href" in link.attributes:
                del link.attrs["href"]
        else:
            link.decompose()
    return fragments


class _BlockReader:
    """Walks a page; anchors and links wait until the block they belong to is complete.

    What waits has a number: its mark in the text of the block, or AT_START.
    """

    def __init__(self, noise: Noise, permalinks: dict[int, str], watched: frozenset[int]) -> None:
        self._noise = noise.kinds
        self._named = noise.suspects
        self._suspect = 0
        self._permalinks = permalinks
        self._watched = watched
        self._blocks: list[Block] = []
        self._line: list[str] = []
        self._blank = True
        self._marks = 0
        self._waiting = PendingMarks()
        self._lead: str | None = None
        self._headed: list[int | None] = []
        self._in_columns = False
        self.ranges: dict[int, tuple[int, int]] = {}
        self.left_out: Counter[str] = Counter()
        self.suspects: dict[int, str] = {}

    def finished(self) -> list[Block]:
        """Return all blocks. Anchors and links that still wait belong to the last one."""
        self._flush()
        waiting = self._waiting
        if self._blocks and (waiting.anchors or waiting.links):
            anchors = [anchor for anchor, _ in waiting.anchors]
            links = [link for link, _ in waiting.links]
            self._blocks[-1] = self._blocks[-1].with_at_end(anchors, links)
        return self._blocks

    def walk(self, node: Node, depth: int) -> None:
        """Read the children of an element."""
        for child in node.iter(include_text=True):
            tag = child.tag
            if tag == "-text":
                self._text(child.text_content or "")
            elif tag == "br":
                self._line.append(BREAK)
            elif tag in SILENT:
                self._silent(child, tag or "", depth)
            elif child.mem_id in self._noise:
                self._leave_out(child)
            elif tag in _INLINE and depth < _MAX_DEPTH:
                if tag == "a" or child.id:
                    self._note(child, tag, self._mark())
                only = _get_only_text(child)
                if only is None:
                    self.walk(child, depth + 1)
                elif only:
                    self._text(only)
            else:
                self._flush()
                self._block(child, tag or "", depth + 1)

    def _text(self, text: str) -> None:
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

    def _silent(self, node: Node, tag: str, depth: int) -> None:
        """Keep the links of drawings and the headings in buttons, and leave out other unseen elements."""
        if tag == "svg":
            for link in node.css("a"):
                self._note(link, "a", self._mark())
        elif tag == "button" and node.css_first(_HEADING) is not None:
            self._flush()
            self._block(node, "div", depth + 1)

    def _leave_out(self, node: Node) -> None:
        """Count the letters in noise. Anchors on it, and empty ones in it, lead to what follows."""
        self.left_out[self._noise[node.mem_id]] += count_letters(node.text())
        if node.id:
            self._waiting.anchors.append((node.id, AT_START))
        for element in node.css(_EMPTY_ANCHORS)[:_MOST_IN_NOISE]:
            self._waiting.anchors.extend((anchor, AT_START) for anchor in find_node_anchors(element))

    def _block(self, node: Node, tag: str, depth: int) -> None:
        kind = self._named.get(node.mem_id)
        if kind is None:
            self._read(node, tag, depth)
            return
        around, self._suspect = self._suspect, len(self.suspects) + 1
        self.suspects[self._suspect] = kind
        self._read(node, tag, depth)
        self._suspect = around

    def _read(self, node: Node, tag: str, depth: int) -> None:
        if tag in _HEADINGS and not _is_box_title(node):
            self._heading(node, _HEADINGS[tag])
        elif depth > _MAX_DEPTH or ((tag in _LEAVES or tag in _HEADINGS) and not _has_blocks(node, tag)):
            self._leaf(node, tag)
        elif tag == "tr":
            self._row(node, depth)
        elif node.mem_id in self._watched:
            start = len(self._blocks)
            self._waiting.drop_links()
            self._container(node, tag, depth)
            self.ranges[node.mem_id] = (start, len(self._blocks))
        else:
            self._container(node, tag, depth)

    def _container(self, node: Node, tag: str, depth: int) -> None:
        self._note(node, tag)
        self._lead = _LEADS.get(tag, self._lead)
        text = _get_only_text(node)
        if text is not None:
            if text and not text.isspace():
                self._emit(fold_lines(remove_marks(text, 0)[0]), ())
            self._lead = None
            return
        own = tag in _SECTIONS or (tag == "div" and bool(node.id))
        start = len(self._blocks)
        if own:
            self._headed.append(None)
        self.walk(node, depth)
        self._flush()
        self._lead = None
        if own:
            heading = self._headed.pop()
            if heading is not None and tag == "div" and self._headed and self._headed[-1] is None:
                self._headed[-1] = heading
            if heading is not None and start < heading < len(self._blocks):
                self._put_ahead(start, heading, node)

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

    def _heading(self, node: Node, level: int) -> None:
        waiting = self._waiting
        nearest, before = waiting.anchors[-1][0] if waiting.anchors else None, len(waiting.links)
        text, counts = self._collected(node)
        if not text or text.isspace():
            text, _ = read_inner_text(node, silent=SILENT - {"button"})
        text = fold_whitespace(text.replace(BREAK, " "))
        # A link from a heading to a place on its own page leads to itself or to the contents.
        waiting.drop_links_to_own_page(before)
        fragment = self._permalinks.get(node.mem_id) or node.id or nearest
        if fragment is None and waiting.anchors:
            fragment = waiting.anchors[0][0]
        if text and self._headed and self._headed[-1] is None:
            self._headed[-1] = len(self._blocks)
        self._emit(text, counts, level=level, fragment=fragment)

    def _leaf(self, node: Node, tag: str) -> None:
        text, counts = self._collected(node)
        if tag == "pre":
            self._emit(text.replace(BREAK, "\n").strip("\r\n").rstrip(), counts)
        else:
            self._emit(fold_lines(text), counts)

    def _row(self, node: Node, depth: int) -> None:
        """Read a table row as one line, unless a cell holds more than one."""
        self._note(node, "tr")
        start = len(self._blocks)
        simple, around = True, self._in_columns
        # A cell next to others is data, even if it has only links; a table of contents has its own row.
        children = list(node.iter())
        self._in_columns = around or len(children) > 1
        for cell in children:
            before = len(self._blocks)
            if cell.mem_id in self._noise:
                self._leave_out(cell)
            else:
                self._block(cell, "td", depth)
            simple = simple and len(self._blocks) - before <= 1
        self._in_columns = around
        cells = self._blocks[start:]
        if cells and simple and not any(cell.level for cell in cells):
            self._blocks[start:] = [join_cells(cells)]
            self.ranges = {name: found for name, found in self.ranges.items() if found[0] < start}

    def _collected(self, node: Node) -> tuple[str, tuple[int, ...]]:
        """Return the text of an element without blocks, and the places of its marks.

        The anchors and links of the element wait for it to be emitted.
        """
        only = _get_only_text(node)
        if only is not None:
            self._note(node, node.tag)
            return remove_marks(only, 0)
        own, first = node.mem_id, node.first_child
        beginning = {own} if first is None else {own, first.mem_id}
        plain, noted = True, []
        # Highlighted code has a <span> for each token, which the parser skips faster.
        for element in node.css(_IN_CODE) if node.tag == "pre" else node.traverse():
            tag = element.tag
            if tag == "a" or element.id:
                noted.append((element, tag, element.mem_id in beginning))
            if tag in _APART and element.mem_id != own:
                plain = False
        text = node.text() if plain else ""
        if plain and (not noted or len(text) <= _BRIEF):
            numbers: dict[int, int] = {}
        elif plain:
            inner = [element for element, _, _ in noted if element.mem_id != own]
            for element in inner:
                element.insert_before(MARK)
            text, numbers = node.text(), {element.mem_id: n for n, element in enumerate(inner)}
        else:
            text, numbers = read_inner_text(node, {element.mem_id for element, _, _ in noted})
        for element, tag, begins in noted:
            self._note(element, tag, numbers.get(element.mem_id, AT_START), begins=begins)
        return remove_marks(text, len(numbers))

    def _note(self, node: Node, tag: str | None, number: int = AT_START, *, begins: bool = True) -> None:
        """Keep an element's anchors and link for the block in the making."""
        if tag == "a":
            anchors = tuple(find_node_anchors(node))
        else:
            own = node.id
            if not own:
                return
            anchors = (own,)
        if anchors:
            self._waiting.anchors.extend((anchor, number) for anchor in anchors)
            self._waiting.starts = self._waiting.starts or (begins and self._blank)
        if tag == "a":
            attributes = node.attributes
            href = get_link_target(attributes)
            if href and not is_backlink(attributes):
                self._waiting.links.append((Hyperlink(href=href, label=get_link_label(node)), number))

    def _flush(self) -> None:
        if self._line:
            text, counts = remove_marks("".join(self._line), self._marks)
            self._line.clear()
            self._blank, self._marks = True, 0
            self._emit(fold_lines(text), counts)

    def _emit(self, text: str, counts: Sequence[int], *, level: int = 0, fragment: str | None = None) -> None:
        waiting = self._waiting
        if not text:
            waiting.settle()
            return
        # Contents stand at the top, below the title at most; further down such a line is of cross-references.
        top = not self._blocks or (len(self._blocks) == 1 and self._blocks[0].level == 1)
        line = top and not level and self._lead is None and not self._in_columns
        if line and len(text) <= _LONGEST_LEAD and waiting.is_contents(text):
            self.left_out[CONTENTS] += count_letters(text)
            waiting.settle()
            waiting.drop_links()
            return
        tight = self._lead is not None and not level
        if tight:
            if self._lead:
                text, counts = f"{self._lead}{text}", [count + count_letters(self._lead) for count in counts]
            self._lead = None
        starts = waiting.starts
        anchors, links, places = waiting.given_away(counts)
        self._blocks.append(
            Block(text, level, anchors, links, starts, fragment, tight, places, False, self._suspect)
        )


def _get_only_text(node: Node) -> str | None:
    """Return the text of an element that holds nothing else, or None if it holds elements."""
    only = node.first_child
    if only is None:
        return ""
    return only.text_content or "" if only.tag == "-text" and only.next is None else None


def _is_box_title(heading: Node) -> bool:
    box = heading.parent
    if box is None or _BOXES.isdisjoint((box.attributes.get("class") or "").split()):
        return False
    first = next(box.iter(), None)
    return first is not None and first.mem_id == heading.mem_id


def _has_blocks(node: Node, tag: str) -> bool:
    """Say whether an element that mostly holds a line holds blocks, as ``<summary>`` with a heading in it."""
    return tag in _MAY_HOLD_BLOCKS and any(child.tag in BLOCKS for child in node.iter())

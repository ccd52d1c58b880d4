"""Reads an HTML page's content as a flat list of blocks: headings, paragraphs, list items, table rows.

A block keeps what lies in it: the fragments that lead to it and its hyperlinks, each with its place in the
text. Both wait until the block is complete. Boxes say which blocks stand in elements that matter as a whole:
the main content, and what is named like navigation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from linkstore.extract.protocol import Hyperlink

Tree = LexborHTMLParser
Node = LexborNode


def split_names(names: str) -> frozenset[str]:
    """Return the names in a text, which white space sets apart."""
    return frozenset(names.split())


MARK: Final = "\ufdd1"
"""Stands where an anchor or a link begins; a noncharacter, which no text is meant to have."""
BREAK: Final = "\v"
"""``<br>``, and where a block begins or ends: the only vertical tab that does not come from the source."""
SILENT: Final = split_names(
    "script style template noscript svg math head title button select textarea input iframe object "
    "video audio canvas img map frameset rp -comment"
)
"""Elements whose text is not the page's."""
BLOCKS: Final = split_names(
    "address article aside blockquote caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu "
    "nav ol optgroup p plaintext pre search section summary table tbody td tfoot th thead tr ul xmp"
)
"""Elements that are shown on lines of their own, or in cells. All others, known or not, stand in a line."""
BAR: Final = "bar"
"""Stands for the element of a block that only leads to the pages before, after and above."""
HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_DOXYGEN_TITLE: Final = "div.headertitle > div.title"
"""The name of a page, in Doxygen's pages; what projects put above it may be an ``<h1>``."""
TITLE: Final = "title"
"""Stands for the element of the block of such a name."""
_AT_START: Final = -1
_BOXES: Final = frozenset({"note", "tip", "warning", "caution", "important"})
"""Classes of DocBook's boxes: what begins one is written as a heading, and heads no section."""
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
_SEQUENCE: Final = split_names("next prev previous up start home first last top contents index")
"""Values of ``rel`` on links that lead through a sequence of pages (HTML 4.01, section 6.12, and since)."""
_SEQUENCE_KEYS: Final = frozenset("hnptu")
"""Access keys that DocBook, Texinfo and GTK-Doc give such links."""
_STEP_NAME: Final = re.compile(r"(?:^|[\s_-])(?:prev|previous|next)(?:[\s_-]|$)", re.IGNORECASE)
_STEP_TITLE: Final = re.compile(
    r"(?:prev|previous|next)(?: (?:page|chapter|section|topic|article|post))?(?:\W*|:.*)", re.IGNORECASE
)
"""A class or id, and a title, of links to the page before or after."""
_BACKLINK: Final = "toc-backref"
_PERMALINK_CLASSES: Final = split_names(
    "headerlink hash-link anchorjs-link header-anchor copiable-link anchor-link"
)
_PERMALINKS: Final = f"a:is([href^='#'], {', '.join(f'.{name}' for name in sorted(_PERMALINK_CLASSES))})"
_SIGNS: Final = frozenset("¶#§🔗⚓∞☍◆⛓⌗")
"""Other signs are names of operators."""
_NEAR: Final = 4
_MOST_PASSED_ON: Final = 16
"""Anchors in blocks left out that lead to the next one; a menu may have thousands."""
_HEADING_LIKE: Final = frozenset({*HEADINGS, "dt", "summary", "caption", "figcaption"})


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
        suspect: The number of the box it is in that is noise if it repeats from page to page; else 0.
        tag: The element it is in, ``"th"`` of a row that heads others, or :data:`BAR`.
        term: The term that it defines, as ``<dt>`` says it, or the row that heads it; may be empty.
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
    tag: str = ""
    term: str = ""

    def place(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the places of its anchors and links, the start of the block if they are not known."""
        places = self.places or (0,) * (len(self.anchors) + len(self.links))
        return places[: len(self.anchors)], places[len(self.anchors) :]

    def with_at_end(self, anchors: Sequence[str], links: Sequence[Hyperlink] = ()) -> Block:
        """Return the block with further anchors and links, which stand behind its text."""
        further = Block("", anchors=tuple(anchors), links=tuple(links))
        return self.with_those_of([(0, self), (count_letters(self.text), further)])

    def with_those_of(self, blocks: Iterable[tuple[int, Block]]) -> Block:
        """Return the block with the anchors and links of others, each that many letters behind its start."""
        anchors: list[tuple[str, int]] = []
        links: list[tuple[Hyperlink, int]] = []
        for start, block in blocks:
            of_anchors, of_links = block.place()
            anchors += ((anchor, start + at) for anchor, at in zip(block.anchors, of_anchors, strict=True))
            links += ((link, start + at) for link, at in zip(block.links, of_links, strict=True))
        return self._replace(
            anchors=tuple([one for one, _ in anchors]),
            links=tuple([hyperlink for hyperlink, _ in links]),
            places=tuple([at for _, at in (*anchors, *links)]),
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


def keep_blocks(blocks: Sequence[Block], kept: Sequence[int]) -> list[Block]:
    """Return the blocks at some positions. Anchors of the others go to the next one, or to the last's end."""
    found: list[Block] = []
    at = 0
    for number in kept:
        before = tuple([anchor for block in blocks[at:number] for anchor in block.anchors])[:_MOST_PASSED_ON]
        block, at = blocks[number], number + 1
        found.append(block.with_those_of([(0, Block("", anchors=before)), (0, block)]) if before else block)
    after = [anchor for block in blocks[at:] for anchor in block.anchors][:_MOST_PASSED_ON]
    if after and found:
        found[-1] = found[-1].with_at_end(after)
    return found


def join_cells(cells: Sequence[Block]) -> Block:
    """Join the cells of a table row into one line."""
    text = " | ".join([cell.text for cell in cells])
    row = Block(text, starts=cells[0].starts, tight=True, tag="tr")
    if not any(cell.anchors or cell.links for cell in cells):
        return row
    starts = accumulate((count_letters(cell.text) + 1 for cell in cells[:-1]), initial=0)
    return row.with_those_of(zip(starts, cells, strict=True))


def read_inner_text(
    node: Node,
    visit: Callable[[Node, str, list[str]], None] = lambda *_: None,
    unseen: frozenset[int] = frozenset(),
) -> str:
    """Return the text in an element, with a break at each end of a block in it.

    Args:
        node: The element.
        visit: Called for each element in it, with its tag and the parts of the text so far.
        unseen: Identities of elements to leave out.
    """
    parts: list[str] = []
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
            continue
        visit(child, tag, parts)
        if tag == "br":
            parts.append(BREAK)
        elif tag not in SILENT and not (unseen and child.mem_id in unseen):
            end = BREAK if tag in BLOCKS else ""
            if end and parts and not parts[-1].endswith((BREAK, "\n")):
                parts.append(BREAK)
            inner.append(child.iter(include_text=True))
            ends.append(end)
    return "".join(parts)


def get_link_label(node: Node) -> str:
    """Return the label of a link, white space folded: its text, else its ``title``. It may be empty."""
    only = node.first_child
    simple = only is None or only.next is None
    return fold_whitespace(node.text() if simple else read_inner_text(node)) or fold_whitespace(
        node.attributes.get("title") or ""
    )


def get_link_target(attributes: Mapping[str, str | None]) -> str | None:
    """Return the target of a link, from its attributes. Links of SVG may have ``xlink:href``."""
    return attributes.get("href") or attributes.get("xlink:href")


def find_node_anchors(node: Node) -> Iterator[str]:
    """Yield the fragments that lead to an element: its ``id``, and its ``name`` if it is an ``<a>``."""
    anchor = node.id
    if anchor:
        yield anchor
    if node.tag == "a":
        name = node.attributes.get("name")
        if name and name != anchor:
            yield name


def iter_ancestors(node: Node, most: int = 8) -> Iterator[Node]:
    """Yield the nearest elements around one, innermost first."""
    here = node.parent
    for _ in range(most):
        if here is None:
            return
        yield here
        here = here.parent


def empty_element(node: Node) -> None:
    """Remove all that is in an element."""
    for child in list(node.iter(include_text=True)):
        child.decompose()


def empty_permalinks(tree: Tree) -> dict[int, str]:
    """Empty the links that lead to the very place they stand at, so that only their anchors stay.

    Permalinks are known by their class, or by a text that is only a sign (``¶``, ``#``, ``§``) and a target
    that is the heading they stand in or an element around them. A link that is the whole text of its heading
    is none.

    Returns:
        Where they lead, by the identity of the heading that they are in, or of the element around them.
    """
    fragments: dict[int, str] = {}
    for link in tree.css(_PERMALINKS):
        attributes, text = link.attributes, fold_whitespace(link.text())
        by_class = not _PERMALINK_CLASSES.isdisjoint((attributes.get("class") or "").split())
        is_sign = text.replace(" ", "").rstrip("\ufe0e\ufe0f") in _SIGNS  # a second one chooses its colours
        if not by_class and not is_sign:
            continue
        href = attributes.get("href") or ""
        around = list(iter_ancestors(link, _NEAR))
        heading = next((node for node in around if node.tag in _HEADING_LIKE), None)
        if heading is not None and text and text == fold_whitespace(heading.text()):
            continue
        near = (link, *around, link.prev, link.next, around[0].prev) if href[1:] and around else ()
        is_near = any(node is not None and node.is_element_node and node.id == href[1:] for node in near)
        if not (by_class or heading is not None or is_near):
            continue
        place = heading or link.parent
        if place is not None and href.startswith("#"):
            fragments[place.mem_id] = href[1:]
        if any(find_node_anchors(link)):
            empty_element(link)
            if "href" in attributes:
                del link.attrs["href"]
        else:
            link.decompose()
    return fragments


class Box(NamedTuple):
    """An element that is looked out for, and which blocks stand in it."""

    node: int
    """Its identity (``mem_id``)."""
    start: int
    end: int


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
        sequence: How many of the links lead through a sequence of pages.
    """

    def __init__(self) -> None:
        self.anchors: list[tuple[str, int]] = []
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
        """Forget the links from a position on, or those of them that lead to a place on their own page."""
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
        """Note an element in a line, and return its text, None if there are elements in it to be read."""
        steps = self._sequence
        if tag == "a" or node.id:
            self._note(node, tag, self._mark())
        if self._sequence > steps:  # what is in it is no block of the page
            return read_inner_text(node, unseen=self._unseen).replace(BREAK, " ")
        return _get_only_text(node)

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
                self._note(link, "a", self._mark())
        elif tag == "button" and node.css_first(", ".join(HEADINGS)) is not None:
            self._flush(around)
            self._read_block(node, "div", depth + 1)

    def _read_block(self, node: Node, tag: str, depth: int) -> None:
        start = len(self._blocks)
        watched = node.mem_id in self._watched
        if watched:
            self._keep_links_before(0)
        if tag in HEADINGS and not _is_box_title(node):
            self._read_heading(node, HEADINGS[tag])
        elif tag == "div" and node.mem_id in self._titles:
            self._read_title(node, depth)
        elif (
            depth > _MAX_DEPTH or tag in _LEAVES or (tag in _LEAVES_WITHOUT_BLOCKS and not _has_blocks(node))
        ):
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
        self._note(node, tag)
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
        nearest, before = waiting.anchors[-1][0] if waiting.anchors else None, len(waiting.links)
        text, counts = self._collect(node, f"h{level}")
        if not text or text.isspace():
            text = " ".join(one.text() for one in node.css("button"))
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
        self._note(node, "div")
        children = list(node.iter(include_text=True))
        text = "".join(child.text() for child in children if child.tag not in BLOCKS)
        self._emit(fold_whitespace(text), (), TITLE, level=1, fragment=node.id)
        for child in children:
            if child.tag in BLOCKS:
                self._read_block(child, child.tag or "", depth)

    def _read_row(self, node: Node, depth: int) -> None:
        """Read a table row as one line, unless a cell holds more than one."""
        self._note(node, "tr")
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
        self._note(node, tag)
        only = _get_only_text(node)
        if only is not None:
            return _remove_marks(only, 0)
        if tag in _CODE and node.css_first(_IN_CODE) is None:  # highlighted: a <span> for each token
            return _remove_marks(node.text(), 0)
        noted = 0

        def mark(child: Node, tag: str, parts: list[str]) -> None:
            nonlocal noted
            if tag != "a" and tag != "svg" and (tag in SILENT or not child.id):
                return
            for node in child.css("a") if tag == "svg" else (child,):
                self._note(node, node.tag or "", noted)
                parts.append(MARK)
                noted += 1

        text = read_inner_text(node, mark, self._unseen)
        return _remove_marks(text, noted)

    def _note(self, node: Node, tag: str, number: int = _AT_START) -> None:
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
        backlink = attributes.get("role") == "doc-backlink" or _BACKLINK in (attributes.get("class") or "")
        if href and not backlink:
            waiting.links.append((Hyperlink(href, get_link_label(node)), number))
            in_sequence = len(attributes) > 1 and _is_in_sequence(attributes)
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


def _has_blocks(node: Node) -> bool:
    """Say whether an element that mostly holds a line holds blocks, as ``<summary>`` with a heading in it."""
    return any(child.tag in BLOCKS for child in node.iter())


def _is_in_sequence(attributes: Mapping[str, str | None]) -> bool:
    """Say whether a link leads through a sequence of pages: its attributes, if it has more than a target."""
    rel = (attributes.get("rel") or "").lower().split()
    return (
        not _SEQUENCE.isdisjoint(rel)
        or (attributes.get("accesskey") or "").lower() in _SEQUENCE_KEYS
        or any(_STEP_NAME.search(attributes.get(name) or "") for name in ("class", "id"))
        or _STEP_TITLE.fullmatch((attributes.get("title") or "").strip()) is not None
    )

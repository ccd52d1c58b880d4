"""An HTML page's main content as a flat list of blocks: headings, paragraphs, list items, table rows.

A block keeps what lies in it: the fragments that lead to it and its hyperlinks. The page is walked
once; paragraphs and other blocks without blocks in them are read by the parser in one go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from linkstore.extraction import Hyperlink
from linkstore.extraction.markup import PERMALINKS, Node, Tree, is_backlink, node_anchors, noise_ids, squeezed

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_BOXES: Final = frozenset({"note", "tip", "warning", "caution", "important"})
"""Classes of DocBook's boxes: what begins one is written as a heading, and heads no section."""
_LEAVES: Final = frozenset({"p", "pre", "dt", "figcaption", "caption", "summary", "legend"})
_INLINE_NAMES: Final = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span"
    " strike strong sub sup time tt u var wbr"
)
_SILENT_NAMES: Final = (
    "script style template noscript svg math head title button select textarea input iframe object video"
    " audio canvas img map frameset -comment"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
_SILENT: Final = frozenset(_SILENT_NAMES.split())
_LEADS: Final = {"li": "- ", "dd": ""}
_MAX_DEPTH: Final = 200
"""Elements nested deeper are read as one block of text; Python's stack would not hold them."""
_IN_CODE: Final = "a, br, [id], script, style"
_BREAK: Final = "\v"  # <br>: the one vertical tab that is no white space of the source


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a page that is not divided unless it is too long.

    Args:
        text: Its text; only that of ``<pre>`` keeps its white space.
        level: 1 to 6 for a heading, 0 for everything else.
        anchors: The fragments (``id``, ``name``) that lead to it or to what is in it.
        links: The hyperlinks in it, in order.
        starts: Whether an anchor stands at its start.
        fragment: Of a heading, the fragment that leads to it, if any.
        tight: Whether it follows what is before without a blank line.
    """

    text: str
    level: int = 0
    anchors: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()
    starts: bool = False
    fragment: str | None = None
    tight: bool = False


def read_blocks(tree: Tree, content: Node) -> list[Block]:
    """The blocks of the main content, in order, without link noise.

    Args:
        tree: The page; its permalinks (``¶``) are removed.
        content: The element with the main content.
    """
    reader = _Reader(noise_ids(tree), _without_permalinks(tree))
    reader.walk(content, 0)
    return reader.finished()


def _without_permalinks(tree: Tree) -> dict[int, str]:
    """Remove permalinks; returns the fragments they lead to, by the element they stood in."""
    fragments: dict[int, str] = {}
    for link in tree.css(PERMALINKS):
        href = link.attributes.get("href") or ""
        if href.startswith("#") and link.parent is not None:
            fragments[link.parent.mem_id] = href[1:]
        link.decompose()
    return fragments


class _Reader:
    """Walks a page; anchors and links wait until the block they belong to is complete."""

    def __init__(self, noise: set[int], permalinks: dict[int, str]) -> None:
        self._noise = noise
        self._permalinks = permalinks
        self._blocks: list[Block] = []
        self._line: list[str] = []
        self._anchors: list[str] = []
        self._links: list[Hyperlink] = []
        self._starts = False
        self._lead: str | None = None

    def finished(self) -> list[Block]:
        """All blocks; what still waits belongs to the last one."""
        self._flush()
        if self._blocks and (self._anchors or self._links):
            last = self._blocks[-1]
            self._blocks[-1] = replace(
                last, anchors=(*last.anchors, *self._anchors), links=(*last.links, *self._links)
            )
        return self._blocks

    def walk(self, node: Node, depth: int) -> None:
        """Read what is in an element."""
        for child in node.iter(include_text=True):
            tag = child.tag
            if tag == "-text":
                text = child.text_content or ""
                if self._line or not text.isspace():
                    self._line.append(text)
            elif tag == "br":
                self._line.append(_BREAK)
            elif tag in _SILENT or child.mem_id in self._noise:
                continue
            elif tag in _INLINE and depth < _MAX_DEPTH:
                if tag == "a" or child.id:
                    self._note(child, tag)
                only = child.first_child
                if only is not None and only.tag == "-text" and only.next is None:
                    self._line.append(only.text_content or "")
                else:
                    self.walk(child, depth + 1)
            else:
                self._flush()
                self._block(child, tag or "", depth + 1)

    def _block(self, node: Node, tag: str, depth: int) -> None:
        if tag in _HEADINGS and not _names_a_box(node):
            self._heading(node, _HEADINGS[tag])
        elif tag in _LEAVES or tag in _HEADINGS or depth > _MAX_DEPTH:
            self._leaf(node, tag)
        elif tag == "tr":
            self._row(node, depth)
        else:
            self._note(node, tag)
            self._lead = _LEADS.get(tag, self._lead)
            self.walk(node, depth)
            self._flush()
            self._lead = None

    def _heading(self, node: Node, level: int) -> None:
        nearest = self._anchors[-1] if self._anchors else None
        text = squeezed(self._collected(node).replace(_BREAK, " "))
        # A link from a heading to a place on its own page leads to itself or to the contents.
        self._links = [link for link in self._links if not link.href.startswith("#")]
        fragment = self._permalinks.get(node.mem_id) or node.id or nearest
        if fragment is None and self._anchors:
            fragment = self._anchors[0]
        self._emit(text, level=level, fragment=fragment)

    def _leaf(self, node: Node, tag: str) -> None:
        text = self._collected(node)
        if tag == "pre":
            self._emit(text.replace(_BREAK, "\n").strip("\r\n").rstrip())
        else:
            self._emit(_lines(text))

    def _row(self, node: Node, depth: int) -> None:
        """A table row: one line, unless a cell holds more than one."""
        self._note(node, "tr")
        start = len(self._blocks)
        simple = True
        for cell in node.iter():
            before = len(self._blocks)
            self._block(cell, "td", depth)
            simple = simple and len(self._blocks) - before <= 1
        cells = self._blocks[start:]
        if cells and simple and not any(cell.level for cell in cells):
            self._blocks[start:] = [_joined(cells)]

    def _collected(self, node: Node) -> str:
        """The text of an element without blocks; its anchors and links wait for it to be emitted."""
        plain = True
        for element in _marked(node):
            tag = element.tag
            if tag == "a" or element.id:
                self._note(element, tag, begins=_begins(node, element))
            elif tag == "br" or tag in _SILENT:
                plain = False
        return node.text() if plain else "".join(_texts(node))

    def _note(self, node: Node, tag: str | None, *, begins: bool = True) -> None:
        """Keep an element's anchors and link for the block in the making."""
        if tag != "a" and not node.id:
            return
        anchors = tuple(node_anchors(node))
        if anchors:
            self._anchors.extend(anchors)
            self._starts = self._starts or (begins and not "".join(self._line).strip())
        if tag == "a":
            attributes = node.attributes
            href = attributes.get("href")
            if href and not is_backlink(attributes):
                label = squeezed(node.text() or attributes.get("title") or "")
                self._links.append(Hyperlink(href=href, label=label))

    def _flush(self) -> None:
        if self._line:
            text = "".join(self._line)
            self._line.clear()
            self._emit(_lines(text))

    def _emit(self, text: str, *, level: int = 0, fragment: str | None = None) -> None:
        if not text:
            return
        tight = self._lead is not None and not level
        if tight:
            text, self._lead = f"{self._lead}{text}", None
        self._blocks.append(
            Block(
                text=text,
                level=level,
                anchors=tuple(dict.fromkeys(self._anchors)) if self._anchors else (),
                links=tuple(self._links),
                starts=self._starts,
                fragment=fragment,
                tight=tight,
            )
        )
        self._anchors, self._links, self._starts = [], [], False


def _names_a_box(heading: Node) -> bool:
    box = heading.parent
    if box is None or _BOXES.isdisjoint((box.attributes.get("class") or "").split()):
        return False
    first = next(box.iter(), None)
    return first is not None and first.mem_id == heading.mem_id


def _marked(node: Node) -> Iterable[Node]:
    """The elements that may matter beside their text, from the node itself on."""
    if node.tag != "pre":
        return node.traverse()
    # Highlighted code has a <span> for each token: the parser passes them by faster.
    return node.css(_IN_CODE)


def _begins(node: Node, element: Node) -> bool:
    first = node.first_child
    return element.mem_id == node.mem_id or (first is not None and element.mem_id == first.mem_id)


def _texts(node: Node) -> Iterable[str]:
    for part in node.iter(include_text=True):
        if part.tag == "-text":
            yield part.text_content or ""
        elif part.tag == "br":
            yield _BREAK
        elif part.tag not in _SILENT:
            yield from _texts(part)


def _lines(text: str) -> str:
    if _BREAK not in text:
        return squeezed(text)
    return "\n".join(filter(None, map(squeezed, text.split(_BREAK))))


def _joined(cells: list[Block]) -> Block:
    return Block(
        text=" | ".join(cell.text for cell in cells),
        anchors=tuple(anchor for cell in cells for anchor in cell.anchors),
        links=tuple(link for cell in cells for link in cell.links),
        starts=cells[0].starts,
        tight=True,
    )

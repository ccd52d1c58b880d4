"""Elements of HTML one by one: their text, their targets, their anchors, and their kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from linkstore.extract.blocks import BREAK, fold_whitespace

Tree = LexborHTMLParser
Node = LexborNode


def split_names(names: str) -> frozenset[str]:
    """Return the names in a text, which white space sets apart."""
    return frozenset(names.split())


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
HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_BOXES: Final = frozenset({"note", "tip", "warning", "caution", "important"})
"""Classes of DocBook's boxes: what begins one is written as a heading, and heads no section."""
_SEQUENCE: Final = split_names("next prev previous up start home first last top contents index")
"""Values of ``rel`` on links that lead through a sequence of pages (HTML 4.01, section 6.12, and since)."""
_SEQUENCE_KEYS: Final = frozenset("hnptu")
"""Access keys that DocBook, Texinfo and GTK-Doc give such links."""
_STEP_NAME: Final = re.compile(r"(?:^|[\s_-])(?:prev|previous|next)(?:[\s_-]|$)", re.IGNORECASE)
_STEP_TITLE: Final = re.compile(
    r"(?:prev|previous|next)(?: (?:page|chapter|section|topic|article|post))?(?:\W*|:.*)", re.IGNORECASE
)
"""A class or id, and a title, of links to the page before or after."""
_PERMALINK_CLASSES: Final = split_names(
    "headerlink hash-link anchorjs-link header-anchor copiable-link anchor-link"
)
_PERMALINKS: Final = f"a:is([href^='#'], {', '.join(f'.{name}' for name in sorted(_PERMALINK_CLASSES))})"
_SIGNS: Final = frozenset("¶#§🔗⚓∞☍◆⛓⌗")
"""Other signs are names of operators."""
_NEAR: Final = 4
_HEADING_LIKE: Final = frozenset({*HEADINGS, "dt", "summary", "caption", "figcaption"})


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
    """Empty the links to the very place where they stand, and keep only their anchors.

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


def get_only_text(node: Node) -> str | None:
    """Return the text of an element that holds nothing else, or None if it holds elements."""
    only = node.first_child
    if only is None:
        return ""
    return only.text_content or "" if only.tag == "-text" and only.next is None else None


def is_box_title(heading: Node) -> bool:
    """Say whether a heading begins a box of DocBook."""
    box = heading.parent
    if box is None or _BOXES.isdisjoint((box.attributes.get("class") or "").split()):
        return False
    first = next(box.iter(), None)
    return first is not None and first.mem_id == heading.mem_id


def has_blocks(node: Node) -> bool:
    """Say whether an element that mostly holds a line holds blocks, as ``<summary>`` with a heading in it."""
    return any(child.tag in BLOCKS for child in node.iter())


def is_in_sequence(attributes: Mapping[str, str | None]) -> bool:
    """Say whether a link leads through a sequence of pages: its attributes, if it has more than a target."""
    rel = (attributes.get("rel") or "").lower().split()
    return (
        not _SEQUENCE.isdisjoint(rel)
        or (attributes.get("accesskey") or "").lower() in _SEQUENCE_KEYS
        or any(_STEP_NAME.search(attributes.get(name) or "") for name in ("class", "id"))
        or _STEP_TITLE.fullmatch((attributes.get("title") or "").strip()) is not None
    )

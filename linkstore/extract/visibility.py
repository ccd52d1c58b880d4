"""Brings the tree of a page closer to what a reader gets to see.

Formulas, and pictures that say something, become text. So do what ``<noscript>`` has for readers without
scripts, what fields are filled with, and how Japanese words are read (ruby). What nobody is shown loses its
text: hidden elements that no click shows, and what an author marked as a repetition (``aria-hidden``). Where
in doubt, text stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from posixpath import basename, splitext
from typing import Final

from linkstore.extract.blocks import count_letters, fold_whitespace
from linkstore.extract.elements import BLOCKS, Node, Tree, empty_element, iter_ancestors, read_inner_text

_CHANGED: Final = (
    "math, img[alt], svg, noscript, textarea, rt,"
    " [hidden], [style*=none i], [style*=hidden i], [aria-hidden=true]"
)
_CONCEALED: Final = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_BY_CLICK: Final = re.compile(
    r"\btabs?\b|tab-?(?:pane|content|panel)|panel|accordion|collaps|toggl|spoiler|fold|expand|answer|solution"
    r"|slide|detail|dyncontent|reveal",
    re.IGNORECASE,
)
"""Names of elements that scripts show; a name alone is reason enough to keep a text."""
_SHOWING: Final = "[href^='#'], [aria-controls], [data-target], [data-bs-target], [onclick], label[for]"
_CONTROLS: Final = (
    "button, summary, label, [onclick], [aria-expanded], [role=button], [role=tab], a[href='#'],"
    " a[href^='javascript:'], input[type=checkbox], input[type=radio]"
)
_QUOTED: Final = re.compile(r"['\"]#?([\w:.-]+)['\"]")
_MOST_IDS: Final = 64
_STYLED: Final = re.compile(r"\{\\(?:display|text|script|scriptscript)style\s+(.*)\}", re.DOTALL)
_BETWEEN: Final = {
    "mfrac": "/",
    "msup": "^",
    "mover": "^",
    "msub": "_",
    "munder": "_",
    "msubsup": "_^",
    "munderover": "_^",
}
"""What stands between the parts of a formula whose places say how they belong together."""
_WRAPPER: Final = re.compile(r"(?:span|nobr)\Z|mjx-")
"""Elements that may stand around a formula and its drawing."""
_DEEPEST: Final = 64
_SAYS_NOTHING: Final = re.compile(
    r"[^\n]*\.(?:png|jpe?g|gif|svg|webp|bmp|ico|avif|tiff?|eps|pdf)|[ -@\[-`{-~x]*|\[\w+\]|data:.*"
    r"|\W*+(?:the |an? )?(?:image|img|picture|pic|photo|icon|logo|figure|fig|graphic|screenshot|thumbnail"
    r"|banner|avatar|spacer|bullet|alt(?: ?text)?|untitled|placeholder|diagram|perma(?:nent )?link)\W*+\d*+"
    r"\W*+",
    re.IGNORECASE | re.DOTALL,
)
"""Alternative texts that name a file or a size, or are words for pictures, as DocBook's ``[Note]``, or for
the link that they are in, as Scaladoc's."""
_BETWEEN_WORDS: Final = re.compile(r"[\s_-]+|%20")
_FORMULA: Final = re.compile(r"math|tex\b|formula|equation", re.IGNORECASE)
_TEX_SIGNS: Final = re.compile(r"[\\$^]|_\{|=")
_LONG: Final = 2000
"""Characters of a block in which an alternative text is not looked for."""
_MANY: Final = 500
"""Elements and texts in a block in which no alternative text is looked for, or beside a formula."""
_NO_NOTICE: Final = 300
"""A text for readers without scripts that is shorter and speaks of JavaScript only asks for it."""
_Change = Callable[[], object]


def apply_visibility(tree: Tree) -> int:
    """Make the text of a page what a reader gets to see.

    Args:
        tree: The page, changed. Elements keep their ids.

    Returns:
        How many letters were hidden.
    """
    nodes = tree.css(_CHANGED)
    if not nodes:
        return 0
    view = _PageView(tree)
    # Elements come before what is in them: from the end, nothing is touched after it was taken away.
    for change in reversed([change for node in nodes if (change := view.change(node)) is not None]):
        change()
    return view.hidden


class _PageView:
    """Decides what becomes of elements, before any of them is changed."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._says_more: dict[int, bool] = {}
        self._drawings: set[int] = set()
        self._inner: set[int] = set()
        """Formulas in formulas, which are read with the outermost one."""
        self._concealed: set[int] = set()
        self._texts: dict[int, str] = {}
        self._last_alt = ""
        self.hidden = 0

    def change(self, node: Node) -> _Change | None:
        """Return the change to make to an element, or None to leave it as it is."""
        tag, attributes = node.tag, node.attributes
        if tag == "math":
            return None if node.mem_id in self._inner else self._write_formula(node)
        if node.mem_id in self._drawings:
            return lambda: empty_element(node)
        if "hidden" in attributes or _CONCEALED.search(attributes.get("style") or ""):
            return self._conceal(node)
        if attributes.get("aria-hidden") == "true":
            return self._drop_repetition(node)
        if tag == "img":
            return self._describe_picture(node, attributes.get("alt") or "")
        if tag == "svg":
            title = next((child.text() for child in node.iter() if child.tag == "title"), "")
            return self._describe_picture(node, attributes.get("aria-label") or title)
        text = node.text()
        if tag == "rt" and text.strip():
            return lambda: _put_in_brackets(node)
        if tag == "textarea" and text.strip():
            return lambda: _insert_code(self._tree, node, text)
        asks = len(text) <= _NO_NOTICE and re.search("javascript|enable scripts", text, re.IGNORECASE)
        return node.unwrap if tag == "noscript" and not asks else None

    def _write_formula(self, math: Node) -> _Change:
        """Turn a formula into text. Of its drawings, which a page may have beside it, nothing stays."""
        text, place = _read_formula(math), math
        self._inner.update(node.mem_id for node in math.css("math"))
        while (around := place.parent) is not None and _WRAPPER.match(around.tag or ""):
            others = [node for node in around.iter(include_text=True) if node.mem_id != place.mem_id]
            if any(_has_content(other) or other.is_element_node for other in others):
                self._drawings.update(
                    other.mem_id
                    for other in others
                    if other.tag == "img" or other.attributes.get("aria-hidden") == "true"
                )
                break
            place = around

        def change() -> None:
            empty_element(math)
            if text:
                place.insert_before(text)

        return change

    def _conceal(self, node: Node) -> _Change | None:
        if self._can_be_shown(node):
            return None
        if not any(ancestor.mem_id in self._concealed for ancestor in iter_ancestors(node)):
            self._concealed.add(node.mem_id)
            self.hidden += 0 if node.css_first("math") else count_letters(node.text())
        return lambda: empty_element(node)

    def _can_be_shown(self, node: Node) -> bool:
        """Say whether something on the page seems to show a hidden element: a tab, a heading, a button."""
        attributes = node.attributes
        before = node.prev
        while before is not None and not before.is_element_node:
            before = before.prev
        return (
            attributes.get("hidden") == "until-found"
            or attributes.get("role") in {"tabpanel", "dialog"}
            or _BY_CLICK.search(f"{attributes.get('class') or ''} {node.id or ''}") is not None
            or any(ancestor.tag in {"details", "dialog"} for ancestor in iter_ancestors(node))
            or any(descendant.id in self._ids_shown for descendant in node.css("[id]")[:_MOST_IDS])
            or (before is not None and bool(before.css_matches(_CONTROLS) or before.css_first(_CONTROLS)))
        )

    @cached_property
    def _ids_shown(self) -> frozenset[str]:
        """The ids that links and buttons name."""
        ids: set[str] = set()
        for node in self._tree.css(_SHOWING):
            attributes = node.attributes
            for name in ("href", "data-target", "data-bs-target", "for"):
                ids.add((attributes.get(name) or "").removeprefix("#"))
            ids.update((attributes.get("aria-controls") or "").split())
            ids.update(_QUOTED.findall(attributes.get("onclick") or ""))
        return frozenset(ids - {""})

    def _drop_repetition(self, node: Node) -> _Change | None:
        """Drop an element that repeats or adorns other text within a line, if there is other text."""
        around = node.parent
        if around is None or node.tag in BLOCKS or node.tag in {"a", "svg", "img"}:
            return None
        if around.mem_id not in self._says_more:
            self._says_more[around.mem_id] = any(
                node.tag == "-text" or node.attributes.get("aria-hidden") != "true"
                for node in around.iter(include_text=True)
                if _has_content(node)
            )
        return (lambda: empty_element(node)) if self._says_more[around.mem_id] else None

    def _describe_picture(self, node: Node, written: str) -> _Change | None:
        """Insert the text of a picture, unless it adorns, names a file, or repeats what stands beside it."""
        attributes, alt = node.attributes, fold_whitespace(written)
        is_formula = _FORMULA.search(attributes.get("class") or "") is not None
        if (
            not alt
            or attributes.get("role") in {"presentation", "none"}
            or (not is_formula and (_SAYS_NOTHING.fullmatch(alt) or _is_file_name(alt, attributes)))
            or not {"0", "1", "0px", "1px"}.isdisjoint((attributes.get("width"), attributes.get("height")))
        ):
            return None
        is_formula = is_formula or _TEX_SIGNS.search(alt) is not None
        for around in iter_ancestors(node):
            if around.tag == "a" and (around.attributes.get("href") or "").startswith("#"):
                return None  # it leads to the place where it stands
            if around.tag == "noscript" and alt == self._last_alt:
                return None
            if around.tag in BLOCKS:
                if not is_formula and alt.casefold() in self._read_text(around):
                    return None
                break
        self._last_alt = alt
        shown = alt if is_formula else f" {alt} "
        return lambda: node.insert_before(shown)

    def _read_text(self, block: Node) -> str:
        """Return the text of a block, empty if it is long."""
        if block.mem_id not in self._texts:
            text = "" if _has_many_nodes(block) else fold_whitespace(read_inner_text(block))
            self._texts[block.mem_id] = text.casefold() if len(text) <= _LONG else ""
        return self._texts[block.mem_id]


def _is_file_name(alt: str, attributes: Mapping[str, str | None]) -> bool:
    """Say whether a text is the name of the picture's file in words, as Asciidoctor writes it by itself."""
    file = splitext(basename(attributes.get("src") or ""))[0]
    return _BETWEEN_WORDS.sub(" ", file).casefold() == _BETWEEN_WORDS.sub(" ", alt).casefold()


def _put_in_brackets(node: Node) -> None:
    node.insert_before("(")
    node.insert_child(")")


def _insert_code(tree: Tree, field: Node, text: str) -> None:
    code = tree.create_node("pre")
    code.insert_child(text)
    field.insert_before(code)


def _read_formula(math: Node) -> str:
    """Return a formula's TeX, if it has any, else its text, with signs for how its parts belong together."""
    annotated = (
        node for node in math.css("annotation") if "tex" in (node.attributes.get("encoding") or "").lower()
    )
    written = next((node.text() for node in annotated), None) or math.attributes.get("alttext")
    if not written:
        return fold_whitespace(_linearise(math, 0))
    match = _STYLED.fullmatch(written.strip())
    return fold_whitespace(match[1] if match else written)


def _linearise(node: Node, depth: int) -> str:
    if depth > _DEEPEST:
        return node.text()
    tag = (node.tag or "").lower()
    parts = [
        (child.text_content or "").strip() if child.tag == "-text" else _linearise(child, depth + 1)
        for child in node.iter(include_text=True)
        if child.tag not in {"annotation", "annotation-xml"}
    ]
    parts = [part for part in parts if part]
    between = _BETWEEN.get(tag)
    if between is None:
        text = (" " if tag in {"mtr", "mtable"} else "").join(parts)
        return f"√{_add_brackets(text)}" if tag in {"msqrt", "mroot"} else text
    first, *others = [_add_brackets(part) for part in parts] or [""]
    signs = between if len(between) > 1 else between * len(others)
    return first + "".join(f"{sign}{part}" for sign, part in zip(signs, others, strict=False))


def _add_brackets(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


def _has_content(node: Node) -> bool:
    if node.tag == "-text":
        return bool((node.text_content or "").strip())
    return _has_many_nodes(node) or any(
        child.tag == "-text" and _has_content(child) for child in node.traverse(include_text=True)
    )


def _has_many_nodes(node: Node) -> bool:
    """Say whether there is more in an element than is read again for each element in it."""
    return next(islice(node.traverse(include_text=True), _MANY, None), None) is not None

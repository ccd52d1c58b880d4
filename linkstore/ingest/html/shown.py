"""Brings the tree of a page closer to what a reader gets to see.

Formulas, and pictures that say something, become text. So do what ``<noscript>`` has for readers without
scripts, and what fields are filled with. What nobody is shown loses its text: hidden elements that no click
shows, and what an author marked as a repetition (``aria-hidden``). Where in doubt, text stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from linkstore.extract.html import Node, Tree
from linkstore.extract.noise import (
    BLOCKS,
    count_letters,
    empty_element,
    fold_whitespace,
    iter_ancestors,
    read_inner_text,
)

_CHANGED_SELECTOR: Final = (
    "math, img[alt], svg, noscript, textarea,"
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
_TEX: Final = frozenset(
    {"application/x-tex", "application/x-latex", "text/x-tex", "text/x-latex", "tex", "latex"}
)
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
_UNSAID: Final = frozenset({"annotation", "annotation-xml"})
_DEEPEST: Final = 64
_FILE: Final = re.compile(r"[^\n]*\.(?:png|jpe?g|gif|svg|webp|bmp|ico|avif|tiff?|eps|pdf)", re.IGNORECASE)
_GENERIC: Final = re.compile(
    r"[ -@\[-`{-~x]*|(?:the |an? )?(?:image|img|picture|pic|photo|icon|logo|figure|fig|graphic|screenshot"
    r"|thumbnail|banner|avatar|spacer|bullet|alt(?: ?text)?|untitled|placeholder|diagram)\W*\d*|\[\w+\]"
    r"|data:.*",
    re.IGNORECASE | re.DOTALL,
)
"""Alternative texts that say nothing: words for pictures, sizes, DocBook's ``[Note]``."""
_FORMULA: Final = re.compile(r"math|tex\b|formula|equation", re.IGNORECASE)
_TEX_SIGNS: Final = re.compile(r"[\\$^]|_\{|=")
_PIXEL: Final = frozenset({"0", "1", "0px", "1px"})
_LONG: Final = 2000
"""Characters of a block in which an alternative text is not looked for."""
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
    found = tree.css(_CHANGED_SELECTOR)
    if not found:
        return 0
    view = _PageView(tree)
    # Elements come before what is in them: from the end, nothing is touched after it was taken away.
    for change in reversed([change for node in found if (change := view.change(node)) is not None]):
        change()
    return view.hidden


class _PageView:
    """Decides what becomes of elements, before any of them is changed."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._shown_by_click: frozenset[str] | None = None
        self._says_more: dict[int, bool] = {}
        self._drawings: set[int] = set()
        self._concealed: set[int] = set()
        self._texts: dict[int, str] = {}
        self._last_alt = ""
        self.hidden = 0

    def change(self, node: Node) -> _Change | None:
        """Return the change to make to an element, or None to leave it as it is."""
        tag, attributes = node.tag, node.attributes
        if tag == "math":
            return self._formula(node)
        if node.mem_id in self._drawings:
            return lambda: empty_element(node)
        if "hidden" in attributes or _CONCEALED.search(attributes.get("style") or ""):
            return self._concealment(node)
        if attributes.get("aria-hidden") == "true":
            return self._repetition(node)
        if tag == "img":
            return self._picture(node, attributes.get("alt") or "")
        if tag == "textarea":
            return self._snippet(node)
        if tag == "svg":
            title = next((one.text() for one in node.iter() if one.tag == "title"), "")
            return self._picture(node, attributes.get("aria-label") or title)
        if tag != "noscript":
            return None
        text = node.text()
        asks = len(text) <= _NO_NOTICE and re.search("javascript|enable scripts", text, re.IGNORECASE)
        return None if asks else node.unwrap

    def _formula(self, math: Node) -> _Change:
        """Turn a formula into text. Of its drawings, which a page may have beside it, nothing stays."""
        text, place = _write_formula(math), math
        while (around := place.parent) is not None and _is_wrapper(around) and _has_only(around, place):
            place = around
        if place is not math and around is not None and _is_wrapper(around):
            beside = (one for one in around.iter() if one.mem_id != place.mem_id)
            self._drawings.update(
                one.mem_id
                for one in beside
                if one.tag == "img" or one.attributes.get("aria-hidden") == "true"
            )

        def change() -> None:
            empty_element(math)
            if text:
                place.insert_before(text)

        return change

    def _concealment(self, node: Node) -> _Change | None:
        if self._can_be_shown(node):
            return None
        if not any(one.mem_id in self._concealed for one in iter_ancestors(node)):
            self._concealed.add(node.mem_id)
            self.hidden += 0 if node.css_first("math") else count_letters(node.text())
        return lambda: empty_element(node)

    def _can_be_shown(self, node: Node) -> bool:
        """Say whether something on the page seems to show a hidden element: a tab, a heading, a button."""
        attributes = node.attributes
        if attributes.get("hidden") == "until-found" or attributes.get("role") in {"tabpanel", "dialog"}:
            return True
        if _BY_CLICK.search(f"{attributes.get('class') or ''} {node.id or ''}"):
            return True
        if any(one.tag in {"details", "dialog"} for one in iter_ancestors(node)):
            return True
        shown = self._ids_shown()
        if shown and any(one.id in shown for one in node.css("[id]")[:_MOST_IDS]):
            return True
        before = node.prev
        while before is not None and not before.is_element_node:
            before = before.prev
        return before is not None and bool(before.css_matches(_CONTROLS) or before.css_first(_CONTROLS))

    def _ids_shown(self) -> frozenset[str]:
        """Return the ids that links and buttons name."""
        if self._shown_by_click is None:
            found: set[str] = set()
            for node in self._tree.css(_SHOWING):
                attributes = node.attributes
                for name in ("href", "data-target", "data-bs-target", "for"):
                    found.add((attributes.get(name) or "").removeprefix("#"))
                found.update((attributes.get("aria-controls") or "").split())
                found.update(_QUOTED.findall(attributes.get("onclick") or ""))
            self._shown_by_click = frozenset(found - {""})
        return self._shown_by_click

    def _repetition(self, node: Node) -> _Change | None:
        """Drop an element that repeats or adorns other text within a line, if there is other text."""
        around = node.parent
        if around is None or node.tag in BLOCKS or node.tag in {"a", "svg", "img"}:
            return None
        if around.mem_id not in self._says_more:
            self._says_more[around.mem_id] = any(
                one.tag == "-text" or one.attributes.get("aria-hidden") != "true"
                for one in around.iter(include_text=True)
                if _has_content(one)
            )
        return (lambda: empty_element(node)) if self._says_more[around.mem_id] else None

    def _picture(self, node: Node, written: str) -> _Change | None:
        """Insert the text of a picture, unless it adorns, names a file, or repeats what stands beside it."""
        attributes, alt = node.attributes, fold_whitespace(written)
        if not alt or attributes.get("role") in {"presentation", "none"}:
            return None
        is_formula = _FORMULA.search(attributes.get("class") or "") is not None
        if not is_formula and (_GENERIC.fullmatch(alt) or _FILE.fullmatch(alt)):
            return None
        if attributes.get("width") in _PIXEL or attributes.get("height") in _PIXEL:
            return None
        is_formula = is_formula or _TEX_SIGNS.search(alt) is not None
        for around in iter_ancestors(node):
            if around.tag == "a" and (around.attributes.get("href") or "").startswith("#"):
                return None  # it leads to the place where it stands
            if around.tag == "noscript" and alt == self._last_alt:
                return None
            if around.tag in BLOCKS:
                if not is_formula and alt.casefold() in self._text_of(around):
                    return None
                break
        self._last_alt = alt
        said = alt if is_formula else f" {alt} "
        return lambda: node.insert_before(said)

    def _snippet(self, field: Node) -> _Change | None:
        """Insert the text that a field to copy from, or to change, is filled with."""
        text = field.text()
        if not text.strip():
            return None

        def change() -> None:
            code = self._tree.create_node("pre")
            code.insert_child(text)
            field.insert_before(code)

        return change

    def _text_of(self, block: Node) -> str:
        """Return the text of a block, empty if it is long."""
        if block.mem_id not in self._texts:
            text = fold_whitespace(read_inner_text(block)[0])
            self._texts[block.mem_id] = text.casefold() if len(text) <= _LONG else ""
        return self._texts[block.mem_id]


def _write_formula(math: Node) -> str:
    """Return a formula's TeX, if it has any, else its text, with signs for how its parts belong together."""
    for annotation in math.css("annotation"):
        if (annotation.attributes.get("encoding") or "").lower() in _TEX:
            return _simplify_tex(annotation.text())
    written = math.attributes.get("alttext")
    return _simplify_tex(written) if written else fold_whitespace(_linearise(math, 0))


def _simplify_tex(written: str) -> str:
    found = _STYLED.fullmatch(written.strip())
    return fold_whitespace(found[1] if found else written)


def _linearise(node: Node, depth: int) -> str:
    if depth > _DEEPEST:
        return node.text()
    tag = (node.tag or "").lower()
    parts = [
        (child.text_content or "").strip() if child.tag == "-text" else _linearise(child, depth + 1)
        for child in node.iter(include_text=True)
        if child.tag not in _UNSAID
    ]
    parts = [part for part in parts if part]
    between = _BETWEEN.get(tag)
    if between is None:
        joint = " " if tag in {"mtr", "mtable"} else ""
        text = joint.join(parts)
        text = _add_brackets(text) if tag == "msqrt" and len(text) > 1 else text
        return f"√{text}" if tag in {"msqrt", "mroot"} else text
    first, *others = [part if len(part) == 1 else _add_brackets(part) for part in parts] or [""]
    signs = between if len(between) > 1 else between * len(others)
    return first + "".join(f"{sign}{part}" for sign, part in zip(signs, others, strict=False))


def _add_brackets(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _has_only(around: Node, node: Node) -> bool:
    """Say whether an element shows nothing but one of its children."""
    children = around.iter(include_text=True)
    return all(one.mem_id == node.mem_id or _is_blank(one) for one in children)


def _is_blank(node: Node) -> bool:
    return node.tag == "-comment" or (node.tag == "-text" and not (node.text_content or "").strip())


def _has_content(node: Node) -> bool:
    if node.tag == "-text":
        return bool((node.text_content or "").strip())
    return any(one.tag == "-text" and not _is_blank(one) for one in node.traverse(include_text=True))


def _is_wrapper(node: Node) -> bool:
    """Say whether an element may stand around a formula and its drawing."""
    tag = node.tag or ""
    return tag in {"span", "nobr"} or tag.startswith("mjx-")

"""The HTML of a line of Markdown: a paragraph, heading, item or table cell without blocks in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Final
from unicodedata import category

from linkstore.ingest.notes.pieces import Dialect, Piece, encoded

_CUSTOM_ID: Final = re.compile(r"(?:(?<!\s)\s++)?\{:?\s*+#([\w.:\x80-\U0010ffff-]++)[^{}]*+\}\s*+\Z")
_NOT_IN_SLUGS: Final = re.compile(r"[^\w\- ]+")
_SAID: Final = frozenset({"text", "literal", "code"})


def slug(heading: str) -> str:
    """Return the id that GitHub gives a heading: lower case, no punctuation, hyphens for spaces.

    Marks stay, for words of many scripts have vowel signs: ``हिन्दी`` is all of the id of that heading.
    """
    return _NOT_IN_SLUGS.sub(_marks_alone, heading.strip().lower()).replace(" ", "-")


def _marks_alone(found: re.Match[str]) -> str:
    return "".join(one for one in found[0] if category(one)[0] == "M")


def heading_id(run: list[Piece], slugs: Counter[str]) -> str:
    """Return the id that a heading names, which is taken off its pieces, else the one GitHub gives it.

    Args:
        run: The pieces of the heading.
        slugs: How often GitHub's id was asked for on the page.
    """
    last = run[-1] if run else None
    named = _CUSTOM_ID.search(last.value) if last is not None and last.kind == "text" else None
    if named and last is not None:
        run[-1] = last._replace(value=last.value[: named.start()])
        return named[1]
    base = slug("".join(_said(run)))
    slugs[base] += 1
    return base if slugs[base] == 1 else f"{base}-{slugs[base] - 1}"


def line_html(run: Sequence[Piece], dialect: Dialect, source: bytes) -> str:
    """Render the pieces of a line as HTML.

    Args:
        run: The pieces.
        dialect: What texts and links mean.
        source: Of the page.
    """
    if len(run) == 1 and run[0].kind == "text":
        return dialect.text(run[0], source, first=True)
    out: list[str] = []
    closing: list[str] = []
    at = 0
    while at < len(run):
        piece = run[at]
        at += 1
        if piece.kind == "text":
            first = at == 1 or run[at - 2].kind == "break"
            out.append(dialect.text(piece, source, first=first))
        elif piece.kind == "end":
            out.append(closing.pop() if closing else "")
        elif piece.kind == "image" and not piece.type:
            stop = _end(run, at)
            said = escape("".join(_said(run[at:stop])))
            out.append(f'<img src="{escape(encoded(piece.value))}" alt="{said}" />')
            at = stop + 1
        elif piece.kind in {"link", "image"}:
            opened, closed = _tags(dialect.href(piece), piece.title)
            label = dialect.label(piece)
            if label is None:
                out.append(opened)
                closing.append(closed)
            else:
                out += (opened, escape(label, quote=False), closed)
                at = _end(run, at) + 1
        else:
            out.append(_simple(piece))
    return "".join((*out, *reversed(closing)))


def _simple(piece: Piece) -> str:
    if piece.kind == "literal":
        return escape(piece.value, quote=False)
    return f"<code>{escape(piece.value, quote=False)}</code>" if piece.kind == "code" else piece.value


def _tags(href: str | None, title: str) -> tuple[str, str]:
    said = f' title="{escape(title)}"' if title else ""
    return ("", "") if href is None else (f'<a href="{escape(href)}"{said}>', "</a>")


def _end(run: Sequence[Piece], at: int) -> int:
    """Return the end of the link or image that was opened before a place."""
    depth = 1
    for number in range(at, len(run)):
        depth += {"link": 1, "image": 1, "end": -1}.get(run[number].kind, 0)
        if not depth:
            return number
    return len(run)


def _said(run: Sequence[Piece]) -> list[str]:
    """Return the texts of pieces, without those of images."""
    found: list[str] = []
    within = 0
    for piece in run:
        if piece.kind == "image" or (within and piece.kind == "link"):
            within += 1
        elif piece.kind == "end":
            within = max(0, within - 1)
        elif not within and piece.kind in _SAID:
            found.append(piece.value)
    return found

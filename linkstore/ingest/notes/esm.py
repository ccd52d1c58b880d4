"""Imports and exports of JavaScript in MDX, which are no text of the page.

MDX reads ``import`` and ``export`` as JavaScript where they begin a block at the first column, outside of
lists, quotations and code, up to a blank line at which the statement is complete (as micromark's extension
``mdxjs-esm`` does). There is no parser of JavaScript here: what does not look like such a statement is text,
for people do begin sentences with these words.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from pyromark import Markdown

_MAY_BEGIN: Final = re.compile(rb"^(?:import|export) ", re.MULTILINE)
_NAME: Final = rb"[\w$\x80-\xff]+"
_NAMES: Final = rb"\{[^{}]{0,5000}\}"
_IMPORT: Final = re.compile(
    rb"import (?:\s*(?:type\s+)?(?:%(name)b\s*,\s*)?(?:%(names)b|\*\s*as\s+%(name)b|%(name)b)\s*from\s*)?"
    rb"\s*(?:'[^'\n]*'|\"[^\"\n]*\")"
    rb"(?:\s*(?:with|assert)\s*%(names)b)?[ \t]*;?[ \t]*(?://[^\n]*|/\*[^\n]*\*/[ \t]*)?\r?(?:\n|\Z)"
    % {b"name": _NAME, b"names": _NAMES}
)
_EXPORT: Final = re.compile(
    rb"export (?:"
    rb"\s*(?:const|let|var)\s+(?:%(name)b\s*[=:;]|[\[{])"
    rb"|\s*(?:default\s+)?(?:async\s+)?function\b\s*\*?\s*(?:%(name)b\s*)?[(<]"
    rb"|\s*(?:default\s+)?(?:abstract\s+)?class\b[^\n;.]*\{"
    rb"|\s*(?:type|interface|enum)\s+%(name)b[^\n;.]*[={]"
    rb"|\s*(?:type\s*)?%(names)b\s*(?:from\b|;|\r?\n|\Z)"
    rb"|\s*\*\s*(?:as\s+%(name)b\s*)?from\s*['\"]"
    rb"|\s*default\s+(?:[\[({<'\"`]|(?:async\s*)?(?:\([^()\n]*\)|%(name)b)\s*=>|[\w$.]+\s*(?:[(;]|\r?\n|\Z))"
    rb")" % {b"name": _NAME, b"names": _NAMES}
)
_TOKENS: Final = re.compile(
    rb"//[^\n]*|/\*(?:.*?\*/|.*)|`(?:[^`\\]|\\.)*+`?|'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?"
    rb"|[(\[{]|[)\]}]|\n",
    re.DOTALL,
)
_GOES_ON: Final = re.compile(rb"[=,({\[+\-*/%&|?:.<>]\Z|\b(?:extends|from)\Z")
_CONTINUES: Final = re.compile(rb"[ \t.?:+|&)\]},=]|</")
_BLANK: Final = re.compile(rb"[ \t\r]*(?:\n|\Z)")
_FREE: Final = 120_000
_EACH: Final = 2
"""Events of a page that are looked at: _FREE, and 1 for every _EACH characters. Rendering ends earlier."""
_CONTAINERS: Final = frozenset({"List", "Item", "BlockQuote", "FootnoteDefinition", "CodeBlock", "HtmlBlock"})


def without_esm(text: str, parser: Markdown) -> str:
    """Remove the imports and exports of MDX.

    Args:
        text: MDX without front matter.
        parser: Of the rest of it.
    """
    source = text.encode()
    if _MAY_BEGIN.search(source) is None:
        return text
    reader = _Reader(source)
    kept: list[bytes] = []
    done = 0
    for start in _paragraphs(text, parser):
        end = reader.end(start) if start >= done else start
        if end > start:
            kept.append(source[done:start])
            done = end
    return b"".join((*kept, source[done:])).decode()


def _paragraphs(text: str, parser: Markdown) -> list[int]:
    """Return where the paragraphs of a page begin that are in nothing else, in bytes."""
    found: list[int] = []
    depth = 0
    for event, place in islice(parser.events_with_range(text), _FREE + len(text) // _EACH):
        if not isinstance(event, dict):
            continue
        name, value = next(iter(event.items()))
        kind = value if isinstance(value, str) else next(iter(value), "") if isinstance(value, dict) else ""
        if name == "Start":
            if kind == "Paragraph" and not depth:
                found.append(place["start"])
            depth += kind in _CONTAINERS
        elif name == "End":
            depth -= kind in _CONTAINERS
    return found


class _Reader:
    """Finds where statements end."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._in_doubt = False
        """Whether a statement was never complete, so that none is looked for beyond a blank line."""

    def end(self, start: int) -> int:
        """Return the position behind the statements that begin at a place, the place itself if none does."""
        source = self._source
        if start and source[start - 1 : start] != b"\n":
            return start
        while True:
            found = _IMPORT.match(source, start)
            if found is None and _EXPORT.match(source, start) is None:
                return start
            start = found.end() if found else self._end_of_export(start)

    def _end_of_export(self, start: int) -> int:
        """Return the position behind the line in which an export is complete, else behind the block."""
        source, depth, line = self._source, 0, start
        block: int | None = None
        for found in _TOKENS.finditer(source, start):
            token = found[0]
            if token in b"([{":
                depth += 1
            elif token in b")]}":
                depth -= 1
            elif token == b"\n":
                said, line = source[line : found.start()].rstrip(), found.end()
                ends = _BLANK.match(source, line) is not None
                if depth <= 0 and (ends or not (_GOES_ON.search(said) or _CONTINUES.match(source, line))):
                    return line
                block = line if ends and block is None else block
                if ends and self._in_doubt:
                    return line
        if depth <= 0 or block is None:
            return len(source)
        self._in_doubt = True
        return block

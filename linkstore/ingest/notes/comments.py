"""Comments in notes that take up whole lines."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r"[ >]*(`{3,}+|~{3,}+)(.*)")
_OPENING: Final = re.compile(r"[ \t>]*%%")


def without_comments(text: str) -> str:
    """Blank the comments of Markdown: from a line that begins with ``%%`` to the next line with ``%%``.

    Comments within a line, and what is in fenced code, stay.
    """
    if "%%" not in text:
        return text
    lines = text.split("\n")
    following = _next_marks(lines)
    fence = ""
    at = 0
    while at < len(lines):
        line, last = lines[at], following[at]
        found = _FENCE.match(line)
        if fence:
            if found is not None and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found is not None:
            fence = found[1]
        elif last < len(lines) and _OPENING.match(line) and line.count("%%") == 1:
            lines[at : last + 1] = [""] * (last + 1 - at)
            at = last
        at += 1
    return "\n".join(lines)


def _next_marks(lines: list[str]) -> list[int]:
    """Return the next line with a mark after each line, or the number of lines if there is none."""
    found = [0] * len(lines)
    following = len(lines)
    for at in range(len(lines) - 1, -1, -1):
        found[at] = following
        if "%%" in lines[at]:
            following = at
    return found

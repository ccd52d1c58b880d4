"""Tabs and admonitions of MkDocs, whose content is indented, as ordinary Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OPENING: Final = re.compile(
    r"""(?P<indent>[ ]*)(?:={3}[!+]{0,2}[ ]+"(?P<tab>[^"\n]{1,200})"|"""
    r"""(?:!{3}|\?{3}\+?)[ ]+(?P<kind>[\w-]{1,40})(?:[ ][\w -]{1,100})?(?:[ ]+"(?P<title>[^"\n]{0,200})")?)[ ]*"""  # noqa: E501
)
_FENCE: Final = re.compile(r" *(`{3,}|~{3,})")
_STEP: Final = 4


def with_tabs(text: str) -> str:
    """Put the content of ``=== "Tab"`` and ``!!! note`` below its title, no longer indented.

    Without this, CommonMark takes the content for code, in which there are no links.
    """
    if "=== " not in text and "!!! " not in text and "??? " not in text and "???+ " not in text:
        return text
    return "\n".join(_lines(text.expandtabs(_STEP).split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    opened: list[int] = []
    fence = ""
    for at, line in enumerate(lines):
        if not line.strip():
            yield line
            continue
        indent = len(line) - len(line.lstrip(" "))
        while opened and indent < opened[-1] + _STEP:
            opened.pop()
            if fence:
                yield fence
                fence = ""
        inner = line[_STEP * len(opened) :]
        found = _FENCE.match(inner)
        if fence:
            closes = found is not None and found[1].startswith(fence) and not inner.strip().strip(fence[0])
            fence = "" if closes else fence
        elif found is not None:
            fence = found[1]
        elif (heading := _OPENING.fullmatch(line)) and _holds(lines, at, indent):
            opened.append(indent)
            lead = " " * (indent - _STEP * (len(opened) - 1))
            title = heading["tab"] or heading["title"] or (heading["kind"] or "").capitalize()
            yield from ("", f"{lead}{title}", "")
            continue
        yield inner


def _holds(lines: list[str], at: int, indent: int) -> bool:
    """Say whether what follows a line, but for a blank line, is indented below it."""
    after = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
    return len(after) - len(after.lstrip(" ")) >= indent + _STEP

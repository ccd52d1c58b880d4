"""Anchors of headings, as MediaWiki encodes them.

A heading has two: the one of ``$wgFragmentMode`` "html5", where white space becomes ``_`` and nothing else
changes, and the older one, where all but letters, digits and ``_-.:`` is percent-encoded with a dot for
the percent sign (``Sanitizer::escapeIdInternal`` in MediaWiki). Links may use either.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

_PLAIN: Final = re.compile(r"[\w.:-]*", re.ASCII)


def anchor(text: str) -> str:
    """Return the anchor of a heading with this text."""
    return "_".join(text.replace("_", " ").split())


def old_anchor(new: str) -> str:
    """Return the older encoding of an anchor, which is the same if it has plain letters only."""
    if _PLAIN.fullmatch(new):
        return new
    return quote(new, safe=":").replace("~", "%7E").replace("%", ".")


class Anchors:
    """Gives the headings of a page their anchors; a repeated one is numbered."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def of_heading(self, text: str) -> tuple[str, ...]:
        """Return the anchors of the next heading, the one in use first."""
        base = anchor(text)
        if not base:
            return ()
        name, folded = base, base.casefold()
        if folded in self._taken:
            count = self._counts.get(folded, 1)
            while name.casefold() in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._counts[folded] = count
        self._taken.add(name.casefold())
        old = old_anchor(name)
        return (name,) if old == name else (name, old)

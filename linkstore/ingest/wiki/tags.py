"""HTML and extension tags of wikitext, grouped by how they are treated."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from linkstore.ingest.wiki.marks import BREAK

LITERAL: Final = frozenset({"nowiki", "math", "chem", "ce"})
"""Tags whose content is text without markup."""

CODE: Final = frozenset({"pre", "syntaxhighlight", "source"})
"""Likewise, line by line."""

_SILENT_NAMES: Final = """
    timeline score graph mapframe maplink templatedata hiero inputbox categorytree includeonly ask
    templatestyles dynamicpagelist
"""
SILENT: Final = frozenset(_SILENT_NAMES.split())
"""Tags whose content is not for readers."""

RAW: Final = LITERAL | CODE | SILENT
"""Tags whose content is not wikitext."""

FRAMES: Final = frozenset({"ref", "references", "gallery", "imagemap", "poem"})
"""Tags whose content is wikitext with rules of its own."""

HEADINGS: Final = {f"h{level}": "=" * level for level in range(1, 7)}

_INLINE_NAMES: Final = """
    b i u s em strong small big sub sup span font tt code kbd var samp cite q abbr dfn del ins strike bdi
    bdo ruby rb rt rp mark time data wbr noinclude onlyinclude section translate languages tvar nobr
"""
_BLOCK_NAMES: Final = "p div blockquote center table ul ol dl hr aside"

SHOWN: Final = {
    "br": BREAK,
    "li": "\n* ",
    **dict.fromkeys(_INLINE_NAMES.split(), ""),
    **dict.fromkeys(_BLOCK_NAMES.split(), "\n\n"),
    **dict.fromkeys(("tr", "caption", "dd", "dt"), "\n"),
    **dict.fromkeys(("td", "th"), " "),
}
"""The text that replaces other tags; any other name is not a tag."""

_ID: Final = re.compile(r"\bid\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'/<>]+))", re.IGNORECASE)
_NAME: Final = re.compile(r"\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'/<>]+))", re.IGNORECASE)


def element_id(attributes: str) -> str:
    """Return the ``id`` among attributes, empty without one."""
    return _value(_ID.search(attributes)) if "id" in attributes else ""


def reference_name(attributes: str) -> str:
    """Return the ``name`` among the attributes of ``<ref>``, empty without one."""
    return _value(_NAME.search(attributes)) if "name" in attributes else ""


@cache
def end_tag(name: str) -> re.Pattern[str]:
    """Compile a pattern that finds the end tag of an element."""
    return re.compile(rf"</{name}\s*>", re.IGNORECASE)


def _value(found: re.Match[str] | None) -> str:
    return (found[1] or found[2] or found[3] or "").strip() if found else ""

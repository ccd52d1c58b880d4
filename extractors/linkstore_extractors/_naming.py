"""The names of a document, as tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.text import STOP_WORDS, tokens

SHORTEST: Final = 4
"""Letters of the shortest name, spaces between words among them."""
MOST_WORDS: Final = 8
"""Words of the longest name; the length of what a query is searched for."""
LONGEST_WORD: Final = 64
"""Longer runs of letters are hashes, encoded data and the like."""
_BRACKET: Final = re.compile(r"\s*\([^()]*\)\s*$")


def names_of(document: Document) -> tuple[str, ...]:
    """Return the names of a document's page, from ``metadata["title"]`` and the list ``metadata["aliases"]``.

    Values that are not strings are passed over: metadata is the user's own.
    """
    metadata = document.metadata
    aliases = metadata.get("aliases")
    given: Iterable[Any] = (metadata.get("title"), *(aliases if isinstance(aliases, list | tuple) else ()))
    found = (name_tag(name) for name in given if isinstance(name, str))
    return tuple(dict.fromkeys(tag for tag in found if tag is not None))


@lru_cache(maxsize=4096)
def name_tag(name: str) -> str | None:
    """Return the tag of a name, or None for one too trivial to mean anything in a text.

    A bracket at the end tells names apart and does not belong to them: "Mercury (planet)" is called
    "Mercury". The rest is folded into words as ``linkstore.text.tokens`` has them, joined by single spaces.
    It must have at least 4 letters and at most 8 words, one of which is neither a stop word nor a number.
    """
    words = tokens(_BRACKET.sub("", name))
    tag = " ".join(words)
    if len(tag) < SHORTEST or len(words) > MOST_WORDS or max(map(len, words)) > LONGEST_WORD:
        return None
    return tag if any(word not in STOP_WORDS and not word.isnumeric() for word in words) else None


def bears_names(document: Document) -> bool:
    """Say whether links to the names of its page lead to this document.

    Of a page that was divided into chunks, only the first chunk bears the names. Its ``metadata["url"]`` is
    that of the page, and its id is not numbered (``page~2``). Otherwise all chunks of a page would bear its
    name.
    """
    page = document.metadata.get("page")
    if not isinstance(page, str):
        return True
    return document.metadata.get("url", page) == page and f"{page}~" not in (document.id or "")

"""URLs and names in readable form: in their own letters, and unable to forge a line of output."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ENCODED: Final = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")
_NOT_READABLE: Final = re.compile(
    r"[\x00-\xa0\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\uffff\U000e0000-\U000e007f\s"
    "\ud800-\udfff]"
)
"""Of what is not ASCII: white space, controls, marks of direction, and bytes that are no Unicode."""


def readable_url(url: str) -> str:
    """Return a percent-encoded URL in its own letters: ``東京.md`` for ``%E6%9D%B1%E4%BA%AC.md``.

    ASCII stays as it is, and so do encoded white space, controls, marks of direction, and bytes that are not
    UTF-8. Both spellings are the same page: ``linkstore.urls`` gives them one tag.
    """
    return _ENCODED.sub(_in_letters, url) if "%" in url else url


def _in_letters(found: re.Match[str]) -> str:
    text = unquote_to_bytes(found[0]).decode("utf-8", "surrogateescape")
    return _NOT_READABLE.sub(lambda one: quote(one[0], errors="surrogateescape"), text)


def escaped_controls(name: str) -> str:
    """Percent-encode control characters and marks of direction in a name, so that it can be an id."""
    return name if name.isprintable() else _CONTROLS.sub(lambda one: quote(one[0]), name)

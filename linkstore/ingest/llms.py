"""``llms.txt``: a list of the pages of a site that matter, in Markdown (https://llmstxt.org).

Each page is a link, often to the same page in Markdown, which by that convention has the page's own URL with
``.md`` appended.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

LIST_NAME: Final = "llms.txt"
_LINK: Final = re.compile(r"\[[^\]\n]{0,1000}\]\(\s*<?([^\s()<>]{1,2048})>?[^()\n]{0,1000}\)")


def is_page_list(place: str) -> bool:
    """Say whether a path or URL names such a list."""
    return PurePosixPath(urlsplit(place).path).name.lower() == LIST_NAME


def find_named_pages(text: str) -> list[str]:
    """Return the URLs that a list names, as written, each once and without fragment."""
    written = (found[1].partition("#")[0] for found in _LINK.finditer(text))
    return list(dict.fromkeys(filter(None, written)))


def find_original(url: str) -> str | None:
    """Return the URL of the page that this is the Markdown of, None if it is not named so."""
    original = url.removesuffix(".md")
    return None if original == url or original.endswith("/") else original

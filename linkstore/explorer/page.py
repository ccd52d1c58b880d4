"""One HTML page with its styles, script and data, and a policy against loading anything else.

The script and the styles are built from ``linkstore/explorer/web`` and lie beside this module. Data stand in
the page as JSON, with ``<`` escaped, so that no text of a store can end the element or begin another one. The
content security policy (https://www.w3.org/TR/CSP3/) allows the script and the styles by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from linkstore.core.calls import run
from linkstore.core.display import escape_html
from linkstore.core.hits import Hits
from linkstore.explorer.answers import describe_hits
from linkstore.explorer.corpus import DRAWN_PAGES, read_corpus

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

MOST_BYTES: Final = 2_000_000
"""How large a page with the graph of a store may be."""
_STATIC: Final = Path(__file__).parent / "static"
_FEWEST_PAGES: Final = 50


@cache
def read_bundle() -> tuple[str, str]:
    """Return the script and the styles."""
    return tuple((_STATIC / name).read_text(encoding="utf-8") for name in ("explorer.js", "explorer.css"))  # type: ignore[return-value]


def make_policy(connect: str = "") -> str:
    """Return the content security policy of a page.

    Args:
        connect: Where its script may connect to, such as ``'self'``; nowhere by default.
    """
    script, style = map(_hash_text, read_bundle())
    parts = [
        "default-src 'none'",
        f"script-src '{script}'",
        f"style-src '{style}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*parts, f"connect-src {connect}"] if connect else parts)


def _hash_text(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def make_page(data: dict[str, Any], title: str, connect: str = "") -> str:
    """Return the page.

    Args:
        data: What it shows, or where its script gets it: see ``web/src/data.ts``.
        title: Its title.
        connect: Where its script may connect to.
    """
    script, style = read_bundle()
    text = orjson.dumps(data).decode().replace("<", "\\u003c")
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{make_policy(connect)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape_html(title)}</title>\n"
        f"<style>{style}</style></head>\n"
        '<body><div id="linkstore"></div>\n'
        f'<script type="application/json" id="linkstore-data">{text}</script>\n'
        f'<script type="module">{script}</script></body></html>\n'
    )


def render(shown: Hits | CoreStore, title: str = "") -> str:
    """Return an HTML page that shows hits with their graph and omissions, or the graph of a store.

    The page loads nothing from elsewhere. Of a large store fewer pages are drawn, so that it has at most
    2 MB, and it says how many.

    Args:
        shown: The hits of a search, or a store.
        title: Title of the page, such as the question.
    """
    if isinstance(shown, Hits):
        return make_page({"mode": "answer", "answer": describe_hits(shown, title)}, title or "Hits")
    most = DRAWN_PAGES
    while True:
        corpus = run(read_corpus(shown.backend, most))
        page = make_page({"mode": "corpus", "corpus": corpus}, title or "linkstore")
        if len(page.encode()) <= MOST_BYTES or most <= _FEWEST_PAGES:
            return page
        most //= 2

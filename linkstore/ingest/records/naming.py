"""The tags of documents that are not pages of a site: by their URL, or by their id."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from linkstore.links import Link
from linkstore.urls import Site, is_short

HYPERLINK: Final = "hyperlink"
"""Kind of the links that authors wrote, whatever the syntax."""


def id_tag(id: str) -> str:
    """Return the URL, relative to the root of a site, of a document without one: its id."""
    return id if "://" in id else f"./{quote(id.lstrip('/'), safe='/:@!$&()*+,;=~')}"


def incoming(url: str, site: Site) -> list[Link]:
    """Return the hyperlinks that lead to a document: those to its URL.

    Args:
        url: Absolute, or relative to the root of the site, may have a fragment.
        site: How documents are named.
    """
    tag = site.tag(url)
    return [Link.incoming(kind=HYPERLINK, tag=tag)] if tag is not None and is_short(tag) else []

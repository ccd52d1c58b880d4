"""What one run records about a page for the next one, as the page's digest in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson
import xxhash

from linkstore.ingest.html.pages import PageContent

_LISTS: Final = ("moved", "aliases", "children")
_LONGEST: Final = 1024
_MOST_CHILDREN: Final = 10_000

MOST_NAMES: Final = 64
"""Further URLs of one page that become its links; a site can make up any number of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The record of a stored page.

    Args:
        how: Hash of what else its documents depend on: how it was found and read.
        content: Hash of what the page said, and of that.
        text: Hash of its text alone, by which copies are known.
        etag: By which the server tells whether it changed; may be empty.
        modified: The same, as a date.
        depth: How many links it is from a start page.
        moved: URLs that led to it: redirects, and copies that name it as their canonical page.
        aliases: Further URLs that the page gives itself: its canonical one, where nothing else is.
        children: URLs that were found on this page first. Each URL of a site stands in one memory, so
            that a run that was interrupted is gone on with without asking for this page again.
    """

    how: str
    content: str
    text: str = ""
    etag: str = ""
    modified: str = ""
    depth: int = 0
    moved: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    children: tuple[str, ...] = ()

    @property
    def validators(self) -> dict[str, str]:
        """The headers of a request for the page only if it has changed (RFC 9110, section 13.1)."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in headers.items() if value}

    def digest(self) -> str:
        """Return the record as the store keeps it."""
        return orjson.dumps(asdict(self)).decode()


def recalled(digest: str) -> Memory | None:
    """Return the record in a digest, or None if it was not written by this version."""
    try:
        found: Any = orjson.loads(digest)
        return Memory(**{**found, **{name: tuple(found[name]) for name in _LISTS}})
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def remembered(
    *,
    how: str,
    found: PageContent,
    headers: Mapping[str, str],
    depth: int = 0,
    moved: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    children: tuple[str, ...] = (),
) -> Memory:
    """Make the record of a page.

    Args:
        how: Hash of what else its documents depend on.
        found: What it says.
        headers: Of the answer.
        depth: How many links it is from a start page.
        moved: URLs that led to it.
        aliases: Further URLs that it gives itself.
        children: URLs that were found on it first.
    """
    said = repr((how, moved, aliases, found)).encode(errors="replace")
    return Memory(
        how=how,
        content=xxhash.xxh3_128_hexdigest(said),
        text=text_hash(found),
        etag=_header(headers, "etag"),
        modified=_header(headers, "last-modified"),
        depth=depth,
        moved=moved,
        aliases=aliases,
        children=children[:_MOST_CHILDREN],
    )


def text_hash(found: PageContent) -> str:
    """Return the hash of a page's text."""
    return xxhash.xxh3_64_hexdigest("\n".join(block.text for block in found.blocks).encode(errors="replace"))


def _header(headers: Mapping[str, str], name: str) -> str:
    """Return a validator that can be sent back, empty if there is none."""
    value = headers.get(name, "")
    return value if len(value) <= _LONGEST and value.isascii() and value.isprintable() else ""

"""Finds the pages of a folder that are one page under several names, which is indexed once.

They are links to one file, and files with the same bytes, but for links that lead to the same places. So a
copy in another folder, whose relative links are written otherwise, is one, and a page of the same text for
another version is not.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from posixpath import basename, dirname
from typing import Final
from urllib.parse import urljoin

import xxhash

from linkstore.extract.html import find_canonical_href, parse_html
from linkstore.extract.html_bounds import UnboundedPageError
from linkstore.ingest.files import Folder, Listing, PageFile
from linkstore.ingest.html.pages import UnreadablePageError

COPIES: Final = "other names of pages"
"""How a summary counts them."""
_LARGEST: Final = 16 * 2**20
_LINK: Final = re.compile(rb"\b(?:href|src|url)\s*+=\s*+[\"']?+([^\"'\s>#][^\"'\s>]*+)", re.IGNORECASE)
"""A link to another page; ``url`` is that of a page that only redirects."""


def merge_copies(listing: Listing, titles: Mapping[str, frozenset[str]]) -> Listing:
    """Return a listing in which each page stands once, with its other names as aliases.

    Args:
        listing: The pages.
        titles: Those that each may have, by URL. Pages are compared if they have the same, or the same size.
    """
    folder = listing.folder
    real: dict[str, list[PageFile]] = {}
    alike: dict[frozenset[str] | int, list[PageFile]] = {}
    for file in listing.files:
        size, target = _look_at(folder, file)
        real.setdefault(target, []).append(file)
        if target == file.page and size:
            alike.setdefault(titles.get(file.url) or size, []).append(file)
    for files in alike.values():
        for one, *others in _group_by_content(files) if len(files) > 1 else ():
            for other in others:
                real[one] += real.pop(other)
    kept = [_merge(folder, target, files) for target, files in real.items()]
    copies = len(listing.files) - len(kept)
    unread = {**listing.unread, COPIES: copies} if copies else listing.unread
    return replace(listing, files=tuple(sorted(kept, key=lambda file: file.page)), unread=unread)


def _look_at(folder: Folder, file: PageFile) -> tuple[int, str]:
    """Return the size of a page, 0 for a link, and the path that it really has."""
    path = folder.path / file.page
    with suppress(OSError):  # it is read later, and then reported
        found = path.lstat()
        if not stat.S_ISLNK(found.st_mode):
            return found.st_size, file.page
        target = folder.inside(type(path)(os.path.realpath(path)))
        return 0, "/".join(target) if target else file.page
    return 0, file.page


def _group_by_content(files: Sequence[PageFile]) -> list[list[str]]:
    """Return the names of pages that say the same, the nearest to the root first."""
    found: dict[bytes, list[str]] = {}
    for file in files:
        with suppress(ValueError, OSError):  # likewise; or a link that is none
            found.setdefault(_identify(file, file.read(_LARGEST)), []).append(file.page)
    return [sorted(names, key=lambda name: name.count("/")) for names in found.values()]


def _identify(file: PageFile, content: bytes) -> bytes:
    """Return a hash of what a page says, in which its links are those that they lead to.

    Raises:
        ValueError: If a link cannot be parsed.
    """

    def resolve(link: re.Match[bytes]) -> bytes:
        return urljoin(f"/{file.url}", str(link[1], "latin-1")).encode("latin-1", "replace")

    is_html = file.suffix == ".html"
    said = xxhash.xxh3_128(b"" if is_html else os.fsencode(dirname(file.page)))
    said.update(_LINK.sub(resolve, content) if is_html else content)
    return said.digest()


def _merge(folder: Folder, target: str, files: Sequence[PageFile]) -> PageFile:
    """Return the file that stands for all: the one the page names, an index, or the first that is no link."""
    if len(files) == 1:
        return files[0]
    named = _find_canonical_name(folder, target)
    kept = min(
        files,
        key=lambda file: (
            basename(file.page) != named,
            not basename(file.page).startswith("index."),
            file.page != target,
        ),
    )
    others = (name for file in files if file is not kept for name in (file.url, *file.aliases))
    return replace(kept, aliases=tuple(dict.fromkeys((*kept.aliases, *others))))


def _find_canonical_name(folder: Folder, name: str) -> str:
    with suppress(UnreadablePageError, UnboundedPageError, OSError):
        return basename((find_canonical_href(parse_html(folder.read(name, _LARGEST))) or "").rstrip("/"))
    return ""

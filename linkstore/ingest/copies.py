"""Finds the pages of a folder that are one page under several names, which is indexed once.

They are links to one file, and files of one folder with the same bytes. Files of different folders are kept
apart, since the same relative link leads elsewhere from each.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from posixpath import basename, dirname
from typing import Final

import xxhash

from linkstore.extract.html import find_canonical_href, parse_html
from linkstore.extract.html_bounds import UnboundedPageError
from linkstore.ingest.files import Folder, Listing, PageFile
from linkstore.ingest.html.pages import UnreadablePageError

COPIES: Final = "other names of pages"
"""How a summary counts them."""
_LARGEST: Final = 16 * 2**20


def merge_copies(listing: Listing) -> Listing:
    """Return a listing in which each page stands once, with its other names as aliases."""
    folder = listing.folder
    real: dict[str, list[PageFile]] = {}
    sizes: dict[tuple[str, int], list[str]] = {}
    for file in listing.files:
        size, target = _look_at(folder, file)
        real.setdefault(target, []).append(file)
        if target == file.page and size:
            sizes.setdefault((dirname(target), size), []).append(target)
    for names in sizes.values():
        for one, *others in _group_by_content(folder, names) if len(names) > 1 else ():
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


def _group_by_content(folder: Folder, names: Iterable[str]) -> list[list[str]]:
    found: dict[bytes, list[str]] = {}
    for name in names:
        with suppress(UnreadablePageError, OSError):  # likewise
            found.setdefault(xxhash.xxh3_128_digest(folder.read(name, _LARGEST)), []).append(name)
    return list(found.values())


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

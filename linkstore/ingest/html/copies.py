"""Files of a site that are one page: copies under several names, and symbolic links.

A page is indexed under one of its names, and all of them lead to it: the one that the page itself says is
canonical, else that of a file rather than of a link, else the shortest.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from urllib.parse import unquote

import xxhash

from linkstore.core.urls import normalize_url
from linkstore.extract.html import find_canonical_href, parse_html
from linkstore.extract.html_bounds import UnboundedPageError
from linkstore.ingest.files import PageFile
from linkstore.ingest.html.pages import UnreadablePageError


def merge_copies(files: Sequence[PageFile], most: int) -> list[PageFile]:
    """Return the files without those that are copies of another one, which has their names as aliases.

    Args:
        files: HTML and Markdown. Notes with the same text are different notes.
        most: Bytes of a file that is read.
    """
    by_size: dict[int, list[PageFile]] = defaultdict(list)
    for file in files:
        if not file.is_markdown:
            by_size[_get_size(file)].append(file)
    by_content: dict[bytes, list[PageFile]] = defaultdict(list)
    for size, alike in by_size.items():
        for file in alike if 0 < size <= most and len(alike) > 1 else ():
            with suppress(UnreadablePageError, OSError):  # it is read again, and then reported
                by_content[xxhash.xxh3_128_digest(file.read(most))].append(file)
    merged: dict[str, PageFile | None] = {}
    for copies in by_content.values():
        if len(copies) > 1:
            kept = _choose(copies, most)
            names = (name for file in copies for name in (file.url, *file.aliases) if name != kept.url)
            merged.update((file.url, None) for file in copies)
            merged[kept.url] = replace(kept, aliases=tuple(dict.fromkeys((*kept.aliases, *names))))
    found = (merged.get(file.url, file) for file in files)
    return [file for file in found if file is not None]


def _get_size(file: PageFile) -> int:
    try:
        return (file.folder.path / file.page).stat().st_size
    except OSError:
        return 0


def _choose(copies: Sequence[PageFile], most: int) -> PageFile:
    named = ""
    with suppress(UnreadablePageError, UnboundedPageError, OSError):
        named = find_canonical_href(parse_html(copies[0].read(most))) or ""
    path = unquote((normalize_url(named) or f"/{named}").partition("?")[0])
    return min(
        copies,
        key=lambda file: (
            not path.endswith(f"/{unquote(file.url)}"),
            os.path.realpath(file.folder.path / file.page) != str(file.folder.path / file.page),
            len(file.url),
            file.url,
        ),
    )

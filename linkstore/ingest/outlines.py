"""Outlines of files: what a run must know of each file of a folder, whether or not it reads the page.

A store keeps the outline beside the page, with the file's stamp: its size, its times and its number on the
disk. While the stamp is the same, the file is not opened again. As in git's index, a file has no stamp if it
changed less than two seconds before it was looked at, or in the future: it may change again within what its
disk takes for one moment. Files that give no page, such as copies and redirects, have no outline in a store,
and are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson
import xxhash

from linkstore.extract.html import decode_html
from linkstore.ingest.files import PageFile, make_stamp
from linkstore.ingest.html.pages import find_refresh_target
from linkstore.ingest.notes.frontmatter import (
    LONGEST_FRONT_MATTER,
    NO_FRONT_MATTER,
    FrontMatter,
    FrontMatterError,
    read_front_matter,
    split_front_matter,
)
from linkstore.ingest.notes.markup import find_targets
from linkstore.ingest.settings import PathSettings, hash_values
from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.suffixes import NOTE_SUFFIXES, PDF_SUFFIX
from linkstore.ingest.titles import TITLE_BYTES, find_titles

VERSION: Final = 1
"""Raised whenever the same file would have another outline."""
_HEAD_BYTES: Final = 4 * LONGEST_FRONT_MATTER + 16
"""Bytes that may have to be read for all of the front matter."""
_LONGEST_STORED: Final = 16 * 2**10
"""Characters of an outline; what is longer is not kept, and its file is read."""
_MAY_BE_TYPED: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:[^\n]*\n)*?[^\n:]{0,200}\b(?:type|okf_version)\b"
)
"""The beginning of what may be a page of a bundle."""
LINK: Final = re.compile(rb"\b(?:href|src|url)\s*+=\s*+[\"']?+([^\"'\s>#][^\"'\s>]*+)", re.IGNORECASE)
"""A link to another page; ``url`` is that of a page that only redirects."""


class Outline(NamedTuple):
    """What is known of a file, as plain JSON."""

    titles: Sequence[str] = ()
    """Those that its page may have."""
    redirect: str | None = None
    """Where its page sends its reader, as written; None if it is a page to be read."""
    fields: Mapping[str, Any] = {}
    """Its front matter, empty if it cannot be read, or is not needed."""
    linked: Sequence[str] = ()
    typed: bool = False
    """Whether it may be a page of a bundle."""
    targets: Sequence[str] = ()
    """The possible targets of its links, if it is Markdown."""
    content: str = ""
    """Hash of its content without links; empty if that was not read yet."""
    around: str = ""
    """Hash of all else that its page was made of; empty if the page was not read yet."""

    @property
    def front(self) -> FrontMatter:
        """The front matter."""
        return FrontMatter(fields=self.fields, linked=tuple(self.linked))


_UNKNOWN: Final = Outline()


class Outlines:
    """The outlines of the files of a source, by URL. Files that cannot be read have none.

    Args:
        files: The files.
        settings: How they are read and named.
        stored: What the store keeps of them, by their names there.
        all_front_matter: Whether to read that of all files, not only of what may be pages of a bundle.
    """

    def __init__(
        self,
        files: Iterable[PageFile],
        settings: PathSettings,
        stored: Mapping[str, str],
        *,
        all_front_matter: bool = False,
    ) -> None:
        encoding = settings.encoding
        self._salt = hash_values(VERSION, encoding, settings.max_bytes, all_front_matter)
        self._outlines: dict[str, Outline] = {}
        self.kept: dict[str, str] = {}
        """What the store keeps of files that have not changed."""
        above = settings.make_site(()).place("")
        for file in files:
            lead, kept = self._lead(file), stored.get(f"{above}{file.url}", "")
            outline = _parse(kept[len(lead) :]) if file.stamp and kept.startswith(lead) else None
            if outline is not None:
                self.kept[file.url], self._outlines[file.url] = kept, outline
                continue
            with suppress(UnreadablePageError, OSError):  # it is read again, and then reported
                self._outlines[file.url] = _read_outline(file, encoding, all_front_matter=all_front_matter)
        self.titles = {url: frozenset(outline.titles) for url, outline in self._outlines.items()}

    def get(self, file: PageFile) -> Outline:
        """Return the outline of a file, an empty one if it cannot be read."""
        return self._outlines.get(file.url, _UNKNOWN)

    def write(self, file: PageFile, around: str, content: bytes) -> str:
        """Return the outline of a file as the store keeps it, empty if the file is to be read next time.

        Args:
            file: The file.
            around: Hash of all else that its page is made of.
            content: What was read just now.
        """
        with suppress(OSError, orjson.JSONEncodeError):  # it is gone; it has what is no Unicode
            if not file.stamp or make_stamp(os.lstat(file.folder.path / file.page)) != file.stamp:
                return ""
            outline = self.get(file)._replace(content=hash_without_links(content), around=around)
            text = f"{self._lead(file)}{orjson.dumps(tuple(outline)).decode()}"
            return text if len(text) <= _LONGEST_STORED else ""
        return ""

    def _lead(self, file: PageFile) -> str:
        return f"{file.stamp} {self._salt} "


def _parse(stored: str) -> Outline | None:
    """Return the outline that a store keeps, or None if it is damaged."""
    try:
        return Outline(*orjson.loads(stored))
    except (ValueError, TypeError):
        return None


def _read_outline(file: PageFile, encoding: str | None, *, all_front_matter: bool) -> Outline:
    if file.suffix == PDF_SUFFIX:
        return Outline()
    is_html, is_note = file.suffix == ".html", file.suffix in NOTE_SUFFIXES
    head = file.folder.head(file.page, _HEAD_BYTES if is_note else TITLE_BYTES + 1)
    titles = sorted(
        find_titles(decode_html(head[:TITLE_BYTES], encoding=encoding).text, markdown=not is_html)
    )
    if not is_note:
        is_short = is_html and len(head) <= TITLE_BYTES
        return Outline(titles, find_refresh_target(head) if is_short else None)
    text = decode_html(head, encoding=encoding).text.replace("\r\n", "\n")
    front, typed = NO_FRONT_MATTER, _MAY_BE_TYPED.match(head) is not None
    if typed or all_front_matter:
        with suppress(FrontMatterError):  # it is read again, and then reported
            front = read_front_matter(split_front_matter(text)[0])
    return Outline(titles, None, front.fields, front.linked, typed, sorted(find_targets(text)))


def hash_without_links(content: bytes) -> str:
    """Return a hash of a page without its links, by which copies are looked for."""
    return xxhash.xxh3_128_hexdigest(LINK.sub(b"", content))

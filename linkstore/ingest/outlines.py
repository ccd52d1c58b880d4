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
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

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
HEAD_BYTES: Final = 4 * LONGEST_FRONT_MATTER + 16
"""Bytes that may have to be read for all of the front matter."""
_LONGEST_STORED: Final = 16 * 2**10
"""Characters of an outline; what is longer is not kept, and its file is read."""
_MAY_BE_TYPED: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:[^\n]*\n)*?[^\n:]{0,200}\b(?:type|okf_version)\b"
)
"""The beginning of what may be a page of a bundle."""
LINK: Final = re.compile(rb"\b(?:href|src|url)\s*+=\s*+[\"']?+([^\"'\s>#][^\"'\s>]*+)", re.IGNORECASE)
"""A link to another page; ``url`` is that of a page that only redirects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What is known of a file.

    Args:
        titles: Those that its page may have.
        redirect: Where its page sends its reader, as written; None if it is a page to be read.
        front: Its front matter, none if it cannot be read, or is not needed.
        typed: Whether it may be a page of a bundle.
        targets: The possible targets of its links, if it is Markdown.
        content: Hash of its content without links; empty if that was not read yet.
        around: Hash of all else that its page was made of; empty if the page was not read yet.
        stored: All this as the store has it, empty for a file that is read.
    """

    titles: frozenset[str] = frozenset()
    redirect: str | None = None
    front: FrontMatter = NO_FRONT_MATTER
    typed: bool = False
    targets: frozenset[str] = frozenset()
    content: str = ""
    around: str = ""
    stored: str = field(default="", repr=False)


class Outlines:
    """The outlines of the files of a source, by URL. Files that cannot be read have none.

    Args:
        files: The files.
        settings: How they are read and named.
        stored: What the store keeps of them, by their names there.
        notes: Whether all front matter is needed, and not only that of what may be pages of a bundle.
    """

    def __init__(
        self,
        files: Iterable[PageFile],
        settings: PathSettings,
        stored: Mapping[str, str],
        *,
        notes: bool = False,
    ) -> None:
        encoding = settings.encoding
        self._salt = hash_values(VERSION, encoding, notes)
        self._outlines: dict[str, Outline] = {}
        above = settings.make_site(()).place("")
        for file in files:
            lead, kept = self._stamp(file), stored.get(f"{above}{file.url}", "")
            if file.stamp and kept.startswith(lead):
                self._outlines[file.url] = _load(kept, len(lead))
            else:
                with suppress(UnreadablePageError, OSError):  # it is read again, and then reported
                    self._outlines[file.url] = _read_outline(file, encoding, notes=notes)
        self.titles = {url: outline.titles for url, outline in self._outlines.items()}

    def get(self, file: PageFile) -> Outline:
        """Return the outline of a file, an empty one if it cannot be read."""
        return self._outlines.get(file.url, _EMPTY)

    def store(self, file: PageFile, content: bytes, around: str) -> str:
        """Return the outline of a file as the store keeps it, empty if the file is to be read next time.

        Args:
            file: Read just now.
            content: Of the file.
            around: Hash of all else that its page is made of.
        """
        if not file.stamp or make_stamp(os.lstat(file.folder.path / file.page)) != file.stamp:
            return ""
        outline = self.get(file)
        values = (
            sorted(outline.titles),
            outline.redirect,
            (outline.front.fields, outline.front.linked),
            outline.typed,
            sorted(outline.targets),
            hash_without_links(content),
            around,
        )
        text = f"{self._stamp(file)}{orjson.dumps(values).decode()}"
        return text if len(text) <= _LONGEST_STORED else ""

    def _stamp(self, file: PageFile) -> str:
        return f"{file.stamp} {self._salt} "


def _load(stored: str, start: int) -> Outline:
    titles, redirect, (fields, linked), typed, targets, content, around = orjson.loads(stored[start:])
    return Outline(
        titles=frozenset(titles),
        redirect=redirect,
        front=FrontMatter(fields=fields, linked=tuple(linked)) if fields else NO_FRONT_MATTER,
        typed=typed,
        targets=frozenset(targets),
        content=content,
        around=around,
        stored=stored,
    )


def _read_outline(file: PageFile, encoding: str | None, *, notes: bool) -> Outline:
    if file.suffix == PDF_SUFFIX:
        return _EMPTY
    is_html, is_note = file.suffix == ".html", file.suffix in NOTE_SUFFIXES
    head = file.folder.head(file.page, HEAD_BYTES if is_note else TITLE_BYTES + 1)
    text = decode_html(head[:TITLE_BYTES], encoding=encoding).text
    outline = Outline(titles=find_titles(text, markdown=not is_html))
    if is_html and len(head) <= TITLE_BYTES:
        outline = replace(outline, redirect=find_refresh_target(head))
    if not is_note:
        return outline
    if len(head) > TITLE_BYTES:
        text = decode_html(head, encoding=encoding).text
    text = text.replace("\r\n", "\n")
    front, typed = NO_FRONT_MATTER, _MAY_BE_TYPED.match(head) is not None
    if typed or notes:
        with suppress(FrontMatterError):  # it is read again, and then reported
            front = read_front_matter(split_front_matter(text)[0])
    return replace(outline, front=front, typed=typed, targets=frozenset(find_targets(text)))


def hash_without_links(content: bytes) -> str:
    """Return a hash of a page without its links, by which copies are looked for."""
    return xxhash.xxh3_128_hexdigest(LINK.sub(b"", content))


_EMPTY: Final = Outline()

"""A ZIM file, such as Kiwix offers of wikis and documentation, as a source of pages.

It is read by ``libzim``, whose licence is GPL-3.0-or-later: nothing here depends on it, and whoever wants
ZIM files installs the extra ``zim``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import xxhash

from linkstore.core.arguments import as_path
from linkstore.errors import MissingExtraError, SourceNotFoundError
from linkstore.extract.protocol import Chunk, Page
from linkstore.ingest.chunks import make_chunks
from linkstore.ingest.copies import count_books, find_books
from linkstore.ingest.files import quote_path
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.settings import PathSettings, hash_values
from linkstore.ingest.source import BadInput, SourcePage

_SITE: Final = re.compile(r"\s*(?:[-\u2013\u2014|:·]\s|\Z)")
"""The separators between a heading and the name of the site in a title."""
_MOST_WITH_BOOKS: Final = 20_000
"""Entries, of which each has to be unpacked to know its size. Larger files are of wikis."""


class MissingLibzimError(MissingExtraError):
    """ZIM files need a library that is not installed."""


@dataclass(frozen=True, slots=True)
class ZimSource(PathSettings):
    """The HTML pages of a ZIM file, in its order; redirects become further names of their pages.

    Args:
        path: The file.

    Its other settings are those of :class:`~linkstore.ingest.settings.PathSettings`.
    """

    def open(self) -> AbstractContextManager[ZimPages]:
        """Open the file.

        Raises:
            MissingLibzimError: If libzim is not installed.
            SourceNotFoundError: If there is no such file, or it is not a ZIM file.
        """
        return nullcontext(ZimPages(self, _open_archive(as_path("path", self.path))))


class ZimPages:
    """The pages of a ZIM file, in one run."""

    def __init__(self, settings: PathSettings, archive: Any) -> None:
        self._settings = settings
        self._archive = archive
        self.site: Final = settings.make_site(settings.bases or ())
        self.unread: Mapping[str, int] = {}
        """The pages that repeat others, once the pages are asked for."""
        self._salt = hash_values(settings.limits, settings.encoding)

    def __len__(self) -> int:
        """Return the number of entries, redirects and pictures included."""
        return int(self._archive.entry_count)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages. Each is unpacked, and parsed only if it is read."""
        redirects, books = self._redirects(), self._find_books()
        self.unread = count_books(books)
        for entry, item in self._list_html():
            url = quote_path(entry.path)
            if entry.path in books:
                continue
            if item.size > self._settings.max_bytes:
                reason = f"it has {item.size:,} bytes, more than the {self._settings.max_bytes:,} allowed"
                yield BadInput(name=url, reason=reason)
                continue
            aliases = tuple(redirects.get(entry.path, ()))
            content = bytes(item.content)
            digest = xxhash.xxh3_128(f"{self._salt}{url}{aliases}".encode())
            digest.update(content)
            read = partial(_make_zim_chunks, self._settings, url, entry.title, aliases, content)
            yield SourcePage(url=url, digest=digest.hexdigest(), read=read, size=len(content))

    def _entries(self) -> Iterator[Any]:
        for number in range(self._archive.entry_count):
            yield self._archive._get_entry_by_id(number)  # noqa: SLF001 (there is no other way to see all)

    def _list_html(self) -> Iterator[tuple[Any, Any]]:
        """Yield the entries that are pages of HTML, each with its item."""
        for entry in self._entries():
            if not entry.is_redirect and (item := entry.get_item()).mimetype.startswith("text/html"):
                yield entry, item

    def _find_books(self) -> frozenset[str]:
        """Return the pages that repeat others, or none if there are too many pages for books."""
        if len(self) > _MOST_WITH_BOOKS:
            return frozenset()
        sizes = {entry.path: item.size for entry, item in self._list_html()}

        def read(path: str, most: int) -> bytes:
            return bytes(self._archive.get_entry_by_path(path).get_item().content[:most])

        return frozenset(find_books(sizes, read))

    def _redirects(self) -> dict[str, list[str]]:
        """Map paths to the URLs that redirect to them. libzim refuses to write circles and loose ends."""
        urls: dict[str, list[str]] = {}
        for entry in self._entries():
            if entry.is_redirect:
                urls.setdefault(entry.get_redirect_entry().path, []).append(quote_path(entry.path))
        return urls


def _make_zim_chunks(
    settings: PathSettings, url: str, title: str, aliases: tuple[str, ...], content: bytes
) -> list[Chunk]:
    page_content = read_html_page(content, encoding=settings.encoding)
    page = Page(
        url=url,
        title=_choose_zim_title(title, url, page_content.title),
        base=page_content.base,
        aliases=aliases,
        replaced=page_content.replaced,
        guessed=page_content.guessed,
    )
    return make_chunks(page, page_content.blocks, settings.limits)


def _choose_zim_title(title: str, url: str, heading: str) -> str:
    """Return the title of the article's entry, which may name the site after the page's own heading."""
    if not title or quote_path(title) == url or _SITE.match(title.removeprefix(heading) if heading else ""):
        return heading or title
    return title


def _open_archive(path: Path) -> Any:
    if not path.is_file():
        raise SourceNotFoundError(f"the file {str(path)!r} does not exist; give a ZIM file")
    try:
        from libzim.reader import Archive
    except ImportError as error:
        raise MissingLibzimError("reading ZIM files with libzim (GPL-3.0-or-later)", "zim") from error
    try:
        return Archive(path)
    except RuntimeError as error:
        raise SourceNotFoundError(f"{str(path)!r} is not a ZIM file: {error}") from error

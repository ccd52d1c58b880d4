"""A ZIM file, such as Kiwix offers of wikis and documentation, as a source of pages.

It is read by ``libzim``, whose licence is GPL-3.0-or-later: nothing here depends on it, and whoever wants
ZIM files installs the extra ``zim``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

import xxhash

from linkstore.core.arguments import as_path, omit_none, require
from linkstore.core.urls import Site
from linkstore.errors import MissingExtraError
from linkstore.extract.protocol import Chunk, Page
from linkstore.ingest.chunks import make_chunks
from linkstore.ingest.files import SourceNotFoundError, quote_path
from linkstore.ingest.html.folder import IngestSettings
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.pipeline import IndexOptions, index_source
from linkstore.ingest.source import BadInput, PageStore, SourcePage, Summary

_SITE: Final = re.compile(r"\s*(?:[-\u2013\u2014|:·]\s|\Z)")
"""The separators between a heading and the name of the site in a title."""


class MissingLibzimError(MissingExtraError):
    """ZIM files need a library that is not installed."""


class ZimSource:
    """The HTML pages of a ZIM file, in its order; redirects become further names of their pages.

    Args:
        path: The file.
        settings: How pages are read.
        prefix: Path below which the pages are stored, next to other sources; see :func:`index_folder`.

    Raises:
        MissingLibzimError: If libzim is not installed.
        SourceNotFoundError: If there is no such file, or it is not a ZIM file.
        LinkError: If the prefix is not a path.
    """

    def __init__(self, path: str | Path, settings: IngestSettings | None = None, *, prefix: str = "") -> None:
        path = as_path("path", path)
        self._archive = _open_archive(path)
        self.name: Final = path.resolve().as_posix()
        require(IngestSettings, "an IngestSettings", **omit_none(settings=settings))
        self._settings = settings or IngestSettings()
        self.site: Final = Site(bases=self._settings.bases or (), policy=self._settings.policy, prefix=prefix)
        self._salt = repr((self._settings.limits, self._settings.encoding))

    def __len__(self) -> int:
        """Return the number of entries, redirects and pictures included."""
        return int(self._archive.entry_count)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages. Each is unpacked, and parsed only if it is read."""
        redirects = self._redirects()
        for entry in self._entries():
            if entry.is_redirect:
                continue
            url = quote_path(entry.path)
            item = entry.get_item()
            if not item.mimetype.startswith("text/html"):
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
            yield SourcePage(url=url, digest=digest.hexdigest(), read=read)

    def _entries(self) -> Iterator[Any]:
        for number in range(self._archive.entry_count):
            yield self._archive._get_entry_by_id(number)  # noqa: SLF001 (there is no other way to see all)

    def _redirects(self) -> dict[str, list[str]]:
        """Map paths to the URLs that redirect to them. libzim refuses to write circles and loose ends."""
        found: dict[str, list[str]] = {}
        for entry in self._entries():
            if entry.is_redirect:
                found.setdefault(entry.get_redirect_entry().path, []).append(quote_path(entry.path))
        return found


def _make_zim_chunks(
    settings: IngestSettings, url: str, title: str, aliases: tuple[str, ...], content: bytes
) -> list[Chunk]:
    found = read_html_page(content, encoding=settings.encoding)
    page = Page(
        url=url,
        title=_choose_zim_title(title, url, found.title),
        base=found.base,
        aliases=aliases,
        replaced=found.replaced,
        guessed=found.guessed,
    )
    return make_chunks(page, found.blocks, settings.limits)


def _choose_zim_title(title: str, url: str, heading: str) -> str:
    """Return the title of the article's entry, which may name the site after the page's own heading."""
    if not title or quote_path(title) == url or _SITE.match(title.removeprefix(heading) if heading else ""):
        return heading or title
    return title


def index_zim(
    store: PageStore,
    path: str | Path,
    *,
    source: str | None = None,
    prefix: str = "",
    settings: IngestSettings | None = None,
    **options: Unpack[IndexOptions],
) -> Summary:
    """Index the pages of a ZIM file, if libzim is installed: see :func:`index_source`.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        path: The file.
        source: Names the file within the store, default its absolute path.
        prefix: Path below which the pages are stored, next to other sources. See :func:`index_folder`.
        settings: How pages are read.
        options: See :class:`~linkstore.ingest.IndexOptions`.

    Raises:
        MissingLibzimError: If libzim is not installed.
        SourceNotFoundError: If there is no such file, or it is not a ZIM file.
        NothingIndexedError: If it has no pages, and none are stored.
        RemovalRefusedError: If more than half of its stored pages are gone.
        SourceConflictError: If another source has a page of the same name.
        LinkError: If the prefix is not a path.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    return index_source(store, ZimSource(path, settings, prefix=prefix), name=source, **options)


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

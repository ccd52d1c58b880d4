"""A MediaWiki XML dump, read in constant memory, and what it says of its wiki.

The format is that of https://www.mediawiki.org/xml/export-0.11/; older ones differ in nothing that is
read here. Of a page with several revisions the last one counts. Redirects go into a temporary table on disk.
"""

from __future__ import annotations

import bz2
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final, NamedTuple, cast
from xml.parsers import expat

from linkstore.errors import LinkStoreError, SourceNotFoundError
from linkstore.ingest.source import Partition
from linkstore.ingest.wiki.titles import NAMES, Namespace, SiteInfo, make_anchor
from linkstore.ingest.xml import BoundedParser

MOST_ALIASES: Final = 10_000
"""Maximum number of redirects to one page; further ones are left out."""

_BZIP2: Final = b"BZh"
_OPENING, _CLOSING = b"<mediawiki>", b"</mediawiki>"
"""What a section needs around its pages, if it does not begin or end where the dump does."""
_READ: Final = 2**18
_RATIO: Final = 200
"""A dump that unpacks to more than this times its size, beyond the bytes that are free, is refused."""
_FREE: Final = 64 * 2**20
_LONGEST_NAME: Final = 4096
"""Titles have 255 bytes at most; nothing but a text is longer than this."""
_LONGEST_PLACE: Final = 2048
"""Number of characters of a text in which a redirect is recognized."""

_TEXT, _TITLE, _NS, _MODEL = "text", "title", "ns", "model"
_AROUND: Final = {"page": "", "revision": "page", "content": "revision"}
"""The parts of a dump, and the part around each; further slots of a revision have texts of their own."""
_SITE: Final = ("sitename", "dbname", "base", "case", "namespace")
_SHORT: Final = {("page", _TITLE), ("page", _NS), ("revision", _MODEL), *(("", name) for name in _SITE)}
"""Elements whose text is read, by the part around them."""

_WORDS: Final = frozenset(NAMES["redirects"]["words"].split())
_WORD: Final = re.compile(r"\s*#([^\W\d_]+)\s*:?\s*\[\[")
_PLACE: Final = re.compile(r"\[\[([^\[\]|{}<>\n]{1,1000})")

# Redirects to redirects are followed; a circle ends, as UNION keeps no row twice. What is nearest to the
# page determines the section.
_ALIASES: Final = f"""
    WITH RECURSIVE alias (title, section) AS (
        SELECT title, section FROM redirect WHERE target = ?1
        UNION
        SELECT redirect.title, iif(alias.section = '', redirect.section, alias.section)
        FROM alias JOIN redirect ON redirect.target = alias.title
        LIMIT {MOST_ALIASES}
    )
    SELECT title, min(section) FROM alias WHERE title <> ?1 GROUP BY title ORDER BY title
"""


class Alias(NamedTuple):
    """Another title of a page.

    Attributes:
        title: The redirect's title.
        section: The anchor of the section it leads to; empty for the page.
    """

    title: str
    section: str = ""


class RedirectTable:
    """Which titles lead to a page.

    Args:
        found: Title, target and section (empty for none) of each redirect.
    """

    def __init__(self, found: Iterable[tuple[str, str, str]]) -> None:
        # An empty name gives a private file, which SQLite removes when the connection is closed.
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute("CREATE TABLE redirect (title TEXT, target TEXT, section TEXT)")
        self._table.execute("BEGIN")
        self._table.executemany("INSERT INTO redirect VALUES (?, ?, ?)", found)
        self._table.execute("COMMIT")
        self._table.execute("CREATE INDEX by_target ON redirect (target, title, section)")

    def aliases(self, title: str) -> tuple[Alias, ...]:
        """Return the redirects that end at a page, through others too, by title."""
        return tuple(Alias(*row) for row in self._table.execute(_ALIASES, (title,)))

    def close(self) -> None:
        """Remove the table."""
        self._table.close()


def is_redirect(text: str) -> bool:
    """Say whether a page's text makes it a redirect. Newer dumps say so beside the text."""
    word = _WORD.match(text)
    return word is not None and word[1].casefold() in _WORDS


def find_redirect_target(text: str) -> tuple[str, str]:
    """Return the title that a redirect's text names, as written, and the section's anchor, empty for none."""
    place = _PLACE.search(text)
    title, _, section = place[1].partition("#") if place else ("", "", "")
    return " ".join(title.replace("_", " ").split()).removeprefix(":"), make_anchor(section)


class DumpCutShortError(LinkStoreError):
    """A dump ends, or cannot be read on, before its last page."""


@dataclass(slots=True, kw_only=True)
class DumpPage:
    """A page of a dump, as it stands there; whole once it is given.

    Args:
        title: Its full title, with spaces.
        namespace: The number of its namespace.
        redirect: The title of the page it redirects to, if it is a redirect; empty if only its text says.
        model: Its content model; ``"wikitext"`` for articles.
        text: Its text; the beginning of it, if only redirects were asked for.
        oversized: Whether the text was longer than allowed, and is cut.
    """

    title: str = ""
    namespace: int = 0
    redirect: str | None = None
    model: str = "wikitext"
    text: str = ""
    oversized: bool = False


def read_siteinfo(path: Path) -> SiteInfo:
    """Read the information about the wiki in the first lines of a dump.

    Raises:
        SourceNotFoundError: If there is no such file, or it is not a dump.
    """
    reader = _DumpReader(limit=0)
    try:
        for _ in _feed_events(path, reader, Section(0, None)):
            if reader.site_done or reader.seen_page:
                break
    except DumpCutShortError as error:
        if not reader.is_dump:
            raise SourceNotFoundError(f"{str(path)!r} is not a MediaWiki XML dump: {error}") from error
    if not reader.is_dump:
        raise SourceNotFoundError(f"{str(path)!r} is not a MediaWiki XML dump: it has no <mediawiki> element")
    return reader.siteinfo()


@dataclass(frozen=True, slots=True)
class Section:
    """Some of the streams of a multistream dump.

    Args:
        start: The place of the first one in the file; 0 for the beginning of the dump.
        stop: The place after the last one; None for the end of the dump.
    """

    start: int
    stop: int | None


def find_section(path: Path, partition: Partition) -> Section | None:
    """Return the streams of a part of a dump, or None if it has no index of its streams beside it.

    The index of ``x-multistream.xml.bz2`` is ``x-multistream-index.txt.bz2``: a line for each page, beginning
    with the place of its stream; see https://meta.wikimedia.org/wiki/Data_dumps/Dump_format.

    Raises:
        SourceNotFoundError: If the index is of another dump.
    """
    stem = path.name.removesuffix(".xml.bz2")
    named = [path.with_name(f"{stem}-index.txt{suffix}") for suffix in (".bz2", "")]
    index = next((candidate for candidate in named if stem != path.name and candidate.is_file()), None)
    if index is None:
        return None
    with bz2.open(index) if index.suffix == ".bz2" else index.open("rb") as lines, path.open("rb") as dump:
        try:
            starts = sorted({int(line.partition(b":")[0]) for line in lines})
        except (ValueError, OSError, EOFError) as error:
            raise SourceNotFoundError(f"{str(index)!r} is not the index of a dump: {error}") from error
        for start in starts:
            dump.seek(start)
            if dump.read(3) != _BZIP2:
                raise SourceNotFoundError(
                    f"{str(index)!r} is not the index of {path.name}, which has no stream at {start:,}; take"
                    " that of the same date, or remove it"
                )
    part = partition.slice(len(starts))
    if part.start == part.stop:
        return Section(0, 0)
    stop = None if part.stop == len(starts) else starts[part.stop]
    return Section(starts[part.start] if part.start else 0, stop)


class _Slice:
    """The bytes of a section of a file."""

    def __init__(self, file: BufferedReader, section: Section) -> None:
        self._file = file
        self._stop = section.stop
        file.seek(section.start)

    def read(self, size: int = -1) -> bytes:
        left = size if self._stop is None else self._stop - self._file.tell()
        return self._file.read(left if size < 0 else min(size, left))


def read_pages(
    path: Path, *, limit: int, only_redirects: bool = False, section: Section | None = None
) -> Iterator[DumpPage]:
    """Yield the pages of a dump, in order.

    Args:
        path: An ``.xml`` file, or one compressed with bzip2 (also in many streams).
        limit: The longest text, in characters. A longer one is cut.
        only_redirects: Whether to read no more of texts than where redirects lead.
        section: The streams to read; None: all.

    Raises:
        SourceNotFoundError: If there is no such file.
        DumpCutShortError: After the last page that could be read, if the dump does not end there.
    """
    reader = _DumpReader(limit=limit, only_redirects=only_redirects)
    for _ in _feed_events(path, reader, section or Section(0, None)):
        yield from reader.take()


def _feed_events(path: Path, reader: _DumpReader, section: Section) -> Iterator[None]:
    """Feed a reader piece by piece, and yield after each, when pages that are complete can be taken."""
    try:
        opened = path.open("rb")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise SourceNotFoundError(
            f"the dump {str(path)!r} does not exist; give an .xml or .xml.bz2 file"
        ) from error
    with opened as raw, closing(_unpack(raw, path, section)) as file:
        taken = 0
        try:
            if section.start or section.stop == 0:
                reader.xml.feed(_OPENING)
            while piece := file.read1(_READ):  # so that the pages before an error are not lost
                reader.xml.feed(piece)
                yield
                taken += len(piece)
                if taken > max(_FREE, _RATIO * raw.tell()):
                    raise LinkStoreError(f"it unpacks to more than {_RATIO} times its size")  # noqa: TRY301
            if section.stop is not None:
                reader.xml.feed(_CLOSING)
            reader.xml.finish()
        except (expat.ExpatError, EOFError, OSError, LinkStoreError) as error:
            failure = error
        else:
            yield
            return
    yield
    raise DumpCutShortError(f"it cannot be read beyond {reader.place}: {failure}") from failure


def _unpack(file: BufferedReader, path: Path, section: Section) -> BufferedReader | bz2.BZ2File:
    head = file.read(3)
    file.seek(0)
    if head.startswith(b"7z"):
        raise SourceNotFoundError(f"{str(path)!r} is a 7z archive; unpack it, or take the .bz2 of the dump")
    return bz2.BZ2File(cast("BufferedReader", _Slice(file, section))) if head == _BZIP2 else file


class _DumpReader:
    """Handles the events of the XML parser; keeps the pages that are complete until they are taken."""

    def __init__(self, *, limit: int, only_redirects: bool = False) -> None:
        self._limit = _LONGEST_PLACE if only_redirects else limit
        self._pages: list[DumpPage] = []
        self._page = DumpPage()
        self._language = ""
        self._said: dict[str, str] = {}
        self._namespaces: dict[int, Namespace] = {}
        self._attributes: dict[str, str] = {}
        self._parts: list[str] = []
        self._room = 0
        self._wanted = ""
        self._within = ""
        self.is_dump = self.site_done = self.seen_page = False
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = _READ
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        self.xml = BoundedParser(parser)

    @property
    def place(self) -> str:
        """The place of reading, for messages."""
        last = f", in or after the page {self._page.title!r}" if self._page.title else ""
        return f"line {self._parser.CurrentLineNumber}{last}"

    def take(self) -> list[DumpPage]:
        """Return the pages completed since the last time."""
        pages, self._pages = self._pages, []
        return pages

    def siteinfo(self) -> SiteInfo:
        """Return the information about the wiki that was read."""
        values = self._said
        return SiteInfo(
            name=values.get("sitename", ""),
            database=values.get("dbname", ""),
            base=values.get("base", ""),
            language=self._language,
            first_letter=values.get("case", "first-letter") == "first-letter",
            namespaces=self._namespaces,
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.xml.enter()
        at = self._within, name
        if _AROUND.get(name) == self._within:
            self._within = name
            if name == "page":
                self._page, self.seen_page = DumpPage(), True
        elif at == ("revision", _TEXT):
            self._collect(name, self._limit)
        elif at in _SHORT:
            self._attributes = attributes
            self._collect(name, _LONGEST_NAME)
        elif at == ("page", "redirect"):
            self._page.redirect = attributes.get("title", "")
        elif at == ("", "mediawiki"):
            self.is_dump = True
            self._language = attributes.get("xml:lang", "")

    def _collect(self, name: str, room: int) -> None:
        self._wanted, self._room = name, room
        self._parts.clear()
        self._parser.CharacterDataHandler = self._characters

    def _characters(self, data: str) -> None:
        if self._room >= 0:
            self._parts.append(data[: self._room])
            self._room -= len(data)

    def _end(self, name: str) -> None:
        self.xml.leave()
        if name == self._wanted:
            self._keep(name, "".join(self._parts))
            self._wanted = ""
            self._parser.CharacterDataHandler = None
        elif name == self._within:
            if name == "page":
                self._pages.append(self._page)
            self._within = _AROUND[name]
        elif name == "siteinfo":
            self.site_done = True

    def _keep(self, name: str, value: str) -> None:
        page = self._page
        if name == _TEXT:
            page.text, page.oversized = value, self._room < 0
            if page.redirect is None and is_redirect(value):
                page.redirect = ""
        elif name == _TITLE:
            page.title = value.strip()
        elif name == _NS:
            page.namespace = _parse_number(value)
        elif name == _MODEL:
            page.model = value.strip() or page.model
        elif name == "namespace":
            number = _parse_number(self._attributes.get("key", ""))
            first_letter = self._attributes.get("case", "first-letter") == "first-letter"
            self._namespaces[number] = Namespace(number=number, name=value.strip(), first_letter=first_letter)
        else:
            self._said[name] = value.strip()


def _parse_number(value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise LinkStoreError(f"{value[:40]!r} is not the number of a namespace") from error

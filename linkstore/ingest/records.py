"""Sources of finished documents: those of a loader or a splitter of LangChain, and rows of JSON lines.

The tags of documents that are not pages of a site are made of their URL or, without one, of their id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import orjson
import xxhash
from langchain_core.documents import Document
from w3lib.encoding import read_bom

from linkstore.core.arguments import as_path, require, require_at_least, require_list
from linkstore.core.display import encode_controls, format_count
from linkstore.core.links import LINKS_KEY, SECTION, Link, get_links, merge_links, parse_links
from linkstore.core.text import replace_surrogates
from linkstore.core.urls import Site, is_short_tag
from linkstore.errors import DocumentError, LinkError, SourceNotFoundError
from linkstore.extract.html import UTF_8, DecodedText, decode_as, find_encoding
from linkstore.ingest.documents import ClaimPolicy, Claims
from linkstore.ingest.files import name_path
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.notes.frontmatter import NotPlainError, make_plain
from linkstore.ingest.source import BadInput, EmptyPageError, PageReader, SourcePage, UnreadablePageError

HYPERLINK: Final = "hyperlink"
"""Kind of the links that authors wrote, whatever the syntax."""
_HTML_PAGE: Final = re.compile(r"\s*(?:<!doctype html|<html)\b", re.IGNORECASE)
_ORIGINS: Final = ("source", "url", "file_path")
"""The metadata keys for the origin of a document, the most common first."""
_START: Final = "start_index"
"""The metadata key under which LangChain's splitters say where a chunk begins."""


def make_id_tag(id: str) -> str:
    """Return the URL, relative to the root of a site, of a document without one: its id."""
    return id if "://" in id else f"./{quote(id.lstrip('/'), safe='/:@!$&()*+,;=~')}"


def make_incoming_links(url: str, site: Site) -> list[Link]:
    """Return the hyperlinks that lead to a document by its URL.

    Args:
        url: Absolute, or relative to the root of the site, may have a fragment.
        site: How documents are named.
    """
    tag = site.tag(url)
    return [Link.incoming(kind=HYPERLINK, tag=tag)] if tag is not None and is_short_tag(tag) else []


@dataclass(frozen=True, slots=True)
class DocumentsSource:
    """LangChain documents, such as ``loader.lazy_load()``; each is a page of its own.

    Documents are stored as they are, with the links they carry, and those of a text that is a whole page of
    HTML with a URL for its origin. Split them first where they are long. A document without id gets one that
    stays the same while its origin (``source`` or ``url`` of its metadata) and its text do. Of the documents
    in a row that have one URL for their origin, such as the chunks of a page, the first answers to links to
    it. Metadata becomes plain JSON.

    Documents in a row with one origin are taken for its chunks in order: each has a ``section`` link to the
    next and to the previous one, as chunks of a page have. Those with the ``start_index`` of a splitter are
    ordered by it. Where a chunk begins with the end of the one before, the data of its link says how many
    characters they share: ``{"overlap": 200}``. At most the chunks of one origin are held.

    Args:
        documents: Any iterable; read once in each run.
        name: Names the documents within the store. A later run with the same name replaces them.
        prefix: Path below which the documents are stored, next to other sources.
        claims: ``"any"`` also accepts documents with URLs of another site than that of the first document
            with a URL: see :mod:`linkstore.ingest.documents`.

    Raises:
        LinkError: If the prefix is not a path.
    """

    documents: Iterable[Document]
    name: str
    _: KW_ONLY
    prefix: str = ""
    claims: ClaimPolicy = "own"

    def __post_init__(self) -> None:
        require_list("documents", documents=self.documents)
        require(str, "a string", name=self.name)
        Claims(self.claims)
        Site(prefix=self.prefix)

    def open(self) -> AbstractContextManager[GivenDocuments]:
        """Take up the documents."""
        return nullcontext(GivenDocuments(self))


class GivenDocuments:
    """Documents, in one run."""

    def __init__(self, given: DocumentsSource) -> None:
        self._documents = given.documents
        self._policy: ClaimPolicy = given.claims
        self.site: Final = Site(prefix=given.prefix)
        self.unread: Final[Mapping[str, int]] = {}

    def __len__(self) -> int:
        """Return how many documents there are, 0 where that is not known beforehand."""
        return len(self._documents) if isinstance(self._documents, Sequence) else 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the documents in order. Those that come twice are reported."""
        claims = Claims(self._policy, None)
        waiting: _Record | None = None
        for record in self._records(claims):
            if isinstance(record, BadInput):
                yield record
                continue
            if not record.text.strip():  # reported when it is read; its neighbours follow each other
                yield record.page()
                continue
            if waiting is not None:
                _link_in_order(waiting, record)
                yield waiting.page()
            waiting = record
        if waiting is not None:
            yield waiting.page()
        yield from claims.refusals.report()

    def _records(self, claims: Claims) -> Iterator[_Record | BadInput]:
        seen: set[bytes] = set()
        before = None
        for number, document in _order_chunks(self._documents):
            origin = _find_origin(document)
            id = document.id or _make_id(document, origin)
            key = xxhash.xxh3_128_digest(id.encode(errors="replace"))
            if key in seen:
                yield BadInput(
                    name=f"document {number}", reason=f"an earlier document has the same id {id!r}"
                )
                continue
            seen.add(key)
            url = origin if origin != before and "://" in origin else ""
            before = origin
            try:
                metadata = make_plain({key: of for key, of in document.metadata.items() if key != LINKS_KEY})
                links = list(get_links(document))
            except (NotPlainError, LinkError) as error:
                yield BadInput(name=id, reason=f"document {number}: {error}")
                continue
            if url:
                links += make_incoming_links(url, self.site)
                links += _find_hyperlinks(document.page_content, url, self.site)
            accepted = [  # a hyperlink that leads in claims a URL
                link
                for link in links
                if link.kind != HYPERLINK or not link.leads_in or claims.accepts(link.tag, id)
            ]
            yield _Record(id=id, origin=origin, text=document.page_content, metadata=metadata, links=accepted)


@dataclass(slots=True, kw_only=True)
class _Record:
    """A document to be stored, to which links to its neighbours may still be added."""

    id: str
    origin: str
    text: str
    metadata: dict[str, Any]
    links: list[Link]

    def page(self) -> SourcePage:
        """Return the page that is the document."""
        metadata = {**self.metadata, LINKS_KEY: [link.to_dict() for link in merge_links(self.links)]}
        stored = Document(id=self.id, page_content=self.text, metadata=metadata)
        content = (self.text.encode(errors="replace"), orjson.dumps(metadata))
        digest = xxhash.xxh3_128_hexdigest(b"\0".join(content))
        return SourcePage(url=self.id, digest=digest, read=partial(_list_document, stored))


def _order_chunks(documents: Iterable[Document]) -> Iterator[tuple[int, Document]]:
    """Yield documents with their numbers, those of one origin by their start index.

    An index counts from the start of what was split, which may be a page of the origin: documents whose
    other metadata differ stay in the order in which they came.

    Raises:
        DocumentError: If one is not a Document.
    """
    run: list[tuple[int, Document]] = []
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, Document):
            raise DocumentError(f"document {number} must be a Document, not {repr(document)[:200]}")
        start, origin = document.metadata.get(_START), _find_origin(document)
        if run and (not isinstance(start, int) or origin != _find_origin(run[0][1])):
            yield from _sort_chunks(run)
            run = []
        if isinstance(start, int) and origin:
            run.append((number, document))
        else:
            yield number, document
    yield from _sort_chunks(run)


def _sort_chunks(run: Sequence[tuple[int, Document]]) -> list[tuple[int, Document]]:
    parts: dict[str, int] = {}

    def place(one: tuple[int, Document]) -> tuple[int, int]:
        metadata = one[1].metadata
        others = repr(sorted((str(key), repr(of)) for key, of in metadata.items() if key != _START))
        return parts.setdefault(others, len(parts)), metadata[_START]

    return sorted(run, key=place)


def _find_origin(document: Document) -> str:
    origins = (document.metadata.get(key) for key in _ORIGINS)
    return next((str(origin) for origin in origins if origin), "")


def _link_in_order(first: _Record, second: _Record) -> None:
    """Link two documents that follow each other with each other, if they are chunks of one origin."""
    named = is_short_tag(first.id) and is_short_tag(second.id)
    if not named or not first.origin or first.origin != second.origin:
        return
    for record, other, label in ((first, second, "next"), (second, first, "previous")):
        if not any(link.kind == SECTION and link.label == label for link in record.links):
            record.links.append(Link.outgoing(kind=SECTION, tag=other.id, label=label))
            other.links.append(Link.incoming(kind=SECTION, tag=other.id))


def _make_id(document: Document, origin: str) -> str:
    digest = xxhash.xxh3_128_hexdigest(document.page_content.encode(errors="replace"))
    cleaned = encode_controls(replace_surrogates(origin))
    return f"{cleaned}#{digest[:16]}" if cleaned else digest


def _find_hyperlinks(text: str, url: str, site: Site) -> Iterator[Link]:
    """Yield the hyperlinks of a text that is a whole page of HTML, as a loader of raw pages leaves it."""
    if _HTML_PAGE.match(text) is None:
        return
    with suppress(UnreadablePageError):
        page = read_html_page(text.encode(errors="replace"), encoding=UTF_8)
        for hyperlink in (link for block in page.blocks for link in block.links):
            tag = site.tag(hyperlink.href, page=url, base=page.base)
            if tag is not None and is_short_tag(tag):
                yield Link.outgoing(kind=HYPERLINK, tag=tag, label=hyperlink.label or None)


def _list_document(document: Document) -> list[Document]:
    if not document.page_content.strip():
        raise EmptyPageError("it has no text")
    return [document]


ROW_KEYS: Final = frozenset({"id", "text", "title", "url", "links", "metadata", "answers", "page"})
"""The fields of a document in a line, or another row."""
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://|(?:mailto|tel|javascript|data):", re.IGNORECASE)
_SAMPLE: Final = 64 * 2**10
_MARK: Final = b"\xef\xbb\xbf"
_LONGEST_MARK: Final = 4


@dataclass(frozen=True, slots=True)
class JsonLinesSource:
    """The documents of a file of JSON lines: ``{"id", "text", "title"?, "url"?, "links"?, "metadata"?}``.

    A document answers to its ``url``; without one, to its ``id``; with ``"answers": false``, as ``linkstore
    export`` writes it, to what its links say alone. A link is a URL, relative to the
    document's own if it has one; the id of another document, as ``{"id": …}`` or as a string in a document
    without ``url``; each with an optional ``label``; or a
    :class:`~linkstore.core.links.Link` as a dict. Documents are stored as they are, not divided. Lines in a
    row with the same ``page`` are the documents of this page, in order, which are replaced as a whole; a
    document without ``page`` is a page by itself. While there is a line that cannot be read at all, no
    document is taken for gone. Of the ids and pages that were read hashes are held, about 200 bytes a line.

    Args:
        path: The file.
        prefix: Path below which the documents are stored, next to other sources.
        claims: ``"any"`` also accepts documents with URLs of another site than that of the first document
            with a URL: see :mod:`linkstore.ingest.documents`.
        encoding: Of the file. None (default) takes what its byte-order mark says, else UTF-8. A byte that is
            not in it is replaced by U+FFFD, and reported with its line.
        max_bytes: Maximum size of a line; longer lines are skipped; default 16 MiB.

    Raises:
        StrategyError: If ``encoding`` is unknown, or ``max_bytes`` is not an integer of at least 1.
        LinkError: If the prefix is not a path.
    """

    path: str | Path
    _: KW_ONLY
    prefix: str = ""
    claims: ClaimPolicy = "own"
    encoding: str | None = None
    max_bytes: int = 16 * 2**20

    def __post_init__(self) -> None:
        require_at_least(1, max_bytes=self.max_bytes)
        if self.encoding is not None:
            find_encoding(self.encoding)
        Claims(self.claims)
        Site(prefix=self.prefix)

    @property
    def name(self) -> str:
        """The file's absolute path."""
        return name_path(self.path)

    def open(self) -> AbstractContextManager[JsonLines]:
        """Open the file.

        Raises:
            SourceNotFoundError: If there is no such file.
        """
        path = as_path("path", self.path)
        if not path.is_file():
            raise SourceNotFoundError(f"the file {str(path)!r} does not exist; give a file of JSON lines")
        encoding = None if self.encoding is None else find_encoding(self.encoding)
        return nullcontext(JsonLines(self, path, encoding))


class JsonLines:
    """The lines of a file, in one run."""

    def __init__(self, settings: JsonLinesSource, path: Path, encoding: str | None) -> None:
        self._path = path
        self._encoding = encoding
        self._most = settings.max_bytes
        self._policy: ClaimPolicy = settings.claims
        self.site: Final = Site(prefix=settings.prefix)
        self.unread: Final[Mapping[str, int]] = {}

    def __len__(self) -> int:
        """Estimate how many lines there are, by the length of the first ones."""
        with self._path.open("rb") as file:
            sample = file.read(_SAMPLE)
        return round(self._path.stat().st_size * sample.count(b"\n") / len(sample)) if sample else 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages in the order of their lines. Bad lines are named by their number."""
        begun: set[bytes] = set()
        rows: list[SourcePage] = []
        for row in self._rows():
            if isinstance(row, BadInput):
                yield row
                continue
            if rows and rows[0].url != row.url:
                yield _join_rows(rows)
                rows = []
            key = xxhash.xxh3_128_digest(row.url.encode())
            if not rows and key in begun:
                yield BadInput(
                    name=row.url, reason="it has lines apart; the lines of a page must stand together"
                )
                continue
            begun.add(key)
            rows.append(row)
        yield from [_join_rows(rows)] if rows else []

    def _rows(self) -> Iterator[SourcePage | BadInput]:
        """Yield each document as if it were all of its page."""
        seen: set[bytes] = set()
        claims = Claims(self._policy, None)
        with self._path.open("rb") as file:
            for number, line in _iter_lines(file, self._encoding, self._most):
                if line is not None and not line.text.strip():
                    continue
                page = self._page(number, None if line is None else line.text.encode(), seen, claims)
                yield page
                if line is not None and line.replaced and isinstance(page, SourcePage):
                    lost = format_count(line.replaced, "character")
                    reason = f"{lost} not in {line.encoding}, replaced by U+FFFD"
                    yield BadInput(name=f"line {number} (encoding)", reason=reason)
        yield from claims.refusals.report()

    def _page(
        self, number: int, line: bytes | None, seen: set[bytes], claims: Claims
    ) -> SourcePage | BadInput:
        where = f"line {number}"
        if line is None:
            reason = f"it has more than {self._most:,} bytes (--max-bytes; Python: max_bytes=…)"
            return BadInput(name=where, reason=reason, hides=("",))
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            return BadInput(name=where, reason=f"invalid JSON: {error}", hides=("",))
        id = fields.get("id") if isinstance(fields, dict) else None
        if isinstance(id, int) and not isinstance(id, bool):
            id = str(id)
        if not isinstance(id, str) or not id.strip() or "\0" in id:
            return BadInput(name=where, reason='not an object with an "id"', hides=("",))
        page = fields.get("page") or id
        if not isinstance(page, str) or "\0" in page:
            return BadInput(name=where, reason=f'"page" is {page!r}, not the name of a page')
        if (key := xxhash.xxh3_128_digest(id.encode())) in seen:
            return BadInput(name=where, reason=f"an earlier line has the same id {id!r}")
        seen.add(key)
        refused = frozenset(tag for tag in _find_claims(fields, self.site) if not claims.accepts(tag, id))
        digest = xxhash.xxh3_128_hexdigest(line.strip() + b"".join(map(str.encode, sorted(refused))))
        read = partial(_read_line, where, id, fields, self.site, refused)
        return SourcePage(url=page, digest=digest, read=read, size=len(line))


def _join_rows(rows: Sequence[SourcePage]) -> SourcePage:
    """Return the page that has the documents of all rows."""
    digest = xxhash.xxh3_128_hexdigest("".join(row.digest for row in rows).encode())
    read = partial(_read_rows, [row.read for row in rows])
    return SourcePage(url=rows[0].url, digest=digest, read=read, size=sum(row.size for row in rows))


def _read_rows(readers: Sequence[PageReader]) -> list[Document]:
    return [document for read in readers for document in cast("Sequence[Document]", read())]


def _iter_lines(
    file: BufferedReader, encoding: str | None, most: int
) -> Iterator[tuple[int, DecodedText | None]]:
    """Yield the lines with their numbers, with None for a line that is too long.

    Such a line is never held as a whole.
    """
    marked, _ = read_bom(file.peek(_LONGEST_MARK))
    encoding = marked or encoding or UTF_8
    read: Callable[[int], bytes] = file.readline
    if encoding.startswith(("utf-16", "utf-32")):  # not each byte of a line end is one
        text = TextIOWrapper(file, encoding, errors="replace", newline="\n")
        encoding, read = UTF_8, lambda size: text.readline(size).encode()
    number = 0
    while line := read(most + 1):
        number += 1
        if len(line) <= most:
            yield number, decode_as(line.removeprefix(_MARK) if number == 1 else line, encoding)
            continue
        while line and not line.endswith(b"\n"):
            line = read(most)
        yield number, None


def _find_claims(fields: Mapping[str, Any], site: Site) -> Iterator[str]:
    """Yield the absolute URLs that a line claims for its document: its ``url`` and incoming links."""
    metadata = fields.get("metadata")
    lists = (fields.get("links"), metadata.get(LINKS_KEY) if isinstance(metadata, dict) else None)
    tags = [
        link.get("tag")
        for links in lists
        for link in (links if isinstance(links, list) else ())
        if isinstance(link, dict) and link.get("kind") == HYPERLINK and link.get("direction") != "out"
    ]
    url = fields.get("url")
    tags.append(site.tag(url) if isinstance(url, str) else None)
    yield from (tag for tag in tags if isinstance(tag, str) and "://" in tag)


def _read_line(
    where: str, id: str, fields: Mapping[str, Any], site: Site, refused: Collection[str]
) -> list[Document]:
    try:
        return [make_row_document(id, fields, site, refused)]
    except (ValueError, LinkError) as error:
        raise UnreadablePageError(f"{where}: {error}") from error


def make_row_document(
    id: str, fields: Mapping[str, Any], site: Site, refused: Collection[str] = ()
) -> Document:
    """Make the document of a line, or of another row with the same fields.

    Args:
        id: The document's.
        fields: Of the row: see :class:`JsonLinesSource`.
        site: How documents are named.
        refused: Tags that links may not lead in by.

    Raises:
        ValueError: If a field is not what it should be.
    """
    unknown = sorted(fields.keys() - ROW_KEYS)
    if unknown:
        raise ValueError(f"unknown {', '.join(unknown)}; known are {', '.join(sorted(ROW_KEYS))}")
    text = _get_field(fields, "text", str, "")
    if not text.strip():
        raise ValueError('it has no "text"')
    metadata = dict(_get_field(fields, "metadata", dict, {}))
    title, url = _get_field(fields, "title", str, ""), _get_field(fields, "url", str, "")
    metadata |= {key: value for key, value in (("title", title), ("url", url)) if value}
    own = url if url and site.tag(url) not in refused else make_id_tag(id)
    answers = _get_field(fields, "answers", bool, True)
    links = (
        *parse_links(metadata, id),
        *(make_incoming_links(own, site) if answers else ()),
        *filter(None, (_make_link(link, url, site) for link in _get_field(fields, "links", list, []))),
    )
    kept = (link for link in links if not (link.leads_in and link.tag in refused))
    metadata[LINKS_KEY] = [link.to_dict() for link in merge_links(kept)]
    return Document(id=id, page_content=text, metadata=metadata)


def _get_field(fields: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    value = fields.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ValueError(f'"{key}" is a {type(value).__name__}, not a {kind.__name__}')  # noqa: TRY004
    return value


def _make_link(value: Any, url: str, site: Site) -> Link | None:
    """Make a link of its value in a line, or return None if it leads to no page, such as ``mailto:``."""
    if isinstance(value, dict) and "kind" in value:
        return Link.from_dict(value)
    if isinstance(value, str):
        value = {"url" if url or _URL.match(value) else "id": value}
    if not isinstance(value, dict) or value.keys() - {"label"} not in ({"id"}, {"url"}):
        shown = str(value)[:80]
        raise ValueError(
            f'the link {shown!r} is not a URL, {{"id"}}, {{"url"}} or {{"kind", "tag", "direction"}}'
        )
    label = _get_field(value, "label", str, "")
    if "id" in value:
        tag = site.tag(make_id_tag(str(value["id"])))
    else:
        tag = site.tag(_get_field(value, "url", str, ""), page=url)
    return None if tag is None else Link.outgoing(kind=HYPERLINK, tag=tag, label=label or None)

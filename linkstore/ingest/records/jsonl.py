"""A file of JSON lines as a source: one document per line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import orjson
import xxhash
from langchain_core.documents import Document
from w3lib.encoding import read_bom

from linkstore.arguments import path_of
from linkstore.display import amount
from linkstore.errors import LinkError
from linkstore.extraction import LinkExtractor
from linkstore.extraction.decoding import UTF_8, Decoded, decode_as, known_encoding
from linkstore.ingest.claims import ClaimPolicy, Claims
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.pipeline import DEFAULT_LINKS, index_source
from linkstore.ingest.records.naming import HYPERLINK, id_tag, incoming
from linkstore.ingest.sink import PageStore
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.sources import SourceNotFoundError
from linkstore.ingest.summary import Progress, Summary
from linkstore.links import LINKS_KEY, Link, links_in, merge_links
from linkstore.urls import Site

_KEYS: Final = frozenset({"id", "text", "title", "url", "links", "metadata", "answers"})
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://|(?:mailto|tel|javascript|data):", re.IGNORECASE)
_LONGEST_LINE: Final = 16 * 2**20
_SAMPLE: Final = 64 * 2**10
_MARK: Final = b"\xef\xbb\xbf"
_LONGEST_MARK: Final = 4


class JsonlSource:
    """The documents of a file of JSON lines: ``{"id", "text", "title"?, "url"?, "links"?, "metadata"?}``.

    A document answers to its ``url``; without one, to its ``id``; with ``"answers": false``, as ``linkstore
    export`` writes it, to what its links say alone. A link is a URL, relative to the
    document's own if it has one; the id of another document, as ``{"id": …}`` or as a string in a document
    without ``url``; each with an optional ``label``; or a :class:`~linkstore.links.Link` as a dict. Of the
    ids that were read hashes are held, about 100 bytes a line.

    Args:
        path: The file.
        prefix: Path below which the documents are stored, next to other sources; see :func:`index_folder`.
        claims: Which URLs a document may have; see :func:`index_jsonl`.
        encoding: Of the file; None (default) takes what its byte-order mark says, else UTF-8.

    Raises:
        SourceNotFoundError: If there is no such file.
        StrategyError: If ``encoding`` is unknown.
        LinkError: If the prefix is not a path.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        prefix: str = "",
        claims: ClaimPolicy = "own",
        encoding: str | None = None,
    ) -> None:
        self._path = path_of("path", path)
        if not self._path.is_file():
            raise SourceNotFoundError(f"the file {str(path)!r} does not exist; give a file of JSON lines")
        self._encoding = None if encoding is None else known_encoding(encoding)
        self._policy: ClaimPolicy = claims
        self._site = Site(prefix=prefix)

    @property
    def name(self) -> str:
        """The file's absolute path."""
        return self._path.resolve().as_posix()

    @property
    def site(self) -> Site:
        """Names the documents by their ids."""
        return self._site

    def __len__(self) -> int:
        """Estimate how many lines there are, by the length of the first ones."""
        with self._path.open("rb") as file:
            sample = file.read(_SAMPLE)
        return round(self._path.stat().st_size * sample.count(b"\n") / len(sample)) if sample else 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the documents in the order of their lines. Bad lines are named by their number."""
        seen: set[bytes] = set()
        claims = Claims(self._policy, None)
        with self._path.open("rb") as file:
            for number, line in _lines(file, self._encoding):
                if line is not None and not line.text.strip():
                    continue
                page = self._page(number, None if line is None else line.text.encode(), seen, claims)
                yield page
                if line is not None and line.replaced and isinstance(page, SourcePage):
                    lost = amount(line.replaced, "character")
                    reason = f"{lost} not in {line.encoding}, replaced by U+FFFD"
                    yield BadInput(name=f"line {number} (encoding)", reason=reason)
        yield from claims.report()

    def _page(
        self, number: int, line: bytes | None, seen: set[bytes], claims: Claims
    ) -> SourcePage | BadInput:
        where = f"line {number}"
        if line is None:
            return BadInput(name=where, reason=f"it has more than {_LONGEST_LINE:,} bytes", hides="")
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            return BadInput(name=where, reason=f"invalid JSON: {error}", hides="")
        id = fields.get("id") if isinstance(fields, dict) else None
        if isinstance(id, int) and not isinstance(id, bool):
            id = str(id)
        if not isinstance(id, str) or not id.strip() or "\0" in id:
            return BadInput(name=where, reason='not an object with an "id"', hides="")
        key = xxhash.xxh3_128_digest(id.encode())
        if key in seen:
            return BadInput(name=where, reason=f"an earlier line has the same id {id!r}")
        seen.add(key)
        refused = frozenset(tag for tag in _claimed(fields, self._site) if not claims.accepted(tag, id))
        digest = xxhash.xxh3_128_hexdigest(line.strip() + b"".join(map(str.encode, sorted(refused))))
        read = partial(self._documents, where, id, fields, refused)
        return SourcePage(url=id, digest=digest, read=read)

    def _documents(
        self, where: str, id: str, fields: Mapping[str, Any], refused: Collection[str]
    ) -> list[Document]:
        try:
            return [_document(id, fields, self._site, refused)]
        except (ValueError, LinkError) as error:
            raise UnreadablePageError(f"{where}: {error}") from error


def index_jsonl(
    store: PageStore,
    path: str | Path,
    *,
    source: str | None = None,
    prefix: str = "",
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    claims: ClaimPolicy = "own",
    encoding: str | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
    prune: bool = False,
    jobs: int | None = None,
) -> Summary:
    """Index a file of JSON lines, a document each: see :func:`index_source` and :class:`JsonlSource`.

    Documents are stored as they are, not divided. While there is a line that cannot be read at all, no
    document is taken for gone.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        path: The file.
        source: Names the file within the store, default its absolute path.
        prefix: Path below which the documents are stored, next to other sources. See :func:`index_folder`.
        links: Names of link extractors, or extractors. Of these, those that read documents are asked.
        claims: ``"any"`` also accepts documents with URLs of another site than that of the first document
            with a URL: see :mod:`linkstore.ingest.claims`.
        encoding: Of the file. None (default) takes what its byte-order mark says, else UTF-8. A byte that is
            not in it is replaced by U+FFFD, and reported with its line.
        progress: Called after each line.
        dry_run: Return what would be done, and write nothing.
        prune: Remove missing pages even if they are more than half of those stored.
        jobs: How many processes read. See :func:`~linkstore.ingest.index_source`.

    Raises:
        SourceNotFoundError: If there is no such file.
        NothingIndexedError: If none of its lines can be indexed, and none are stored.
        RemovalRefusedError: If more than half of its stored documents are gone.
        SourceConflictError: If another source has a document of the same id.
        LinkError: If the prefix is not a path.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    found = JsonlSource(path, prefix=prefix, claims=claims, encoding=encoding)
    return index_source(
        store, found, name=source, links=links, progress=progress, dry_run=dry_run, prune=prune, jobs=jobs
    )


def _lines(file: BufferedReader, encoding: str | None) -> Iterator[tuple[int, Decoded | None]]:
    """Yield the lines with their numbers, None for one that is too long, most of which is not held."""
    marked, _ = read_bom(file.peek(_LONGEST_MARK))
    encoding = marked or encoding or UTF_8
    read: Callable[[int], bytes] = file.readline
    if encoding.startswith(("utf-16", "utf-32")):  # not each byte of a line end is one
        text = TextIOWrapper(file, encoding, errors="replace", newline="\n")
        encoding, read = UTF_8, lambda most: text.readline(most).encode()
    number = 0
    while line := read(_LONGEST_LINE + 1):
        number += 1
        if len(line) <= _LONGEST_LINE:
            yield number, decode_as(line.removeprefix(_MARK) if number == 1 else line, encoding)
            continue
        while line and not line.endswith(b"\n"):
            line = read(_LONGEST_LINE)
        yield number, None


def _claimed(fields: Mapping[str, Any], site: Site) -> Iterator[str]:
    """Yield the absolute URLs that a line claims for its document: its ``url``, and links that lead in."""
    metadata = fields.get("metadata")
    given = (fields.get("links"), metadata.get(LINKS_KEY) if isinstance(metadata, dict) else None)
    tags = [
        link.get("tag")
        for links in given
        for link in (links if isinstance(links, list) else ())
        if isinstance(link, dict) and link.get("kind") == HYPERLINK and link.get("direction") != "out"
    ]
    url = fields.get("url")
    tags.append(site.tag(url) if isinstance(url, str) else None)
    yield from (tag for tag in tags if isinstance(tag, str) and "://" in tag)


def _document(id: str, fields: Mapping[str, Any], site: Site, refused: Collection[str]) -> Document:
    """Make the document of a line.

    Raises:
        ValueError: If a field is not what it should be.
    """
    unknown = sorted(fields.keys() - _KEYS)
    if unknown:
        raise ValueError(f"unknown {', '.join(unknown)}; known are {', '.join(sorted(_KEYS))}")
    text = _field(fields, "text", str, "")
    if not text.strip():
        raise ValueError('it has no "text"')
    metadata = dict(_field(fields, "metadata", dict, {}))
    title, url = _field(fields, "title", str, ""), _field(fields, "url", str, "")
    metadata |= {key: value for key, value in (("title", title), ("url", url)) if value}
    own = url if url and site.tag(url) not in refused else id_tag(id)
    answers = _field(fields, "answers", bool, True)
    links = (
        *links_in(metadata, id),
        *(incoming(own, site) if answers else ()),
        *filter(None, (_link(one, url, site) for one in _field(fields, "links", list, []))),
    )
    kept = (link for link in links if not (link.leads_in and link.tag in refused))
    metadata[LINKS_KEY] = [link.to_dict() for link in merge_links(kept)]
    return Document(id=id, page_content=text, metadata=metadata)


def _field(fields: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    value = fields.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ValueError(f'"{key}" is a {type(value).__name__}, not a {kind.__name__}')  # noqa: TRY004
    return value


def _link(value: Any, url: str, site: Site) -> Link | None:
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
    label = _field(value, "label", str, "")
    if "id" in value:
        tag = site.tag(id_tag(str(value["id"])))
    else:
        tag = site.tag(_field(value, "url", str, ""), page=url)
    return None if tag is None else Link.outgoing(kind=HYPERLINK, tag=tag, label=label or None)

"""Writes the documents of a store as a bundle of the Open Knowledge Format, which can be indexed again.

A page becomes a file of Markdown: its metadata are the front matter, its text is the body, and its hyperlinks
stand where their labels do, else at the end. Links that no reader of Markdown would find are in the front
matter, under a name of their own. What a store does not keep is lost: emphasis, pictures, levels of lists.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import yaml

from linkstore.core.display import get_title
from linkstore.core.hits import get_page
from linkstore.core.links import LINKS_KEY, Link, get_links
from linkstore.core.text import TRAIL
from linkstore.core.urls import is_internal_tag, split_tag
from linkstore.errors import LinkStoreError
from linkstore.ingest.chunks import choose_unused_name
from linkstore.ingest.notes.bundles import (
    INDEX_FILE,
    LIFECYCLE,
    NOTICE,
    OKF_PREFIX,
    OKF_VERSION,
    PROBLEM,
    RESERVED,
    WRITTEN_LINKS,
    has_own_fields,
)
from linkstore.ingest.notes.frontmatter import FrontMatter, make_tag_links
from linkstore.ingest.notes.markdown import slug
from linkstore.ingest.suffixes import MARKDOWN_SUFFIXES

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.store.core import CoreStore

_OWN_FIELDS: Final = frozenset({LINKS_KEY, "url", "headings", "page", "site", "title"})
"""Metadata that indexing makes of a file and its place."""
_READ_KINDS: Final = frozenset(
    {"hyperlink", "section", "heading", "citation"}
    | {"sourced_from", "superseded_by", "executor", "attester", "computation"}
)
"""Kinds of link that are read from a page again."""
_UNSAFE: Final = re.compile(r"[^\w./ -]+")
_DEVICE: Final = re.compile(r"\A(con|prn|aux|nul|com\d|lpt\d)(?=\.|\Z)", re.IGNORECASE)
_SIGNS: Final = re.compile(r"[\\`*_\[\]<>~|#$%{}=]")
_AT_START: Final = re.compile(r"\A(\d{0,9})([-+!?:.)])")
"""What begins a list, a tab or a box where it begins a line."""
_ID: Final = re.compile(r"[\w.:-]+")
_GAP: Final = re.compile(r"\n{2,}")
_CELL: Final = " | "


@dataclass(slots=True)
class _Page:
    """A page of the store, and its file in the bundle."""

    name: str
    file: str
    title: str
    ids: list[str] = field(default_factory=list)


def write_bundle(store: CoreStore, folder: Path) -> int:
    """Write all documents of a store as a bundle, and return the number of its pages.

    Memory holds the names of all documents and link groups, and one page.

    Args:
        store: The store.
        folder: Where the bundle is made; there must be nothing, or an empty folder.

    Raises:
        LinkStoreError: If there is something already.
        OSError: If it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LinkStoreError(f"{folder} is not empty; give a new folder, so that nothing is overwritten")
    pages, targets = _plan_files(store)
    beside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        recognized = False
        for page in pages:
            documents = {document.id: document for document in store.get_by_ids(page.ids)}
            ordered = [documents[id] for id in page.ids if id in documents]
            recognized |= has_own_fields(ordered[0].metadata)
            path = beside / page.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_format_page(page, ordered, targets), encoding="utf-8")
        _write_index(beside, pages, recognized=recognized)
        if folder.exists():
            folder.rmdir()
        beside.replace(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return len(pages)


def _plan_files(store: CoreStore) -> tuple[list[_Page], Mapping[str, str]]:
    """Return the pages by name, and where the tags that hyperlinks lead to lie in the bundle."""
    pages: dict[str, _Page] = {}
    taken: dict[str, int] = {}
    targets: dict[str, str] = {}
    wanted: set[str] = set()
    for document in store.scan():
        name = get_page(document)
        page = pages.get(name)
        if page is None:
            page = pages[name] = _Page(
                name=name, file=_choose_file(name, taken), title=get_title(document) or name
            )
        page.ids.append(document.id or "")
        for link in get_links(document):
            if link.kind == "hyperlink" and link.leads_out:
                wanted.update((link.tag, split_tag(link.tag)[0]))
            if link.kind == "hyperlink" and link.leads_in and is_internal_tag(link.tag):
                folder, fragment = split_tag(link.tag)
                file = page.file
                if posixpath.join(folder, INDEX_FILE) == f"/{file}":  # as it was written
                    file = f"{posixpath.dirname(file)}/".lstrip("/")
                targets[link.tag] = f"/{quote(file)}" + (f"#{fragment}" if fragment else "")
    ordered = store.pages.ids(None, list(pages))
    for name, page in pages.items():
        place = {id: number for number, id in enumerate(ordered.get(name, ()))}
        page.ids.sort(key=lambda id: (place.get(id, len(place)), id))
    led_to = {tag: target for tag, target in targets.items() if tag in wanted}
    return [pages[name] for name in sorted(pages)], led_to


def _choose_file(name: str, taken: dict[str, int]) -> str:
    """Return the path of a page's file, which no other page has, on any system.

    The names of indexes and logs are only for pages that are these. macOS and Windows take names for one that
    differ in upper case or in the form of accents; some names are devices on Windows.
    """
    path = unquote(name.partition("://")[2] or name).split("?")[0]
    parts = [_DEVICE.sub(r"\1-page", part.strip(". ")) for part in _UNSAFE.sub("-", path).split("/")]
    stem, suffix = posixpath.splitext("/".join(filter(None, parts)) or "page")
    if suffix.lower() not in {*MARKDOWN_SUFFIXES, ".html", ".htm", ".mdx", ".txt"}:
        stem += suffix
    if suffix.lower() != ".md" and f"{posixpath.basename(stem)}.md" in RESERVED:
        stem = f"{stem}-page"
    folded = unicodedata.normalize("NFC", stem).casefold()
    return f"{stem}{choose_unused_name(folded, taken).removeprefix(folded)}.md"


def _format_page(page: _Page, documents: Sequence[Document], targets: Mapping[str, str]) -> str:
    metadata = documents[0].metadata
    is_markdown = posixpath.splitext(page.name)[1].lower() in MARKDOWN_SUFFIXES
    body = "\n\n".join(_write_body(documents, targets, with_ids=is_markdown))
    fields = {
        key: value
        for key, value in metadata.items()
        if key not in _OWN_FIELDS and (not key.startswith(OKF_PREFIX) or key == "okf_version")
    }
    untyped = posixpath.basename(page.file) in RESERVED or PROBLEM in metadata
    if not untyped:
        fields = {
            "type": "Page" if "page" in metadata else "Document",
            "title": get_title(documents[0]),
            **fields,
        }
    tags = set(make_tag_links(FrontMatter(fields=metadata).tags))
    others = [
        link.to_dict()
        for link in dict.fromkeys(link for document in documents for link in get_links(document))
        if link.kind not in _READ_KINDS and link not in tags
    ]
    if others:
        fields[WRITTEN_LINKS] = others
    if not fields:
        return f"{body}\n"
    block = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{block}---\n\n{body}\n"


def _write_body(
    documents: Sequence[Document], targets: Mapping[str, str], *, with_ids: bool
) -> Iterator[str]:
    """Yield the blocks of a page: the headings, fragments and texts of its documents.

    Args:
        documents: In order.
        targets: Where the tags of hyperlinks lead in the bundle.
        with_ids: Whether the page comes from Markdown: its headings may have ids in braces, and all fragments
            are kept. Of another page, those that links lead to are. A fragment that is not what a heading is
            called by itself gets an element, which all readers of Markdown know.
    """
    before: list[str] = []
    seen: set[str] = set()
    slugs: Counter[str] = Counter()
    for number, document in enumerate(documents):
        headings = [str(heading) for heading in document.metadata.get("headings") or ()]
        shared = next(
            (at for at, pair in enumerate(zip(before, headings, strict=False)) if pair[0] != pair[1]),
            min(len(before), len(headings)),
        )
        if headings and headings == before:
            shared -= _begins_section(document, seen, headings[-1])
        ids = _find_heading_ids(document, headings[shared:])
        for level, (heading, id) in enumerate(zip(headings[shared:], ids, strict=True), shared + 1):
            base = slug(heading)
            own = f"{base}-{slugs[base]}" if slugs[base] else base
            has_id = with_ids and id != own and _ID.fullmatch(id) is not None
            slugs[base] += not has_id
            seen.add(id if has_id else own)
            yield f"{'#' * min(level, 6)} {_escape(heading)}{f' {{#{id}}}' if has_id else ''}"
        before = headings
        fragments = _list_fragments(document).items()
        others = [at for at, tag in fragments if at not in seen and (with_ids or tag in targets)]
        seen.update(others)
        if others:
            yield "".join(f'<a id="{escape(unquote(fragment))}"></a>' for fragment in others)
        text = _remove_added(document, headings, first=number == 0)
        links = [link for link in get_links(document) if link.kind == "hyperlink" and link.leads_out]
        yield from _write_blocks(text, [(link.label or "", _lead(link, targets)) for link in links])


def _begins_section(document: Document, seen: AbstractSet[str], heading: str) -> bool:
    """Say whether a document has a heading of its own, of the same text as that of the one before."""
    own = _get_fragment(document)
    numbered = rf"{re.escape(slug(heading))}(?:-\d+)?"
    return own not in seen and re.fullmatch(numbered, own) is not None


def _get_fragment(document: Document) -> str:
    return split_tag(str(document.metadata.get("url") or ""))[1] or ""


def _list_fragments(document: Document) -> dict[str, str]:
    """Return the fragments that lead to a document, in their order, each with its tag."""
    tags = [link.tag for link in get_links(document) if link.kind == "hyperlink" and link.leads_in]
    return {fragment: tag for tag in tags if (fragment := split_tag(tag)[1])}


def _find_heading_ids(document: Document, headings: Sequence[str]) -> list[str]:
    """Return for each heading above a document its id, empty where it is not known."""
    fragments = _list_fragments(document)
    if len(fragments) == len(headings):
        return list(fragments)
    return [""] * (len(headings) - 1) + [_get_fragment(document)] * bool(headings)


def _lead(link: Link, targets: Mapping[str, str]) -> str:
    return targets.get(link.tag) or targets.get(split_tag(link.tag)[0]) or link.tag


def _remove_added(document: Document, headings: Sequence[str], *, first: bool) -> str:
    """Return the text of a document without what indexing put before it."""
    text = document.page_content
    metadata = document.metadata
    added = [metadata.get(NOTICE)]
    if first and LIFECYCLE in metadata:
        added.append(" ".join(str(metadata.get("description") or "").split()))
    title = str(metadata.get("title") or "")
    trail = TRAIL.join((title, *headings) if title and title not in headings else headings)
    for part in (*added, trail):
        if part and (text == part or text.startswith(f"{part}\n\n")):
            text = text[len(part) :].lstrip("\n")
    return text


def _write_blocks(text: str, links: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the blocks of a text as Markdown, with its links in them, and the rest of the links below."""
    waiting = sorted(links, key=lambda link: -len(link[0]))
    for block in filter(None, _GAP.split(text)):
        lines = block.split("\n")
        cells = {line.count(_CELL) for line in lines}
        if all(line.startswith("- ") for line in lines):
            yield "\n".join(f"- {_write_line(line[2:], waiting)}" for line in lines)
        elif len(lines) > 1 and len(cells) == 1 and cells != {0}:
            rows = [
                f"| {_CELL.join(_write_line(cell, waiting) for cell in line.split(_CELL))} |"
                for line in lines
            ]
            yield "\n".join((rows[0], f"|{'---|' * (min(cells) + 1)}", *rows[1:]))
        elif (len(lines) > 1 or "  " in block) and not any(label and label in block for label, _ in waiting):
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", block)), default=0))
            yield f"{fence}\n{block}\n{fence}"
        else:
            yield "\\\n".join(_write_line(line, waiting) for line in lines)
    if waiting:
        yield "\n".join(f"- [{_escape(label or target)}](<{target}>)" for label, target in waiting)


def _write_line(line: str, waiting: list[tuple[str, str]]) -> str:
    """Return a line as Markdown, and take the links in it off the waiting ones."""
    pieces: list[tuple[str, str]] = [(line, "")]
    for link in list(waiting):
        label, target = link
        at = next((at for at, (text, to) in enumerate(pieces) if label and not to and label in text), None)
        if at is None:
            continue
        waiting.remove(link)
        before, _, after = pieces[at][0].partition(label)
        pieces[at : at + 1] = [(before, ""), (label, target), (after, "")]
    written = "".join(f"[{_escape(text)}](<{to}>)" if to else _escape(text) for text, to in pieces)
    return _AT_START.sub(r"\1\\\2", written, count=1)


def _escape(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", text).replace("&", "&amp;")


def _write_index(folder: Path, pages: Iterable[_Page], *, recognized: bool) -> None:
    """Write the index of a bundle that has none, with the version of the format."""
    index = folder / INDEX_FILE
    declaration = f'---\nokf_version: "{OKF_VERSION}"\n---\n\n'
    if not index.exists():
        folder.mkdir(parents=True, exist_ok=True)
        listed = "\n".join(f"* [{_escape(page.title)}](</{quote(page.file)}>)" for page in pages)
        index.write_text(f"{declaration}# Content\n\n{listed}\n", encoding="utf-8")
    elif not recognized and not (text := index.read_text(encoding="utf-8")).startswith("---\n"):
        index.write_text(f"{declaration}{text}", encoding="utf-8")

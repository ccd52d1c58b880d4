"""Bundles of the Open Knowledge Format: what the front matter of their pages means.

Version 0.2 of the format is followed (https://github.com/GoogleCloudPlatform/knowledge-catalog, okf/SPEC.md),
and the fields of 0.1 that it keeps. A *concept* is a page with a ``type`` in a folder where some page has a
field that only the format has, or whose ``index.md`` names the format's version. The format has no field for
the successor of a page: ``superseded_by`` and ``supersedes`` are taken for one and, of a deprecated page, the
only page of its type in use that it links to.
"""

from __future__ import annotations

import datetime as dt
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import unquote

from linkstore.core.hits import SUPERSEDED_BY
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.core.urls import Site, normalize_url
from linkstore.errors import LinkStoreError
from linkstore.extract.blocks import fold_whitespace
from linkstore.extract.protocol import Chunk, Hyperlink
from linkstore.ingest.files import PageFile, quote_path
from linkstore.ingest.notes.frontmatter import NO_FRONT_MATTER, FrontMatter, make_tag_links
from linkstore.ingest.outlines import Outlines
from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.suffixes import MARKDOWN_SUFFIXES

OKF_VERSION: Final = "0.2"
OKF_PREFIX: Final = "okf_"
"""Fields of metadata that are made of the front matter of a concept begin so."""
LIFECYCLE: Final = f"{OKF_PREFIX}lifecycle"
TRUST: Final = f"{OKF_PREFIX}trust"
NOTICE: Final = f"{OKF_PREFIX}notice"
"""What stands before the text of each document of a deprecated or stale concept."""
PROBLEM: Final = f"{OKF_PREFIX}problem"
"""Why a page of Markdown in a bundle is no concept."""
WRITTEN_LINKS: Final = "linkstore_links"
"""The field of front matter for links of a store that a text does not have; all but hyperlinks are read."""
SOURCED_FROM: Final = "sourced_from"
INDEX_FILE: Final = "index.md"
RESERVED: Final = frozenset({INDEX_FILE, "log.md"})
STATUSES: Final = ("draft", "stable", "deprecated")
Trust = Literal["unverified", "machine-confirmed", "human-reviewed"]

_SUCCESSORS: Final = ("superseded_by", "replaced_by", "successor")
_PREDECESSORS: Final = ("supersedes", "replaces")


class Reference(NamedTuple):
    """A field of a concept that names another page or a URL."""

    kind: str
    resource: str
    label: str | None = None
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """A page of a bundle.

    Args:
        page: Its path in the source.
        front: Its front matter.
    """

    page: str
    front: FrontMatter

    @property
    def type(self) -> str:
        """Its ``type``."""
        return str(self.front.fields["type"])

    @property
    def lifecycle(self) -> str:
        """Its ``status``, ``stable`` without one, or ``stale`` if it is in use and out of date."""
        status = str(self.front.fields.get("status") or "stable")
        ends = read_day(self.front.fields.get("stale_after"))
        stale = ends is not None and dt.datetime.now(dt.UTC).date() >= ends
        return "stale" if stale and status != "deprecated" else status

    @property
    def trust(self) -> Trust:
        """How it was verified: section 5.3 of the format."""
        verified = self.front.fields.get("verified")
        events = verified if isinstance(verified, list) else [verified]
        actors = [str(event["by"]) for event in events if isinstance(event, dict) and event.get("by")]
        if not actors:
            return "unverified"
        return (
            "human-reviewed" if any(actor.startswith("human:") for actor in actors) else "machine-confirmed"
        )

    def references(self) -> Iterator[Reference]:
        """Yield the pages and URLs in its fields: its sources, its executor and its attester."""
        sources = self.front.fields.get("sources")
        for source in sources if isinstance(sources, list) else ():
            if isinstance(source, dict) and isinstance(source.get("resource"), str):
                data = {key: value for key, value in source.items() if key not in {"resource", "title"}}
                label = source.get("title")
                yield Reference(
                    SOURCED_FROM, source["resource"], label if isinstance(label, str) else None, data or None
                )
        for kind in ("computation", "executor", "attester"):
            value = self.front.fields.get(kind)
            resource = value.get("resource") if isinstance(value, dict) else value
            if isinstance(resource, str):
                yield Reference(kind, resource)


def read_day(value: object) -> dt.date | None:
    """Return the day of a field of front matter, None if it is not an ISO 8601 date or time."""
    try:
        return dt.datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except ValueError:
        return None


def has_own_fields(fields: Mapping[str, Any]) -> bool:
    """Say whether front matter has a ``type``, and a field that only the format has."""
    sources, resource = fields.get("sources"), fields.get("resource")
    events = [fields.get("generated"), fields.get("verified")]
    events += events[1] if isinstance(events[1], list) else []
    return has_type(fields) and (
        any(isinstance(event, dict) and "by" in event for event in events)
        or (
            isinstance(sources, list)
            and any(isinstance(item, dict) and "resource" in item for item in sources)
        )
        or read_day(fields.get("stale_after")) is not None
        or (isinstance(resource, str) and "://" in resource)
    )


def has_type(fields: Mapping[str, Any]) -> bool:
    """Say whether front matter has a ``type`` that is a text."""
    return isinstance(fields.get("type"), str) and bool(fields["type"].strip())


class Bundles:
    """The bundles in a folder. What cannot be read is no concept.

    Args:
        files: All pages of the folder.
        outlines: Of the pages.

    Attributes:
        pages: The paths of all pages.
        concepts: By path.
        untyped: The pages of Markdown in a bundle that have no type, which the format asks for.
        successors: The pages that take the place of others, by the page that they take it of.
    """

    def __init__(self, files: Iterable[PageFile], outlines: Outlines) -> None:
        markdown = {file.page: outlines.get(file) for file in files if file.suffix in MARKDOWN_SUFFIXES}
        self.pages: Final = frozenset(markdown)
        fronts = {page: outline.front for page, outline in markdown.items() if outline.typed}
        declared = {
            posixpath.dirname(page)
            for page, front in fronts.items()
            if posixpath.basename(page) == INDEX_FILE and "okf_version" in front.fields
        }
        folders = set(map(posixpath.dirname, markdown if fronts else ()))
        above = {folder: _find_root(folder, self.pages, declared) for folder in folders}
        roots = {page: above[posixpath.dirname(page)] for page in markdown if above}
        bundles = declared | {roots[page] for page, front in fronts.items() if has_own_fields(front.fields)}
        self._roots: Final = {page: root for page, root in roots.items() if root in bundles}
        self._targets: Final = {page: markdown[page].targets for page in self._roots}
        inside = [page for page in self._roots if posixpath.basename(page) not in RESERVED]
        self.concepts: Final = {
            page: Concept(page=page, front=front)
            for page in inside
            if has_type((front := fronts.get(page, NO_FRONT_MATTER)).fields)
        }
        self.untyped: Final = frozenset(page for page in inside if page not in self.concepts)
        self.successors: Final = self._find_successors()
        self._named_by: Final = self._find_named()

    def resolve(self, target: str, page: str) -> str | None:
        """Return the page that a path means: from the root of the bundle, or from the folder of a page.

        Published bundles also write paths from the root without a slash.
        """
        path = unquote(target.partition("#")[0])
        beside = posixpath.join(posixpath.dirname(page), path)
        below = posixpath.join(self._roots.get(page, ""), path.lstrip("/"))
        for base in (below,) if path.startswith("/") else (beside, below):
            tried = posixpath.normpath(base)
            for candidate in (tried, f"{tried}/{INDEX_FILE}", f"{tried}.md"):
                if candidate in self.pages:
                    return candidate
        return None

    def _find_successors(self) -> Mapping[str, tuple[str, ...]]:
        named: dict[str, list[str]] = {}
        for page, concept in self.concepts.items():
            for target in self._read_pages(concept, _SUCCESSORS):
                named.setdefault(page, []).append(target)
            for target in self._read_pages(concept, _PREDECESSORS):
                named.setdefault(target, []).append(page)
        for page, concept in self.concepts.items():
            if page not in named and concept.lifecycle == "deprecated":
                resolved = (self.resolve(target, page) for target in self._targets[page])
                linked = {target for target in resolved if target and self._replaces(target, concept)}
                if len(linked) == 1:
                    named[page] = list(linked)
        return {page: tuple(sorted({*targets} - {page})) for page, targets in named.items()}

    def _read_pages(self, concept: Concept, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            value = concept.front.fields.get(name)
            for target in value if isinstance(value, list) else [value]:
                page = self.resolve(target.strip("[]"), concept.page) if isinstance(target, str) else None
                if page is not None:
                    yield page

    def _replaces(self, page: str, concept: Concept) -> bool:
        other = self.concepts.get(page)
        return other is not None and other.type == concept.type and other.lifecycle in {"stable", "stale"}

    def _find_named(self) -> Mapping[str, frozenset[str]]:
        """Return the kinds of reference that lead to a page."""
        kinds: dict[str, set[str]] = {}
        for concept in self.concepts.values():
            for reference in concept.references():
                if page := self.resolve(reference.resource, concept.page):
                    kinds.setdefault(page, set()).add(reference.kind)
        for targets in self.successors.values():
            for page in targets:
                kinds.setdefault(page, set()).add("superseded_by")
        return {page: frozenset(named) for page, named in kinds.items()}

    def describe(self, page: str) -> str:
        """Return a text that changes whenever a page would be read otherwise, though its file is the same.

        It is empty for a page that is in no bundle and that none names.
        """
        if page not in self._roots and page not in self._named_by:
            return ""
        written = set(self._targets.get(page, ()))
        concept = self.concepts.get(page)
        state = str(page in self.untyped)
        if concept is not None:
            written |= {reference.resource for reference in concept.references()}
            state = f"{concept.lifecycle}{self.successors.get(page)}"
        leads = sorted((target, self.resolve(target, page) or "") for target in written)
        return f"{state}{leads}{sorted(self._named_by.get(page, ()))}"

    def get_title(self, page: str) -> str:
        """Return the title that a concept gives itself, empty for any other page."""
        concept = self.concepts.get(page)
        return "" if concept is None else fold_whitespace(concept.front.title)

    def complete(self, chunks: list[Chunk], page: str, site: Site) -> list[Chunk]:
        """Return the chunks of a page with what its bundle says of it.

        A concept gets links to its sources, its successors and its tags, a notice before its text if it is
        deprecated or stale, and its description before the text of its first chunk.

        Args:
            chunks: In order, at least one.
            page: The path of the page.
            site: How pages are named.
        """
        own = site.page_tag(quote_path(page)) or ""
        chunks = [
            replace(chunk, hyperlinks=tuple(self._mend(link, page) for link in chunk.hyperlinks))
            for chunk in (chunks if self._roots.get(page) else ())
        ] or chunks
        links = [Link.incoming(kind=kind, tag=own) for kind in sorted(self._named_by.get(page, ())) if own]
        concept = self.concepts.get(page)
        if concept is None and page in self.untyped:
            metadata = {**chunks[0].page.metadata, PROBLEM: "it has no type that can be read"}
            chunks = [replace(chunk, page=replace(chunk.page, metadata=metadata)) for chunk in chunks]
        if concept is None:
            return [replace(chunks[0], links=(*chunks[0].links, *links)), *chunks[1:]] if links else chunks
        notice = self._write_notice(concept)
        successors = [site.place(quote_path(target)) for target in self.successors.get(page, ())]
        metadata = {
            **chunks[0].page.metadata,
            LIFECYCLE: concept.lifecycle,
            TRUST: concept.trust,
            **({NOTICE: notice} if notice else {}),
            **({SUPERSEDED_BY: successors} if successors else {}),
        }
        described = replace(chunks[0].page, metadata=metadata)
        links += self._make_links(concept, site)
        completed = []
        for chunk in chunks:
            first = chunk.index == 0
            description = fold_whitespace(str(concept.front.fields.get("description") or "")) if first else ""
            before = [part for part in (notice, description) if part and part not in chunk.text]
            completed.append(
                replace(
                    chunk,
                    page=described,
                    text="\n\n".join((*before, chunk.text)),
                    links=(*chunk.links, *links) if first else chunk.links,
                )
            )
        return completed

    def _make_links(self, concept: Concept, site: Site) -> Iterator[Link]:
        for reference in concept.references():
            tag = self._find_tag(reference.resource, concept, site)
            if tag is not None:
                yield Link.outgoing(kind=reference.kind, tag=tag, label=reference.label, data=reference.data)
        for target in self.successors.get(concept.page, ()):
            tag = site.page_tag(quote_path(target))
            if tag is not None:
                yield Link.outgoing(kind="superseded_by", tag=tag, label=self.get_title(target) or None)
        written = concept.front.fields.get(WRITTEN_LINKS, [])
        try:
            links = parse_links({LINKS_KEY: written})
        except LinkStoreError as error:
            raise UnreadablePageError(f"its {WRITTEN_LINKS} are not links: {error}") from error
        yield from (link for link in links if link.kind != "hyperlink")  # a page is not another one
        yield from make_tag_links(concept.front.tags)

    def _find_tag(self, resource: str, concept: Concept, site: Site) -> str | None:
        """Return the tag of a reference, None for a resource without a page, such as a program."""
        if "://" in resource:
            return normalize_url(resource)
        page = self.resolve(resource, concept.page)
        if page is None and resource.lower().endswith(".md") and " " not in resource:
            folder = (
                self._roots[concept.page] if resource.startswith("/") else posixpath.dirname(concept.page)
            )
            page = posixpath.normpath(posixpath.join(folder, resource.lstrip("/")))
        return None if page is None else site.page_tag(quote_path(page))

    def _mend(self, link: Hyperlink, page: str) -> Hyperlink:
        """Lead a link from the root of a bundle that lies deeper than the source to its page."""
        path, mark, fragment = link.href.partition("#")
        target = None
        if path.startswith("/") and path.lstrip("/") not in self.pages:
            target = self.resolve(path, page)
        if target is None:
            return link
        relative = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return link._replace(href=f"{quote_path(relative)}{mark}{fragment}")

    def _write_notice(self, concept: Concept) -> str:
        """Return the sentence for a concept that is no longer to be relied on, empty for any other."""
        names = [self.get_title(page) or page for page in self.successors.get(concept.page, ())]
        by = f", superseded by {', '.join(names)}" if names else ""
        if concept.lifecycle == "deprecated":
            return f"Deprecated{by}."
        if concept.lifecycle == "stale":
            day = read_day(concept.front.fields.get("stale_after"))
            return f"Stale since {day}{by}: verify it before use."
        return f"Superseded by {', '.join(names)}." if names else ""


def _find_root(folder: str, pages: frozenset[str], declared: set[str]) -> str:
    """Return the folder of the bundle that the pages of a folder lie in.

    It is the nearest one that names the version of the format. Else it is the outermost of the folders above
    the pages that have an index without a gap, and without any, the folder of the source.
    """
    above = [folder]
    while above[-1]:
        above.append(posixpath.dirname(above[-1]))
    nearest = next((folder for folder in above if folder in declared), None)
    if nearest is not None:
        return nearest

    def has_index(folder: str) -> bool:
        return posixpath.join(folder, INDEX_FILE) in pages

    indexed = takewhile(has_index, dropwhile(lambda folder: not has_index(folder), above))
    return ["", *indexed][-1]

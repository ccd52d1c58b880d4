"""Citations: the works that a document cites, and the work that it is itself.

Works are named by identifier (DOI, arXiv, PubMed, ISBN, RFC, PEP, CVE and the like, see
``_identifiers.IDENTIFIERS``), or by title where a reference has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.links import MAX_TAG_BYTES, Link, merge_links
from linkstore_extractors._identifiers import BY_KEY, Mention, find_identifiers
from linkstore_extractors._references import Reference, ReferenceList, cited, find_references, title_key

_AFTER_IDENTIFIER: Final = re.compile(r"\s{0,3}(?:$|[:|\u2013\u2014]|-{1,3}\s|\.\s)")
_EXTENSION: Final = re.compile(r"\.(?:html?|md|rst|txt|pdf)$", re.IGNORECASE)
_LONGEST_LABEL: Final = 120
_LONGEST_LINE: Final = 300


class CitationExtractor:
    """Incoming links for what a document is, outgoing ones for what it cites.

    A document *is*

    - what its metadata say under ``doi``, ``arxiv``, ``pmid``, ``pmcid``, ``isbn``, ``rfc``, ``pep``
      and the other identifiers' names (case does not matter; one value or a list of them; a value that
      is not such an identifier is ignored);
    - the identifier with which its title, or the first line of a text without one, begins, when the
      title ends there or goes on after a colon, bar or dash: "PEP 8: Style Guide", "RFC 9110 - HTTP
      Semantics", but not "RFC 9110 explained";
    - the identifier that is the last part of its ``url`` or ``source``: ``/pep-0008.html``;
    - a work of its title (in the metadata, or a Markdown heading on the first line), as the tag ``ref:``
      and the title's words, folded: ``ref:attention is all you need``; if they are three or more, and
      without the site's name after a bar.

    The last three do not hold for a part of a page, whose ``url`` has a fragment.

    It *cites* every other identifier in its text, and every entry of its own reference list (under a
    heading such as References or Bibliography): by the entry's identifiers, else by ``ref:`` and its
    title. Citations such as ``[3, 5-7]`` or "(Smith & Jones, 2019)" count for the entry they resolve
    to; they, and an identifier's mentions, are counted as n, and the link's weight is 1 - 0.5 ** n.
    Links stand in the order in which the text first cites them.

    Args:
        kind: Kind of the links.
    """

    source = Document

    def __init__(self, *, kind: str = "citation") -> None:
        self._kind = kind

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the work that the document is, then the works that it cites.

        A string is a document without metadata.
        """
        text = source if isinstance(source, str) else source.page_content
        metadata = {} if isinstance(source, str) else _folded_keys(source.metadata)
        first_line = text.lstrip()[:_LONGEST_LINE].partition("\n")[0].strip()
        title = _title(metadata, first_line)
        tags = dict.fromkeys(_own(metadata, title, first_line))
        own = {tag: Link.incoming(kind=self._kind, tag=tag, label=title) for tag in tags}
        return (*own.values(), *(link for link in self._outgoing(text) if link.tag not in own))

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the works that a question names by identifier, in order."""
        return merge_links(
            Link.outgoing(kind=self._kind, tag=mention.tag, label=mention.written)
            for mention in find_identifiers(text)
        )

    def _outgoing(self, text: str) -> Iterator[Link]:
        citations = sorted(_citations(text, find_references(text)), key=itemgetter(0))
        counts: dict[str, int] = {}
        labels: dict[str, str] = {}
        for _, tag, label, weight in citations:
            counts[tag] = counts.get(tag, 0) + weight
            labels.setdefault(tag, label)
        for tag, label in labels.items():
            yield Link.outgoing(kind=self._kind, tag=tag, label=label, weight=1 - 0.5 ** max(1, counts[tag]))


def _citations(text: str, references: ReferenceList) -> Iterator[tuple[int, str, str, int]]:
    """Yield all citations: place, tag, label, and 1, or 0 for an entry of the list itself."""
    mentions = find_identifiers(text)
    if not references.entries:
        yield from ((mention.start, mention.tag, mention.written, 1) for mention in mentions)
        return
    outside, inside = _split(mentions, references)
    yield from ((mention.start, mention.tag, mention.written, 1) for mention in outside)
    named = {id(entry): tuple(_named(entry)) for entry in references.entries}
    for place, entry in cited(references, text):
        yield from ((place, tag, label, 1) for tag, label in named[id(entry)])
    for place, entry in enumerate(references.entries, references.start):
        yield from ((place, tag, label, 0) for tag, label in named[id(entry)])
    yield from ((references.end, mention.tag, mention.written, 0) for mention in inside)


def _split(mentions: list[Mention], references: ReferenceList) -> tuple[list[Mention], list[Mention]]:
    """Part the mentions outside the reference list from those inside."""
    inside = [mention for mention in mentions if references.start <= mention.start < references.end]
    outside = [mention for mention in mentions if not references.start <= mention.start < references.end]
    return outside, inside


def _named(entry: Reference) -> Iterator[tuple[str, str]]:
    """Yield the tags of an entry of the reference list, each with its label."""
    label = _short(entry.title or entry.text)
    tags = dict.fromkeys(mention.tag for mention in find_identifiers(entry.text))
    key = title_key(entry.title) if entry.title else None
    if key and not tags:
        tags = {_title_tag(key): None}
    yield from ((tag, label) for tag in tags)


def _own(metadata: Mapping[str, Any], title: str | None, first_line: str) -> Iterator[str]:
    """Yield the tags of what a document is."""
    yield from _declared(metadata)
    url = str(metadata.get("url") or metadata.get("source") or "")
    if "#" in url:
        return
    yield from _leading(title or first_line, at_end=False)
    yield from _leading(_EXTENSION.sub("", url.rstrip("/").rpartition("/")[2]), at_end=True)
    key = title_key(title.partition(" | ")[0]) if title else None
    if key:
        yield _title_tag(key)


def _declared(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tags of the identifiers that the metadata state."""
    if BY_KEY.keys().isdisjoint(metadata):
        return
    for key, rule in BY_KEY.items():
        stated = metadata.get(key)
        if stated is None:
            continue
        for value in stated if isinstance(stated, list | tuple) else (stated,):
            tag = rule.tag_of(str(value).strip()) if isinstance(value, str | int) else None
            if tag:
                yield tag


def _leading(text: str, *, at_end: bool) -> Iterator[str]:
    """Yield the identifier a text begins with, if the text ends there or goes on as a title does."""
    for mention in find_identifiers(text)[:1]:
        ends = mention.end == len(text) if at_end else _AFTER_IDENTIFIER.match(text, mention.end)
        if mention.start == 0 and ends:
            yield mention.tag


def _title(metadata: Mapping[str, Any], first_line: str) -> str | None:
    """Return the title that the metadata state, else the heading on the first line."""
    stated = metadata.get("title")
    if isinstance(stated, str) and stated.strip():
        return stated.strip()
    return first_line.strip("# ") if first_line.startswith("# ") else None


def _title_tag(key: str) -> str:
    return "ref:" + key.encode()[: MAX_TAG_BYTES - 4].decode(errors="ignore")


def _folded_keys(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower().replace(" ", "_"): value for key, value in metadata.items()}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"

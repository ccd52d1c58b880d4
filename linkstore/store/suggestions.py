"""Missing links: pages that name another page without a link, or are near it in every other way.

A page is named by its title, its aliases, and the texts of the links that lead to it from other pages. How
likely such a phrase should be a link is estimated as by D. Milne and I. H. Witten, "Learning to link with
Wikipedia" (CIKM 2008): by the share of the pages with the phrase in which it is the text of a link to the
page. Pages also count as near if their vectors are similar, and if the same pages are linked with both
(L. A. Adamic and E. Adar, "Friends and neighbors on the Web", Social Networks 25(3), 2003).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Literal

import numpy as np

from linkstore.core.arrays import Floats
from linkstore.core.display import make_snippet
from linkstore.core.links import SUGGESTED, Link
from linkstore.engines.contract import Record
from linkstore.extract.phrases import Automaton, find_written_forms, make_name_tag

UNWRITTEN: Final = frozenset({"mention", "heading", "entity", "keyword", SUGGESTED})
"""Kinds of links that no author wrote: they do not make two pages linked."""
_SHARED: Final = 5
"""A title that more pages have names none of them, and a tag that leads to more pages links none."""
_NEAREST: Final = 5
"""How many pages are compared with each page that are near it without being named."""
_UNNAMED: Final = 0.05
"""The score of two pages that are as near as can be, where neither names the other."""
_LESS: Final = 0.3
"""How much a phrase in code counts, and how much an ordinary word."""
_CODE_SIGN: Final = re.compile(r"[={}\[\]$\\;#@&*^%\"]|<\S|\S>|\w\(|\w_\w|\B--?\w|::|/\w|\w\.[a-z]\w")
_CODE_SHARE: Final = 0.3
"""A block of text with more signs of code for each word is code."""
_BLOCK: Final = 512
"""How many pages are compared with all others at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSuggestion:
    """A link from one page to another that may be missing.

    Args:
        source: Id of the document that would have the link.
        target: Id of the document that it would lead to, the first of its page.
        source_page: The page of the source.
        target_page: The page of the target.
        score: How likely the link is missing, from 0 to 1. Only the order is meant.
        reason: ``"named"`` if the source names the target, ``"near"`` if neither names the other.
        phrase: How the target is named, as words in lower case. Empty if it is not.
        passage: The part of the source's text that names the target, or is most like its title.
        similarity: Cosine of the mean vectors of both pages, from -1 to 1.
    """

    source: str
    target: str
    source_page: str
    target_page: str
    score: float
    reason: Literal["named", "near"]
    phrase: str
    passage: str
    similarity: float

    def links(self) -> tuple[tuple[str, Link], tuple[str, Link]]:
        """Return the two links that join both documents, each with the id of its document."""
        leaving = Link.outgoing(kind=SUGGESTED, tag=self.target, label=self.phrase or None)
        return (self.source, leaving), (self.target, Link.incoming(kind=SUGGESTED, tag=self.target))


@dataclass(slots=True)
class _Site:
    """The pages of a store: how they are named, where they lie, and which are linked."""

    pages: dict[str, int] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    titles: dict[int, str] = field(default_factory=dict)
    sums: list[Floats] = field(default_factory=list)
    named: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    labels: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    neighbours: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, record: Record) -> int:
        """Learn the page of a document and its names, and return the page's number."""
        name = _get_page(record)
        page = self.pages.setdefault(name, len(self.first))
        if page == len(self.first):
            self.first.append(record.id)
            self.sums.append(np.zeros(len(record.vector), dtype=np.float32))
        self.sums[page] += record.vector
        title, aliases = record.metadata.get("title"), record.metadata.get("aliases")
        if record.metadata.get("url", name) == name and isinstance(title, str):
            self.titles.setdefault(page, title)
            for page_name in (title, *(aliases if isinstance(aliases, list) else ())):
                if isinstance(page_name, str) and (tag := make_name_tag(page_name)):
                    self.named[tag].add(page)
        return page

    def closeness(self, one: int, other: int) -> float:
        """Return how close two pages are by the pages that are linked with both, from 0 to 1."""
        common = self.neighbours[one] & self.neighbours[other]
        total = sum(1 / math.log(1 + len(self.neighbours[page])) for page in sorted(common))
        return total / (1 + total)


def find_suggestions(
    scan: Callable[[], Iterable[Record]], most: int, dismissed: Collection[tuple[str, ...]] = ()
) -> list[LinkSuggestion]:
    """Find the links that are most likely missing, best first, then by the ids of their documents.

    It takes two passes over the documents. What it keeps in memory grows with the number of pages, links and
    phrases, not with the texts.

    Args:
        scan: Returns all documents, in one order, whenever it is called.
        most: How many to return.
        dismissed: Pairs of pages, source and target, that are left out.
    """
    site = _survey(scan())
    if not site.first or most < 1:
        return []
    means = np.stack(site.sums)
    means -= means.mean(axis=0)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    vectors = (means / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    pairs = _find_named(site, scan())
    for page, other, similarity in _find_near(site, vectors):
        if (page, other) not in pairs and (other, page) not in pairs:
            score = _UNNAMED * max(similarity, 0.0) * site.closeness(page, other)
            pairs[page, other] = (score, "", site.first[page])
    for names in dismissed:
        source, target = (site.pages.get(name, -1) for name in names)
        pairs.pop((source, target), None)
        if pairs.get((target, source), (0, "named"))[1] == "":  # two that are near have no order
            del pairs[target, source]
    ranked = sorted(
        (-score, document, site.first[target], source, target, phrase)
        for (source, target), (score, phrase, document) in pairs.items()
        if score > 0
    )[:most]
    return _describe(site, vectors, ranked, scan)


def _survey(records: Iterable[Record]) -> _Site:
    """Learn the pages, their names and their links."""
    site = _Site()
    leads_to: dict[tuple[str, str], set[int]] = defaultdict(set)
    leaving: list[tuple[int, Link]] = []
    for record in records:
        page = site.add(record)
        for link in record.links:
            if link.kind not in UNWRITTEN and link.direction == "in":
                leads_to[link.kind, link.tag].add(page)
            elif link.kind not in UNWRITTEN and link.direction == "out":
                leaving.append((page, link))
    for source, link in leaving:
        targets = leads_to.get((link.kind, link.tag), set()) - {source}
        label = make_name_tag(link.label) if link.label and len(targets) == 1 else None
        for target in targets if len(targets) <= _SHARED else ():
            site.neighbours[source].add(target)
            site.neighbours[target].add(source)
            if label:
                site.labels[label, target].add(source)
    return site


def _find_named(site: _Site, records: Iterable[Record]) -> dict[tuple[int, int], tuple[float, str, str]]:
    """Return score, phrase and document of each pair of a page and another that it names without a link."""
    targets: dict[str, set[int]] = defaultdict(set)
    for tag, pages in site.named.items():
        if len(pages) <= _SHARED:
            targets[tag] |= pages
    for tag, target in site.labels:
        targets[tag].add(target)
    places, ordinary = _find_places(site, Automaton(sorted(targets)), records)
    pairs: dict[tuple[int, int], tuple[float, str, str]] = {}
    for phrase, naming in sorted(places.items()):
        for target in sorted(targets[phrase]):
            links = len(site.labels.get((phrase, target), ())) + (target in site.named.get(phrase, ()))
            share = links / (len(naming) + 2)  # two more, so that one link of one page is not certain
            if phrase in ordinary:
                share *= _LESS
            for page in naming.keys() - site.neighbours[target] - {target}:
                in_code, document = naming[page]
                score = share * (_LESS if in_code else 1.0) * (0.1 + 0.9 * site.closeness(page, target))
                if score > pairs.get((page, target), (0.0, "", ""))[0]:
                    pairs[page, target] = (score, phrase, document)
    return pairs


def _find_places(
    site: _Site, automaton: Automaton, records: Iterable[Record]
) -> tuple[dict[str, dict[int, tuple[bool, str]]], set[str]]:
    """Find the phrases in all texts.

    Returns for each phrase and page whether the page has it in code alone, and its first document with it,
    outside code if there is one. And the phrases that are an ordinary word: somewhere outside code, the site
    writes them in small letters.
    """
    places: dict[str, dict[int, tuple[bool, str]]] = defaultdict(dict)
    ordinary: set[str] = set()
    for record in records:
        page = site.pages.get(_get_page(record), -1)
        for block in record.text.split("\n\n") if page >= 0 else ():  # else it was written since
            matches = automaton.find(block)
            in_code = len(_CODE_SIGN.findall(block)) > _CODE_SHARE * len(block.split())
            written = find_written_forms(block, [(start, end) for _, start, end in matches])
            for (phrase, _, _), form in zip(matches, written, strict=True):
                place = in_code, record.id
                places[phrase][page] = min(places[phrase].get(page, place), place, key=itemgetter(0))
                if not in_code and form is not None and form.isalpha() and form.islower():
                    ordinary.add(phrase)
    return places, ordinary


def _find_near(site: _Site, vectors: Floats) -> Iterator[tuple[int, int, float]]:
    """Yield the most similar pages of each page that are not linked with it, each pair once."""
    seen: set[tuple[int, int]] = set()
    for start in range(0, len(vectors), _BLOCK):
        similarities = vectors[start : start + _BLOCK] @ vectors.T
        take = min(len(vectors), _NEAREST + 1)
        for offset, row in enumerate(np.argpartition(-similarities, take - 1, axis=1)[:, :take]):
            page = start + offset
            for other in map(int, row):
                pair = (min(page, other), max(page, other))
                if page != other and other not in site.neighbours[page] and pair not in seen:
                    seen.add(pair)
                    yield *pair, float(similarities[offset, other])


def _describe(
    site: _Site, vectors: Floats, ranked: list[tuple[Any, ...]], scan: Callable[[], Iterable[Record]]
) -> list[LinkSuggestion]:
    """Return suggestions with their passages, which a last pass finds."""
    wanted = {document for _, document, *_ in ranked}
    texts = {record.id: record.text for record in scan() if record.id in wanted}
    names = {number: name for name, number in site.pages.items()}
    return [
        LinkSuggestion(
            source=document,
            target=target_document,
            source_page=names[source],
            target_page=names[target],
            score=-negative,
            reason="named" if phrase else "near",
            phrase=phrase,
            passage=make_snippet(texts.get(document, ""), phrase or site.titles.get(target, "")),
            similarity=float(np.clip(vectors[source] @ vectors[target], -1, 1)),
        )
        for negative, document, target_document, source, target, phrase in ranked
    ]


def _get_page(record: Record) -> str:
    page = record.metadata.get("page")
    return page if isinstance(page, str) else record.id

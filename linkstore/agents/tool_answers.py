"""What the tools of a store see and answer: results, limits, and where chains of different relations meet.

Two chains say something together only if both are about what was asked, and each by relations of its own. So
they start from what the question names, or from one document if it names none; they have no document in
common but their ends; and no kind of link is in both. Links by which a text merely refers to another, as on
any site, are no relation: that two pages link to a third one says nothing about the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from langchain_core.documents import Document

from linkstore.core.arguments import require_at_least, require_within
from linkstore.core.calls import Call, call_plan
from linkstore.core.display import escape_unprintable, get_body, get_url, join_headings, make_snippet
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Chain
from linkstore.core.links import get_links
from linkstore.core.plans import Operation, Plan
from linkstore.core.text import tokenize
from linkstore.engines.bookkeeping import Backend
from linkstore.store.linkstore import LinkStore
from linkstore.strategies.base import Strategy
from linkstore.strategies.first_stage import NAMING_KINDS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreView:
    """The documents of a store that pass a filter.

    Args:
        store: The store.
        filter: None: all documents.
    """

    store: LinkStore
    filter: Filter | None = None

    @property
    def backend(self) -> Backend:
        """The engine of the store."""
        return self.store.backend

    def search(self, question: str, strategy: Strategy) -> Call:
        """Request the hits of a search: Hits."""
        options = {"strategy": strategy, "filter": self.filter}
        return Call(self.store.search, self.store.asearch, (question,), options)

    def answer(self, plan: Plan[T]) -> Operation[T]:
        """Carry out a plan, for which there are no other documents."""
        return (yield call_plan(self.backend, plan, parse_filter(self.filter)))  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The answer of a tool.

    Args:
        text: For a model.
        data: The same as a JSON object.
    """

    text: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A document that a tool shows.

    Args:
        document: As stored.
        query: What it was found by; the snippet shows the words of it.
        width: Maximum number of characters of the snippet.
        chains: Links that lead to it.
        similarity: To the question, in [-1, 1]; None if none was asked.
    """

    document: Document
    query: str
    width: int
    chains: tuple[Chain, ...]
    similarity: float | None = None

    @property
    def meeting(self) -> int:
        """How many of the chains are independent of each other."""
        return sum(chain.independent for chain in self.chains)

    @property
    def snippet(self) -> str:
        """The part of the text that fits the query best."""
        return make_snippet(get_body(self.document), self.query, self.width)

    def lines(self, rank: int) -> Iterable[str]:
        """Yield the lines of the document as text."""
        yield f"{rank}. {format_citation(self.document)}"
        yield f"   {escape_unprintable(self.snippet)}"
        if self.meeting > 1:
            yield f"   {self.meeting} independent chains of links meet here:"
        yield from (f"   {escape_unprintable(str(chain))}" for chain in self.chains)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return {
            **identify_document(self.document),
            "snippet": self.snippet,
            "similarity": self.similarity,
            "chains": [
                {
                    "text": str(chain),
                    "independent": chain.independent,
                    "triples": [triple.to_dict() for triple in chain],
                }
                for chain in self.chains
            ],
        }


def format_citation(document: Document) -> str:
    """Format a document by its id, headings and URL, on one line."""
    parts = [f"[{escape_unprintable(document.id or '')}]"]
    if headings := join_headings(document):
        parts.append(escape_unprintable(headings))
    if url := get_url(document):
        parts.append(f"<{escape_unprintable(url)}>")
    return " ".join(parts)


def identify_document(document: Document) -> dict[str, Any]:
    """Return a document by its id, headings and URL, as JSON."""
    return {"id": document.id, "title": join_headings(document), "url": get_url(document)}


def make_empty_answer(reason: str, remedies: Sequence[str]) -> ToolAnswer:
    """Make an empty answer: why, and what could find more."""
    lines = [f"No results: {escape_unprintable(reason)}."]
    if remedies:
        lines += ["To find more:", *(f"- {escape_unprintable(remedy)}" for remedy in remedies)]
    return ToolAnswer(
        text="\n".join(lines), data={"results": [], "reason": reason, "to_find_more": list(remedies)}
    )


def make_results_answer(
    heading: str, results: Sequence[ToolResult], notes: Sequence[str] = (), **more: Any
) -> ToolAnswer:
    """Make an answer of documents.

    Args:
        heading: The first line.
        results: The documents, best first.
        notes: Lines below them.
        more: Further data.
    """
    lines = [heading, *(line for rank, one in enumerate(results, 1) for line in one.lines(rank)), *notes]
    data = {"results": [one.to_dict() for one in results], "notes": list(notes), **more}
    return ToolAnswer(text="\n".join(lines), data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """Limits of the tools of a store; a call cannot exceed them, whatever a model asks for.

    Args:
        max_depth: How many links in a row ``search`` may follow; default 3. The ceiling is this or that of
            the store, whichever is lower.
        results: Maximum number of documents that ``search`` and ``follow`` return; default 8.
        snippet: Maximum number of characters of text for each of them; default 200.
        chains: Maximum number of chains of links for each document of ``search``; default 3.
        links: Maximum number of links that ``links`` returns; default 50.
        text: Maximum number of characters that ``read`` returns at once; default 8,000.
        min_similarity: Minimum similarity of the documents that ``search`` starts from by similarity, in
            [-1, 1]; None, the default, takes that of the store; -1 is no minimum.

    Raises:
        StrategyError: If a limit is not a number of its range; the message names it.
    """

    max_depth: int = 3
    results: int = 8
    snippet: int = 200
    chains: int = 3
    links: int = 50
    text: int = 8000
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        require_at_least(0, max_depth=self.max_depth)
        require_at_least(1, results=self.results, snippet=self.snippet, chains=self.chains)
        require_at_least(1, links=self.links, text=self.text)
        if self.min_similarity is not None:
            require_within(-1, 1, min_similarity=self.min_similarity)


REFERENCE_KINDS: Final = frozenset(
    {
        "category",
        "citation",
        "entity",
        "heading",
        "hyperlink",
        "keyword",
        "mention",
        "next",
        "next_turn",
        "previous",
        "section",
        "tag",
    }
)
"""Kinds of link that say no more than that two texts have to do with each other."""
_PARTS: Final = re.compile(r"[/#]")


def mark_meeting(chains: Sequence[Chain], named: Collection[str] = ()) -> tuple[Chain, ...]:
    """Mark the chains that meet as independent, and put them first. None is marked if there is but one.

    Args:
        chains: To one document, the best first.
        named: Ids of the documents that the question names; none: they start from one document.
    """
    typed = [chain for chain in chains if chain and not _collect_kinds(chain) & REFERENCE_KINDS]
    best: list[Chain] = []
    for first in typed:
        chosen = [first]
        for chain in typed:
            if all(_is_meeting(chain, other, named) for other in chosen):
                chosen.append(chain)
        if len(chosen) > max(1, len(best)):
            best = chosen
    rest = [chain for chain in chains if chain not in best]
    return (
        *(replace(chain, independent=True) for chain in best),
        *(replace(chain, independent=False) for chain in rest),
    )


def is_named(document: Document, question: str) -> bool:
    """Say whether a question has the id of a document in it, its title or heading, or another name of it."""
    title, headings = document.metadata.get("title"), document.metadata.get("headings")
    names = [document.id or "", *_PARTS.split(document.id or "")[-1:]]
    names += [str(one) for one in (title, *(headings[-1:] if isinstance(headings, list) else ())) if one]
    names += [link.tag for link in get_links(document) if link.kind in NAMING_KINDS and link.leads_in]
    asked = f" {' '.join(tokenize(question))} "
    return any(words and f" {' '.join(words)} " in asked for words in map(tokenize, names))


def _is_meeting(one: Chain, other: Chain, named: Collection[str]) -> bool:
    """Say whether two chains to the same document are about what was asked, each by its own relations."""
    starts = {one.start, other.start}
    about = starts <= set(named) if named else len(starts) == 1
    common = set(_list_passed(one)) & set(_list_passed(other))
    return about and common <= {one.start} & {other.start} and not _collect_kinds(one) & _collect_kinds(other)


def _collect_kinds(chain: Chain) -> frozenset[str]:
    return frozenset(triple.kind for triple in chain)


def _list_passed(chain: Chain) -> list[str]:
    """Return the documents of a chain, without the one that it leads to."""
    passed = [chain.start]
    for triple in chain:
        passed.append(triple.other(passed[-1]))
    return passed[:-1]

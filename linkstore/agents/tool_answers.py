"""What the tools of a store see, what they may do, and the form of their answers.

What documents say stands behind ``>`` on one line, or between tags that it does not contain, so that no
document can forge a line of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require, require_at_least, require_within
from linkstore.core.calls import Operation, call, call_plan
from linkstore.core.display import escape_unprintable, get_body, get_url, join_headings, make_snippet
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Chain, Hits
from linkstore.core.plans import Plan
from linkstore.engines.bookkeeping import Backend
from linkstore.store.core import CoreStore, require_store
from linkstore.strategies.base import Strategy

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The answer of a tool.

    Args:
        text: For a model.
        data: The same for a program: a JSON object, where it is a tool of a store.
        is_error: Whether it says what is wrong with the call.
    """

    text: str
    data: Any
    is_error: bool = False


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
    def snippet(self) -> str:
        """The part of the text that fits the query best."""
        return make_snippet(get_body(self.document), self.query, self.width)

    def lines(self, rank: int) -> Iterator[str]:
        """Yield the lines of the document as text."""
        yield f"{rank}. {format_citation(self.document)}"
        yield f"   > {escape_unprintable(self.snippet)}"
        yield from (f"   {escape_unprintable(str(chain))}" for chain in self.chains)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return {
            **identify_document(self.document),
            "snippet": self.snippet,
            "similarity": self.similarity,
            "chains": [
                {"text": f"{chain}", "triples": [own.to_dict() for own in chain]} for chain in self.chains
            ],
        }


def correct_name(name: str, known: Iterable[str]) -> str:
    """Spell a name as a known one that differs in capitals, signs or a plural; return others as they are."""
    folded, *others = [
        "".join(filter(str.isalnum, spelling)).casefold().removesuffix("s") for spelling in (name, *known)
    ]
    alike = [other for other, spelling in zip(known, others, strict=True) if spelling == folded]
    return alike[0] if len(alike) == 1 and name not in known else name


def format_citation(document: Document) -> str:
    """Format a document by its id, headings and URL, on one line."""
    url = get_url(document)
    parts = f"[{document.id or ''}]", join_headings(document), f"<{url}>" if url else ""
    return escape_unprintable(" ".join(filter(None, parts)))


def identify_document(document: Document) -> dict[str, Any]:
    """Return a document by its id, headings and URL, as JSON."""
    return {"id": document.id, "title": join_headings(document), "url": get_url(document)}


def make_empty_answer(reason: str, remedies: Sequence[str], **more: Any) -> ToolAnswer:
    """Make an empty answer: why, what could find more, and further data."""
    lines = [f"No results: {escape_unprintable(reason)}."]
    if remedies:
        lines += ["To find more:", *(f"- {escape_unprintable(remedy)}" for remedy in remedies)]
    data = {"results": [], "reason": reason, "to_find_more": list(remedies), **more}
    return ToolAnswer(text="\n".join(lines), data=data)


def make_results_answer(
    heading: str, results: Sequence[ToolResult], remarks: Sequence[str] = (), **more: Any
) -> ToolAnswer:
    """Make an answer of documents.

    Args:
        heading: The first line.
        results: The documents, best first.
        remarks: Lines below them.
        more: Further data.
    """
    shown = (line for rank, result in enumerate(results, 1) for line in result.lines(rank))
    data = {"results": [result.to_dict() for result in results], "remarks": list(remarks), **more}
    return ToolAnswer(text="\n".join([heading, *shown, *remarks]), data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """Limits of the tools of a store; a call cannot exceed them, whatever a model asks for.

    Args:
        max_depth: How many links in a row ``match`` may follow; default 6. With 0, ``search`` follows none.
            The ceiling is this or that of the store, whichever is lower.
        results: Maximum number of documents that ``search`` and ``follow`` return, and that ``read`` reads at
            once; default 8.
        snippet: Maximum number of characters of text for each of them; default 200.
        chains: Maximum number of chains of links for each document of ``match``; default 3.
        text: Maximum number of characters that ``read`` returns at once, of all documents together; default
            8,000.
        min_similarity: Minimum similarity of the documents that ``search`` starts from by similarity, in
            [-1, 1]; None, the default, takes that of the store, else of its embedding; -1 is no minimum.

    Raises:
        StrategyError: If a limit is not a number of its range; the message names it.
    """

    max_depth: int = 6
    results: int = 8
    snippet: int = 200
    chains: int = 3
    text: int = 8000
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        require_at_least(0, max_depth=self.max_depth)
        require_at_least(1, results=self.results, snippet=self.snippet, chains=self.chains, text=self.text)
        require_within(-1, 1, **omit_none(min_similarity=self.min_similarity))


@dataclass(frozen=True, slots=True)
class ToolScope:
    """What the tools of a store see, what they may do, and how much they may return.

    Args:
        store: What they read.
        limits: Default :class:`ToolLimits`.
        filter: Only documents that pass it exist for the tools; None: all.

    Raises:
        ArgumentError: If this is not a store, or these are not limits.
        FilterError: If the filter is invalid.
    """

    store: CoreStore
    limits: ToolLimits = field(default_factory=ToolLimits)
    filter: Filter | None = None

    def __post_init__(self) -> None:
        require_store(store=self.store)
        require(ToolLimits, "a ToolLimits", limits=self.limits)
        parse_filter(self.filter)  # raise now, and not in a call

    @property
    def backend(self) -> Backend:
        """The engine of the store."""
        return self.store.backend

    @property
    def ceiling(self) -> int:
        """How many links in a row may be followed: the lower of the limits' and the store's."""
        most = self.store.search_settings.max_depth
        return self.limits.max_depth if most is None else min(most, self.limits.max_depth)

    def search(
        self, question: str, strategy: Strategy, result_filter: Filter | None = None
    ) -> Operation[Hits]:
        """Search the documents of the scope."""
        store = self.store
        return call(
            store.search,
            store.asearch,
            question,
            strategy=strategy,
            filter=self.filter,
            result_filter=result_filter,
        )

    def answer(self, plan: Plan[T]) -> Operation[T]:
        """Carry out a plan, for which there are no other documents."""
        return (yield from call_plan(self.backend, plan, parse_filter(self.filter)))

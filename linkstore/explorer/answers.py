"""What the page shows of a search: hits, their graph, what was cut, and why a document is missing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.display import find_query_spans, format_count, get_body, get_title, get_url, make_snippet
from linkstore.core.filters import parse_filter
from linkstore.core.hit_graph import HitGraph, name_document
from linkstore.core.hits import Hit, Hits, get_page
from linkstore.errors import DocumentError, LinkStoreError, StrategyError
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity, Words

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.store import LinkStore
    from linkstore.strategies import Strategy

STRATEGIES: Final[Mapping[str, type[Strategy]]] = {
    "pagerank": PageRank,
    "eager": Eager,
    "mmr": Mmr,
    "all-paths": AllPaths,
    "similarity": Similarity,
    "words": Words,
}
"""The strategies that the page offers, by name."""
MOST_HITS: Final = 100
"""How many hits a search of the page returns at most."""
SEARCHED_BEHIND: Final = 1000
"""How many ranks are searched for a document that is not among the hits."""
_SNIPPET: Final = 320
_PASSAGE_WORDS: Final = 8
"""How many words of a passage a link to it quotes (https://wicg.github.io/scroll-to-text-fragment/)."""
_MOST_DEPTH: Final = 3
_MOST_DISTANCE: Final = 3
_MOST_VISITED: Final = 200
"""How many documents are looked at to find how far a document is from the hits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings:
    """The settings of a search of the page.

    Args:
        strategy: A name of :data:`STRATEGIES`.
        k: How many documents to return, at most 100.
        depth: How many hops; None for the strategy's default.
        kinds: Kinds of links to follow; None for all that the strategy follows by default.
        filter: Filter on metadata, for the whole search.

    Raises:
        StrategyError: If a setting is out of range, or the strategy does not have it.
    """

    strategy: str = "pagerank"
    k: int = 10
    depth: int | None = None
    kinds: Sequence[str] | None = None
    filter: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AskSettings:
        """Make settings of plain JSON, in which other keys are refused.

        Raises:
            StrategyError: If there is no such setting.
        """
        names = {field.name for field in fields(cls)}
        for name in given:
            if name not in names:
                raise StrategyError(f"there is no setting {name!r}; there are {', '.join(sorted(names))}")
        return cls(**given)

    def make_strategy(self, k: int | None = None) -> Strategy:
        """Return the strategy with these settings, for ``k`` documents if it is given."""
        if self.strategy not in STRATEGIES:
            raise StrategyError(f"there is no strategy {self.strategy!r}; there are {', '.join(STRATEGIES)}")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= MOST_HITS:
            raise StrategyError(f"k must be a number from 1 to {MOST_HITS}, not {self.k!r}")
        kind = STRATEGIES[self.strategy]
        own = {field.name for field in fields(kind)}
        settings: dict[str, Any] = {"k": self.k if k is None else k}
        for name, value in (("depth", self.depth), ("kinds", self.kinds)):
            if value is not None:
                if name not in own:
                    raise StrategyError(f"the strategy {self.strategy!r} has no setting {name!r}")
                settings[name] = frozenset(value) if isinstance(value, list | tuple) else value
        return kind(**settings)


def list_depths(kind: type[Strategy]) -> list[int]:
    """Return the depths from 0 to 3 that a strategy takes; none if it follows no links."""
    taken = []
    for depth in range(_MOST_DEPTH + 1) if "depth" in kind.__dataclass_fields__ else ():
        with suppress(LinkStoreError):
            kind(depth=depth)  # type: ignore[call-arg]
            taken.append(depth)
    return taken


def answer(store: LinkStore, question: str, settings: AskSettings) -> dict[str, Any]:
    """Search, and return what the page shows of the result, as plain JSON."""
    began = time.perf_counter()
    hits = store.search(question, strategy=settings.make_strategy(), filter=settings.filter)
    seconds = time.perf_counter() - began
    shown = {**describe_hits(hits, question), "settings": asdict(settings), "seconds": seconds}
    way = {node["id"]: node for node in shown["graph"]["nodes"] if node["role"] == "way"}
    for document in store.get_by_ids(list(way)):
        title = name_document(document.metadata, get_body(document)) or document.id
        way[document.id].update(title=title, page=get_page(document), url=get_url(document))
    return shown


def describe_hits(hits: Hits, question: str) -> dict[str, Any]:
    """Return what the page shows of hits, as plain JSON."""
    return {
        "question": question,
        "strategy": hits.strategy,
        "reason": hits.reason,
        "doubt": hits.doubt,
        "least_similarity": hits.least_similarity,
        "hits": [_describe_hit(hit, question) for hit in hits],
        "pages": [
            {"page": page.page, "hits": [hits.hits.index(hit) for hit in page.hits]}
            for page in hits.by_page()
        ],
        "graph": HitGraph.of(hits).to_dict(),
        "cuts": [asdict(cut) for cut in hits.cuts],
    }


def _describe_hit(hit: Hit, question: str) -> dict[str, Any]:
    document = hit.document
    body = get_body(document)
    return {
        "id": document.id,
        "title": get_title(document),
        "name": name_document(document.metadata, body) or document.id,
        "headings": list_headings(document),
        "page": get_page(document),
        "url": get_url(document),
        "score": hit.score,
        "similarity": hit.similarity,
        "depth": hit.depth,
        "parts": dict(hit.contributions),
        "path": [step.to_dict() for step in hit.path],
        "chains": [[chain.start, *(triple.to_dict() for triple in chain)] for chain in hit.chains],
        "snippet": split_at_words(make_snippet(body, question, _SNIPPET), question),
        "passage": find_passage(body, question),
    }


def list_headings(document: Document) -> list[str]:
    """Return the headings above a chunk, the title of its page first; none unless ingest made it."""
    headings = document.metadata.get("headings")
    return list(map(str, headings)) if isinstance(headings, list) else []


def split_at_words(text: str, question: str) -> list[str]:
    """Split a text at the words of a question, so that every second part is one of them."""
    parts, at = [], 0
    for (start, end), _ in find_query_spans(text, question):
        parts += [text[at:start], text[start:end]]
        at = end
    return [*parts, text[at:]]


def find_passage(text: str, question: str) -> str:
    """Return some words of a text, in a row, that are where it has most words of the question.

    A link with the text fragment ``#:~:text=`` and these words leads to the place on the page. Browsers find
    only what stands in one paragraph, so the words are of one line.
    """
    snippet = make_snippet(text, question, 160).removeprefix("… ").removesuffix(" …")
    words = snippet.split()
    starts = [start for (start, _), _ in find_query_spans(snippet, question)]
    first = len(snippet[: starts[0]].split()) if starts else 0
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for last in range(first + _PASSAGE_WORDS, first, -1):
        passage = " ".join(words[first:last])
        if any(passage in line for line in lines):
            return passage
    return ""


def explain_absence(store: LinkStore, question: str, settings: AskSettings, id: str) -> dict[str, Any]:
    """Say why a document is not among the hits of a search: its rank and parts, and what kept it away.

    Args:
        store: Where it is.
        question: In words.
        settings: Those of the search.
        id: The document.

    Returns:
        ``rank`` (None if it is not among the first 1,000), ``hit`` with its score and parts if it has a rank,
        ``last`` with the score of the last hit, and ``reasons`` in words.

    Raises:
        DocumentError: If the document does not exist.
    """
    documents = store.get_by_ids([id])
    if not documents:
        raise DocumentError(f"document {id!r} does not exist in the store")
    document = documents[0]
    explanation: dict[str, Any] = {
        "id": id,
        "title": name_document(document.metadata, get_body(document)) or id,
        "rank": None,
    }
    hits = store.search(question, strategy=settings.make_strategy(), filter=settings.filter)
    explanation["last"] = hits[len(hits) - 1].score if hits else None
    if not parse_filter(settings.filter).matches(document.metadata):
        return {**explanation, "reasons": ["the filter of the search excludes it"]}
    behind = store.search(question, strategy=settings.make_strategy(SEARCHED_BEHIND), filter=settings.filter)
    for rank, hit in enumerate(behind, 1):
        if hit.document.id == id:
            explanation |= {"rank": rank, "hit": _describe_hit(hit, question)}
            reason = "it is among the hits" if rank <= len(hits) else f"{rank - len(hits)} ranks too low"
            return {**explanation, "reasons": [reason, *_list_cuts(behind)]}
    return {**explanation, "reasons": [*_describe_distance(store, hits, id), *_list_cuts(hits)]}


def _list_cuts(hits: Hits) -> list[str]:
    return [str(cut) for cut in hits.cuts if cut.reason != "k"]


def _describe_distance(store: LinkStore, hits: Hits, id: str) -> list[str]:
    """Say how far a document that was not reached is from the hits, by links."""
    wanted = {str(hit.document.id) for hit in hits}
    seen, frontier, hubs = {id}, [id], set[str]()
    for distance in range(1, _MOST_DISTANCE + 1):
        reached: list[str] = []
        for document_id in frontier:
            around = store.links.neighbours(document_id)
            for neighbour in (*around.incoming, *around.outgoing):
                if neighbour.more:
                    hubs.add(f"{neighbour.link.kind} {neighbour.link.tag}")
                reached += [other for other in neighbour.ids if other not in seen]
                seen.update(neighbour.ids)
            if len(seen) > _MOST_VISITED:
                break
        if reached_ids := sorted(wanted & set(reached)):
            away = format_count(distance, "link")
            return [f"the search did not reach it; {reached_ids[0]} is {away} away"]
        frontier = reached
    reasons = [f"the search did not reach it, and no hit is within {_MOST_DISTANCE} links of it"]
    if hubs:
        reasons.append(f"it is in link groups that are hubs: {', '.join(sorted(hubs)[:5])}")
    return reasons

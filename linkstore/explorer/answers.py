"""What the page shows of a search: hits, their graph, facets, what was cut, and why a document is missing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from linkstore.core.arguments import omit_none, require_within
from linkstore.core.display import find_query_spans, format_count, get_body, get_title, get_url, make_snippet
from linkstore.core.filters import parse_filter
from linkstore.core.hit_graph import HitGraph, name_document
from linkstore.core.hits import Hit, Hits, get_page
from linkstore.errors import DocumentError, LinkStoreError, StrategyError
from linkstore.explorer.corpus import find_start, get_folder, is_date, list_values
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
_NEAR_HITS: Final = 10
_MOST_VISITED: Final = 200
"""How many documents are looked at to find how far a document is from each of the best hits."""
MOST_FACETS: Final = 6
"""How many facets a search has at most."""
MOST_OPTIONS: Final = 20
"""How many values of a facet are listed at most."""


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
        for name in given.keys() - cls.__dataclass_fields__.keys():
            raise StrategyError(
                f"there is no setting {name!r}; there are {', '.join(cls.__dataclass_fields__)}"
            )
        return cls(**given)

    def make_strategy(self, k: int | None = None) -> Strategy:
        """Return the strategy with these settings, for ``k`` documents if it is given."""
        if self.strategy not in STRATEGIES:
            raise StrategyError(f"there is no strategy {self.strategy!r}; there are {', '.join(STRATEGIES)}")
        require_within(1, MOST_HITS, k=self.k)
        kind = STRATEGIES[self.strategy]
        kinds = frozenset(self.kinds) if isinstance(self.kinds, list | tuple) else self.kinds
        settings: dict[str, Any] = omit_none(k=self.k if k is None else k, depth=self.depth, kinds=kinds)
        for name in settings.keys() - kind.__dataclass_fields__.keys():
            raise StrategyError(f"the strategy {self.strategy!r} has no setting {name!r}")
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
        way[document.id].update(title=get_name(document), page=get_page(document), url=get_url(document))
    return shown


def count_facets(store: LinkStore, question: str, settings: AskSettings) -> dict[str, list[dict[str, Any]]]:
    """Count the values of metadata in the best 100 documents, to narrow a search by them.

    A field is one if most of the pages that have it share its values, and these part the pages; but no dates.

    Returns:
        Up to 6 fields, those that most pages have first, each with its most frequent values: the ``label``,
        the number of ``pages``, and the ``condition`` for a filter. The values of ``page`` are folders.
    """
    hits = store.search(question, strategy=settings.make_strategy(MOST_HITS), filter=settings.filter)
    start = find_start([get_page(hit.document) for hit in hits])
    options: dict[str, dict[bytes, dict[str, Any]]] = defaultdict(dict)
    for hit in hits:
        page, values = get_page(hit.document), list[tuple[str, str, Any]](list_values(hit.document.metadata))
        if page == hit.document.metadata.get("page") and (folder := get_folder(page, start)):
            within = {"$gte": f"{start}{folder}/", "$lt": f"{start}{folder}0"}  # 0 comes after the slash
            values.append(("page", folder, within))
        for name, label, condition in values:
            new = {"label": label, "condition": condition, "pages": set()}
            options[name].setdefault(orjson.dumps(condition), new)["pages"].add(page)
    facets, everywhere = [], len(hits.by_page())
    for name, by_value in options.items():
        ordered = sorted(by_value.values(), key=lambda option: (-len(option["pages"]), option["label"]))
        having = set().union(*(option["pages"] for option in ordered))
        sharing = set().union(*(option["pages"] for option in ordered if len(option["pages"]) > 1))
        dated = all(is_date(option["label"]) for option in ordered)
        if len(ordered[-1]["pages"]) < everywhere and 2 * len(sharing) >= len(having) and not dated:
            counts = [option | {"pages": len(option["pages"])} for option in ordered[:MOST_OPTIONS]]
            facets.append((-len(having), name, counts))
    return {name: counts for _, name, counts in sorted(facets)[:MOST_FACETS]}


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
        "name": get_name(document),
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


def get_name(document: Document) -> str:
    """Return the name of a document: its title and heading, else how its text begins, else its id."""
    return name_document(document.metadata, get_body(document)) or document.id or ""


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
    explanation: dict[str, Any] = {"id": id, "title": get_name(document), "rank": None}
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
    """Say how far a document that was not reached is from the best hits, by links."""
    ways = [
        store.links.paths(str(hit.document.id), id, 1, max_nodes=_MOST_VISITED) for hit in hits[:_NEAR_HITS]
    ]
    distance, nearest = min(((len(chain), way.start) for way in ways for chain in way), default=(None, ""))
    limits = list(dict.fromkeys(limit for way in ways for limit in way.limits))
    if distance is None or distance > _MOST_DISTANCE:
        return [f"the search did not reach it, and no hit is within {_MOST_DISTANCE} links of it", *limits]
    return [f"the search did not reach it; {nearest} is {format_count(distance, 'link')} away"]

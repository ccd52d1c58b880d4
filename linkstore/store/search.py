"""Searching a store: the arguments of each search, and how it is carried out.

Documents of superseded pages, which name in their metadata the pages that take their place, come after these.
A page whose documents are not among the hits is represented by its first document, whose id is its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from math import inf, nextafter
from typing import Any, Final, TypedDict, Unpack

import numpy as np

from linkstore.core.arguments import omit_none, quote_value
from linkstore.core.arrays import Floats, convert_numbers, normalize_vector
from linkstore.core.calls import Operation, arun, call_engine, call_plan, run
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import SUPERSEDED_BY, Hit, Hits, get_page
from linkstore.core.links import AnyLink
from linkstore.embeddings.names import LEAST_SIMILARITY
from linkstore.errors import EmbeddingError, StrategyError
from linkstore.store.base import StoreBase
from linkstore.store.misspellings import check_known_names, describe_mistake
from linkstore.strategies.base import DEFAULT_MAX_NODES, DEFAULT_SEEDS, SearchOptions, Strategy
from linkstore.strategies.eager import Eager
from linkstore.strategies.first_stage import Similarity
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.observers import count_reached, observe_search
from linkstore.strategies.pagerank import DEFAULT_STRATEGY, PageRank
from linkstore.strategies.traversal import check_depth, limit_depth

DEFAULT_RETURNED_K: Final = 4
"""Number of documents that LangChain's methods return by default."""
LINKS_SEARCH: Final = "links"
"""The search type of the default strategy, or of one that is given."""
SEARCH_OPTIONS: Final = frozenset(field.name for field in fields(SearchOptions) if field.init)
FILTER_OPTIONS: Final = tuple(sorted(name for name in SEARCH_OPTIONS if name.endswith("filter")))
_PLAIN_OPTIONS: Final = SEARCH_OPTIONS - {"initial_roots", "initial_links"}
TRAVERSAL_SEARCHES: Final = ("traversal", "mmr_traversal", "pagerank")
"""The search types of langchain-community's former GraphVectorStore, and the default strategy by its name."""
_STRATEGY_OF_SEARCH: Final[Mapping[str, type[Strategy]]] = {
    "similarity": Similarity,
    "mmr": Mmr,
    "similarity_score_threshold": Similarity,
}
_PLACEHOLDER_VECTOR: Final = normalize_vector([1.0])


class SearchArguments(TypedDict, total=False):
    """The arguments of :meth:`linkstore.LinkStore.search` besides the question."""

    k: int | None
    strategy: Strategy | None
    filter: Filter | None
    seed_filter: Filter | None
    hop_filter: Filter | None
    link_filter: Filter | None
    result_filter: Filter | None
    initial_roots: Sequence[str]
    initial_links: Sequence[AnyLink]
    depth: int
    fetch_k: int
    lambda_mult: float
    score_threshold: float


def list_settings(kind: type[Strategy]) -> frozenset[str]:
    """Return the names of a strategy's settings."""
    return frozenset(field.name for field in fields(kind))


SEARCH_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    LINKS_SEARCH: SEARCH_OPTIONS | {"k", "strategy"},
    "traversal": SEARCH_OPTIONS | (list_settings(Eager) - {"start_k"}),
    "mmr_traversal": SEARCH_OPTIONS | list_settings(Mmr),
    "pagerank": SEARCH_OPTIONS | list_settings(PageRank),
    "similarity": _PLAIN_OPTIONS | {"k"},
    "mmr": SEARCH_OPTIONS | {"k", "fetch_k", "lambda_mult"},
    "similarity_score_threshold": _PLAIN_OPTIONS | {"k", "score_threshold"},
}
"""For each search type of a retriever, the arguments it takes."""


def check_options(search_type: str, options: Mapping[str, Any]) -> None:
    """Raise if a search type does not take an argument, or an argument is invalid.

    Args:
        search_type: One of :data:`SEARCH_ARGUMENTS`.
        options: Arguments by name.

    Raises:
        TypeError: Naming the search types that take the argument, or those it can have.
        FilterError: If a filter is invalid.
        StrategyError: If a setting is invalid.
    """
    for name in options:
        if name not in SEARCH_ARGUMENTS[search_type]:
            raise TypeError(_describe_misplaced(name, search_type))
    for name in FILTER_OPTIONS:
        parse_filter(options.get(name))
    if search_type == LINKS_SEARCH:
        choose_strategy(options.get("strategy"), options.get("k"))
    elif search_type in TRAVERSAL_SEARCHES:
        make_traversal(search_type, options)
    else:
        kind = _STRATEGY_OF_SEARCH[search_type]
        kind(**{name: value for name, value in options.items() if name in list_settings(kind)})


def make_traversal(search_type: str, options: Mapping[str, Any]) -> tuple[Strategy, dict[str, Any]]:
    """Return the strategy of a search type that follows links, and the options of its search.

    Args:
        search_type: One of :data:`TRAVERSAL_SEARCHES`.
        options: Settings of the strategy, and of the search. The ``k`` of ``"traversal"`` counts documents to
            start from, and all documents reached are returned.

    Raises:
        TypeError: If the method does not take one of them.
        StrategyError: If a setting is invalid.
    """
    where = f"{search_type}_search()" if search_type.endswith("traversal") else f'search_type="{search_type}"'
    check_argument_names(where, options, SEARCH_ARGUMENTS[search_type])
    of_search = {name: value for name, value in options.items() if name in SEARCH_OPTIONS}
    settings = {name: value for name, value in options.items() if name not in SEARCH_OPTIONS}
    if search_type == "traversal":
        start_k = settings.pop("k", DEFAULT_SEEDS)
        most = settings.get("max_nodes", DEFAULT_MAX_NODES)
        return Eager(**{**settings, "start_k": start_k, "k": most}), of_search
    kind = PageRank if search_type == "pagerank" else Mmr
    return kind(**{"k": DEFAULT_RETURNED_K, **settings}), of_search


def choose_search(
    method: str, search_type: str, options: Mapping[str, Any]
) -> tuple[Strategy, SearchOptions, float | None]:
    """Return the strategy of a search type, the options of its search, and the least relevance of its hits.

    Args:
        method: The method that was called, for messages.
        search_type: One of :data:`SEARCH_ARGUMENTS`.
        options: Settings of the strategy, and of the search.

    Raises:
        TypeError: If it does not take one of the options.
        StrategyError: If there is no such search type, or a setting is invalid.
    """
    if search_type not in SEARCH_ARGUMENTS:
        offered = ", ".join(map(repr, SEARCH_ARGUMENTS))
        raise StrategyError(f"{method}() has no search_type {quote_value(search_type)}; it has {offered}")
    if search_type != LINKS_SEARCH:
        options = omit_none(**options)
    if search_type in TRAVERSAL_SEARCHES:
        strategy, of_search = make_traversal(search_type, options)
        return strategy, SearchOptions(**of_search), None
    where = f"{method}()" if search_type == LINKS_SEARCH else f'search_type="{search_type}"'
    check_argument_names(where, options, SEARCH_ARGUMENTS[search_type])
    of_search = {name: value for name, value in options.items() if name in SEARCH_OPTIONS}
    k = options.get("k")
    if search_type == LINKS_SEARCH:
        return choose_strategy(options.get("strategy"), k), SearchOptions(**of_search), None
    k = DEFAULT_RETURNED_K if k is None else k
    if search_type == "mmr":
        diversity = {name: options[name] for name in ("fetch_k", "lambda_mult") if name in options}
        return make_diverse_mmr(k, **diversity), SearchOptions(**of_search), None
    return Similarity(k=k), SearchOptions(**of_search), options.get("score_threshold")


def make_diverse_mmr(k: int, fetch_k: int = 20, lambda_mult: float = 0.5) -> Mmr:
    """Return LangChain's search by maximal marginal relevance, which follows no links."""
    return Mmr(k=k, depth=0, fetch_k=fetch_k, lambda_mult=lambda_mult)


def convert_relevance(cosine: float) -> float:
    """Return LangChain's relevance, in [0, 1]."""
    return (1.0 + cosine) / 2.0


def make_search_options(method: str, options: Mapping[str, Any]) -> SearchOptions:
    """Return the options of a search from a method's arguments.

    Raises:
        TypeError: If the method does not take one of them.
    """
    check_argument_names(f"{method}()", options, SEARCH_OPTIONS | {"k"})
    return SearchOptions(**options)


def choose_strategy(strategy: Strategy | None, k: int | None) -> Strategy:
    """Return the strategy (None: the default), with ``k`` set if it is given.

    Raises:
        StrategyError: If this is not a strategy, or ``k`` is invalid.
    """
    chosen = DEFAULT_STRATEGY if strategy is None else strategy
    if not isinstance(chosen, Strategy):
        raise StrategyError(f"strategy must be a Strategy such as Eager(depth=1), not {strategy!r}")
    return chosen if k is None else chosen.with_k(k)


def check_argument_names(where: str, names: Iterable[str], taken: Collection[str]) -> None:
    """Raise if an argument is not one that ``where`` takes.

    Raises:
        TypeError: Naming the argument, and where it belongs.
    """
    for name in names:
        if name not in taken:
            raise TypeError(f"{where} has no argument {name!r}; {_advise(name, taken)}")


def _advise(name: str, taken: Collection[str]) -> str:
    """Return the end of a message, which says where an argument belongs."""
    if name == "start_k" and "depth" in taken:
        return f"its {'fetch_k' if 'fetch_k' in taken else 'k'} is the number of documents to start from"
    from linkstore.strategies.all_paths import AllPaths  # late: only for messages

    for kind in (Eager, Mmr, PageRank, AllPaths):
        if name in list_settings(kind):
            return f"it is a setting of strategies such as {kind.__name__}({name}=...)"
    return f"it has {', '.join(sorted(taken))}"


def _describe_misplaced(name: str, search_type: str) -> str:
    where = f'search_type="{search_type}"'
    owners = [
        f'search_type="{other}"'
        for other, taken in SEARCH_ARGUMENTS.items()
        if name in taken and other != "pagerank"  # whose settings are rather given to a strategy
    ]
    if owners:
        return f"{name} belongs to {_join_alternatives(owners)}, not to {where}"
    return f"{where} has no argument {name!r}; {_advise(name, SEARCH_ARGUMENTS[search_type])}"


def _join_alternatives(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


class SearchMethods(StoreBase):
    """The search of a store that is no VectorStore of LangChain."""

    def search(self, query: str, **arguments: Unpack[SearchArguments]) -> Hits:
        """Search by a strategy, and return hits with their paths: see :meth:`linkstore.LinkStore.search`."""
        return run(self._search("search", query, LINKS_SEARCH, arguments))

    async def asearch(self, query: str, **arguments: Unpack[SearchArguments]) -> Hits:
        """Search without blocking the event loop: see :meth:`search`."""
        return await arun(self._search("asearch", query, LINKS_SEARCH, arguments))

    def _search(
        self, method: str, query: str, search_type: str, arguments: Mapping[str, Any]
    ) -> Operation[Hits]:
        strategy, options, least = choose_search(method, search_type, arguments)
        hits = yield from self._hits(query, strategy, options)
        if least is None:
            return hits
        return replace(hits, hits=tuple(hit for hit in hits if convert_relevance(hit.score) >= least))

    def _hits(self, query: str | list[float], strategy: Strategy, options: SearchOptions) -> Operation[Hits]:
        """Search, and report it to the observers."""
        strategy = strategy.with_min_similarity(self._min_similarity)
        if not self._observers:
            return self._find_hits(query, strategy, options, None)
        question = query if isinstance(query, str) else ""
        search = partial(self._find_hits, query, strategy, options)
        return observe_search(self._observers, question, str(strategy), search)

    def _find_hits(
        self, query: str | list[float], strategy: Strategy, options: SearchOptions, reached: list[int] | None
    ) -> Operation[Hits]:
        """Embed the query unless it is a vector, run the strategy's plan, and apply its reranker.

        Args:
            query: The question, or its vector.
            strategy: How to search.
            options: Filters and additional starting points.
            reached: If given, takes the number of documents that each step along links gave.

        Raises:
            StrategyError: If the strategy follows more links in a row than the store allows.
            EmbeddingError: If the query is neither a string nor a vector of the store's dimension.
            UnknownNameError: If no document has a name that the search asks for, and would return hits all
                the same.
        """
        backend = self.backend
        yield from check_known_names(backend, strategy, options)
        text = query if isinstance(query, str) else ""
        query_vector = None if isinstance(query, str) else _convert_question(query)
        question = options.question(_PLACEHOLDER_VECTOR, text)  # raise on an invalid link before embedding
        least = LEAST_SIMILARITY.get(self._embedding.name)
        question = replace(question, least_similarity=least, lexical=self._lexical)
        if (limit := self._max_depth) is not None:
            check_depth(strategy, strategy.hops, limit)
        vector = (
            (yield from self._embedding.embed_query(text, options.scope))
            if query_vector is None
            else query_vector
        )
        manifest = yield from call_engine(backend, backend.manifest())
        question = replace(question, vector=normalize_vector(vector, manifest.dimension))
        plan = strategy.plan(question)
        if limit is not None:
            plan = limit_depth(plan, strategy, limit)
        if reached is not None:
            plan = count_reached(plan, reached)
        ranked = yield from call_plan(backend, plan, options.scope)
        hits = yield from strategy.apply_reranker(question, ranked)
        if [hit for hit in hits.hits if SUPERSEDED_BY in hit.document.metadata]:
            missing = find_missing_successors(hits)
            plan = Eager(start_k=0, depth=0, k=max(1, len(missing))).plan(
                replace(question, roots=missing, links=())
            )
            fetched = yield from call_plan(backend, plan, options.scope)
            hits = rank_after_successors(hits, fetched, max(strategy.k, 1))
        if not hits and (mistake := (yield from describe_mistake(backend, options))):
            return replace(hits, reason=f"{hits.reason}; {mistake}")
        return hits


def _convert_question(given: Any) -> Floats:
    """Return the vector of a question as float32 of shape ``(dimension,)``, not scaled.

    Raises:
        EmbeddingError: If it is not a sequence of numbers, such as the input of a whole chain.
    """
    try:
        vector = convert_numbers(given)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0, np.float32)
    if vector.ndim != 1 or not vector.size:
        raise EmbeddingError(
            f"a question must be a string or a list of numbers, not {quote_value(given)[:200]}"
        )
    return vector


def find_missing_successors(hits: Hits) -> tuple[str, ...]:
    """Return the ids of the successors of the hits' pages, without those of pages with hits."""
    pages = {get_page(hit.document) for hit in hits}
    return tuple(sorted({name for hit in hits for name in _list_successors(hit)} - pages))


def rank_after_successors(hits: Hits, fetched: Hits, k: int) -> Hits:
    """Return at most ``k`` hits, with superseded pages after their successors.

    A document goes behind the first of them, with a score just below, and a fetched one takes the place and
    the score of the first document that it supersedes. Contributions say so as ``superseded``. Other
    documents keep their order. Where there are too many, documents that were superseded go first.

    Args:
        hits: Best first.
        fetched: The successors that are not among them.
        k: Maximum number of hits.
    """
    ordered = list(hits.hits)
    for hit in fetched:
        page = get_page(hit.document)
        places = (at for at, other in enumerate(ordered) if page in _list_successors(other))
        at = next(places, len(ordered))
        if at < len(ordered):
            ordered.insert(at, _set_score(hit, max(hit.score, ordered[at].score)))
    for hit in reversed(hits.hits):
        names = _list_successors(hit)
        place = next(place for place, other in enumerate(ordered) if other is hit)
        at = next((at for at, other in enumerate(ordered) if get_page(other.document) in names), -1)
        if at >= 0 and get_page(hit.document) not in _list_successors(ordered[at]):
            moved = _set_score(hit, min(hit.score, nextafter(ordered[at].score, -inf)))
            del ordered[place]
            ordered.insert(max(at, place), moved)
    superseded = [at for at, hit in enumerate(ordered) if _list_successors(hit)]
    for at in reversed(superseded[max(0, len(superseded) - max(0, len(ordered) - k)) :]):
        del ordered[at]
    return replace(hits, hits=tuple(ordered[:k]))


def _set_score(hit: Hit, score: float) -> Hit:
    parts = {**hit.contributions, "superseded": score - hit.score}
    return hit if score == hit.score else replace(hit, score=score, contributions=parts)


def _list_successors(hit: Hit) -> frozenset[str]:
    named = hit.document.metadata.get(SUPERSEDED_BY)
    names = named if isinstance(named, list) else ()
    return frozenset(name for name in names if isinstance(name, str))

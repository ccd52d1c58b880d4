"""Says which search takes which arguments, and raises errors for arguments that belong elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from linkstore.errors import StrategyError
from linkstore.filters import parse_filter
from linkstore.searchoptions import SearchOptions
from linkstore.strategies import DEFAULT_STRATEGY, AllPaths, Eager, Mmr, PageRank, Similarity, Strategy
from linkstore.strategies.base import DEFAULT_MAX_NODES, DEFAULT_SEEDS

DEFAULT_RETURNED: Final = 4
"""Number of documents that LangChain's methods return by default."""
LINKS: Final = "links"
"""The search type of the default strategy, or of one that is given."""


def settings_of(kind: type[Strategy]) -> frozenset[str]:
    """Return the names of a strategy's settings."""
    return frozenset(field.name for field in fields(kind))


SEARCH_OPTIONS: Final = frozenset(field.name for field in fields(SearchOptions) if field.init)
FILTERS: Final = tuple(sorted(name for name in SEARCH_OPTIONS if name.endswith("filter")))
_PLAIN: Final = SEARCH_OPTIONS - {"initial_roots", "initial_links"}
TAKES: Final[Mapping[str, frozenset[str]]] = {
    LINKS: SEARCH_OPTIONS | {"k", "strategy"},
    "traversal": SEARCH_OPTIONS | (settings_of(Eager) - {"start_k"}),
    "mmr_traversal": SEARCH_OPTIONS | settings_of(Mmr),
    "similarity": _PLAIN | {"k"},
    "mmr": SEARCH_OPTIONS | {"k", "fetch_k", "lambda_mult"},
    "similarity_score_threshold": _PLAIN | {"k", "score_threshold"},
}
"""For each search type of a retriever, the arguments it takes."""
TRAVERSALS: Final = ("traversal", "mmr_traversal")
"""The search types of langchain-community's former GraphVectorStore."""
_STRATEGY_OF: Final[Mapping[str, type[Strategy]]] = {
    "similarity": Similarity,
    "mmr": Mmr,
    "similarity_score_threshold": Similarity,
}
_OFFERED: Final = (Eager, Mmr, PageRank, AllPaths)
"""The strategies whose settings a message suggests, in this order."""


def check_options(search_type: str, options: Mapping[str, Any]) -> None:
    """Raise if a search type does not take an argument, or an argument is invalid.

    Args:
        search_type: One of :data:`TAKES`.
        options: Arguments by name.

    Raises:
        TypeError: Naming the search types that take the argument, or those it can have.
        FilterError: If a filter is invalid.
        StrategyError: If a setting is invalid.
    """
    for name in options:
        if name not in TAKES[search_type]:
            raise TypeError(_misplaced(name, search_type))
    for name in FILTERS:
        parse_filter(options.get(name))
    if search_type == LINKS:
        chosen_strategy(options.get("strategy"), options.get("k"))
    elif search_type in TRAVERSALS:
        traversing(search_type, options)
    else:
        kind = _STRATEGY_OF[search_type]
        kind(**{name: value for name, value in options.items() if name in settings_of(kind)})


def traversing(search_type: str, options: Mapping[str, Any]) -> tuple[Strategy, dict[str, Any]]:
    """Return the strategy of a traversal of the former GraphVectorStore, and the options of its search.

    Args:
        search_type: One of :data:`TRAVERSALS`.
        options: Arguments of the method of this name. The ``k`` of ``"traversal"`` counts documents to start
            from, and all documents reached are returned.

    Raises:
        TypeError: If the method does not take one of them.
        StrategyError: If a setting is invalid.
    """
    check_names(f"{search_type}_search()", options, TAKES[search_type])
    of_search = {name: value for name, value in options.items() if name in SEARCH_OPTIONS}
    settings = {name: value for name, value in options.items() if name not in SEARCH_OPTIONS}
    if search_type == "traversal":
        start_k = settings.pop("k", DEFAULT_SEEDS)
        most = settings.get("max_nodes", DEFAULT_MAX_NODES)
        return Eager(**{**settings, "start_k": start_k, "k": most}), of_search
    return Mmr(**{"k": DEFAULT_RETURNED, **settings}), of_search


def search_options(method: str, options: Mapping[str, Any]) -> SearchOptions:
    """Return the options of a search from a method's arguments.

    Raises:
        TypeError: If the method does not take one of them.
    """
    own = {"k", "strategy"} if method in {"search", "asearch"} else {"k"}
    check_names(f"{method}()", options, SEARCH_OPTIONS | own)
    return SearchOptions(**options)


def chosen_strategy(strategy: Strategy | None, k: int | None) -> Strategy:
    """Return the strategy (None: the default), with ``k`` set if it is given.

    Raises:
        StrategyError: If this is not a strategy, or ``k`` is invalid.
    """
    chosen = DEFAULT_STRATEGY if strategy is None else strategy
    if not isinstance(chosen, Strategy):
        raise StrategyError(f"strategy must be a Strategy such as Eager(depth=1), not {strategy!r}")
    return chosen if k is None else chosen.returning(k)


def check_names(where: str, names: Iterable[str], taken: Collection[str]) -> None:
    """Raise if an argument is not one that ``where`` takes.

    Raises:
        TypeError: Naming the argument, and where it belongs.
    """
    for name in names:
        if name not in taken:
            raise TypeError(f"{where} has no argument {name!r}; {_advice(name, taken)}")


def _advice(name: str, taken: Collection[str]) -> str:
    """Return the end of a message, which says where an argument belongs."""
    if name == "start_k" and "depth" in taken:
        return f"its {'fetch_k' if 'fetch_k' in taken else 'k'} is the number of documents to start from"
    for kind in _OFFERED:
        if name in settings_of(kind):
            return f"it is a setting of strategies such as {kind.__name__}({name}=...)"
    return f"it has {', '.join(sorted(taken))}"


def _misplaced(name: str, search_type: str) -> str:
    where = f'search_type="{search_type}"'
    owners = [f'search_type="{other}"' for other, taken in TAKES.items() if name in taken]
    if owners:
        return f"{name} belongs to {_either(owners)}, not to {where}"
    return f"{where} has no argument {name!r}; {_advice(name, TAKES[search_type])}"


def _either(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last

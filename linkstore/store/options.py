"""Which search takes which arguments, and what is said of an argument that belongs elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from linkstore.errors import StrategyError
from linkstore.filters import parse_filter
from linkstore.operations import SearchOptions
from linkstore.strategies import DEFAULT_STRATEGY, AllPaths, Eager, Mmr, PageRank, Similarity, Strategy

LINKS: Final = "links"
"""The search type of the default strategy, or of one that is given."""


def settings_of(kind: type[Strategy]) -> frozenset[str]:
    """The names of a strategy's settings."""
    return frozenset(field.name for field in fields(kind))


SEARCH_OPTIONS: Final = frozenset(field.name for field in fields(SearchOptions))
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
_STRATEGY_OF: Final[Mapping[str, type[Strategy]]] = {
    "traversal": Eager,
    "mmr_traversal": Mmr,
    "similarity": Similarity,
    "mmr": Mmr,
    "similarity_score_threshold": Similarity,
}
_OFFERED: Final = (Eager, Mmr, PageRank, AllPaths)
"""Whose settings a message suggests, in this order."""


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
    else:
        _check_settings(search_type, options)


def search_options(method: str, options: Mapping[str, Any]) -> SearchOptions:
    """The options of a search, as a method got them.

    Raises:
        TypeError: If the method does not take one of them.
    """
    own = {"k", "strategy"} if method in {"search", "asearch"} else {"k"}
    check_names(f"{method}()", options, SEARCH_OPTIONS | own)
    return SearchOptions(**options)


def chosen_strategy(strategy: Strategy | None, k: int | None) -> Strategy:
    """The strategy (None: the default) with ``k`` set if it is given.

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
    """Where an argument belongs, as the end of a message."""
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


def _check_settings(search_type: str, options: Mapping[str, Any]) -> None:
    kind = _STRATEGY_OF[search_type]
    given = {name: value for name, value in options.items() if name in settings_of(kind)}
    if search_type == "traversal" and "k" in given:
        given["start_k"] = given.pop("k")
    kind(**given)


def _either(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last

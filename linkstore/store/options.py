"""Which search takes which arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from linkstore.filters import parse_filter
from linkstore.operations import SearchOptions
from linkstore.strategies import Eager, Mmr

LINKS: Final = "links"
"""The search type of the default strategy, or of one that is given."""
SEARCH_OPTIONS: Final = frozenset(field.name for field in fields(SearchOptions))
FILTERS: Final = tuple(sorted(name for name in SEARCH_OPTIONS if name.endswith("filter")))
TAKES: Final[Mapping[str, frozenset[str]]] = {
    LINKS: SEARCH_OPTIONS | {"k", "strategy"},
    "traversal": SEARCH_OPTIONS | ({field.name for field in fields(Eager)} - {"start_k"}),
    "mmr_traversal": SEARCH_OPTIONS | {field.name for field in fields(Mmr)},
    "similarity": SEARCH_OPTIONS | {"k"},
    "mmr": SEARCH_OPTIONS | {"k", "fetch_k", "lambda_mult"},
    "similarity_score_threshold": SEARCH_OPTIONS | {"k", "score_threshold"},
}
"""For each search type of a retriever, the arguments it takes."""


def check_options(search_type: str, options: Mapping[str, Any]) -> None:
    """Raise if a search type does not take an argument, or a filter is invalid.

    Args:
        search_type: One of :data:`TAKES`.
        options: Arguments by name.

    Raises:
        TypeError: Naming the search types that take the argument, or those it can have.
        FilterError: If a filter is invalid.
    """
    taken = TAKES[search_type]
    for name in options:
        if name not in taken:
            raise TypeError(_misplaced(name, search_type))
    for name in FILTERS:
        parse_filter(options.get(name))


def _misplaced(name: str, search_type: str) -> str:
    owners = [f'search_type="{other}"' for other, names in TAKES.items() if name in names]
    if owners:
        return f'{name} belongs to {_either(owners)}, not to search_type="{search_type}"'
    known = ", ".join(sorted(TAKES[search_type]))
    return f'search_type="{search_type}" has no argument {name!r}; it has {known}'


def _either(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last

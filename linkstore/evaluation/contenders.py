"""Strategies by the names under which they are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from linkstore.arguments import require_list
from linkstore.errors import EvaluationError
from linkstore.retriever import LinkRetriever
from linkstore.store import LinkStore
from linkstore.strategies import Eager, Mmr, PageRank, Similarity, Strategy, Words

DENSE: Final = "dense"
"""Similarity search alone."""
WORDS: Final = "bm25"
BOTH: Final = "dense+bm25"
"""Similarity and words together, as the first stage of the default joins them; no link is followed."""
DEFAULT: Final = "default"


def _both() -> Strategy:
    return PageRank(kinds=(), named=0, page_weight=0.0, page_fade=1.0)


_MADE_BY: Final[Mapping[str, Callable[[], Strategy]]] = {
    DENSE: Similarity,
    WORDS: Words,
    BOTH: _both,
    "eager": Eager,
    "mmr": Mmr,
    "pagerank": PageRank,
}
STRATEGIES: Final = (*_MADE_BY, DEFAULT)
"""The names that are known; ``"default"`` is what a LinkRetriever uses by itself."""


def strategies_named(names: Sequence[str], store: LinkStore) -> dict[str, Strategy]:
    """Return strategies with their own settings, each once, in order.

    Args:
        names: Some of :data:`STRATEGIES`.
        store: The store whose retriever determines the default.

    Raises:
        EvaluationError: If a name is unknown, or none is given.
    """
    require_list("names, or a dict of strategies by names of your own", strategies=names)
    unknown = [str(name) for name in names if name not in STRATEGIES]
    if unknown or not names:
        problem = f"unknown strategy {', '.join(unknown)}" if unknown else "no strategy is named"
        raise EvaluationError(f"{problem}; known: {', '.join(STRATEGIES)}")
    return {
        name: LinkRetriever(store=store).strategy_for() if name == DEFAULT else _MADE_BY[name]()
        for name in names
    }

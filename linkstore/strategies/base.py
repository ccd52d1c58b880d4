"""What every strategy has: a plan, and the controls of those that follow links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final, Literal, Self

from linkstore.errors import StrategyError
from linkstore.filters import EVERYTHING, Condition
from linkstore.hits import Hits
from linkstore.links import Link
from linkstore.plans import Plan, Side
from linkstore.strategies.reranking import Judge
from linkstore.vectors import Floats

Walk = Literal["forward", "backward", "both"]

DEFAULT_SEEDS: Final = 4
DEFAULT_ADJACENT_K: Final = 10
DEFAULT_HUB_CAP: Final = 200
DEFAULT_BEAM: Final = 32
DEFAULT_MAX_NODES: Final = 1000
DEFAULT_K: Final = 10
"""How many documents a search returns."""

SIDES: Final[Mapping[str, tuple[tuple[Side, Side], ...]]] = {
    "forward": (("out", "in"),),
    "backward": (("in", "out"),),
    "both": (("out", "in"), ("in", "out")),
}
"""For each direction: the sides on which a hop leaves a document and arrives at the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a search is asked.

    The filter that holds at every stage is not part of it: a plan is answered by a reader that is opened for
    that filter, and for which no other documents exist (see
    :meth:`Backend.answer <linkstore.backends.base.Backend.answer>`).

    Args:
        vector: (d,) unit vector of the query.
        text: The query as written; empty for a search by vector.
        filtered: Whether the plan is answered within a filter. Only messages depend on it.
        seed_filter: Tightens the filter where the search starts.
        hop_filter: Tightens it for documents reached by links.
        result_filter: Tightens it for documents returned; others may still be walked through.
        roots: Ids of documents the search also starts from.
        links: Links the search also starts from, as if the query were a document that has them.
    """

    vector: Floats
    text: str = ""
    filtered: bool = False
    seed_filter: Condition = EVERYTHING
    hop_filter: Condition = EVERYTHING
    result_filter: Condition = EVERYTHING
    roots: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Strategy(ABC):
    """How to answer a question; a value that holds settings and never the state of a search.

    Args:
        k: How many documents to return at most; default 10.
        per_page: At most so many documents of one page are returned, the best of it; default None, any
            number. The page of a document is told by its incoming ``section`` link; a document
            without one is a page of its own.
    """

    k: int = DEFAULT_K
    per_page: int | None = None

    def __post_init__(self) -> None:
        require_at_least(1, k=self.k)
        if self.per_page is not None:
            require_at_least(1, per_page=self.per_page)

    def __repr__(self) -> str:
        """The settings that differ from the defaults, as in ``PageRank(k=4)``."""
        given = [
            f"{setting.name}={value!r}"
            for setting in fields(self)
            if (value := getattr(self, setting.name)) is not setting.default and value != setting.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @abstractmethod
    def plan(self, question: Question) -> Plan[Hits]:
        """The fetches that answer ``question``, and the hits made of their answers."""

    def returning(self, k: int) -> Self:
        """The same strategy, returning at most ``k`` documents."""
        return replace(self, k=k)

    def judged(self, question: Question, hits: Hits) -> Generator[Judge, Sequence[float], Hits]:
        """The hits of the plan after a reranker's say, where the strategy has one."""
        yield from ()
        return hits


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Traversing(Strategy):
    """A strategy that follows links: the controls they all share.

    Args:
        min_similarity: Floor for the documents a search finds by similarity to start from, in
            [-1, 1]; default -1, no floor. Named roots and links are exempt.
        kinds: Which kinds of link to follow: names, or a dict of names with a weight from 0 to 1
            each; None, the default, follows all with weight 1.
        adjacent_k: How many members of a link group are taken, the most similar to the query
            first; default 10.
        hub_cap: Of a link group with more members than this on the side arrived at, none is
            taken; default 200.
        beam: At most so many documents are carried from one hop to the next, the best by score;
            default 32.
        max_nodes: At most so many documents are reached in all; default 1,000.
        direction: ``"forward"`` follows links as they point, ``"backward"`` asks who links here,
            ``"both"`` does both; default forward.
    """

    min_similarity: float = -1.0
    kinds: Mapping[str, float] | Iterable[str] | None = field(default=None, hash=False)
    adjacent_k: int = DEFAULT_ADJACENT_K
    hub_cap: int = DEFAULT_HUB_CAP
    beam: int = DEFAULT_BEAM
    max_nodes: int = DEFAULT_MAX_NODES
    direction: Walk = "forward"

    def __post_init__(self) -> None:
        Strategy.__post_init__(self)
        require_at_least(1, adjacent_k=self.adjacent_k, beam=self.beam, max_nodes=self.max_nodes)
        require_at_least(0, hub_cap=self.hub_cap)
        require_within(-1, 1, min_similarity=self.min_similarity)
        if self.direction not in SIDES:
            raise StrategyError(f"direction must be one of {', '.join(SIDES)}, not {self.direction!r}")
        if self.kinds is not None:
            object.__setattr__(self, "kinds", _weights(self.kinds))

    @property
    def followed(self) -> frozenset[str] | None:
        """The kinds of link that are followed; None where all are."""
        if not isinstance(self.kinds, Mapping):
            return None
        return frozenset(kind for kind, weight in self.kinds.items() if weight > 0)

    def weight_of(self, kind: str) -> float:
        """How much links of a kind count, from 0, not followed, to 1."""
        return self.kinds.get(kind, 0.0) if isinstance(self.kinds, Mapping) else 1.0


MOST: Final = 2**31 - 1
"""No number of documents, links or steps in a search may be larger."""


def require_at_least(least: int, **settings: int) -> None:
    """Refuse settings that are no whole number from ``least`` to :data:`MOST`.

    Raises:
        StrategyError: Naming the first such setting.
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise StrategyError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if value > MOST:
            raise StrategyError(f"{name} must be at most {MOST}, not {value!r}")


def require_within(low: float, high: float, **settings: float) -> None:
    """Refuse settings that are no number from ``low`` to ``high``.

    Raises:
        StrategyError: Naming the first such setting.
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise StrategyError(f"{name} must be a number from {low} to {high}, not {value!r}")


def _weights(kinds: Mapping[str, float] | Iterable[str]) -> dict[str, float]:
    if isinstance(kinds, str):
        raise StrategyError(f"kinds must be a list or dict of kinds, not the string {kinds!r}")
    if not isinstance(kinds, Iterable):
        raise StrategyError(f"kinds must be a list or dict of kinds, not {kinds!r}")
    weights = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    for kind, weight in weights.items():
        if not isinstance(kind, str) or not kind:
            raise StrategyError(f"a kind of link must be a non-empty string, not {kind!r}")
        require_within(0, 1, **{f"the weight of kind {kind!r}": weight})
    return weights

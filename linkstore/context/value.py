"""The value of a candidate in a context: the probability that it is evidence, or a weighted sum.

A memory is worth less the weaker it is: its strength halves with each half-life since the last access.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import require, require_within
from linkstore.errors import StrategyError

Doubles = npt.NDArray[np.float64]
FEATURES: Final = ("one", "log_rank", "log_share", "share", "log_tokens")
"""The features of the calibrated value, in the order of coefficients."""
OPEN_SETS: Final[Mapping[str, float]] = {
    "one": -2.206,
    "log_rank": -0.868,
    "log_share": 0.79,
    "share": 0.64,
    "log_tokens": 0.378,
}
"""Coefficients of the calibrated value.

Source: logistic regression over the first 100 hits of the default strategy (wordllama) on hotpotqa_train,
musique_train, ottqa_links, pep_questions and locomo_open, each set with the same total weight. To fit them
again: ``python benchmarks/context.py --data DIR --fit``; to one's own questions: ``linkstore eval --calibrate
--corpus FILE --questions FILE``.
"""
_LEAST_SHARE: Final = 1e-3
Memory = Literal["semantic", "episodic", "procedural"]
"""Kinds of memory: facts, events, and rules of behaviour. Rules are pinned and do not decay."""
MEMORIES: Final[tuple[str, ...]] = get_args(Memory)
MEMORY_KEY: Final = "memory"
"""The metadata key of a document's kind of memory."""
HALF_LIFE_KEY: Final = "half_life_hours"
"""The metadata key of a document's own half-life, a number of hours greater than 0."""
ACCESS_KEY: Final = "last_access"
"""The metadata key of the last access: ISO 8601, or seconds since 1970; without an offset it is UTC."""
LastAccess = Mapping[str, datetime] | Callable[[str], datetime | None]
"""When documents were last accessed, by id; it goes before the metadata."""
_HALF_LIVES: Final = {"semantic": timedelta(days=60), "episodic": timedelta(days=7)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The features of the candidates of a search, each array of shape (n,).

    Args:
        rank: From 1, as the strategy ranks them.
        score: Of the strategy.
        similarity: Cosine to the question.
        walk: The share of PageRank in the score (``contributions["walk"]``); the score where there is none.
        tokens: How long each is.
        strength: From 0 to 1, see :class:`~linkstore.context.Decay`.
    """

    rank: Doubles
    score: Doubles
    similarity: Doubles
    walk: Doubles
    tokens: Doubles
    strength: Doubles

    def features(self) -> Doubles:
        """Return the columns of :data:`FEATURES`, (n, 5)."""
        top = float(self.score.max(initial=0.0))
        share = np.clip(self.score / top, 0.0, 1.0) if top > 0 else np.ones(len(self.score))
        columns = (
            np.ones(len(share)),
            np.log(self.rank),
            np.log(np.maximum(share, _LEAST_SHARE)),
            share,
            np.log1p(self.tokens),
        )
        return np.stack(columns, axis=1)


class Value(ABC):
    """The valuation of candidates. Values are added up, and what has a value of 0 or less is left out."""

    __slots__ = ()

    least_gain: float
    """The context is filled by rank unless a better selection is worth this much more."""
    rank_bonus: float
    """The bonus, as a share, of documents that filling by rank takes in the search for a better selection."""

    @abstractmethod
    def of(self, evidence: Evidence) -> Doubles:
        """Return the values of candidates, (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Value):
    """The probability that a candidate is evidence, given its rank, score and length; times its strength.

    Probabilities can be added up: the sum is the number of pieces of evidence to expect in the context.
    Scores cannot: knapsacks over raw scores find less than filling by rank.

    Args:
        coefficients: By name, see :data:`FEATURES`; default :data:`OPEN_SETS`.
        least_gain: The context is filled by rank unless a better selection promises so many more pieces of
            evidence; default 0.02. The estimate is not sharper than that.
        rank_bonus: In the search for a better selection, documents that filling by rank takes count so much
            more; default 0.15. A knapsack picks what happens to be estimated too high.
    """

    coefficients: Mapping[str, float] | None = None
    least_gain: float = 0.02
    rank_bonus: float = 0.15

    def __post_init__(self) -> None:
        _check_selection(self)
        given = OPEN_SETS if self.coefficients is None else self.coefficients
        require(Mapping, "a dict of numbers", coefficients=given)
        if set(given) != set(FEATURES) or not all(np.isfinite(value) for value in given.values()):
            raise StrategyError(
                f"coefficients must give a finite number for each of {', '.join(FEATURES)},"
                f" not {dict(given)!r}"
            )

    def of(self, evidence: Evidence) -> Doubles:
        """Return probabilities times strength, (n,), from 0 to 1."""
        given = OPEN_SETS if self.coefficients is None else self.coefficients
        weights = np.array([given[name] for name in FEATURES])
        logits = np.clip(evidence.features() @ weights, -500, 500)
        values: Doubles = evidence.strength / (1.0 + np.exp(-logits))
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum(Value):
    """``alpha * similarity + beta * PageRank * strength``, as in ContextOS (Thakur, 2025).

    It finds less than :class:`Calibrated` on every set measured; see the benchmarks.

    Args:
        alpha: Weight of the similarity; default 50.
        beta: Weight of the PageRank; default 10.
        least_gain: As in :class:`Calibrated`; default 0, the selection with the highest sum is taken.
        rank_bonus: As in :class:`Calibrated`; default 0.
    """

    alpha: float = 50.0
    beta: float = 10.0
    least_gain: float = 0.0
    rank_bonus: float = 0.0

    def __post_init__(self) -> None:
        _check_selection(self)
        require_within(-math.inf, math.inf, alpha=self.alpha, beta=self.beta)

    def of(self, evidence: Evidence) -> Doubles:
        """Return sums of any size, (n,)."""
        values: Doubles = self.alpha * evidence.similarity + self.beta * evidence.walk * evidence.strength
        return values


def _check_selection(value: Value) -> None:
    """Raise StrategyError unless ``least_gain`` and ``rank_bonus`` are finite numbers."""
    require_within(-math.inf, math.inf, least_gain=value.least_gain, rank_bonus=value.rank_bonus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """The strength of a memory: ``0.5 ** (age / half_life) + resistance * centrality``, at most 1.

    The age is the time since the last access. A document without a kind of memory, of a kind without a
    half-life, or whose last access is not known has strength 1, and so has one accessed in the future.

    Args:
        half_life: The half-life of each kind of memory; default 60 days for ``semantic``, 7 days for
            ``episodic``, none for ``procedural``. ``metadata["half_life_hours"]`` of a document goes before
            it.
        resistance: How much the most linked document of a search resists decay, from 0 to 1; default 0.2.

    Raises:
        StrategyError: If a half-life is not greater than 0, or ``resistance`` is out of range.
    """

    half_life: Mapping[str, timedelta] = field(default_factory=_HALF_LIVES.copy, hash=False)
    resistance: float = 0.2

    def __post_init__(self) -> None:
        require(Mapping, "a dict of timedeltas by kind of memory", half_life=self.half_life)
        for kind, value in self.half_life.items():
            if not isinstance(value, timedelta) or value <= timedelta(0):
                raise StrategyError(f"the half-life of {kind!r} must be a timedelta above 0, not {value!r}")
        require_within(0, 1, resistance=self.resistance)

    @classmethod
    def published(cls) -> Self:
        """Return the decay of ContextOS (Thakur, 2025): facts retain 0.9995 an hour, events 0.90.

        As half-lives: 57.8 days and 6.6 hours.
        """
        return cls(half_life={"semantic": timedelta(days=57.8), "episodic": timedelta(hours=6.58)})

    def may_fade(self, metadata: Mapping[str, Any]) -> bool:
        """Say whether a document with this metadata has a half-life."""
        memory = metadata.get(MEMORY_KEY)
        known = isinstance(memory, str) and memory in self.half_life
        return known or metadata.get(HALF_LIFE_KEY) is not None

    def strength(
        self,
        memory: str | None,
        age: timedelta | None,
        centrality: float = 0.0,
        half_life: timedelta | None = None,
    ) -> float:
        """Return the strength of one document.

        Args:
            memory: Its kind of memory, if known.
            age: Time since its last access, if known.
            centrality: How linked it is compared with the most linked document of the search, from 0 to 1.
            half_life: Its own half-life, if it has one.
        """
        life = half_life or self.half_life.get(memory or "")
        if life is None or age is None or age <= timedelta(0):
            return 1.0
        return float(min(1.0, 0.5 ** (age / life) + self.resistance * centrality))

    def strength_of(
        self,
        name: str,
        metadata: Mapping[str, Any],
        now: datetime,
        centrality: float = 0.0,
        last_access: LastAccess | None = None,
    ) -> float:
        """Return the strength of a stored document.

        Args:
            name: Its id.
            metadata: Its metadata; see :data:`MEMORY_KEY`, :data:`HALF_LIFE_KEY` and :data:`ACCESS_KEY`.
            now: The time of the question.
            centrality: See :meth:`strength`.
            last_access: Times of access by id; they go before the metadata.

        Raises:
            StrategyError: If a field has a value that cannot be read.
        """
        if not self.may_fade(metadata):
            return 1.0
        memory = metadata.get(MEMORY_KEY)
        own = _read_half_life(name, metadata.get(HALF_LIFE_KEY))
        accessed = find_access(name, last_access)
        if accessed is None:
            accessed = _read_time(name, metadata.get(ACCESS_KEY))
        age = None if accessed is None else _add_time_zone(now) - _add_time_zone(accessed)
        return self.strength(memory if isinstance(memory, str) else None, age, centrality, own)


def find_access(name: str, last_access: LastAccess | None) -> datetime | None:
    """Return when a document was last accessed, if that is given, else None."""
    if last_access is None:
        return None
    return last_access.get(name) if isinstance(last_access, Mapping) else last_access(name)


def _read_half_life(name: str, hours: object) -> timedelta | None:
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours < 1e8:
        raise StrategyError(
            f"document {name!r}: metadata[{HALF_LIFE_KEY!r}] must be a number of hours above 0, not {hours!r}"
        )
    return timedelta(hours=hours)


def _read_time(name: str, value: object) -> datetime | None:
    if value is None:
        return None
    cause: Exception | None = None
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        cause = error
    raise StrategyError(
        f"document {name!r}: metadata[{ACCESS_KEY!r}] must be an ISO 8601 time or seconds since 1970,"
        f" not {value!r}"
    ) from cause


def _add_time_zone(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)

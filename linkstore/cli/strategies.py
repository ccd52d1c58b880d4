"""From options to a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from linkstore.strategies import Strategy

StrategyName = Literal["eager", "mmr", "similarity"]
Direction = Literal["forward", "backward", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What the options of ``query`` say about the search.

    Args:
        name: Which strategy.
        k: How many documents to start from; None for the strategy's default.
        depth: How many hops; None for the strategy's default.
        limit: How many hits at most.
        kinds: Weight of each link kind to follow; None for all.
        direction: Which way links are followed.
    """

    name: StrategyName
    k: int | None
    depth: int | None
    limit: int
    kinds: dict[str, float] | None
    direction: Direction

    def strategy(self) -> Strategy:
        """The strategy with these settings.

        Raises:
            StrategyError: If one is out of range.
        """
        if self.name == "similarity":
            return self._similarity()
        return self._mmr() if self.name == "mmr" else self._eager()

    def _similarity(self) -> Strategy:
        from linkstore.strategies import Similarity

        return Similarity(k=self.limit if self.k is None else min(self.k, self.limit))

    def _eager(self) -> Strategy:
        from linkstore.strategies import Eager

        default = Eager()
        return Eager(
            k=_given(self.k, default.k),
            depth=_given(self.depth, default.depth),
            limit=self.limit,
            kinds=self.kinds,
            direction=self.direction,
        )

    def _mmr(self) -> Strategy:
        from linkstore.strategies import Mmr

        default = Mmr()
        return Mmr(
            k=self.limit,
            fetch_k=_given(self.k, default.fetch_k),
            depth=_given(self.depth, default.depth),
            kinds=self.kinds,
            direction=self.direction,
        )


def _given(value: int | None, default: int) -> int:
    return default if value is None else value

"""From options to a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from linkstore.cli.exits import UsageError

if TYPE_CHECKING:
    from linkstore.strategies import Strategy

StrategyName = Literal["pagerank", "pathbeam", "eager", "mmr", "similarity"]
Direction = Literal["forward", "backward", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What the options of ``query`` say about the search; None where the strategy's default holds.

    Args:
        name: Which strategy.
        k: How many documents to start from.
        depth: How many hops.
        limit: How many hits at most.
        kinds: Weight of each link kind to follow; None for all.
        direction: Which way links are followed.
    """

    name: StrategyName
    k: int | None
    depth: int | None
    limit: int
    kinds: dict[str, float] | None
    direction: Direction | None

    def strategy(self) -> Strategy:
        """The strategy with these settings.

        Raises:
            StrategyError: If one is out of range.
            UsageError: If one is none of the strategy's.
        """
        from linkstore.strategies import Eager, PageRank, PathBeam

        match self.name:
            case "similarity":
                return self._similarity()
            case "mmr":
                return self._mmr()
            case "pagerank":
                return PageRank(k=self.limit, **self._settings(depth=None))
            case "pathbeam":
                return PathBeam(k=self.limit, **self._settings(depth="depth"))
            case "eager":
                return Eager(k=self.limit, **self._settings(depth="depth"))

    def _similarity(self) -> Strategy:
        from linkstore.strategies import Similarity

        return Similarity(k=self.limit if self.k is None else min(self.k, self.limit))

    def _mmr(self) -> Strategy:
        from linkstore.strategies import Mmr

        return Mmr(k=self.limit, **self._settings(k="fetch_k", depth="depth"))

    def _settings(self, *, depth: str | None, k: str = "k") -> dict[str, Any]:
        """The settings that were given, by the names that a strategy has for them."""
        if depth is None and self.depth is not None:
            raise UsageError(f"--depth: {self.name} has no depth; it is for eager, mmr and pathbeam")
        named = {
            k: self.k,
            depth or "depth": self.depth,
            "kinds": self.kinds,
            "direction": self.direction,
        }
        return {name: value for name, value in named.items() if value is not None}

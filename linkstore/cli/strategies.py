"""Makes a strategy from options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from linkstore.cli.exits import UsageError

if TYPE_CHECKING:
    from linkstore.strategies import Strategy

StrategyName = Literal["pagerank", "eager", "mmr", "all-paths", "similarity"]
Direction = Literal["forward", "backward", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The options of ``query`` for the strategy; None for the strategy's default.

    Args:
        name: The name of the strategy.
        k: How many documents to return.
        start_k: How many documents to start from.
        depth: How many hops.
        kinds: Weight of each link kind to follow; None for all.
        direction: Which way links are followed.
        min_similarity: Minimum similarity of the documents to start from.
    """

    name: StrategyName
    k: int
    start_k: int | None
    depth: int | None
    kinds: dict[str, float] | None
    direction: Direction | None
    min_similarity: float | None = None

    def strategy(self) -> Strategy:
        """Return the strategy with these settings.

        Raises:
            StrategyError: If a setting is out of range.
            UsageError: If the strategy has no such setting.
        """
        from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity

        match self.name:
            case "similarity":
                self._refuse("--start-k", self.start_k)
                self._refuse("--depth", self.depth)
                self._refuse("--min-similarity", self.min_similarity)
                return Similarity(k=self.k)
            case "mmr":
                return Mmr(k=self.k, **self._settings(fetch_k=self.start_k, depth=self.depth))
            case "pagerank":
                self._refuse("--depth", self.depth)
                return PageRank(k=self.k, **self._settings(start_k=self.start_k))
            case "eager":
                return Eager(k=self.k, **self._settings(start_k=self.start_k, depth=self.depth))
            case "all-paths":
                return AllPaths(k=self.k, **self._settings(start_k=self.start_k, depth=self.depth))

    def _refuse(self, option: str, value: float | None) -> None:
        if value is not None:
            owners = (
                "eager, mmr and all-paths" if option == "--depth" else "eager, mmr, all-paths and pagerank"
            )
            raise UsageError(f"{option} does not apply to {self.name}; it is an option of {owners}")

    def _settings(self, **own: int | None) -> dict[str, Any]:
        """Return the settings that were given."""
        named: dict[str, Any] = {**own, "kinds": self.kinds, "direction": self.direction}
        named["min_similarity"] = self.min_similarity
        return {name: value for name, value in named.items() if value is not None}

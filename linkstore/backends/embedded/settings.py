"""EmbeddedSettings: how an embedded store behaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from linkstore.arguments import require_at_least, require_within


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """The settings of an embedded store.

    Args:
        exact_below: A store of at most this many documents has no index, and a search compares the query
            with all of them; default 20,000. That takes about half a millisecond at 256 dimensions.
        grow_share: A new snapshot is taken when the documents added since the last one are at least this
            share of those in it, and at least a quarter of ``exact_below``; default 1/2.
        durable: Whether an acknowledged write survives a power cut, at the cost of one disk flush per
            write; default True. A write survives a crash of the process either way. If False, a power cut
            may lose the last writes, each one as a whole, but never what was stored before.

    Raises:
        StrategyError: If a number is negative or none.
    """

    exact_below: int = 20_000
    grow_share: float = 0.5
    durable: bool = True

    def __post_init__(self) -> None:
        require_at_least(0, exact_below=self.exact_below)
        require_within(0, math.inf, grow_share=self.grow_share)

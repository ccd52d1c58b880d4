"""The settings of a compiler, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from langchain_core.documents import Document

from linkstore.arguments import given, require, require_at_least, require_having
from linkstore.context.decay import MEMORY_KEY, Decay, LastAccess
from linkstore.context.knapsack import EXACT_CLASSES
from linkstore.context.order import ORDERS, PRECEDENCE, First, Order
from linkstore.context.tokens import TokenCounter
from linkstore.context.value import Calibrated, Value
from linkstore.errors import StrategyError
from linkstore.filters import Filter, parse_filter
from linkstore.hits import Hits
from linkstore.store.options import chosen_strategy
from linkstore.strategies import DEFAULT_STRATEGY, PageRank, Strategy

CANDIDATES: Final = 200
"""How many hits are candidates, by default."""
STARTS_PER_DOCUMENT: Final = 4
"""Number of documents that a wider search starts from, for each one that the budget holds."""
MOST_STARTS: Final = 128
"""Maximum number of documents that a search starts from."""
REQUIRES: Final = frozenset({"requires"})
PINNED: Final[Filter] = {MEMORY_KEY: "procedural"}
Header = Callable[[Document], str]
Frame = Callable[[str], str]
"""Gives what is sent of a context's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a compilation: see :class:`~linkstore.context.ContextCompiler`."""

    budget: int
    counter: TokenCounter
    strategy: Strategy | None = None
    value: Value = field(default_factory=Calibrated)
    decay: Decay = field(default_factory=Decay)
    order: Order = "precedence"
    precedence: Mapping[str, First] = field(default_factory=lambda: PRECEDENCE)
    requires: frozenset[str] = REQUIRES
    pinned: Filter | None = field(default_factory=lambda: PINNED)
    filter: Filter | None = None
    candidates: int = CANDIDATES
    exact_candidates: int = EXACT_CLASSES
    separator: str = "\n\n"
    header: Header | None = None
    last_access: LastAccess | None = None
    frame: Frame = str

    def __post_init__(self) -> None:
        self._check_types()
        require_at_least(1, budget=self.budget, candidates=self.candidates)
        require_at_least(0, exact_candidates=self.exact_candidates)
        if self.order not in ORDERS:
            raise StrategyError(f"order must be one of {', '.join(ORDERS)}, not {self.order!r}")
        for kind, first in self.precedence.items():
            if first not in {"source", "target"}:
                raise StrategyError(f"precedence[{kind!r}] must be 'source' or 'target', not {first!r}")
        parse_filter(self.filter)
        parse_filter(self.pinned)

    def _check_types(self) -> None:
        if self.strategy is not None:
            chosen_strategy(self.strategy, None)
        require(Value, "a Value, such as Calibrated()", value=self.value)
        require(Decay, "a Decay", decay=self.decay)
        require(Mapping, "a dict of 'source' or 'target' by kind of link", precedence=self.precedence)
        require(str, "a string", separator=self.separator)
        require_having("__call__", "a function of a document", **given(header=self.header))
        if self.last_access is not None and not isinstance(self.last_access, Mapping):
            require_having("__call__", "a dict or a function of an id", last_access=self.last_access)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of link that order or requirements depend on."""
        return frozenset(self.precedence) | self.requires

    def wider(self, hits: Hits) -> Strategy | None:
        """Return the default strategy with more starts if the budget holds more hits than it has, else None.

        A walk reaches the surroundings of its starts, so that a large context of short documents needs more.
        """
        default = DEFAULT_STRATEGY
        if self.strategy is not None or not isinstance(default, PageRank) or len(hits) <= default.start_k:
            return None
        free, held = self.budget, 0
        for cost in self.counter.count([hit.document.page_content for hit in hits]):
            free -= cost
            held += free >= 0
        if held <= default.start_k:
            return None
        return replace(default, start_k=min(STARTS_PER_DOCUMENT * held, MOST_STARTS))

    def head_of(self, document: Document) -> str:
        """Return the header above a document's text, with its line break, or an empty string."""
        head = self.header(document) if self.header is not None else ""
        return f"{head}\n" if head else ""

    @property
    def separator_cost(self) -> int:
        """How many tokens a separator adds between two texts."""
        single, both = self.counter.count(("x", f"x{self.separator}x"))
        return max(0, both - 2 * single)


def source_header(document: Document) -> str:
    """Format a header with the source of a document: its title, and its URL, page or id in angle brackets."""
    title = document.metadata.get("title")
    named = f"{title} " if isinstance(title, str) and title else ""
    return f"[{named}<{source_of(document)}>]"


def source_of(document: Document) -> str:
    """Return the URL of a document, else its page, else its id."""
    for name in ("url", "page"):
        value = document.metadata.get(name)
        if isinstance(value, str) and value:
            return value
    return str(document.id)

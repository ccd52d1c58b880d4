"""The options of a search besides the strategy: filters and additional starting points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from linkstore.arguments import require_list
from linkstore.filters import Condition, Filter, parse_filter
from linkstore.ids import storable
from linkstore.links import AnyLink, merge_links
from linkstore.strategies import Question
from linkstore.vectors import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The filters of a search, parsed."""

    scope: Condition
    seed: Condition
    hop: Condition
    link: Condition
    result: Condition

    @property
    def of_documents(self) -> tuple[Condition, ...]:
        """Those on the metadata of documents."""
        return (self.scope, self.seed, self.hop, self.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The filters and additional starting points of a search, as passed by the caller.

    Raises:
        FilterError: If a filter is invalid.
        ArgumentError: If the roots or links are not a list.
    """

    filter: Filter | None = None
    seed_filter: Filter | None = None
    hop_filter: Filter | None = None
    link_filter: Filter | None = None
    result_filter: Filter | None = None
    initial_roots: Sequence[str] = ()
    initial_links: Sequence[AnyLink] = ()
    conditions: Conditions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_list("links", initial_links=self.initial_links)
        conditions = Conditions(
            scope=parse_filter(self.filter),
            seed=parse_filter(self.seed_filter),
            hop=parse_filter(self.hop_filter),
            link=parse_filter(self.link_filter),
            result=parse_filter(self.result_filter),
        )
        object.__setattr__(self, "conditions", conditions)
        object.__setattr__(self, "initial_roots", storable("initial_roots", self.initial_roots))

    @property
    def fields_needed(self) -> frozenset[str]:
        """Metadata fields that some part of a filter needs."""
        return frozenset[str]().union(*(one.needed for one in self.conditions.of_documents))

    @property
    def link_fields_needed(self) -> frozenset[str]:
        """Fields of the data of links that some part of ``link_filter`` needs."""
        return self.conditions.link.needed

    def question(self, vector: Floats, text: str = "") -> Question:
        """Return the question to pass to a strategy."""
        return Question(
            vector=vector,
            text=text,
            filtered=not self.conditions.scope.always,
            seed_filter=self.conditions.seed,
            hop_filter=self.conditions.hop,
            link_filter=self.conditions.link,
            result_filter=self.conditions.result,
            roots=tuple(dict.fromkeys(self.initial_roots)),
            links=merge_links(self.initial_links),
        )

"""The candidates of a context: their costs, ranks, requirements and repetitions.

Two texts say the same if they have the same letters and signs, whatever their case and white space: a single
number, name or "not" can be what the question is about, so texts that are merely alike are all kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import permutations
from typing import Final, Literal, get_args

from langchain_core.documents import Document

from linkstore.context.compiled import Item, TokenCounter, Tokenizer, counter_of
from linkstore.context.decay import Decay, LastAccess
from linkstore.context.ordering import ORDERS, PRECEDENCE, First, Order
from linkstore.context.surroundings import Surroundings
from linkstore.core.arguments import omit_none, require, require_at_least, require_having, require_list
from linkstore.core.documents import MEMORY_KEY
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Hit, Hits, Path
from linkstore.core.plans import StoredDocument
from linkstore.errors import StrategyError
from linkstore.store.documents import as_document
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.search import choose_strategy
from linkstore.strategies.base import Strategy
from linkstore.strategies.pagerank import DEFAULT_STRATEGY, PageRank

Selection = Literal["rank", "knapsack"]
SELECTIONS: Final[tuple[str, ...]] = get_args(Selection)
DEFAULT_CANDIDATES: Final = 200
"""How many hits are candidates, unless the budget holds more."""
MANY_HITS: Final = 100
"""With fewer hits, all that the store has is found."""
MOST_CANDIDATES: Final = 5_000
"""Maximum number of candidates that are looked for without being told."""
STARTS_PER_DOCUMENT: Final = 4
"""Number of documents that a wider search starts from, for each one that the budget holds."""
MOST_STARTS: Final = 128
"""Maximum number of documents that a search starts from."""
REQUIRED_KINDS: Final = frozenset({"requires"})
PINNED_FILTER: Final[Filter] = {MEMORY_KEY: "procedural"}
_OVERLAP: Final = (40, 2_000)
"""Minimum and maximum number of characters of an overlap of two chunks."""
_MOST_COMPARED: Final = 48
"""How many documents of one source are looked at for overlaps, the best ranked ones."""
_GAP: Final = "\n\n"
Header = Callable[[Document], str]
Frame = Callable[[str], str]
"""Gives what is sent of a context's text."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompilerSettings:
    """The settings of a compilation: see :class:`~linkstore.context.ContextCompiler`."""

    store: LinkStore = field(kw_only=False)
    budget: int
    strategy: Strategy | None = None
    tokenizer: Tokenizer | None = None
    selection: Selection = "rank"
    decay: Decay = field(default_factory=Decay)
    order: Order = "precedence"
    precedence: Mapping[str, First] = field(default_factory=lambda: PRECEDENCE)
    requires: Collection[str] = REQUIRED_KINDS
    pinned: Filter | None = field(default_factory=lambda: PINNED_FILTER)
    filter: Filter | None = None
    candidates: int | None = None
    separator: str = "\n\n"
    header: Header | None = None
    last_access: LastAccess | None = None
    touch: bool = True
    frame: Frame | None = None
    counter: TokenCounter = field(init=False)

    def __post_init__(self) -> None:
        require_store(store=self.store)
        require_list("kinds", requires=self.requires)
        if self.strategy is not None:
            choose_strategy(self.strategy, None)
        require(Decay, "a Decay", decay=self.decay)
        require(Mapping, "a dict of 'source' or 'target' by kind of link", precedence=self.precedence)
        require(str, "a string", separator=self.separator)
        require(bool, "True or False", touch=self.touch)
        require_having("__call__", "a function", **omit_none(header=self.header, frame=self.frame))
        if self.last_access is not None and not isinstance(self.last_access, Mapping):
            require_having("__call__", "a dict or a function of an id", last_access=self.last_access)
        require_at_least(1, budget=self.budget, **omit_none(candidates=self.candidates))
        for name, value, allowed in (
            ("order", self.order, ORDERS),
            ("selection", self.selection, SELECTIONS),
        ):
            if value not in allowed:
                raise StrategyError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
        for kind, first in self.precedence.items():
            if first not in {"source", "target"}:
                raise StrategyError(f"precedence[{kind!r}] must be 'source' or 'target', not {first!r}")
        parse_filter(self.filter)
        parse_filter(self.pinned)
        object.__setattr__(self, "counter", counter_of(self.tokenizer))

    def widen(self, hits: Hits) -> tuple[Strategy, int] | None:
        """Return a search with more starts or hits if the budget holds more than was found, else None.

        A walk reaches the surroundings of its starts, so that a large context of short documents needs more.
        """
        counts = self.count_costs([hit.document for hit in hits])
        free, held = self.budget, 0
        for cost in counts:
            free -= cost
            held += free >= 0
        default, k = DEFAULT_STRATEGY, self.candidates or DEFAULT_CANDIDATES
        strategy = self.strategy or default
        if self.candidates is None and free > 0 and len(hits) >= MANY_HITS:
            k = min(k * self.budget // max(1, sum(counts)) + k, MOST_CANDIDATES)
        if self.strategy is None and isinstance(default, PageRank) and held > default.start_k:
            starts = min(STARTS_PER_DOCUMENT * held, MOST_STARTS)
            strategy = replace(default, start_k=starts)
        same = strategy is (self.strategy or default) and k == (self.candidates or DEFAULT_CANDIDATES)
        return None if same else (strategy, k)

    def head_of(self, document: Document) -> str:
        """Return the header above a document's text, with its line break, or an empty string."""
        head = self.header(document) if self.header is not None else ""
        return f"{head}\n" if head else ""

    def count_costs(self, documents: Sequence[Document]) -> list[int]:
        """Return how many tokens each document adds to a text, with separator and header.

        A text has other tokens after a line break than at the beginning, where tokenizers put a space.
        """
        before, *both = self.counter.count(
            [
                "x",
                *(
                    f"x{self.separator}{self.head_of(document)}{document.page_content}"
                    for document in documents
                ),
            ]
        )
        return [max(0, count - before) for count in both]

    @property
    def separator_cost(self) -> int:
        """How many tokens a separator adds between two texts."""
        single, both = self.counter.count(("x", f"x{self.separator}x"))
        return max(0, both - 2 * single)


def source_header(document: Document) -> str:
    """Format a header with the source of a document: its title, and its URL, page or id in angle brackets."""
    title = document.metadata.get("title")
    named = f"{title} " if isinstance(title, str) and title else ""
    return f"[{named}<{find_source(document)}>]"


def find_source(document: Document) -> str:
    """Return the URL of a document, else its page, else its id."""
    for name in ("url", "page"):
        value = document.metadata.get(name)
        if isinstance(value, str) and value:
            return value
    return str(document.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCandidates:
    """All candidates, and how they depend on each other.

    Args:
        by_id: Pinned ones first, then those found by rank and strength, then those required by id; with their
            whole texts.
        same: For each that says the same as another, the one that stands for it.
        overlaps: For each document that begins with the end of another, that other.
        requires: For each all that must be taken with it, by what stands for it.
        refused: Those that cannot be taken, because what they require is not known to the end.
        remarks: What is wrong with fields on the strength of each.
    """

    by_id: Mapping[str, Item]
    same: Mapping[str, str] = field(default_factory=dict)
    overlaps: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refused: Collection[str] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)


def make_candidates(
    settings: CompilerSettings,
    hits: Sequence[Hit],
    pinned: Sequence[StoredDocument],
    around: Surroundings,
    accessed: Mapping[str, datetime],
    now: datetime,
) -> ContextCandidates:
    """Count and rank all candidates, merge repetitions, and close requirements.

    Args:
        settings: Of the compiler.
        hits: What was found.
        pinned: What is always in.
        around: What they require.
        accessed: When those that may fade were last accessed, as far as it is known.
        now: The time of the question.
    """
    ranks = {str(hit.document.id): rank for rank, hit in enumerate(hits, 1)}
    always = {document.id: as_document(document) for document in pinned}
    required = {id: as_document(document) for id, document in sorted(around.documents.items())}
    by_id = always | {id: hits[rank - 1].document for id, rank in ranks.items() if id not in always}
    by_id |= {id: document for id, document in required.items() if id not in by_id}
    costs = settings.count_costs(list(by_id.values()))
    centrality = around.centrality({*settings.precedence, *settings.requires})
    remarks: dict[str, str] = {}
    items: list[Item] = []
    for (id, document), cost in zip(by_id.items(), costs, strict=True):
        strength, remark = settings.decay.judge(
            id, document.metadata, now, centrality.get(id, 0.0), accessed.get(id)
        )
        remarks |= {} if remark is None else {id: remark}
        rank = ranks.get(id)
        hit = None if rank is None else hits[rank - 1]
        items.append(
            Item(
                document=document,
                text=document.page_content,
                role="pinned" if id in always else "required" if rank is None else "found",
                cost=cost,
                strength=strength,
                score=hit.score if hit else 0.0,
                similarity=hit.similarity if hit else 0.0,
                rank=rank,
                source=find_source(document),
                path=hit.path if hit else Path(()),
            )
        )
    positions = [at for at, item in enumerate(items) if item.role == "found"]
    if any(items[at].strength < 1 for at in positions):
        faded = sorted(
            (items[at] for at in positions),
            key=lambda item: -item.score * (item.strength if item.score > 0 else 1),
        )
        items[positions[0] : positions[-1] + 1] = faded
    listed = {item.id: item for item in items}
    same, overlaps = find_alike(listed)
    requires, refused = _close_requirements(listed, same, around)
    return ContextCandidates(
        by_id=listed, same=same, overlaps=overlaps, requires=requires, refused=refused, remarks=remarks
    )


def _close_requirements(
    by_id: Mapping[str, Item], same: Mapping[str, str], around: Surroundings
) -> tuple[dict[str, frozenset[str]], set[str]]:
    """Return the direct and indirect requirements of each, and the names with unknown ones."""
    direct: dict[str, set[str]] = {}
    for name, others in around.requires.items():
        kept = same.get(name, name)
        direct.setdefault(kept, set()).update(same.get(other, other) for other in others)
    requires: dict[str, frozenset[str]] = {}
    refused: set[str] = set()
    for name in by_id:
        if name in same:
            continue
        seen, stack = {name}, [name]
        while stack:
            fresh = direct.get(stack.pop(), set()) - seen
            seen |= fresh
            stack += fresh
        if not seen <= by_id.keys():
            refused.add(name)
        elif len(seen) > 1:
            requires[name] = frozenset(seen - {name})
    return requires, refused


def find_alike(items: Mapping[str, Item]) -> tuple[dict[str, str], dict[str, str]]:
    """Find texts that say the same, and overlaps among the others of one source.

    Returns:
        For each text that says the same as others before it, the first of them; and for each text that begins
        with the end of another, that other. What is pinned says nothing again.
    """
    firsts: dict[str, str] = {}
    same: dict[str, str] = {}
    sources: dict[object, list[str]] = {}
    for name, item in items.items():
        first = firsts.setdefault(" ".join(item.text.split()).casefold(), name)
        if first != name and item.role != "pinned":
            same[name] = first
        else:
            metadata = item.document.metadata
            sources.setdefault(str(metadata.get("page") or metadata.get("source")), []).append(name)
    overlaps: dict[str, str] = {}
    for names in sources.values():
        for first, second in permutations(names[:_MOST_COMPARED], 2):
            if overlaps.get(first) != second and measure_overlap(items[first].text, items[second].text):
                overlaps.setdefault(second, first)
    return same, overlaps


def measure_overlap(first: str, second: str) -> int:
    """Count the characters that end the first text and begin the second, 0 for fewer than 40."""
    least, most = _OVERLAP
    if len(second) < least:
        return 0
    start = first.find(second[:least], max(0, len(first) - most))
    while start >= 0:
        if second.startswith(first[start:]):
            return len(first) - start
        start = first.find(second[:least], start + 1)
    return 0


def continue_text(before: str, text: str) -> str:
    """Return the second text without its overlap with the first, or without a shared heading."""
    size = measure_overlap(before, text)
    if size:
        return text[size:]
    heading, gap, body = text.partition(_GAP)
    if gap and body and before.startswith(heading + _GAP):
        return _GAP + body
    return _GAP + text

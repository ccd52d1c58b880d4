"""The candidates of a context: what each costs and is worth, what it requires, and what it repeats.

Two texts say the same if they have the same letters and signs, whatever their case and white space: a single
number, name or "not" can be what the question is about, so texts that are merely alike are all kept. Pairs
that may overlap are those that share values of a sketch, the smallest hashes of their runs of words (A.
Broder, "On the resemblance and containment of documents", 1997).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Final

import numpy as np
import xxhash
from langchain_core.documents import Document

from linkstore.context.compiled import Item, Role, TokenCounter
from linkstore.context.selection import ORDERS, First, Order
from linkstore.context.surroundings import MOST_HOPS, Surroundings
from linkstore.context.value import MEMORY_KEY, Decay, Evidence, LastAccess, Value
from linkstore.core.arguments import omit_none, require, require_at_least, require_having
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Hits, Path
from linkstore.core.plans import StoredDocument
from linkstore.errors import StrategyError
from linkstore.store.search import choose_strategy
from linkstore.strategies.base import Strategy
from linkstore.strategies.pagerank import DEFAULT_STRATEGY, PageRank

DEFAULT_CANDIDATES: Final = 200
"""How many hits are candidates, by default."""
STARTS_PER_DOCUMENT: Final = 4
"""Number of documents that a wider search starts from, for each one that the budget holds."""
MOST_STARTS: Final = 128
"""Maximum number of documents that a search starts from."""
REQUIRED_KINDS: Final = frozenset({"requires"})
PINNED_FILTER: Final[Filter] = {MEMORY_KEY: "procedural"}
_WORDS_PER_RUN: Final = 4
_SKETCH_SIZE: Final = 24
_MOST_SHARING: Final = 8
"""Maximum number of texts with a common hash of which all pairs are compared."""
_OVERLAP: Final = (40, 2_000)
"""Minimum and maximum number of characters of an overlap of two chunks."""
_WORD: Final = re.compile(r"\w+")
_GAP: Final = "\n\n"
Header = Callable[[Document], str]
Frame = Callable[[str], str]
"""Gives what is sent of a context's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerSettings:
    """The settings of a compilation: see :class:`~linkstore.context.ContextCompiler`."""

    budget: int
    counter: TokenCounter
    strategy: Strategy | None
    value: Value
    decay: Decay
    order: Order
    precedence: Mapping[str, First]
    requires: frozenset[str]
    pinned: Filter | None
    filter: Filter | None
    candidates: int
    exact_candidates: int
    separator: str
    header: Header | None
    last_access: LastAccess | None
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
            choose_strategy(self.strategy, None)
        require(Value, "a Value, such as Calibrated()", value=self.value)
        require(Decay, "a Decay", decay=self.decay)
        require(Mapping, "a dict of 'source' or 'target' by kind of link", precedence=self.precedence)
        require(str, "a string", separator=self.separator)
        require_having("__call__", "a function of a document", **omit_none(header=self.header))
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
    return f"[{named}<{find_source(document)}>]"


def find_source(document: Document) -> str:
    """Return the URL of a document, else its page, else its id."""
    for name in ("url", "page"):
        value = document.metadata.get(name)
        if isinstance(value, str) and value:
            return value
    return str(document.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All entries, and how they depend on each other.

    Args:
        by_id: Pinned ones first, then those found by rank, then those required by id; with their whole texts.
        same: For each entry that says the same as another, the one that stands for it.
        overlaps: For each document that begins with the end of another, that other.
        requires: For each entry all that must be taken with it, by what stands for it.
        refused: Entries that cannot be taken, with the reason.
        unreadable: Entries with a field on their strength that cannot be read, with what is wrong.
    """

    by_id: Mapping[str, Item]
    same: Mapping[str, str] = field(default_factory=dict)
    overlaps: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def repeats_of(self, name: str) -> tuple[str, ...]:
        """Return the entries that an entry stands for, because they say the same."""
        return tuple(other for other, kept in self.same.items() if kept == name)


def make_entries(
    settings: CompilerSettings,
    hits: Hits,
    pinned: Sequence[StoredDocument],
    around: Surroundings,
    now: datetime,
) -> Entries:
    """Value and count all candidates, merge those that say the same, and close requirements.

    Args:
        settings: Of the compiler.
        hits: What was found.
        pinned: What is always in.
        around: What they require.
        now: The time of the question.
    """
    listed = list(_list_candidates(hits, pinned, around))
    documents = [document for document, _, _ in listed]
    costs = settings.counter.count([settings.head_of(one) + one.page_content for one in documents])
    separator = settings.separator_cost
    strengths, unreadable = _measure_strengths(settings, documents, around, now)
    values = _value_hits(settings, hits, documents, costs, strengths)
    by_id: dict[str, Item] = {}
    for (document, role, rank), cost, strength in zip(listed, costs, strengths, strict=True):
        hit = None if rank is None else hits[rank - 1]
        by_id[str(document.id)] = Item(
            document=document,
            text=document.page_content,
            role=role,
            cost=cost + separator,
            value=values.get(str(document.id), 0.0),
            strength=strength,
            score=hit.score if hit else 0.0,
            similarity=hit.similarity if hit else 0.0,
            rank=rank,
            source=find_source(document),
            path=hit.path if hit else Path(()),
        )
    same, overlaps = find_alike({name: one.text for name, one in by_id.items()})
    same = {name: first for name, first in same.items() if by_id[name].role != "pinned"}
    requires, refused = _close_requirements(by_id, same, around)
    return Entries(
        by_id=by_id, same=same, overlaps=overlaps, requires=requires, refused=refused, unreadable=unreadable
    )


def _list_candidates(
    hits: Hits, pinned: Sequence[StoredDocument], around: Surroundings
) -> Iterable[tuple[Document, Role, int | None]]:
    ranks: dict[str, int] = {}
    for rank, hit in enumerate(hits, 1):
        ranks.setdefault(str(hit.document.id), rank)
    always = {one.id for one in pinned}
    for one in pinned:
        yield _make_document(one), "pinned", ranks.get(one.id)
    for name, rank in ranks.items():
        if name not in always:
            yield hits[rank - 1].document, "found", rank
    for name in sorted(around.documents.keys() - always - ranks.keys()):
        yield _make_document(around.documents[name]), "required", None


def _make_document(stored: StoredDocument) -> Document:
    return Document(id=stored.id, page_content=stored.text, metadata=stored.metadata)


def _measure_strengths(
    settings: CompilerSettings, documents: Sequence[Document], around: Surroundings, now: datetime
) -> tuple[list[float], dict[str, str]]:
    """Return the strength of each document, 1 where its fields cannot be read, with what is wrong."""
    centrality = around.links.centrality()
    strengths: list[float] = []
    unreadable: dict[str, str] = {}
    for one in documents:
        name = str(one.id)
        try:
            strengths.append(
                settings.decay.strength_of(
                    name, one.metadata, now, centrality.get(name, 0.0), settings.last_access
                )
            )
        except StrategyError as error:
            strengths.append(1.0)
            unreadable[name] = f"{error}; it does not fade"
    return strengths, unreadable


def _value_hits(
    settings: CompilerSettings,
    hits: Hits,
    documents: Sequence[Document],
    costs: Sequence[int],
    strengths: Sequence[float],
) -> dict[str, float]:
    if not hits:
        return {}
    known = {str(one.id): at for at, one in enumerate(documents)}
    at = [known[str(hit.document.id)] for hit in hits]
    walks = any("walk" in hit.contributions for hit in hits)
    evidence = Evidence(
        rank=np.arange(1, len(hits) + 1, dtype=np.float64),
        score=np.array([hit.score for hit in hits], dtype=np.float64),
        similarity=np.array([hit.similarity for hit in hits], dtype=np.float64),
        walk=np.array(
            [hit.contributions.get("walk", 0.0) if walks else hit.score for hit in hits], dtype=np.float64
        ),
        tokens=np.array([costs[one] for one in at], dtype=np.float64),
        strength=np.array([strengths[one] for one in at], dtype=np.float64),
    )
    values = settings.value.of(evidence).tolist()
    return {str(hit.document.id): float(value) for hit, value in zip(hits, values, strict=True)}


def _close_requirements(
    by_id: Mapping[str, Item], same: Mapping[str, str], around: Surroundings
) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """Return all requirements of each entry, direct or not, and entries whose requirements have no end."""
    direct: dict[str, set[str]] = {}
    for name, others in around.requires.items():
        kept = same.get(name, name)
        direct.setdefault(kept, set()).update(same.get(other, other) for other in others)
    endless = {same.get(name, name) for name in around.unfinished}
    requires: dict[str, frozenset[str]] = {}
    refused: dict[str, str] = {}
    for name in by_id:
        if name in same:
            continue
        found = _find_reachable(name, direct)
        if found & endless or not found <= by_id.keys():
            refused[name] = f"what it requires is more than {MOST_HOPS} links away, or was removed meanwhile"
        elif len(found) > 1:
            requires[name] = frozenset(found - {name})
    return requires, refused


def _find_reachable(start: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    seen = {start}
    stack = [start]
    while stack:
        for other in direct.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def find_alike(texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Find texts that say the same, and overlaps among the others.

    Args:
        texts: By id; the first of several that say the same is kept.

    Returns:
        For each text that says the same as others before it, the first of them; and for each text that begins
        with the end of another, that other.
    """
    firsts: dict[str, str] = {}
    for name, text in texts.items():
        firsts.setdefault(_normalize_text(text), name)
    same = {name: first for name, text in texts.items() if (first := firsts[_normalize_text(text)]) != name}
    kept = list(firsts.values())
    follows: dict[str, str] = {}
    for one, other in _pair_similar([_make_sketch(texts[name]) for name in kept]):
        first, second = kept[one], kept[other]
        if measure_overlap(texts[first], texts[second]):
            follows.setdefault(second, first)
        elif measure_overlap(texts[second], texts[first]):
            follows.setdefault(first, second)
    return same, follows


def _normalize_text(text: str) -> str:
    """Normalise case and white space, in which two texts that say the same may differ."""
    return " ".join(text.split()).casefold()


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


def _pair_similar(sketches: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Return pairs that share a hash, in order. Where many do, pair each with the first and with the next."""
    owners: dict[int, list[int]] = {}
    for at, sketch in enumerate(sketches):
        for value in sketch:
            owners.setdefault(value, []).append(at)
    found: set[tuple[int, int]] = set()
    for sharing in owners.values():
        if len(sharing) <= _MOST_SHARING:
            found.update(combinations(sharing, 2))
        else:
            found.update((sharing[0], other) for other in sharing[1:])
            found.update(pairwise(sharing))
    return sorted(found)


@lru_cache(maxsize=4096)
def _make_sketch(text: str) -> tuple[int, ...]:
    return tuple(sorted(_hash_runs(text))[:_SKETCH_SIZE])


def _hash_runs(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    runs = [" ".join(words[at : at + _WORDS_PER_RUN]) for at in range(len(words) - _WORDS_PER_RUN + 1)]
    if not runs:  # a short text is compared with all that it has, such as signs that belong to no word
        runs = [" ".join(text.lower().split())]
    return {xxhash.xxh3_64_intdigest(run.encode("utf-8", "surrogatepass")) for run in runs}


def continue_text(before: str, text: str) -> str:
    """Return the second text without what the first ends with, or without a heading that both begin with."""
    size = measure_overlap(before, text)
    if size:
        return text[size:]
    heading, gap, body = text.partition(_GAP)
    if gap and body and before.startswith(heading + _GAP):
        return _GAP + body
    return _GAP + text

"""The base classes of strategies, the question and the options that they get, and reranking."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

import numpy as np
from langchain_core.documents import Document

from linkstore.core.arguments import require_at_least, require_having, require_list, require_within
from linkstore.core.arrays import Floats
from linkstore.core.calls import Operation, call
from linkstore.core.documents import keep_storable
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.hits import Hit, Hits
from linkstore.core.links import SUGGESTED, AnyLink, Link, merge_links
from linkstore.core.plans import Plan, Side
from linkstore.errors import StrategyError

if TYPE_CHECKING:
    from langchain_core.cross_encoders import BaseCrossEncoder
    from langchain_core.documents import BaseDocumentCompressor

Reranker: TypeAlias = (
    "Callable[[str, Sequence[str]], Sequence[float]] | BaseCrossEncoder | BaseDocumentCompressor"
)
"""Scores texts for a question: a function that returns one finite number each, on any scale, larger is
better; a cross-encoder of LangChain; or one of its document compressors, of which only the order counts.
"""
_POSITION: Final = "linkstore_position"
"""The field of metadata by which a document that a compressor returns is known."""


def check_reranker(reranker: object) -> None:
    """Raise unless an object can rerank.

    Raises:
        ArgumentError: If it is no :data:`Reranker`.
    """
    kind = next((name for name in ("compress_documents", "score") if hasattr(reranker, name)), "__call__")
    require_having(
        kind, "a function, or a cross-encoder or document compressor of LangChain", reranker=reranker
    )


def rerank_hits(
    hits: Hits, question: str, reranker: Reranker, weight: float, count: int, k: int
) -> Operation[Hits]:
    """Rerank the first ``count`` hits, and return the best ``k``.

    The reranker's scores are scaled from 0, the lowest, to 1, the highest. The new score is the weighted mean
    of both scores. Hits that the reranker did not score follow in their order.

    Args:
        hits: Best first.
        question: In words.
        reranker: Scores texts. Of a compressor, the documents that it leaves out have the lowest score.
        weight: Weight of its scores, where the scores before have weight 1.
        count: Number of hits that it scores.
        k: Maximum number of hits to return.

    Raises:
        StrategyError: If the question has no text, a score is missing or not finite, or a compressor returns
            a document that it was not given.
    """
    if not question:
        raise StrategyError("a reranker needs the text of the question; search by text, not by vector")
    read, rest = hits.hits[:count], hits.hits[count:]
    scores = yield from _ask_reranker(reranker, question, [hit.document for hit in read])
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    opinions = [(score - low) / (high - low) if high > low else 0.0 for score in scores]
    joined = [_combine_scores(hit, opinion, weight) for hit, opinion in zip(read, opinions, strict=True)]
    joined.sort(key=lambda hit: (-hit.score, hit.document.id))
    behind = [_combine_scores(hit, 0.0, weight) for hit in rest]
    return replace(hits, hits=(*joined, *behind)[:k])


def _ask_reranker(reranker: Any, question: str, documents: Sequence[Document]) -> Operation[list[float]]:
    """Return the score of each document."""
    if hasattr(reranker, "compress_documents"):
        copies = [
            Document(
                id=document.id,
                page_content=document.page_content,
                metadata={**document.metadata, _POSITION: position},
            )
            for position, document in enumerate(documents)
        ]
        compress, acompress = reranker.compress_documents, reranker.acompress_documents
        kept = yield from call(compress, acompress, copies, question)
        return _score_by_order([document.metadata.get(_POSITION) for document in kept], len(documents))
    texts = tuple(document.page_content for document in documents)
    if hasattr(reranker, "score"):
        scores = yield from call(reranker.score, None, [(question, text) for text in texts])
    else:
        scores = yield from call(reranker, None, question, texts)
    return _check_scores(scores, len(texts))


def _score_by_order(positions: Sequence[Any], count: int) -> list[float]:
    """Return the scores of documents by their place in the result of a compressor, best first."""
    scores = [0.0] * count
    for place, position in reversed(list(enumerate(positions))):
        if position not in range(count):
            raise StrategyError(
                "the compressor returned a document without the metadata of one that it was given; a"
                " compressor that makes new documents cannot rerank"
            )
        scores[position] = float(count - place)
    return scores


def _check_scores(scores: Sequence[float], count: int) -> list[float]:
    numbers = [float(score) for score in scores]
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise StrategyError(
            f"the reranker must return a finite number for each of {count} texts; it returned {numbers[:5]}"
            f"{' …' if len(numbers) > 5 else ''}"
        )
    return numbers


def _combine_scores(hit: Hit, opinion: float, weight: float) -> Hit:
    parts = {name: part / (1 + weight) for name, part in hit.contributions.items()}
    if opinion:
        parts["reranker"] = weight * opinion / (1 + weight)
    return replace(hit, score=(hit.score + weight * opinion) / (1 + weight), contributions=parts)


HopDirection = Literal["forward", "backward", "both"]

_NO_VECTOR: Final[Floats] = np.empty(0, dtype=np.float32)
DEFAULT_SEEDS: Final = 4
DEFAULT_ADJACENT_K: Final = 10
DEFAULT_HUB_CAP: Final = 200
DEFAULT_BEAM: Final = 32
DEFAULT_MAX_NODES: Final = 1000
DEFAULT_K: Final = 10
"""How many documents a search returns."""

HOP_SIDES: Final[Mapping[str, tuple[tuple[Side, Side], ...]]] = {
    "forward": (("out", "in"),),
    "backward": (("in", "out"),),
    "both": (("out", "in"), ("in", "out")),
}
"""For each direction, the sides of link groups that a hop leaves from and arrives at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question of a search, with the filters of its stages.

    The filter of the whole search is not part of the question: the reader that answers the plan is opened for
    that filter and omits other documents (see
    :meth:`Backend.answer <linkstore.engines.contract.Backend.answer>`).

    Args:
        vector: (d,) unit vector of the query.
        text: The query, empty for a search by vector.
        filtered: Whether the search has a filter. Only messages depend on it.
        seed_filter: Further filter for the seeds.
        hop_filter: Further filter for documents reached by links.
        link_filter: What the data of a stored link must pass for a relation to be followed, forward or
            backward: of the two links that meet in a link group, the one that points.
        result_filter: Further filter for the documents returned. Paths may lead through others.
        roots: Ids of additional seeds.
        links: Links to follow from the query, as if it were a document with these links.
        least_similarity: Below this, no document is similar to it; None if that is not known. See
            ``find_doubt`` of :mod:`linkstore.strategies.first_stage`.
        lexical: Weight of words for strategies that set none, where similarity has weight 1.
    """

    vector: Floats
    text: str = ""
    filtered: bool = False
    seed_filter: Condition = EVERYTHING
    hop_filter: Condition = EVERYTHING
    link_filter: Condition = EVERYTHING
    result_filter: Condition = EVERYTHING
    roots: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    least_similarity: float | None = None
    lexical: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Strategy(ABC):
    """How to search: an immutable set of settings.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return, the best ones. Default None, no
            maximum. The incoming ``section`` link of a document names its page. A document without one is
            a page of its own.
    """

    k: int = DEFAULT_K
    per_page: int | None = None

    def __post_init__(self) -> None:
        require_at_least(1, k=self.k)
        if self.per_page is not None:
            require_at_least(1, per_page=self.per_page)

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults, as in ``PageRank(k=4)``."""
        settings = [
            f"{setting.name}={value!r}"
            for setting in fields(self)
            if (value := getattr(self, setting.name)) is not setting.default and value != setting.default
        ]
        return f"{type(self).__name__}({', '.join(settings)})"

    @abstractmethod
    def plan(self, question: Question) -> Plan[Hits]:
        """Return a generator that yields fetches, receives their answers and returns the hits."""

    @property
    def hops(self) -> int:
        """How many links the strategy follows at most from where it starts: its ``depth``, 0 without one."""
        return getattr(self, "depth", 0)

    @property
    def kinds_named(self) -> frozenset[str]:
        """The kinds of link that the caller named. A search raises UnknownNameError for an unknown one."""
        return frozenset()

    def with_k(self, k: int) -> Self:
        """Return a copy of the strategy that returns at most ``k`` documents."""
        return replace(self, k=k)

    def with_min_similarity(self, threshold: float | None) -> Self:
        """Return a copy with this ``min_similarity``, if the setting exists and is None."""
        return self

    def apply_reranker(self, question: Question, hits: Hits) -> Operation[Hits]:
        """Rerank the hits, if the strategy has a reranker."""
        yield from ()
        return hits


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Traversing(Strategy):
    """Base class of strategies that follow links.

    Args:
        min_similarity: Minimum similarity of seeds found by similarity, in [-1, 1]. None, the default, takes
            that of the store (:meth:`LinkStore.configure
            <linkstore.LinkStore.configure>`). Without one there is no minimum, and strategies
            with a search by words doubt a question whose words no document has
            (:data:`~linkstore.embeddings.names.LEAST_SIMILARITY`). A value of -1
            is no minimum. It does not apply to ``initial_roots`` and ``initial_links``.
        kinds: Kinds of link to follow: names, or a dict of names to weights from 0 to 1. None, the
            default, follows all kinds with weight 1.
        adjacent_k: Number of members taken from each link group, the most similar to the query
            first. Default 10.
        hub_cap: A link group with more members than this on the side arrived at is a hub and is not
            followed. Default 200.
        beam: Maximum number of documents whose links each hop follows, the best by score.
            Default 32.
        max_nodes: Maximum number of documents reached in total. Default 1,000.
        direction: ``"forward"`` follows links in their direction, ``"backward"`` against it, ``"both"``
            both ways. Default forward.
    """

    min_similarity: float | None = None
    kinds: Mapping[str, float] | Iterable[str] | None = field(default=None, hash=False)
    adjacent_k: int = DEFAULT_ADJACENT_K
    hub_cap: int = DEFAULT_HUB_CAP
    beam: int = DEFAULT_BEAM
    max_nodes: int = DEFAULT_MAX_NODES
    direction: HopDirection = "forward"

    def __post_init__(self) -> None:
        Strategy.__post_init__(self)
        require_at_least(1, adjacent_k=self.adjacent_k, beam=self.beam, max_nodes=self.max_nodes)
        require_at_least(0, hub_cap=self.hub_cap)
        require_within(-1, 1, min_similarity=self.threshold)
        if self.direction not in HOP_SIDES:
            raise StrategyError(f"direction must be one of {', '.join(HOP_SIDES)}, not {self.direction!r}")
        if self.kinds is not None:
            object.__setattr__(self, "kinds", _check_weights(self.kinds))

    @property
    def threshold(self) -> float:
        """The minimum similarity of seeds, -1 where none is set."""
        return -1.0 if self.min_similarity is None else self.min_similarity

    def with_min_similarity(self, threshold: float | None) -> Self:
        """Return a copy with this threshold: see :meth:`Strategy.with_min_similarity`."""
        if threshold is None or self.min_similarity is not None:
            return self
        return replace(self, min_similarity=threshold)

    @property
    def followed(self) -> frozenset[str] | None:
        """The kinds of link to follow, None for all."""
        if not isinstance(self.kinds, Mapping):
            return None
        return frozenset(kind for kind, weight in self.kinds.items() if weight > 0)

    @property
    def kinds_named(self) -> frozenset[str]:
        """See :attr:`Strategy.kinds_named`: those in ``kinds``, whatever their weight."""
        return frozenset(self.kinds or ())

    def weight_of(self, kind: str) -> float:
        """Return the weight of a kind of link, from 0 (not followed) to 1.

        Links of the kind :data:`~linkstore.core.links.SUGGESTED` are followed only if the kind is named.
        """
        if isinstance(self.kinds, Mapping):
            return float(self.kinds.get(kind, 0.0))
        return 0.0 if kind == SUGGESTED else 1.0


def _check_weights(kinds: Mapping[str, float] | Iterable[str]) -> dict[str, float]:
    if isinstance(kinds, str):
        raise StrategyError(f"kinds must be a list or dict of kinds, not the string {kinds!r}")
    if not isinstance(kinds, Iterable):
        raise StrategyError(f"kinds must be a list or dict of kinds, not {kinds!r}")
    weights = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    for kind, weight in weights.items():
        if not isinstance(kind, str) or not kind:
            raise StrategyError(f"a kind must be a non-empty string, not {kind!r}")
        require_within(0, 1, **{f"the weight of kind {kind!r}": weight})
    return weights


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
    scope: Condition = field(init=False, repr=False)
    template: Question = field(init=False, repr=False, compare=False)
    """The question without its vector and text, with the filters parsed."""

    def __post_init__(self) -> None:
        require_list("links", initial_links=self.initial_links)
        scope = parse_filter(self.filter)
        template = Question(
            vector=_NO_VECTOR,
            filtered=not scope.always,
            seed_filter=parse_filter(self.seed_filter),
            hop_filter=parse_filter(self.hop_filter),
            link_filter=parse_filter(self.link_filter),
            result_filter=parse_filter(self.result_filter),
        )
        object.__setattr__(self, "scope", scope)
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "initial_roots", keep_storable("initial_roots", self.initial_roots))

    def question(self, vector: Floats, text: str = "") -> Question:
        """Return the question to pass to a strategy."""
        roots = tuple(dict.fromkeys(self.initial_roots))
        links = merge_links(self.initial_links) if self.initial_links else ()
        return replace(self.template, vector=vector, text=text, roots=roots, links=links)

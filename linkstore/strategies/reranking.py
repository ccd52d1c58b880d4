"""Reranking: a callable scores the texts of the best hits."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from linkstore.errors import StrategyError
from linkstore.hits import Hit, Hits

Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores texts for a question: one finite number each, on any scale, larger is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A request for a reranker's scores of texts."""

    reranker: Reranker
    question: str
    texts: tuple[str, ...]


def reranked(
    hits: Hits, question: str, reranker: Reranker, weight: float, count: int, k: int
) -> Generator[Judge, Sequence[float], Hits]:
    """Rerank the first ``count`` hits, and return the best ``k``.

    The reranker's scores are scaled from 0, the lowest, to 1, the highest. The new score is the weighted mean
    of both scores. Hits that the reranker did not score follow in their order.

    Args:
        hits: Best first.
        question: In words.
        reranker: Scores texts.
        weight: Weight of its scores, where the scores before have weight 1.
        count: Number of hits that it scores.
        k: Maximum number of hits to return.

    Raises:
        StrategyError: If the question has no text, or a score is missing or not finite.
    """
    if not question:
        raise StrategyError("a reranker needs the text of the question; search by text, not by vector")
    read, rest = hits.hits[:count], hits.hits[count:]
    scores = yield Judge(
        reranker=reranker, question=question, texts=tuple(hit.document.page_content for hit in read)
    )
    opinions = _scaled(_checked(scores, len(read)))
    joined = [_joined(hit, opinion, weight) for hit, opinion in zip(read, opinions, strict=True)]
    joined.sort(key=lambda hit: (-hit.score, hit.document.id))
    behind = [_joined(hit, 0.0, weight) for hit in rest]
    return replace(hits, hits=(*joined, *behind)[:k])


def _checked(scores: Sequence[float], count: int) -> list[float]:
    found = [float(score) for score in scores]
    if len(found) != count or not all(map(math.isfinite, found)):
        raise StrategyError(
            f"the reranker must return a finite number for each of {count} texts; it returned {found[:5]}"
            f"{' …' if len(found) > 5 else ''}"
        )
    return found


def _scaled(scores: list[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 0.0 for score in scores]


def _joined(hit: Hit, opinion: float, weight: float) -> Hit:
    parts = {name: part / (1 + weight) for name, part in hit.contributions.items()}
    if opinion:
        parts["reranker"] = weight * opinion / (1 + weight)
    return replace(hit, score=(hit.score + weight * opinion) / (1 + weight), contributions=parts)

"""How the history of a conversation enters a search.

A question is searched for in several *views*: texts that join it with parts of what was said before.
On dialogues with gold passages (docs/benchmarks.md), the question alone lacks what it leaves out, and the
whole history hides it; the views below are better than any one text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from linkstore.hits import Hit, Hits
from linkstore.memory.answers import says_little
from linkstore.memory.references import Resolved, says_little_alone
from linkstore.memory.turns import Turn

CARRIED: Final = 0.25
"""Weight of a view that says less than the other, which has weight 1: in a search for turns the one with the
previous query, in one for knowledge a question alone that depends on the history."""
REPLACED: Final = 0.5
"""Weight of an earlier question with a part replaced, in a search for turns."""
ANSWER_CHARACTERS: Final = 400
"""Number of characters of the previous answer in a view, because its beginning says what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A text to search for.

    Args:
        name: For :attr:`~linkstore.hits.Hit.contributions`.
        text: The text.
        without: Ids of documents that this view must not find: those that the text was made from.
        weight: Its weight relative to other views.
    """

    name: str
    text: str
    without: frozenset[str] = frozenset()
    weight: float = 1.0


def views_of(question: str, resolved: Resolved, recent: Sequence[Turn]) -> list[View]:
    """Return the texts to search knowledge for.

    - A question that goes on with the name that was answered is searched for before this answer.
    - Any other question is searched for alone, after the previous query, and before the previous answer,
      unless that is too short to say what it is about ("Got it."). The view with the answer would find the
      documents that this answer came from; they are left out.
    - After such a short answer, a question with a pronoun and no name ("How much did it cost?") counts more
      after the previous query than alone, because it alone says little.
    """
    last = _last_asked(recent)
    if last is None or resolved.exact:
        return [_alone(resolved.text)]
    answer = (last.response or "").strip()
    behind = View(
        name="previous answer",
        text=f"{question}\n{answer[:ANSWER_CHARACTERS]}",
        without=frozenset(last.sources),
    )
    if resolved.named:
        return [behind]
    little = says_little(answer)
    leans = little and says_little_alone(question)
    alone = replace(_alone(resolved.text), weight=CARRIED if leans else 1.0)
    views = [alone, _behind(last, question)]
    return views if little and resolved.name is None else [*views, behind]


def turn_views_of(question: str, resolved: Resolved, recent: Sequence[Turn]) -> list[View]:
    """Return the texts to search turns for: first the question, then what it continues.

    The previous turns are stored themselves. Together with a short question, the words of the previous query
    would find that turn and those around it, whatever is asked.
    """
    last = _last_asked(recent)
    if last is None or resolved.exact or resolved.named:
        return [_alone(resolved.text)]
    if not resolved.depends:
        return [_alone(question)]
    if resolved.whole:
        return [_alone(question), View(name="earlier question", text=resolved.text, weight=REPLACED)]
    return [_alone(resolved.text), replace(_behind(last, question), weight=CARRIED)]


def _last_asked(recent: Sequence[Turn]) -> Turn | None:
    """Return the last turn, if its query says anything."""
    return recent[-1] if recent and recent[-1].query.strip() else None


def _alone(text: str) -> View:
    return View(name="question", text=text)


def _behind(last: Turn, question: str) -> View:
    return View(name="previous query", text=f"{last.query}\n{question}")


def fused(views: Sequence[View], found: Sequence[Hits], k: int) -> tuple[Hit, ...]:
    """Fuse the hits of several views: each view counts by its weight, scaled to its best hit."""
    total = sum(view.weight for view in views)
    best: dict[str, Hit] = {}
    parts: dict[str, dict[str, float]] = {}
    for view, hits in zip(views, found, strict=True):
        kept = [hit for hit in hits if hit.document.id not in view.without]
        top = max((hit.score for hit in kept), default=0.0)
        for hit in kept:
            id = str(hit.document.id)
            share = max(hit.score, 0.0) / top * view.weight / total if top > 0 else 0.0
            parts.setdefault(id, {})[view.name] = share
            if id not in best or hit.score > best[id].score:
                best[id] = hit
    hits_ = [_joined(hit, parts[id]) for id, hit in best.items()]
    return tuple(sorted(hits_, key=lambda hit: (-hit.score, str(hit.document.id)))[:k])


def _joined(hit: Hit, parts: Mapping[str, float]) -> Hit:
    return replace(hit, score=sum(parts.values()), contributions=dict(parts))

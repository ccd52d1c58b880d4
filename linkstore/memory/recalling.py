"""The operation that recalls: from a question to the turns and chunks that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from linkstore.filters import Filter, parse_filter
from linkstore.hits import Hit, Hits
from linkstore.memory.answers import answered_name, has_name
from linkstore.memory.budgeting import within_budget
from linkstore.memory.keys import SessionKey
from linkstore.memory.parts import Parts
from linkstore.memory.reading import Head
from linkstore.memory.recalled import Recall
from linkstore.memory.recording import session_head
from linkstore.memory.references import Resolved, depends_on_history, resolve
from linkstore.memory.requests import search
from linkstore.memory.rewriting import rewritten
from linkstore.memory.salience import salient
from linkstore.memory.speakers import speakers_named, without_names
from linkstore.memory.summaries import stored_summaries
from linkstore.memory.turns import Summary, Turn, turn_of, written_time
from linkstore.memory.turnsearch import TurnSearch
from linkstore.memory.views import View, fused, turn_views_of, views_of
from linkstore.memory.when import near_time, time_filter
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.strategies import Strategy, Words
from linkstore.strategies.reranking import reranked
from linkstore.twins import answered_by

RECENT_ENTITIES: Final = 10
"""How many entities of the last turns a question without any may be about."""
POOL: Final = 50
"""How many hits of each view are joined."""
NAMING: Final = 5
"""How many chunks are read to see whether an answer is a name."""
JUDGED: Final = 20
"""How many hits a reranker scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The request of a caller to a memory.

    ``own`` names the message of the question, whose turn is not recalled.
    """

    session: SessionKey
    question: str
    k: int
    everywhere: bool
    now: datetime
    budget: int | None
    own: str | None = None


def recalled(parts: Parts, asked: Asked) -> Operation[Recall]:
    """Recall what answers a question."""
    head = without_expired((yield from session_head(parts, asked.session, parts.window)), parts, asked.now)
    head = replace(head, recent=tuple(turn for turn in head.recent if turn.writing != asked.own))
    resolved = yield from _understood(parts, asked.question, head.recent)
    entities = parts.entities(resolved.text) or salient(head.recent, RECENT_ENTITIES)
    views = views_of(asked.question, resolved, head.recent)
    turns: tuple[Hit, ...] = ()
    if head.segment or asked.everywhere:
        about = turn_views_of(asked.question, resolved, head.recent)
        found = yield from _turns_found(parts, about, asked)
        turns = tuple(hit for hit in found if not _is_own(hit, asked))[: asked.k]
    pool: tuple[Hit, ...] = ()
    if parts.knowledge is not None:
        pool = yield from _found(parts, parts.knowledge, views, asked, parts.strategy)
    recall = Recall(
        question=asked.question,
        resolved=resolved.text,
        entities=tuple(entities),
        recent=head.recent,
        summaries=tuple((yield from _summaries(parts, asked, head))),
        turns=tuple(turn_of(str(hit.document.id), hit.document.metadata) for hit in turns),
        scores=tuple(hit.score for hit in turns),
        chunks=pool[: asked.k],
        reason=None if turns or pool else "neither a turn nor a chunk is stored that could answer it",
    )
    if asked.budget is None:
        return recall
    return (yield from within_budget(recall, asked.budget, parts.knowledge, pool))


def _is_own(hit: Hit, asked: Asked) -> bool:
    return asked.own is not None and str(hit.document.id).endswith(f"-{asked.own}")


def without_expired(head: Head, parts: Parts, now: datetime) -> Head:
    """Leave the turns out of the end of a session that are older than the memory's time to live."""
    return replace(head, recent=tuple(unexpired(head.recent, parts, now)))


def unexpired(turns: Sequence[Turn], parts: Parts, now: datetime) -> Sequence[Turn]:
    """Return the turns that are not older than the memory's time to live."""
    return turns if parts.ttl is None else [turn for turn in turns if turn.time >= now - parts.ttl]


def _understood(parts: Parts, question: str, recent: Sequence[Turn]) -> Operation[Resolved]:
    """Resolve the references of the question, by the model if there is one."""
    if parts.model is not None and recent:
        return (yield from rewritten(parts.model, question, recent))
    return resolve(question, recent, (yield from _name_answered(parts, question, recent)))


def _name_answered(parts: Parts, question: str, recent: Sequence[Turn]) -> Operation[str | None]:
    """Return the name that the last answer was, if an earlier turn or the knowledge has the name too.

    It is looked up only for a question that depends on what was said.
    """
    name = answered_name(recent[-1]) if recent and depends_on_history(question) else None
    if name is None:
        return None
    if has_name((turn.text for turn in recent[:-1]), name):
        return name
    if parts.knowledge is None:
        return None
    found: Hits = yield search(parts.knowledge, name, strategy=Words(), k=NAMING)
    return name if has_name((hit.document.page_content for hit in found), name) else None


def _scope(parts: Parts, asked: Asked) -> Filter:
    """Return the filter for the turns that may be recalled."""
    scope = asked.session.owners_scope if asked.everywhere else asked.session.scope
    times = dict(time_filter(asked.question, asked.now) or {})
    if parts.ttl is not None:
        living = {"time": {"$gte": written_time(asked.now - parts.ttl)}}
        return {**scope, "$and": [living, times] if times else [living]}
    return {**scope, **times}


def _summaries(parts: Parts, asked: Asked, head: Head) -> Operation[list[Summary]]:
    """Return the summaries of the closed segments that the last turns are not of."""
    last = min((turn.segment for turn in head.recent), default=head.segment)
    if last <= 1:
        return []
    since = None if parts.ttl is None else asked.now - parts.ttl
    plan = stored_summaries(asked.session, last, since=since)
    return (yield answered_by(parts.store, plan))  # type: ignore[no-any-return]


def _turns_found(parts: Parts, views: Sequence[View], asked: Asked) -> Operation[tuple[Hit, ...]]:
    """Return the turns for the views of a question, best first, ranked by its words and the names in it."""
    scope = _scope(parts, asked)
    plan = speakers_named(asked.question)
    named: dict[str, str] = yield answered_by(parts.store, plan, parse_filter(scope))
    bare = [replace(view, text=without_names(view.text, named)) for view in views]
    speakers = set(named.values())
    strategy = TurnSearch(
        speaker=speakers.pop() if len(speakers) == 1 else None, times=near_time(asked.question, asked.now)
    )
    return (yield from _found(parts, parts.store, bare, asked, strategy, scope))


def _found(
    parts: Parts,
    store: LinkStore,
    views: Sequence[View],
    asked: Asked,
    strategy: Strategy,
    scope: Filter | None = None,
) -> Operation[tuple[Hit, ...]]:
    """Return the hits of a store for the views of a question, best first: at least ``k``, if there are."""
    alone = len(views) == 1 and not (asked.budget or asked.own or parts.reranker)
    pool = asked.k if alone else max(POOL, 2 * asked.k)
    found: list[Hits] = []
    for view in views:
        hits: Hits = yield search(store, view.text, strategy=strategy, k=pool, filter=scope)
        found.append(hits)
    best = fused(views, found, pool)
    if parts.reranker is None or not best:
        return best
    judged: Hits = yield from reranked(Hits(hits=best), views[0].text, parts.reranker, 1.0, JUDGED, pool)
    return judged.hits

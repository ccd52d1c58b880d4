"""Recall: from a question to the turns and chunks that answer it, within a budget.

Resolves references by a language model.

The operation that recalls: from a question to the turns and chunks that answer it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.language_models import BaseLanguageModel

from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Hit, Hits
from linkstore.core.plans import Operation
from linkstore.memory.dates import make_near_filters, make_time_filter
from linkstore.memory.entities import find_named_speakers, remove_names
from linkstore.memory.recalled import Recall, fit_budget, format_turn
from linkstore.memory.references import (
    ResolvedQuestion,
    depends_on_history,
    find_answered_name,
    has_name,
    resolve_references,
)
from linkstore.memory.requests import MemoryParts, ask_model, request_search
from linkstore.memory.search import QueryView, TurnSearch, fuse_views, make_turn_views, make_views
from linkstore.memory.sessions import SessionHead
from linkstore.memory.summaries import read_summaries
from linkstore.memory.turns import SessionKey, Summary, Turn, format_time, rank_by_salience, read_turn
from linkstore.memory.writing import read_session_head
from linkstore.store.linkstore import LinkStore, make_plan_call
from linkstore.strategies.base import Strategy, rerank_hits
from linkstore.strategies.first_stage import Words

_REWRITING_PROMPT: Final = """
Rewrite the last question so that it can be understood without the conversation: replace pronouns and add
what is left out. Change nothing else. Do not answer it. Give the question alone.

{conversation}

Last question: {question}
Rewritten question:"""


def rewrite_question(
    model: BaseLanguageModel[Any], question: str, recent: Sequence[Turn]
) -> Operation[ResolvedQuestion]:
    """Have a model rewrite the question. It stays as it is if the model gives nothing."""
    conversation = "\n".join(map(format_turn, recent))
    answer: str = yield from ask_model(
        model=model, prompt=_REWRITING_PROMPT.strip().format(conversation=conversation, question=question)
    )
    text = " ".join(answer.split()) or question
    changed = text != question
    return ResolvedQuestion(text=text, depends=changed or depends_on_history(question), exact=changed)


RECENT_ENTITIES: Final = 10
"""How many entities of the last turns a question without any may be about."""
RECALL_POOL: Final = 50
"""How many hits of each view are joined."""
NAMING_CHUNKS: Final = 5
"""How many chunks are read to see whether an answer is a name."""
MOST_RERANKED: Final = 20
"""How many hits a reranker scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
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


def make_recall(parts: MemoryParts, asked: RecallRequest) -> Operation[Recall]:
    """Recall what answers a question."""
    head = drop_expired((yield from read_session_head(parts, asked.session, parts.window)), parts, asked.now)
    head = replace(head, recent=tuple(turn for turn in head.recent if turn.writing != asked.own))
    resolved = yield from _resolve_question(parts, asked.question, head.recent)
    entities = parts.entities(resolved.text) or rank_by_salience(head.recent, RECENT_ENTITIES)
    views = make_views(asked.question, resolved, head.recent)
    turns: tuple[Hit, ...] = ()
    if head.segment or asked.everywhere:
        about = make_turn_views(asked.question, resolved, head.recent)
        found = yield from _find_turns(parts, about, asked)
        turns = tuple(hit for hit in found if not _is_own(hit, asked))[: asked.k]
    pool: tuple[Hit, ...] = ()
    if parts.knowledge is not None:
        pool = yield from _search_views(parts, parts.knowledge, views, asked, parts.strategy)
    recall = Recall(
        question=asked.question,
        resolved=resolved.text,
        entities=tuple(entities),
        recent=head.recent,
        summaries=tuple((yield from _read_closed_summaries(parts, asked, head))),
        turns=tuple(read_turn(str(hit.document.id), hit.document.metadata) for hit in turns),
        scores=tuple(hit.score for hit in turns),
        chunks=pool[: asked.k],
        reason=None if turns or pool else "neither a turn nor a chunk is stored that could answer it",
    )
    if asked.budget is None:
        return recall
    return (yield from fit_budget(recall, asked.budget, parts.knowledge, pool))


def _is_own(hit: Hit, asked: RecallRequest) -> bool:
    return asked.own is not None and str(hit.document.id).endswith(f"-{asked.own}")


def drop_expired(head: SessionHead, parts: MemoryParts, now: datetime) -> SessionHead:
    """Leave the turns out of the end of a session that are older than the memory's time to live."""
    return replace(head, recent=tuple(select_unexpired(head.recent, parts, now)))


def select_unexpired(turns: Sequence[Turn], parts: MemoryParts, now: datetime) -> Sequence[Turn]:
    """Return the turns that are not older than the memory's time to live."""
    return turns if parts.ttl is None else [turn for turn in turns if turn.time >= now - parts.ttl]


def _resolve_question(
    parts: MemoryParts, question: str, recent: Sequence[Turn]
) -> Operation[ResolvedQuestion]:
    """Resolve the references of the question, by the model if there is one."""
    if parts.model is not None and recent:
        return (yield from rewrite_question(parts.model, question, recent))
    return resolve_references(question, recent, (yield from _confirm_name(parts, question, recent)))


def _confirm_name(parts: MemoryParts, question: str, recent: Sequence[Turn]) -> Operation[str | None]:
    """Return the name that the last answer was, if an earlier turn or the knowledge has the name too.

    It is looked up only for a question that depends on what was said.
    """
    name = find_answered_name(recent[-1]) if recent and depends_on_history(question) else None
    if name is None:
        return None
    if has_name((turn.text for turn in recent[:-1]), name):
        return name
    if parts.knowledge is None:
        return None
    found: Hits = yield request_search(parts.knowledge, name, strategy=Words(), k=NAMING_CHUNKS)
    return name if has_name((hit.document.page_content for hit in found), name) else None


def _make_scope(parts: MemoryParts, asked: RecallRequest) -> Filter:
    """Return the filter for the turns that may be recalled."""
    scope = asked.session.owners_scope if asked.everywhere else asked.session.scope
    times = dict(make_time_filter(asked.question, asked.now) or {})
    if parts.ttl is not None:
        living = {"time": {"$gte": format_time(asked.now - parts.ttl)}}
        return {**scope, "$and": [living, times] if times else [living]}
    return {**scope, **times}


def _read_closed_summaries(
    parts: MemoryParts, asked: RecallRequest, head: SessionHead
) -> Operation[list[Summary]]:
    """Return the summaries of the closed segments that the last turns are not of."""
    last = min((turn.segment for turn in head.recent), default=head.segment)
    if last <= 1:
        return []
    since = None if parts.ttl is None else asked.now - parts.ttl
    plan = read_summaries(asked.session, last, since=since)
    return (yield make_plan_call(parts.store, plan))  # type: ignore[no-any-return]


def _find_turns(
    parts: MemoryParts, views: Sequence[QueryView], asked: RecallRequest
) -> Operation[tuple[Hit, ...]]:
    """Return the turns for the views of a question, best first, ranked by its words and the names in it."""
    scope = _make_scope(parts, asked)
    plan = find_named_speakers(asked.question)
    named: dict[str, str] = yield make_plan_call(parts.store, plan, parse_filter(scope))
    bare = [replace(view, text=remove_names(view.text, named)) for view in views]
    speakers = set(named.values())
    strategy = TurnSearch(
        speaker=speakers.pop() if len(speakers) == 1 else None,
        times=make_near_filters(asked.question, asked.now),
    )
    return (yield from _search_views(parts, parts.store, bare, asked, strategy, scope))


def _search_views(
    parts: MemoryParts,
    store: LinkStore,
    views: Sequence[QueryView],
    asked: RecallRequest,
    strategy: Strategy,
    scope: Filter | None = None,
) -> Operation[tuple[Hit, ...]]:
    """Return the hits of a store for the views of a question, best first: at least ``k``, if there are."""
    alone = len(views) == 1 and not (asked.budget or asked.own or parts.reranker)
    pool = asked.k if alone else max(RECALL_POOL, 2 * asked.k)
    found: list[Hits] = []
    for view in views:
        hits: Hits = yield request_search(store, view.text, strategy=strategy, k=pool, filter=scope)
        found.append(hits)
    best = fuse_views(views, found, pool)
    if parts.reranker is None or not best:
        return best
    judged: Hits = yield from rerank_hits(
        Hits(hits=best), views[0].text, parts.reranker, 1.0, MOST_RERANKED, pool
    )
    return judged.hits

"""Recall: from a question to the turns and chunks that answer it, within a budget, and their prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.language_models import BaseLanguageModel

from linkstore.context.compiled import Compiled, counter_of, frame_parts
from linkstore.context.compiler import ContextCompiler
from linkstore.core.arguments import omit_none, require, require_at_least
from linkstore.core.calls import Call, call_plan
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Hit, Hits
from linkstore.core.plans import Operation, Plan
from linkstore.errors import BudgetError
from linkstore.memory.dates import make_near_filters, make_time_filter
from linkstore.memory.entities import find_named_speakers, remove_names
from linkstore.memory.references import (
    ResolvedQuestion,
    depends_on_history,
    find_answered_name,
    has_name,
    resolve_references,
)
from linkstore.memory.requests import MemoryParts, ask_model, request_search
from linkstore.memory.search import QueryView, TurnSearch, fuse_views, make_turn_views, make_views
from linkstore.memory.sessions import read_session_head, read_summaries
from linkstore.memory.turns import (
    SessionKey,
    Summary,
    Turn,
    format_time,
    format_turn,
    name_writing,
    rank_by_salience,
    read_turn,
)
from linkstore.store.linkstore import LinkStore
from linkstore.strategies.base import Question, Strategy, rerank_hits
from linkstore.strategies.first_stage import Words

RECENT_ENTITIES: Final = 10
"""How many entities of the last turns a question without any may be about."""
RECALL_POOL: Final = 50
"""How many hits of each view are joined."""
NAMING_CHUNKS: Final = 5
"""How many chunks are read to see whether an answer is a name."""
MOST_RERANKED: Final = 20
"""How many hits a reranker scores."""
CONVERSATION_SHARE: Final = 0.5
"""The part of the budget that the conversation may take where there is knowledge as well."""
_REWRITING_PROMPT: Final = """
Rewrite the last question so that it can be understood without the conversation: replace pronouns and add
what is left out. Change nothing else. Do not answer it. Give the question alone.

{conversation}

Last question: {question}
Rewritten question:"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The result of a recall.

    Args:
        question: As it was asked.
        resolved: The question with its references resolved; the same text where it has none.
        entities: What the resolved question is about, most salient first.
        recent: The last turns of the session, in order.
        summaries: Of the latest closed topic segments of the session, in order.
        turns: The turns found for the question, best first.
        scores: The scores of ``turns``, in the same order.
        chunks: The documents of the knowledge store that were found, best first, with their paths.
        compiled: The context of the knowledge store within the token budget; None without a budget.
        reason: Why there is neither a turn nor a chunk; None if there is one.
    """

    question: str
    resolved: str
    entities: tuple[str, ...] = ()
    recent: tuple[Turn, ...] = ()
    summaries: tuple[Summary, ...] = ()
    turns: tuple[Turn, ...] = ()
    scores: tuple[float, ...] = ()
    chunks: tuple[Hit, ...] = ()
    compiled: Compiled | None = None
    reason: str | None = None

    @property
    def conversation(self) -> str:
        """The prompt part on the conversation: key entities, summaries, and turns by time, each once."""
        parts = []
        if self.entities:
            parts.append(f"Key entities: {', '.join(self.entities)}")
        parts += [f"Earlier: {summary.text}" for summary in self.summaries]
        said = {turn.id: turn for turn in (*self.turns, *self.recent)}
        ordered = sorted(said.values(), key=lambda turn: (turn.time, turn.order))
        return "\n".join([*parts, *map(format_turn, ordered)])

    @property
    def knowledge(self) -> str:
        """The prompt part on what was retrieved: numbered chunks, or the compiled context."""
        if self.compiled is not None:
            return self.compiled.text
        return "\n\n".join(
            f"[{number}] {hit.document.page_content}" for number, hit in enumerate(self.chunks, 1)
        )

    @property
    def query(self) -> str:
        """The prompt part with what the user asks, as resolved where that differs."""
        if self.resolved == self.question:
            return self.question
        return f"{self.question}\n(meaning: {self.resolved})"

    @property
    def prompt(self) -> str:
        """All parts, each in a frame that no text can end, without those that are empty."""
        return self.prompt_with(self.knowledge)

    def prompt_with(self, knowledge: str) -> str:
        """Return the prompt with this as the part on what was retrieved."""
        return frame_parts(
            [("conversation", self.conversation), ("knowledge", knowledge), ("question", self.query)]
        )


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """The request of a caller to a memory: see :meth:`~linkstore.memory.ConversationMemory.recall`."""

    session: SessionKey
    question: str
    k: int
    everywhere: bool
    now: datetime
    budget: int | None
    key: str | None

    def __post_init__(self) -> None:
        require(str, "a string", question=self.question, **omit_none(key=self.key))
        require_at_least(1, k=self.k, **omit_none(budget=self.budget))
        format_time(self.now)  # it needs a time zone

    @property
    def own(self) -> str | None:
        """What names the message of the question, whose turn is not recalled."""
        return None if self.key is None else name_writing(self.key, self.question)


def make_recall(parts: MemoryParts, asked: RecallRequest) -> Operation[Recall]:
    """Recall what answers a question."""
    head = yield from read_session_head(parts, asked.session, parts.window)
    since = None if parts.ttl is None else asked.now - parts.ttl
    recent = [
        turn for turn in head.recent if turn.writing != asked.own and (since is None or turn.time >= since)
    ]
    resolved = yield from _resolve_question(parts, asked.question, recent)
    entities = parts.entities(resolved.text) or rank_by_salience(recent, RECENT_ENTITIES)
    turns: list[Hit] = []
    if head.segment or asked.everywhere:
        about = make_turn_views(asked.question, resolved, recent)
        found = yield from _find_turns(parts, about, asked, since)
        own = asked.own
        turns = [hit for hit in found if own is None or not str(hit.document.id).endswith(f"-{own}")]
        turns = turns[: asked.k]
    pool: tuple[Hit, ...] = ()
    if parts.knowledge is not None:
        views = make_views(asked.question, resolved, recent)
        pool = yield from _search_views(parts, parts.knowledge, views, asked, parts.strategy)
    summaries: list[Summary] = []
    last = min((turn.segment for turn in recent), default=head.segment)
    if last > 1:
        summaries = yield call_plan(parts.store.backend, read_summaries(asked.session, last, since=since))
    recall = Recall(
        question=asked.question,
        resolved=resolved.text,
        entities=tuple(entities),
        recent=tuple(recent),
        summaries=tuple(summaries),
        turns=tuple(read_turn(str(hit.document.id), hit.document.metadata) for hit in turns),
        scores=tuple(hit.score for hit in turns),
        chunks=pool[: asked.k],
        reason=None if turns or pool else "neither a turn nor a chunk is stored that could answer it",
    )
    if asked.budget is None:
        return recall
    return (yield from fit_budget(recall, asked.budget, parts.knowledge, pool))


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


def _find_turns(
    parts: MemoryParts, views: Sequence[QueryView], asked: RecallRequest, since: datetime | None
) -> Operation[tuple[Hit, ...]]:
    """Return the turns for the views of a question, best first, ranked by its words and the names in it."""
    scope = asked.session.owners_scope if asked.everywhere else asked.session.scope
    said = make_time_filter(asked.question, asked.now)
    living = None if since is None else {"time": {"$gte": format_time(since)}}
    limits = [one for one in (living, said) if one is not None]
    if limits:
        scope = {**scope, "$and": limits}
    plan = find_named_speakers(asked.question)
    named: dict[str, str] = yield call_plan(parts.store.backend, plan, parse_filter(scope))
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GivenHits(Strategy):
    """Returns hits that were found before, for a compiler to choose from."""

    found: tuple[Hit, ...]

    def plan(self, question: Question) -> Plan[Hits]:
        """Return the hits without a fetch."""
        yield from ()
        return Hits(hits=self.found[: self.k], strategy="given")


def fit_budget(
    recall: Recall, budget: int, knowledge: LinkStore | None, pool: tuple[Hit, ...]
) -> Operation[Recall]:
    """Fit a recall's prompt into a budget: leave out turns, and let a compiler choose among the chunks.

    Args:
        recall: All that was found.
        budget: The most tokens that the prompt may have.
        knowledge: Where the chunks are from; None: there are none.
        pool: More chunks than those of the recall, best first.

    Raises:
        BudgetError: If the question alone exceeds the budget; the message says by how much.
    """
    counter = counter_of(None)

    def cost(one: Recall) -> int:
        return counter.count([one.prompt])[0]

    bare = replace(recall, chunks=(), compiled=None)
    share = budget if knowledge is None or not pool else int(budget * CONVERSATION_SHARE)
    fitting = next((one for one in _shorten_recall(bare) if cost(one) <= share), None)
    least = fitting or list(_shorten_recall(bare))[-1]
    if cost(least) > budget:
        raise BudgetError(
            f"the question alone has {cost(least)} tokens, {cost(least) - budget} more than the budget of"
            f" {budget}; raise the budget, or ask in fewer words"
        )
    if knowledge is None or not pool:
        return least
    compiler = ContextCompiler(knowledge, budget=budget, strategy=GivenHits(found=pool, k=len(pool)))
    whole = compiler.framed_by(least.prompt_with)
    compiled: Compiled = yield Call(whole.compile, whole.acompile, (recall.resolved,))
    within = {item.document.id for item in compiled.items}
    chunks = tuple(hit for hit in pool if hit.document.id in within)
    return replace(least, chunks=chunks, compiled=compiled)


def _shorten_recall(recall: Recall) -> Iterator[Recall]:
    """Yield the recall with ever less: without recalled turns from the last, summaries, the oldest turns."""
    yield recall
    turns, scores = recall.turns, recall.scores
    for end in range(len(turns) - 1, -1, -1):
        recall = replace(recall, turns=turns[:end], scores=scores[:end])
        yield recall
    for start in range(1, len(recall.summaries) + 1):
        yield replace(recall, summaries=recall.summaries[start:])
    recall = replace(recall, summaries=())
    for start in range(1, len(recall.recent) + 1):
        yield replace(recall, recent=recall.recent[start:])
    yield replace(recall, recent=(), entities=())

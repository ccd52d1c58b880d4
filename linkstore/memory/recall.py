"""Recall: from a question to the turns and chunks that answer it, within a budget, and their prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypedDict

from langchain_core.language_models import BaseLanguageModel

from linkstore.context.compiled import Compiled, counter_of, frame_parts
from linkstore.context.compiler import ContextCompiler
from linkstore.context.decay import Decay
from linkstore.core.arguments import omit_none, require, require_at_least
from linkstore.core.calls import Operation, call
from linkstore.core.filters import Filter
from linkstore.core.hits import Hit, Hits
from linkstore.core.lexical import extract_terms
from linkstore.core.plans import Plan
from linkstore.errors import BudgetError
from linkstore.memory import facts
from linkstore.memory.dates import make_near_filters, make_time_filter
from linkstore.memory.focus import find_focus
from linkstore.memory.names import (
    find_answered_name,
    find_named_speakers,
    remove_names,
    select_distinct_names,
)
from linkstore.memory.search import (
    ALONE,
    FOCUS,
    QueryView,
    ResolvedQuestion,
    TurnSearch,
    depends_on_history,
    fuse_views,
    make_turn_views,
    make_views,
    may_mean_answer,
)
from linkstore.memory.sessions import SessionKey
from linkstore.memory.settings import MemorySettings, search_store
from linkstore.memory.turns import (
    SUPERSEDES,
    Turn,
    format_time,
    format_turn,
    name_writing,
    read_head,
    read_turn,
    read_turns,
)
from linkstore.store.linkstore import LinkStore
from linkstore.strategies.all_paths import AllPaths
from linkstore.strategies.base import Question, Strategy, rerank_hits
from linkstore.strategies.first_stage import UNKNOWN_WORDS
from linkstore.strategies.pagerank import PageRank
from linkstore.strategies.resolver import strip_word

RECALL_POOL: Final = 50
"""How many hits of each view are joined."""
MOST_RERANKED: Final = 20
"""How many hits a reranker scores."""
MOST_CORRECTIONS: Final = 8
"""How many times in a row a turn is followed to the one that supersedes it."""
NEWER_AMONG: Final = 5
"""How many turns, the best, are ordered by time where they state something of the same."""
NEWER_SHARE: Final = 0.45
"""The least share of the score of an earlier turn with which a later one goes before it."""
NEWER_WORDS: Final = 0.5
"""More than this share of the question's words that the earlier turn has must be in the later one, or as much
if it says that something changed."""
CONVERSATION_SHARE: Final = 0.5
"""The part of the budget that the conversation may take where there is knowledge as well."""
FoundTurn = tuple[Turn, float]
"""A turn or a note, and its score."""


class RecallOptions(TypedDict, total=False):
    """How a recall is made.

    Attributes:
        k: How many turns and how many chunks to return at most; default 5.
        everywhere: Whether turns of other sessions of the same user and agent are recalled as well. Sessions
            without a user never see each other.
        now: The time that "last week" and the like are counted from; default the current time, in UTC.
        as_of: Recall what was known at this moment: later turns do not count. Default None, all do.
        budget: The most tokens that :attr:`Recall.prompt` may have, counted as
            :class:`~linkstore.context.ContextCompiler` does, which chooses the chunks. Half of it at most is
            for the conversation. Default None, no budget.
        key: Names the message of the question, if it has been written: its own turn is not recalled.
        filter: Metadata filter for the turns, such as on what ``add`` was given as metadata.
    """

    k: int
    everywhere: bool
    now: datetime | None
    as_of: datetime | None
    budget: int | None
    key: str | None
    filter: Filter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The result of a recall.

    Args:
        question: As it was asked.
        resolved: The question as the rewriter wrote it; the same text without one.
        entities: What the resolved question names, or what a word of it that refers back means.
        focus: What it is taken to be about, the first most: what it names, or else what was spoken of.
        recent: The last turns of the session, in order, without those that state what is no longer so.
        turns: The turns and notes found for the question, best first; of facts the newest.
        scores: The scores of ``turns``, in the same order.
        chunks: The documents of the knowledge store that were found, best first, with their paths.
        compiled: The context of the knowledge store within the token budget; None without a budget.
        reason: Why there is neither a turn nor a chunk; None if there is one.
    """

    question: str
    resolved: str
    entities: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()
    recent: tuple[Turn, ...] = ()
    turns: tuple[Turn, ...] = ()
    scores: tuple[float, ...] = ()
    chunks: tuple[Hit, ...] = ()
    compiled: Compiled | None = None
    reason: str | None = None

    @property
    def conversation(self) -> str:
        """The prompt part on the conversation: key entities, and turns by time, each once."""
        parts = [f"Key entities: {', '.join(self.entities)}"] if self.entities else []
        turns = {turn.id: turn for turn in (*self.turns, *self.recent)}
        ordered = sorted(turns.values(), key=lambda turn: (turn.time, turn.order))
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
        """The prompt part with the user's question, and its resolved form if that differs."""
        if self.resolved == self.question:
            return self.question
        return f"{self.question}\n(meaning: {self.resolved})"

    @property
    def prompt(self) -> str:
        """All non-empty parts, each in a frame that no text can end."""
        return self.prompt_with(self.knowledge)

    def prompt_with(self, knowledge: str) -> str:
        """Return the prompt with this as the part on what was retrieved."""
        return frame_parts(
            [("conversation", self.conversation), ("knowledge", knowledge), ("question", self.query)]
        )


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """The request of a caller to a memory: see :class:`RecallOptions`."""

    session: SessionKey
    question: str
    k: int = 5
    everywhere: bool = False
    now: datetime | None = None
    as_of: datetime | None = None
    budget: int | None = None
    key: str | None = None
    filter: Filter | None = None

    def __post_init__(self) -> None:
        require(str, "a string", question=self.question, **omit_none(key=self.key))
        require_at_least(1, k=self.k, **omit_none(budget=self.budget))
        for moment in omit_none(now=self.now, as_of=self.as_of).values():
            format_time(moment)  # it needs a time zone

    @property
    def moment(self) -> datetime:
        """The time of the question."""
        return self.now or self.as_of or datetime.now(UTC)

    @property
    def own(self) -> str | None:
        """What names the message of the question, whose turn is not recalled."""
        return None if self.key is None else name_writing(self.key, self.question)

    def knows(self, turn: Turn, memory: MemorySettings) -> bool:
        """Say whether a turn may be recalled: of its sessions, not its own, not expired, and not later."""
        if not self.session.sees(turn.session, everywhere=self.everywhere):
            return False
        expired = memory.ttl is not None and turn.time < self.moment - memory.ttl
        later = self.as_of is not None and turn.time > self.as_of
        return not (expired or later or turn.writing == self.own)

    def make_scope(self, memory: MemorySettings) -> Filter:
        """Return the filter for the turns that may be recalled."""
        limits: list[Filter] = [] if self.filter is None else [self.filter]
        time_filter = make_time_filter(self.question, self.moment)
        if time_filter is not None:
            limits.append(time_filter)
        if memory.ttl is not None:
            limits.append({"time": {"$gte": format_time(self.moment - memory.ttl)}})
        if self.as_of is not None:
            limits.append({"time": {"$lte": format_time(self.as_of)}})
        scope = self.session.scope(everywhere=self.everywhere)
        return {**scope, "$and": limits} if limits else scope


def make_recall(memory: MemorySettings, asked: RecallRequest) -> Operation[Recall]:
    """Recall what answers a question."""
    _, recent = yield from memory.read(read_head(asked.session, memory.window))
    recent = [turn for turn in recent if asked.knows(turn, memory)]
    resolved = yield from _resolve_question(memory, asked.question, recent)
    focus = find_focus(resolved.text, memory.entities, recent)
    entities = select_distinct_names(memory.entities(resolved.text))
    if focus.refers and not entities:
        entities = focus.things
    about = make_turn_views(asked.question, resolved, recent)
    turns = yield from find_turns(memory, about, asked)
    pool: tuple[Hit, ...] = ()
    if memory.knowledge is not None:
        views = make_views(asked.question, resolved, recent, focus)
        pool = yield from _search_views(memory, memory.knowledge, views, asked, memory.strategy)
    newer = yield from _find_newer(memory, asked, recent)
    until = {id: turn.time for id, turn in newer.items()}
    recent = [_mark_end(turn, until) for turn in recent if not _is_over(turn, until)]
    recall = Recall(
        question=asked.question,
        resolved=resolved.text,
        entities=entities,
        focus=focus.things,
        recent=tuple(recent),
        turns=tuple(turn for turn, _ in turns),
        scores=tuple(score for _, score in turns),
        chunks=pool[: asked.k],
        reason=None if turns or pool else "neither a turn nor a chunk is stored that could answer it",
    )
    if asked.budget is not None:
        recall = yield from fit_budget(recall, asked.budget, memory.knowledge, pool)
        left = recall.turns or recall.recent or recall.chunks
        if recall.reason is None and not left:
            why = f"nothing that was found fits into the budget of {asked.budget} tokens beside the question"
            recall = replace(recall, reason=why)
    if memory.touch:
        yield from _record_accesses(memory, recall, asked.moment)
    return recall


def _resolve_question(
    memory: MemorySettings, question: str, recent: Sequence[Turn]
) -> Operation[ResolvedQuestion]:
    """Say what a question refers to; the rewriter resolves it, if there is one."""
    depends = bool(recent) and depends_on_history(question)
    if memory.rewriter is None or not recent:
        name = find_answered_name(recent[-1].query, recent[-1].response) if depends else None
        name = name if depends and name in recent[-1].focus[:1] else None
        named = name is not None and may_mean_answer(question, recent[-1].query)
        return ResolvedQuestion(text=question, depends=depends, name=name, named=named)
    if isinstance(memory.rewriter, BaseLanguageModel):
        from linkstore.memory.rewriting import rewrite_question  # late: few memories have a rewriter

        answer: str = yield from rewrite_question(memory, memory.rewriter, question, recent)
    else:
        answer = yield from call(memory.rewriter, None, question, recent)
        require(str, "a string", rewritten=answer)
    text = " ".join(answer.split()) or question
    return ResolvedQuestion(text=text, depends=text != question or depends)


def find_turns(
    memory: MemorySettings, views: Sequence[QueryView], asked: RecallRequest
) -> Operation[list[FoundTurn]]:
    """Return the turns for the views of a question, best first, each fact in its newest form.

    Notes on facts and events fade.
    """
    scope = asked.make_scope(memory)
    named = yield from memory.read(find_named_speakers(asked.question, asked.session.owner))
    bare = [replace(view, text=remove_names(view.text, named)) for view in views]
    strategy = TurnSearch(
        speaker=named[0] if len(named) == 1 else None, times=make_near_filters(asked.question, asked.moment)
    )
    hits = yield from _search_views(memory, memory.store, bare, asked, strategy, scope)
    decay = Decay()
    fading = [str(hit.document.id) for hit in hits if decay.may_fade(hit.document.metadata)]
    accessed = yield from memory.accesses[0].read(fading)
    turns: list[FoundTurn] = []
    for hit in hits:
        turn, metadata = read_turn(hit.document), hit.document.metadata
        strength, _ = decay.judge(turn.id, metadata, asked.moment, accessed=accessed.get(turn.id))
        if asked.knows(turn, memory):
            turns.append((turn, hit.score * strength))
    kept = yield from _give_way(memory, asked, sorted(turns, key=lambda pair: -pair[1]))
    return (put_newer_first(kept, bare) if strategy.times is None else kept)[: asked.k]


def put_newer_first(found: Sequence[FoundTurn], views: Sequence[QueryView]) -> list[FoundTurn]:
    """Put later turns before earlier ones on the same subject, among the first turns.

    Whether the later one takes the place of the earlier one may not be known; it is read first. They are of
    the same if both state something, surely about one subject, and the later one has most of the question's
    words that the other has, or half of them and says that something changed. Without a name or a number of
    them it is about something else. What tells of former times is as if it had been said earlier, unless the
    question asks for them.
    """
    asked = {stem for view in views for stem in find_stems(view.text)}
    now = not any(facts.asks_for_past(view.text) for view in views)

    def is_newer(turn: Turn, other: Turn) -> bool:
        past, before = map(facts.is_about_past, (turn.query, other.query))
        return other.time < turn.time if past == before else now and before

    ordered: list[FoundTurn] = []
    for turn, score in found[:NEWER_AMONG]:
        before = [
            at
            for at, (other, best) in enumerate(ordered)
            if is_newer(turn, other) and NEWER_SHARE * best <= score and _state_same(turn, other, asked)
        ]
        ordered.insert(before[0] if before else len(ordered), (turn, score))
    own = next((turn for turn, _ in ordered if facts.states_own(turn.query)), None)
    if own is not None and views and facts.asks_about_self(views[0].text):
        ordered.sort(key=lambda pair: facts.is_about_other(pair[0].query, own.query, asked))
    return [*ordered, *found[NEWER_AMONG:]]


def _state_same(turn: Turn, other: Turn, asked: set[str]) -> bool:
    asks = any(text.rstrip().endswith("?") for text in (turn.query, other.query))
    if asks or not facts.is_plain(turn.query):
        return False
    if facts.denies_other(turn.query, other.query):
        return False
    before = list(facts.read_clauses(other.query))
    slots = {(clause.slot, clause.speaker) for clause in before if clause.slot}
    own = any((clause.slot, clause.speaker) in slots for clause in facts.read_clauses(turn.query))
    if own and facts.says_change(turn.query) and not facts.says_beside(turn.query):
        return True
    wanted, stems = find_stems(other.query) & asked, find_stems(turn.query)
    share, changes = len(wanted & stems) / max(1, len(wanted)), facts.says_change(turn.query)
    if share < NEWER_WORDS or (share == NEWER_WORDS and not changes):
        return False
    marked = [word for word in other.query.split()[1:] if not word.islower()]
    before = [clause for clause in before if wanted & find_stems(" ".join(clause.words))]
    return (wanted - stems).isdisjoint(find_stems(" ".join(marked))) and any(
        clause.is_about_same(earlier, changes=changes)
        for clause in facts.read_clauses(turn.query)
        for earlier in before
    )


def find_stems(text: str) -> set[str]:
    """Return the words of a text without stop words and the endings of plurals."""
    return {strip_word(word) for word in extract_terms(text)}


def _give_way(
    memory: MemorySettings, asked: RecallRequest, found: Sequence[FoundTurn]
) -> Operation[list[FoundTurn]]:
    """Replace each turn by the one that supersedes it; keep it behind if it says more."""
    newer = yield from _find_newer(memory, asked, [turn for turn, _ in found])
    until = {id: turn.time for id, turn in newer.items()}
    ordered: dict[str, FoundTurn] = {}
    for turn, score in found:
        newest = turn
        for _ in range(MOST_CORRECTIONS):
            newest = newer.get(newest.id, newest)
        if newest is not turn:
            ordered.setdefault(newest.id, (newest, score))
        if not _is_over(turn, until):
            ordered.setdefault(turn.id, (_mark_end(turn, until), score))
    return list(ordered.values())


def _find_newer(
    memory: MemorySettings, asked: RecallRequest, turns: Sequence[Turn]
) -> Operation[dict[str, Turn]]:
    """Map each turn, superseding ones included, to the latest turn that supersedes it."""
    newer: dict[str, Turn] = {}
    asking = [turn.id for turn in turns]
    for _ in range(MOST_CORRECTIONS):
        if not asking:
            break
        tags = [(SUPERSEDES, id) for id in asking]
        linked = yield from memory.read(read_turns(tags, "out"))
        fresh = [turn for turn in linked if asked.knows(turn, memory)]
        for turn in sorted(fresh, key=lambda turn: (turn.time, turn.id)):
            newer |= {id: turn for id in turn.supersedes if id in asking and id != turn.id}
        asking = [turn.id for turn in fresh if turn.id not in newer]
    return newer


def _is_over(turn: Turn, until: Mapping[str, datetime]) -> bool:
    """Say whether a turn was superseded, and nothing is lost with it: a note, or a turn that says no more."""
    return turn.id in until and (turn.is_note or not turn.statements or facts.states_only(turn.query))


def _mark_end(turn: Turn, until: Mapping[str, datetime]) -> Turn:
    return replace(turn, until=until[turn.id]) if turn.id in until else turn


def _record_accesses(memory: MemorySettings, recall: Recall, moment: datetime) -> Operation[None]:
    """Record the use of the recalled notes and of chunks that may fade."""
    fading = Decay().may_fade
    used: list[list[str]] = [[turn.id for turn in recall.turns if turn.memory is not None]]
    used.append([str(hit.document.id) for hit in recall.chunks if fading(hit.document.metadata)])
    for accesses, ids in zip(memory.accesses, used, strict=False):
        accesses.collect(ids, moment)
        yield from accesses.record()


def _search_views(
    memory: MemorySettings,
    store: LinkStore,
    views: Sequence[QueryView],
    asked: RecallRequest,
    strategy: Strategy,
    scope: Filter | None = None,
) -> Operation[tuple[Hit, ...]]:
    """Return the hits of a store for the views of a question, best first: at least ``k``, if there are.

    What was said before names much that is not meant.
    """
    pool = max(RECALL_POOL, 2 * asked.k)
    results: list[Hits] = []
    for view in views:
        chosen = strategy
        if len(views) > 1 and view.name not in {ALONE, FOCUS} and isinstance(strategy, PageRank | AllPaths):
            chosen = replace(strategy, named=0)
        hits = yield from search_store(store, view.text, strategy=chosen, k=pool, filter=scope)
        results.append(replace(hits, hits=()) if _is_elsewhere(hits, view.text) else hits)
    best = fuse_views(views, results, pool)
    if memory.reranker is None or not best:
        return best
    judged: Hits = yield from rerank_hits(
        Hits(hits=best), views[0].text, memory.reranker, 1.0, MOST_RERANKED, pool
    )
    return judged.hits


def _is_elsewhere(hits: Hits, text: str) -> bool:
    """Say whether a doubt is sure enough to recall nothing: half of the words, and two, are in no document.

    A document that is missing costs a conversation more than one too many.
    """
    doubt, least = hits.doubt or "", hits.least_similarity or 0.0
    if not doubt.startswith(UNKNOWN_WORDS) or max(hit.similarity for hit in hits) >= least:
        return False
    asked = set(extract_terms(text))
    return len(asked.intersection(extract_terms(doubt))) >= max(2, len(asked) / 2)


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
    fitting = next((recall for recall in _shorten_recall(bare) if cost(recall) <= share), None)
    least = fitting or list(_shorten_recall(bare))[-1]
    if cost(least) > budget:
        raise BudgetError(
            f"the question alone has {cost(least)} tokens, {cost(least) - budget} more than the budget of"
            f" {budget}; raise the budget, or ask in fewer words"
        )
    if knowledge is None or not pool:
        return least
    hits = GivenHits(found=pool, k=len(pool))
    compiler = ContextCompiler(
        knowledge, budget=budget, strategy=hits, candidates=len(pool), frame=least.prompt_with, touch=False
    )
    compiled = yield from call(compiler.compile, compiler.acompile, recall.resolved)
    within = {item.document.id for item in compiled.items}
    chunks = tuple(hit for hit in pool if hit.document.id in within)
    return replace(least, chunks=chunks, compiled=compiled)


def _shorten_recall(recall: Recall) -> Iterator[Recall]:
    """Yield the recall with ever less: without recalled turns from the last, then the oldest turns."""
    yield recall
    turns, scores = recall.turns, recall.scores
    for end in range(len(turns) - 1, -1, -1):
        recall = replace(recall, turns=turns[:end], scores=scores[:end])
        yield recall
    for start in range(1, len(recall.recent) + 1):
        yield replace(recall, recent=recall.recent[start:])
    yield replace(recall, recent=(), entities=())

"""Searches for turns, and how the history of a conversation enters a search.

In a conversation, an answer follows its question and has few words in common with it. So a turn gains from
its neighbours, along ``next_turn``: most from a turn before it that asks something, according to the weight
of the link. It also gains from the other turns of its page of the session, along ``has_turn``, because
several turns speak of one subject. If the question names a time, turns of that time
gain, and those around it half as much, because people speak of an event soon after it.

A question is searched for in several *views*: texts that join it with parts of what was said before. On
dialogues with gold passages (docs/benchmarks.md), the question alone lacks what it leaves out, and the whole
history hides it; the views below are better than any one text. If the last answer was a name, a pronoun that
may mean it is searched for together with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from linkstore.core.arrays import Floats, Ints
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Hit, Hits
from linkstore.core.lexical import extract_question_terms, extract_terms
from linkstore.core.plans import Groups, Matching, Plan, Side, ask, rank_refs
from linkstore.memory.focus import Focus
from linkstore.memory.names import SPEAKER, find_names
from linkstore.memory.sessions import PAGE
from linkstore.memory.turns import BACK_WEIGHT, NEXT_TURN, Turn
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.first_stage import run_first_stage
from linkstore.strategies.results import make_best_hits, report_none_found
from linkstore.strategies.traversal import Edges, FoundDocuments, Trail, follow_links

LEAST_POOL: Final = 100
"""Minimum number of turns that each of the two searches returns."""
LEXICAL_WEIGHT: Final = 1.0
"""Weight of words, where meaning has weight 1."""
WHEN_FACTOR: Final = 0.25
"""Factor for neighbours if the question asks for a time, because the turn itself contains the answer."""
SECOND_WEIGHT: Final = 0.75
"""Weight of a turn two links away, where a neighbour has weight 1."""
PAGE_WEIGHT: Final = 0.3
"""Weight of the turns of a page of a session, where a turn itself has weight 1."""
SPEAKER_WEIGHT: Final = 0.15
"""Weight of the speaker, for turns of the speaker that the question names."""
TIME_WEIGHT: Final = 0.5
"""Weight of the time, for turns of the time that the question names; half of it for those near that time."""
_SEEDS: Final = 40
"""Number of best turns of the first stage from which turns two links away are reached."""
_ASKS_FOR_TIME: Final = re.compile(
    r"^\W*(when|how long|(?:in |on )?(?:what|which) (?:date|day|month|year))\b", re.IGNORECASE
)
_FEWEST_LETTERS: Final = 4
_MOST_FOLLOWING: Final = 4
"""Maximum number of turns that follow one, if several writers write at once."""
_MOST_MEMBERS: Final = 64
_SIDES: Final[tuple[Side, ...]] = ("out", "in")
_NEXT: Final = frozenset({NEXT_TURN})
_ENDINGS: Final = {"ies": "y", "ied": "y", "sses": "ss", "ing": "", "ed": "", "es": "", "s": "", "ly": ""}
ALONE: Final = "question"
"""The name of the view that is the question without what was said before."""
FOCUS: Final = "focus"
"""The name of the view of a question with what is in focus before it."""
ALONE_WEIGHT: Final = 0.5
"""Weight of a question that refers to what was said and names nothing, alone, in a search for knowledge."""
FOCUS_WEIGHT: Final = 1.5
"""Weight of a question with what is in focus, where the question alone has weight 1."""
MOST_ASKED: Final = 3
"""How many queries stand before a question if nothing is in focus."""
CARRIED_WEIGHT: Final = 0.25
"""Weight of the view with the previous query in a search for turns, where the question alone has weight 1."""
CARRIED_TO_NUMBERS: Final = 0.5
"""The same for a question that says nothing but numbers."""
_FEWEST_SAID: Final = 2
"""A query with fewer words that say something, and little in its answer, is a remark."""
ANSWER_CHARACTERS: Final = 400
"""Number of characters of the previous answer in a view, because its beginning says what it is about."""

SHORT_ANSWER: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
_FEWEST_WORDS: Final = 3
"""A question with fewer words that say something depends on what was said before."""
_SENTENCE_WORDS: Final = 4
"""Words of a question that is a sentence."""
_SIGN: Final = re.compile(
    r"\b(?:its|it|their|theirs|they|them|his|he|him|hers|her|she|this|that|these|those|"
    r"the (?:former|latter|same)|such)\b(?!['\u2019]s\s+(?:say|talk|go)\b)"
    r"|\b(?:there|one|ones|another|others?|same|first|second|third|former|latter|then|also|too|else)\b"
    r"|^\W*(?:and|but|or|so|what about|how about|why|ok|okay|no|yes|really|wow|i see)\b",
    re.IGNORECASE,
)
"""A word that refers to something said before, or may do so."""
_PERSONS: Final = re.compile(r"\b(?:he|him|his|she|her|hers)\b", re.IGNORECASE)
_THINGS: Final = re.compile(r"\b(?:it|its)\b", re.IGNORECASE)
_WHO: Final = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TurnSearch(Traversing):
    """Finds turns of conversations; the settings are those of every traversal.

    Args:
        speaker: Whose turns count more; None for nobody's.
        times: Filters for turns of the time that the question names, and for those near it; None for no time.
    """

    speaker: str | None = None
    times: tuple[Filter, Filter] | None = None

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the first stage, then the turns before and after each of its turns, and their pages."""
        trail = Trail()
        asked = replace(question, text=" ".join(expand_forms(question.text)))
        first = yield from run_first_stage(trail, asked, self, max(LEAST_POOL, self.k), LEXICAL_WEIGHT)
        if not len(first.refs):
            return report_none_found(trail, question, LEAST_POOL, self, first.highest)
        faded = np.float32(WHEN_FACTOR if _ASKS_FOR_TIME.match(question.text) else 1.0)
        scores = first.scores(first.refs, first.similarity)
        best = first.refs[(yield from rank_refs(first.refs, scores, _SEEDS))]
        sides: list[Edges] = []
        for side in _SIDES:
            near = yield from _find_beside(first.refs, side, question)
            sides += [near, (yield from _find_further(near, best, side, question))]
        beside = Edges.concatenate(sides)
        documents = FoundDocuments.from_refs(
            np.concatenate((first.refs, beside.target)), np.concatenate((first.similarity, beside.similarity))
        )
        own = first.scores(documents.refs, documents.similarity)
        gained = np.zeros(len(documents), dtype=np.float32)
        share = own[np.searchsorted(documents.refs, beside.source)] * beside.strength * faded
        np.maximum.at(gained, np.searchsorted(documents.refs, beside.target), share)
        trail.add(documents)
        speaker: list[Filter] = [{SPEAKER: self.speaker}] if self.speaker else []
        parts = {
            "turn": own,
            "neighbours": gained,
            "session": np.float32(PAGE_WEIGHT) * (yield from _score_pages(documents.refs, own)),
            "speaker": np.float32(SPEAKER_WEIGHT) * (yield from _match(speaker, documents.refs)),
            "time": np.float32(TIME_WEIGHT) * (yield from _match(self.times or (), documents.refs)),
        }
        most = np.float32(2 + PAGE_WEIGHT + SPEAKER_WEIGHT + TIME_WEIGHT)
        parts = {name: part / most for name, part in parts.items()}
        score = sum(parts.values(), start=np.zeros(len(documents.refs), dtype=np.float32))
        return (yield from make_best_hits(trail, self, question, score, parts))


def expand_forms(text: str) -> list[str]:
    """Return the words of a question, each followed by its other English forms: "paint", "paints", "painted".

    A form that no turn has costs nothing.
    """
    asked, _ = extract_question_terms(text)
    return list(dict.fromkeys(form for word in asked for form in (word, *_inflect(word))))


def _inflect(word: str) -> list[str]:
    """Return the other forms of a word: with endings, or if it has an ending, its stem and other endings."""
    if len(word) < _FEWEST_LETTERS or not word.isascii() or not word.isalpha():
        return []
    stem, stripped = _stem(word)
    if not stripped:
        bare = stem.removesuffix("e")
        plural = f"{stem[:-1]}ies" if stem.endswith("y") else f"{stem}s"
        return [plural, f"{bare}ed", f"{bare}ing"]
    silent = [] if stem.endswith("y") else [f"{stem}e"]
    return [stem, *silent, f"{stem}s", f"{stem}ed", f"{stem}ing"]


def _stem(word: str) -> tuple[str, bool]:
    """Return a word without its ending, and whether it had one."""
    for ending, instead in _ENDINGS.items():
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            stem = word.removesuffix(ending) + instead
            doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
            return (stem[:-1] if doubled else stem), True
    return word, False


def _find_beside(refs: Ints, side: Side, question: Question) -> Plan[Edges]:
    """Find the turns that follow given turns ("out") or precede them ("in"); both ends are turns."""
    hop = yield from follow_links(
        refs, side, kinds=_NEXT, vector=question.vector, take=_MOST_FOLLOWING, cap=_MOST_MEMBERS
    )
    return replace(hop.edges, source=refs[hop.edges.source])


def _find_further(near: Edges, best: Ints, side: Side, question: Question) -> Plan[Edges]:
    """Find the turns two links away from the best ones, from the turns one link away and the way to go on."""
    near = near.take(np.isin(near.source, best))
    further = yield from _find_beside(np.unique(near.target), side, question)
    first, second = np.nonzero(near.target[:, None] == further.source[None, :])
    weight = np.minimum(near.strength[first], further.strength[second])
    strength = np.minimum(weight, np.float32(BACK_WEIGHT)) * np.float32(SECOND_WEIGHT)
    return replace(further.take(second), source=near.source[first], strength=strength)


def _score_pages(refs: Ints, own: Floats) -> Plan[Floats]:
    """Score the page of each turn, (n,), 1 for the best: the root of its turns' squared scores.

    Squares count a few turns that answer well more than many that hardly do.
    """
    share = np.zeros(len(refs), dtype=np.float32)
    within = yield from ask(Groups(refs=refs, side="in", kinds=frozenset({PAGE})))
    if len(within.group):
        pages, at = np.unique(within.group, return_inverse=True)
        total = np.sqrt(np.bincount(at, weights=own[within.document] ** 2, minlength=len(pages)))
        share[within.document] = total[at] / max(float(total.max()), 1e-9)
    return share


def _match(filters: Sequence[Filter], refs: Ints) -> Plan[Floats]:
    """Return the share of some filters that each turn passes, (n,); 0 without any."""
    share = np.zeros(len(refs), dtype=np.float32)
    for condition in filters:
        passing = yield from ask(Matching(refs=refs, filter=parse_filter(condition)))
        share += passing / np.float32(len(filters))
    return share


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuestion:
    """A question, and what it refers to.

    Args:
        text: The question, as a rewriter resolved it if there is one.
        depends: Whether it has a sign that it can only be understood from what was said before.
        name: The name that the last answer was; None if it was none.
        named: Whether a pronoun of the question may mean this name.
    """

    text: str
    depends: bool = False
    name: str | None = None
    named: bool = False


def may_mean_answer(question: str, asked: str) -> bool:
    """Say whether a pronoun of a question may mean the name that was answered to another question."""
    meant = _PERSONS if _WHO.search(asked) else _THINGS
    return meant.search(question) is not None


def depends_on_history(question: str) -> bool:
    """Return whether a question has a sign of depending on what was said before."""
    short = len(extract_terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT_ANSWER


@dataclass(frozen=True, slots=True)
class QueryView:
    """A text to search for.

    Args:
        text: The text.
        name: For :attr:`~linkstore.core.hits.Hit.contributions`.
        without: Ids of documents that this view must not find: those that the text was made from.
        weight: Its weight relative to other views.
    """

    text: str
    name: str = ALONE
    without: frozenset[str] = frozenset()
    weight: float = 1.0


def make_views(
    question: str, resolved: ResolvedQuestion, recent: Sequence[Turn], focus: Focus
) -> list[QueryView]:
    """Return the texts to search knowledge for.

    - A question that goes on with the name that was answered is searched for before this answer.
    - Any other question is searched for alone, with what is in focus if it does not name it, after what was
      asked before, and before the previous answer, unless that is too short to say what it is about ("Got
      it."). Alone it counts half if it refers to what was said and names nothing. After the previous query,
      or without a focus after the last three. The view with the answer would find the documents that this
      answer came from; they are left out.
    """
    last = _find_last_said(recent, resolved)
    if last is None:
        return [QueryView(resolved.text)]
    behind = _join_answer(question, last)
    if resolved.named:
        return [behind]
    refers = (resolved.depends or focus.refers) and resolved.text == question and not find_names(question)
    views = [QueryView(resolved.text, weight=ALONE_WEIGHT if refers else 1.0)]
    asked = [last.query]
    if resolved.name is None and focus.assumed and focus.things:
        views.append(QueryView(f"{focus.things[0]}\n{question}", FOCUS, weight=FOCUS_WEIGHT))
    elif resolved.name is None and not focus.things:
        asked = [turn.query for turn in recent if turn.query.strip() and not _is_remark(turn)][-MOST_ASKED:]
    views.append(QueryView("\n".join([*(asked or [last.query]), question]), "previous query"))
    return views if says_little(last.response or "") and resolved.name is None else [*views, behind]


def make_turn_views(question: str, resolved: ResolvedQuestion, recent: Sequence[Turn]) -> list[QueryView]:
    """Return the texts to search turns for: first the question, then what it continues.

    The previous turns are stored themselves. Together with a short question, the words of the previous query
    would find that turn and those around it, whatever is asked. But numbers alone ("In 3.12?") ask for
    something of what that query is about, so it counts more there.
    """
    last = _find_last_said(recent, resolved)
    if last is None or not resolved.depends:
        return [QueryView(resolved.text)]
    if resolved.named:
        return [_join_answer(question, last)]
    bare = all(map(str.isdigit, extract_terms(question)))
    weight = CARRIED_TO_NUMBERS if bare else CARRIED_WEIGHT
    behind = QueryView(f"{last.query}\n{question}", "previous query", weight=weight)
    return [QueryView(resolved.text), behind]


def _join_answer(question: str, last: Turn) -> QueryView:
    """Return the view of a question before the last answer, without what this came from."""
    answer = (last.response or "").strip()[:ANSWER_CHARACTERS]
    return QueryView(f"{question}\n{answer}", "previous answer", without=frozenset(last.sources))


def _find_last_said(recent: Sequence[Turn], resolved: ResolvedQuestion) -> Turn | None:
    """Return the last turn that says anything, and not only "Thanks!", "You are welcome."; None without one.

    A turn whose answer is a name says something.
    """
    asked = [turn for turn in recent if turn.query.strip()]
    if resolved.name is not None or not asked:
        return asked[-1] if asked else None
    questions = (turn for turn in reversed(asked) if not _is_remark(turn))
    return next(questions, asked[-1])


def _is_remark(turn: Turn) -> bool:
    return len(extract_terms(turn.query)) < _FEWEST_SAID and says_little(turn.response or "")


def fuse_views(views: Sequence[QueryView], found: Sequence[Hits], k: int) -> tuple[Hit, ...]:
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
    scores = {id: sum(shares.values()) for id, shares in parts.items()}
    first = sorted(scores, key=lambda id: (-scores[id], id))[:k]
    return tuple(replace(best[id], score=scores[id], contributions=parts[id]) for id in first)

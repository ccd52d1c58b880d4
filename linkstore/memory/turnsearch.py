"""Searches for turns: by meaning, by words in all their forms, by neighbouring turns and by segments.

In a conversation, an answer follows its question and has few words in common with it. So a turn gains from
its neighbours, along ``next_turn``: most from a turn before it that asks something, according to the weight
of the link (:func:`linkstore.memory.turns.lead`). It also gains from the turns of its topic segment, along
``has_turn``, because several turns speak of one subject. If the question names a time, turns of that time
gain, and those around it half as much, because people speak of an event soon after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from linkstore.filters import Filter, parse_filter
from linkstore.hits import Hits
from linkstore.lexical import question_terms
from linkstore.memory.speakers import SPEAKER
from linkstore.memory.turns import BACK, HAS_TURN, NEXT_TURN
from linkstore.order import ranked
from linkstore.plans import (
    Candidates,
    Find,
    Groups,
    Ids,
    Matching,
    Members,
    Memberships,
    Plan,
    Reached,
    Tags,
)
from linkstore.strategies import Question, Traversing
from linkstore.strategies.firststage import FirstStage, first_stage
from linkstore.strategies.paths import hits_of
from linkstore.strategies.results import none_found, none_returned, returned
from linkstore.strategies.trail import NO_REFS, Found, Trail
from linkstore.vectors import Bools, Floats, Ints

POOL: Final = 100
"""Minimum number of turns that each of the two searches returns."""
LEXICAL: Final = 1.0
"""Weight of words, where meaning has weight 1."""
WHEN: Final = 0.25
"""Factor for neighbours if the question asks for a time, because the turn itself contains the answer."""
SECOND: Final = 0.75
"""Weight of a turn two links away, where a neighbour has weight 1."""
SEGMENT: Final = 0.3
"""Weight of the turns of a segment, where a turn itself has weight 1."""
SPOKEN: Final = 0.15
"""Weight of the speaker, for turns of the speaker that the question names."""
TIMED: Final = 0.5
"""Weight of the time, for turns of the time that the question names; half of it for those near that time."""
_SEEDS: Final = 40
"""Number of best turns of the first stage from which turns two links away are reached."""
_WHEN: Final = re.compile(
    r"^\W*(when|how long|(?:in |on )?(?:what|which) (?:date|day|month|year))\b", re.IGNORECASE
)
_SHORTEST: Final = 4
_BESIDE: Final = 4
"""Maximum number of turns that follow one, if several writers write at once."""
_MOST: Final = 64
_ENDINGS: Final = (
    ("ies", "y"),
    ("ied", "y"),
    ("sses", "ss"),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
    ("ly", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Turns next to others: (m,) sources and turns, the weight of the link at the source, similarities."""

    source: Ints
    refs: Ints
    weight: Floats
    similarity: Floats


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
        """Plan the first stage, then the turns before and after each of its turns, and its segments."""
        trail = Trail()
        asked = replace(question, text=" ".join(in_all_forms(question.text)))
        first = yield from first_stage(trail, asked, self, max(POOL, self.k), LEXICAL)
        if not len(first.refs):
            return none_found(trail, question, POOL, self, first.highest)
        faded = np.float32(WHEN if _WHEN.match(question.text) else 1.0)
        after = yield from _after(first.refs, question)
        before = yield from _before(first.refs, question)
        best = first.refs[(yield from ranked(first.refs, _own(first), _SEEDS))]
        after_next = yield from _further(after, best, _after, question)
        before_last = yield from _further(before, best, _before, question)
        sides = (after, before, after_next, before_last)
        known = _joined(first, *sides)
        own = first.scores_of(known)
        gained = np.zeros(len(known), dtype=np.float32)
        for side in sides:
            share = own[np.searchsorted(known.refs, side.source)] * side.weight * faded
            np.maximum.at(gained, np.searchsorted(known.refs, side.refs), share)
        trail.add(known)
        parts = {
            "turn": own,
            "neighbours": gained,
            "segment": np.float32(SEGMENT) * (yield from _of_segments(known.refs, own)),
            "speaker": np.float32(SPOKEN) * (yield from _said_by(self.speaker, known.refs)),
            "time": np.float32(TIMED) * (yield from _said_near(self.times, known.refs)),
        }
        most = np.float32(2 + SEGMENT + SPOKEN + TIMED)
        parts = {name: part / most for name, part in parts.items()}
        score = sum(parts.values(), start=np.zeros(len(known.refs), dtype=np.float32))
        chosen = yield from returned(trail, score, self.k, question, self.per_page)
        if not len(chosen):
            return none_returned(trail, self)
        parts = {name: part[chosen] for name, part in parts.items()}
        return (yield from hits_of(trail, chosen, self, question, score[chosen], parts))


def in_all_forms(text: str) -> list[str]:
    """Return the words of a question, each followed by its other English forms: "paint", "paints", "painted".

    A form that no turn has costs nothing.
    """
    asked, _ = question_terms(text)
    return list(dict.fromkeys(form for word in asked for form in (word, *_forms(word))))


def _forms(word: str) -> list[str]:
    """Return the other forms of a word: with endings, or if it has an ending, its stem and other endings."""
    if len(word) < _SHORTEST or not word.isascii() or not word.isalpha():
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
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            stem = word.removesuffix(ending) + instead
            doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
            return (stem[:-1] if doubled else stem), True
    return word, False


def _after(refs: Ints, question: Question) -> Plan[Neighbours]:
    """Find the turns that follow given turns."""
    left: Memberships = yield Groups(refs=refs, side="out", kinds=frozenset({NEXT_TURN}))
    groups, at = np.unique(left.group, return_inverse=True)
    reached: Reached = yield Members(
        groups=groups,
        side="in",
        vector=question.vector,
        take=_BESIDE,
        cap=_MOST,
        exclude=NO_REFS,
    )
    return _beside(refs, left, at, reached.group, reached.refs, reached.similarity)


def _before(refs: Ints, question: Question) -> Plan[Neighbours]:
    """Find the turns that given turns follow. The tag of the link is their id, so no link group is read."""
    left: Memberships = yield Groups(refs=refs, side="in", kinds=frozenset({NEXT_TURN}))
    groups, at = np.unique(left.group, return_inverse=True)
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    found: Candidates = yield Find(ids=tuple(id for _, id in tags), vector=question.vector)
    ids: list[str] = yield Ids(refs=found.refs)
    place = {id: place for place, (_, id) in enumerate(tags)}
    of = np.array([place[id] for id in ids], dtype=np.int64)
    return _beside(refs, left, at, of, found.refs, found.similarity)


def _beside(
    refs: Ints, left: Memberships, at: Ints, of: Ints, reached: Ints, similarity: Floats
) -> Neighbours:
    """Pair the turns reached with the turns that were left.

    Args:
        refs: The turns that were left.
        left: Their link groups.
        at: (m,) the link group of each entry of ``left``, as a position.
        of: (n,) that of each turn reached.
        reached: (n,) the turns reached.
        similarity: (n,) theirs.
    """
    leaving, arriving = _pairs(at, of)
    return Neighbours(
        source=refs[left.document[leaving]],
        refs=reached[arriving],
        weight=left.weight[leaving],
        similarity=similarity[arriving],
    )


def _further(
    near: Neighbours, best: Ints, step: Callable[[Ints, Question], Plan[Neighbours]], question: Question
) -> Plan[Neighbours]:
    """Find the turns two links away from the best ones, from the turns one link away and the way to go on."""
    chosen = np.flatnonzero(np.isin(near.source, best))
    reached = near.refs[chosen]
    further = yield from step(np.unique(reached), question)
    first, second = _pairs(reached, further.source)
    weight = np.minimum(near.weight[chosen[first]], further.weight[second])
    return Neighbours(
        source=near.source[chosen[first]],
        refs=further.refs[second],
        weight=np.minimum(weight, np.float32(BACK)) * np.float32(SECOND),
        similarity=further.similarity[second],
    )


def _of_segments(refs: Ints, own: Floats) -> Plan[Floats]:
    """Score the segment of each turn, (n,), 1 for the best: the root of its turns' squared scores.

    Squares count a few turns that answer well more than many that hardly do.
    """
    share = np.zeros(len(refs), dtype=np.float32)
    within: Memberships = yield Groups(refs=refs, side="in", kinds=frozenset({HAS_TURN}))
    if len(within.group):
        segments, at = np.unique(within.group, return_inverse=True)
        total = np.sqrt(np.bincount(at, weights=own[within.document] ** 2, minlength=len(segments)))
        share[within.document] = total[at] / max(float(total.max()), 1e-9)
    return share


def _said_by(speaker: str | None, refs: Ints) -> Plan[Floats]:
    """Return 1 for the turns of a speaker, 0 for others, (n,)."""
    if speaker is None:
        return np.zeros(len(refs), dtype=np.float32)
    theirs: Bools = yield Matching(refs=refs, filter=parse_filter({SPEAKER: speaker}))
    return theirs.astype(np.float32)


def _said_near(times: tuple[Filter, Filter] | None, refs: Ints) -> Plan[Floats]:
    """Return 1 for the turns of a time, a half for those near it, 0 for others, (n,)."""
    share = np.zeros(len(refs), dtype=np.float32)
    for span in times or ():
        passing: Bools = yield Matching(refs=refs, filter=parse_filter(span))
        share += passing / np.float32(2)
    return share


def _own(first: FirstStage) -> Floats:
    return first.scores(first.refs, first.similarity)


def _pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of positions with equal values."""
    equal = left[:, None] == right[None, :]
    first, second = np.nonzero(equal)
    return first, second


def _joined(first: FirstStage, *sides: Neighbours) -> Found:
    refs = np.concatenate((first.refs, *(side.refs for side in sides)))
    similarity = np.concatenate((first.similarity, *(side.similarity for side in sides)))
    distinct, at = np.unique(refs, return_index=True)
    return Found(refs=distinct, similarity=similarity[at], weight=np.ones(len(distinct), dtype=np.float32))

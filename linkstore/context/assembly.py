"""From candidates to a context that fits: select, order, write, count; select again where counts differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from linkstore.context.candidates import CompilerSettings, ContextCandidates, continue_text
from linkstore.context.compiled import Compiled, Item, OmittedHit, TokenCounter
from linkstore.context.ordering import find_first, order_topologically, put_best_at_edges
from linkstore.context.surroundings import MOST_HOPS, TOPIC_KINDS, Surroundings
from linkstore.core.arrays import Ints
from linkstore.core.display import escape_unprintable
from linkstore.core.hits import Hits, get_page
from linkstore.core.lexical import extract_question_terms, extract_terms
from linkstore.core.text import split_sentences
from linkstore.engines.contract import PageEntry
from linkstore.errors import BudgetError, StrategyError

LEAST_EXCERPT: Final = 16
"""Tokens that must be free for an excerpt."""
_MOST_EXCERPTS: Final = 8
"""Number of documents, of those that do not fit, that are tried."""
_MOST_CELLS: Final = 100_000_000
"""Maximum number of candidates times tokens for a knapsack, whose table needs a byte for each."""
"""Kinds of link that are on the structure of pages or on what texts have in common: they order nothing."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """Selected documents as text: what each adds, by id, and the whole."""

    chosen: Mapping[str, str]
    pieces: Mapping[str, str]
    text: str
    tokens: int


class Assembly:
    """Makes one context.

    Args:
        settings: Of the compiler.
        question: What was asked.
        hits: What was found.
        candidates: What may be taken.
        around: Links among the candidates.
        pages: The pages that they belong to.
    """

    def __init__(
        self,
        settings: CompilerSettings,
        question: str,
        hits: Hits,
        candidates: ContextCandidates,
        around: Surroundings,
        pages: Sequence[PageEntry],
    ) -> None:
        self._settings = settings
        self._question = question
        self._hits = hits
        self._candidates = candidates
        self._by_id = by_id = candidates.by_id
        self._around = around
        pinned = [name for name, item in by_id.items() if item.role == "pinned"]
        self._always = frozenset(pinned).union(*(candidates.requires.get(name, ()) for name in pinned))
        left = [name for name in by_id if name not in candidates.same and name not in candidates.refused]
        self._wanted = [name for name in left if name not in self._always and by_id[name].rank is not None]
        self._rank = {name: at for at, name in enumerate(by_id)}
        self._place = {name: at for page in pages for at, name in enumerate(page.ids)}
        self._room = settings.budget - (self._count_tokens("") if settings.frame is not None else 0)
        self._follows = _find_continued(pages, candidates.overlaps)

    def compile(self) -> Compiled:
        """Make the context.

        Raises:
            BudgetError: If what is pinned exceeds the budget.
        """
        draft = self._add_excerpts(self._extend(self._fit()))
        settings, candidates = self._settings, self._candidates
        return Compiled(
            question=self._question,
            text=draft.text,
            tokens=draft.tokens,
            budget=settings.budget,
            tokenizer=settings.counter.name,
            items=tuple(
                replace(
                    self._by_id[name],
                    text=text,
                    repeats=tuple(other for other, kept in candidates.same.items() if kept == name),
                    is_excerpt=draft.chosen[name] != self._by_id[name].text,
                )
                for name, text in draft.pieces.items()
            ),
            left_out=tuple(
                OmittedHit(
                    id=name, cost=item.cost, rank=item.rank, reason=self._explain_left_out(item, draft)
                )
                for name, item in self._by_id.items()
                if name not in draft.pieces and item.rank is not None
            ),
            selection=settings.selection,
            order=settings.order,
            remarks=tuple(self._collect_remarks(draft)),
            reason=None if draft.pieces else self._explain_empty(draft),
        )

    def _fit(self) -> _Draft:
        """Return a draft that fits: selected by the costs of its parts, then counted as a whole."""
        budget = self._settings.budget
        alone = self._write({})
        if alone.tokens > budget:
            raise BudgetError(
                f"the {len(alone.pieces)} pinned documents, with those they require, need {alone.tokens}"
                f" tokens, {alone.tokens - budget} more than the budget of {budget}; raise the budget, or pin"
                " fewer"
            )
        # The first text needs no separator.
        capacity = budget - alone.tokens if self._always else self._room + self._settings.separator_cost
        step = 1
        while capacity > 0:
            draft = self._write(self._select(capacity))
            if draft.tokens <= budget:
                return draft
            capacity -= step * (draft.tokens - budget)
            step *= 2
        return alone

    def _select(self, capacity: int) -> dict[str, str]:
        """Select documents within the capacity, each with all its requirements."""
        taken: dict[str, str] = {}
        wanted = self._wanted
        if self._settings.selection == "knapsack":
            wanted = [*self._pack(capacity), *wanted]
        for name in wanted:
            fresh = self._with_requirements(name) - taken.keys()
            cost = sum(self._by_id[other].cost for other in fresh)
            if cost <= capacity:
                taken |= {other: self._by_id[other].text for other in fresh}
                capacity -= cost
        return taken

    def _with_requirements(self, name: str) -> set[str]:
        return {name, *self._candidates.requires.get(name, ())} - self._always

    def _pack(self, capacity: int) -> list[str]:
        """Return the documents of the best packing: each is worth its strength divided by its rank.

        A share by rank is about how likely a document is evidence, and so may be added up; scores may not.
        """
        costs = [
            sum(self._by_id[requirement].cost for requirement in self._with_requirements(name))
            for name in self._wanted
        ]
        values = [self._by_id[name].strength / at for at, name in enumerate(self._wanted, 1)]
        if len(costs) * capacity > _MOST_CELLS:
            raise StrategyError(
                f"selection='knapsack' would need a table of {len(costs)} candidates times {capacity} tokens;"
                " lower candidates or the budget, or select by rank"
            )
        return [self._wanted[at] for at in pack(costs, values, capacity)]

    def _extend(self, draft: _Draft) -> _Draft:
        """Add documents by rank, within the tokens saved by joining."""
        for name in self._wanted:
            fits = self._by_id[name].cost <= self._settings.budget - draft.tokens
            if fits and name not in draft.chosen and self._with_requirements(name) <= {name, *draft.chosen}:
                draft = self._try(draft, name, self._by_id[name].text)
        return draft

    def _add_excerpts(self, draft: _Draft) -> _Draft:
        """Add the best sentences of the best documents that do not fit, as long as there is room."""
        for name in self._list_cut(draft):
            room = self._settings.budget - draft.tokens - self._settings.separator_cost
            alone = not draft.pieces
            text = self._cut(name, self._room if alone else room, alone=alone)
            if text is not None:
                draft = self._try(draft, name, text)
        return draft

    def _list_cut(self, draft: _Draft) -> list[str]:
        """List the best documents that do not fit, if all their requirements are taken."""
        waiting = [name for name in self._wanted if name not in draft.chosen][:_MOST_EXCERPTS]
        return [name for name in waiting if self._with_requirements(name) <= {name, *draft.chosen}]

    def _cut(self, name: str, room: int, *, alone: bool) -> str | None:
        """Return the best sentences of a document within so many tokens, which its header is among.

        If the context would be empty otherwise, they need no line above them: the gaps show what they are.
        """
        room -= self._settings.counter.count([self._settings.head_of(self._by_id[name].document)])[0]
        if room < LEAST_EXCERPT and not alone:
            return None
        args = self._by_id[name].text, self._question, room, self._settings.counter
        return cut_excerpt(*args, name) or (cut_excerpt(*args) if alone else None)

    def _try(self, draft: _Draft, name: str, text: str) -> _Draft:
        """Return the draft with a document more if it fits, else as it is."""
        other = self._write({**draft.chosen, name: text})
        return other if other.tokens <= self._settings.budget else draft

    def _write(self, chosen: Mapping[str, str]) -> _Draft:
        """Write documents in their order, with these texts; what is pinned is written too."""
        texts = {**{name: self._by_id[name].text for name in self._always}, **chosen}
        pieces: dict[str, str] = {}
        text, before = "", ""
        for name in self._put_in_order(texts):
            whole = texts[name] == self._by_id[name].text
            if whole and before in self._follows.get(name, ()) and texts[before] == self._by_id[before].text:
                pieces[name] = continue_text(texts[before], texts[name])
                text += pieces[name]
            else:
                text += self._settings.separator if pieces else ""
                pieces[name] = self._settings.head_of(self._by_id[name].document) + texts[name]
                text += pieces[name]
            before = name
        return _Draft(texts, pieces, text, self._count_tokens(text) if text else 0)

    def _count_tokens(self, text: str) -> int:
        """Count the tokens that are sent for a text."""
        frame = self._settings.frame
        return self._settings.counter.count([text if frame is None else frame(text)])[0]

    def _put_in_order(self, chosen: Collection[str]) -> list[str]:
        names = sorted(chosen, key=lambda name: (name not in self._always, self._rank[name]))
        first, rest = [n for n in names if n in self._always], [n for n in names if n not in self._always]
        match self._settings.order:
            case "relevance":
                return names
            case "edges":
                return [*first, *put_best_at_edges(rest)]
            case "document":
                return [*first, *self._order_by_page(rest)]
            case "precedence":
                continued = {
                    name: min(before & set(chosen))
                    for name, before in self._follows.items()
                    if name in chosen and before & set(chosen)
                }
                return order_topologically(names, self._find_predecessors(chosen), continued)

    def _order_by_page(self, names: Sequence[str]) -> list[str]:
        """Order pages by their best document, and the documents of each as they stand on it."""
        pages = {name: get_page(self._by_id[name].document) for name in names}
        first = {page: at for at, page in reversed([*enumerate(pages.values())])}
        last = len(self._place)
        return sorted(names, key=lambda name: (first[pages[name]], self._place.get(name, last)))

    def _find_predecessors(self, chosen: Collection[str]) -> Mapping[str, set[str]]:
        """Return what is read before each, by the kinds of links among the chosen documents."""
        before: dict[str, set[str]] = {}
        for edge in self._around.links_among(chosen):
            first = find_first(edge.kind, self._settings.precedence)
            if first is not None or edge.kind not in TOPIC_KINDS:
                ends = (edge.source, edge.target) if first == "source" else (edge.target, edge.source)
                before.setdefault(ends[1], set()).add(ends[0])
        return before

    def _explain_left_out(self, item: Item, draft: _Draft) -> str:
        """Say why a candidate was left out."""
        candidates = self._candidates
        if item.id in candidates.same:
            return f"says the same as {candidates.same[item.id]}"
        if item.id in candidates.refused:
            return f"what it requires is more than {MOST_HOPS} links away, or was removed meanwhile"
        needed = self._with_requirements(item.id) - {item.id}
        cost = item.cost + sum(self._by_id[name].cost for name in needed)
        free = self._settings.budget - draft.tokens if draft.text else self._room
        also = " with what it requires" if needed else ""
        if cost > self._room:
            return f"longer than the budget{also}"
        if cost > free:
            return f"needs {cost} tokens{also}, {free} are free"
        return "what was taken is worth more"

    def _collect_remarks(self, draft: _Draft) -> Sequence[str]:
        """Return what there is to know of the documents taken, of their links, and of the search."""
        taken = draft.pieces.keys()
        remarks = [
            f"{name}: {text}"
            for name, texts in sorted(self._around.unresolved.items())
            if name in taken
            for text in texts
        ]
        remarks += [why for name, why in self._candidates.remarks.items() if name in taken]
        cost = min((item.cost for item in self._by_id.values()), default=0)
        free = self._settings.budget - draft.tokens
        all_taken = all(name in taken for name in self._wanted)
        if self._hits and all_taken and free > cost and len(self._hits) == self._settings.candidates:
            remarks.append(
                f"{free} tokens are free, and all {len(self._hits)} candidates were taken; raise candidates"
            )
        return [*remarks, *(str(cut) for cut in self._hits.cuts)]

    def _explain_empty(self, draft: _Draft) -> str:
        if not self._wanted:
            return self._hits.reason or "nothing was found"
        by_id = self._by_id
        needed = map(self._with_requirements, self._wanted)
        least = min(needed, key=lambda names: sum(by_id[name].cost for name in names))
        texts = [self._write({name: by_id[name].text for name in least}).text]
        for name in self._list_cut(draft):
            head = self._settings.head_of(by_id[name].document)
            texts += (head + excerpt for excerpt in list_shortest(by_id[name].text, self._question))
        return (
            f"no document or sentence fits into the budget of {self._settings.budget} tokens; the shortest"
            f" needs {min(map(self._count_tokens, texts))}"
        )


def pack(costs: Sequence[int], values: Sequence[float], capacity: int) -> list[int]:
    """Return which items fit together and have the highest sum of values: the 0/1 knapsack, exactly.

    Args:
        costs: (n,) at least 0.
        values: (n,) greater than 0.
        capacity: The sum of costs may not exceed this.
    """
    best = np.zeros(max(0, capacity) + 1)
    taken = np.zeros((len(costs), len(best)), dtype=np.bool_)
    for row, cost, value in zip(taken, costs, values, strict=True):
        if cost < len(best):
            with_it = best[: len(best) - cost] + value
            row[cost:] = with_it > best[cost:]
            best[cost:] = np.maximum(best[cost:], with_it)
    chosen: list[int] = []
    at: Ints | int = len(best) - 1
    for item in range(len(costs) - 1, -1, -1):
        if taken[item, at]:
            chosen.append(item)
            at -= costs[item]
    return chosen[::-1]


def _find_continued(pages: Sequence[PageEntry], overlaps: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Map each document to those it continues: the previous one on its page, or an overlapping one."""
    follows = {name: {before} for name, before in overlaps.items()}
    for page in pages:
        for before, name in zip(page.ids, page.ids[1:], strict=False):
            follows.setdefault(name, set()).add(before)
    return {name: frozenset(others) for name, others in follows.items()}


GAP: Final = " […] "
"""Stands for the sentences that an excerpt leaves out."""
_OPENING: Final = 0.5
"""How much the first sentence counts, which says what a text is about; a word of the question counts 1."""
_MOST_SENTENCES: Final = 500
"""How many sentences of a document are looked at."""


def cut_excerpt(
    text: str, question: str, room: int, counter: TokenCounter, name: str | None = None
) -> str | None:
    """Return the best whole sentences of a text in their order, or None if not one fits.

    Args:
        text: Of a document.
        question: What they are to answer.
        room: Most tokens of the excerpt.
        counter: Counts them.
        name: The id in the line above them, which says how many sentences they are; None: without the line.
    """
    sentences, worth = _weigh_sentences(text, question)
    costs = counter.count([f"{GAP}{sentence}" for sentence in sentences])
    free = room - counter.count([_format(sentences, [], name)])[0]
    best = sorted((at for at, value in enumerate(worth) if value), key=lambda at: (-worth[at], at))
    chosen: list[int] = []
    for at in best:
        if costs[at] <= free:
            chosen.append(at)
            free -= costs[at]
    while chosen:
        excerpt = _format(sentences, sorted(chosen), name)
        if counter.count([excerpt])[0] <= room:
            return excerpt
        chosen.pop()  # the least of those taken
    single = [_format(sentences, [at], name) for at in best]
    return next(
        (candidate for candidate, cost in zip(single, counter.count(single), strict=True) if cost <= room),
        None,
    )


def list_shortest(text: str, question: str) -> list[str]:
    """Return each sentence that may be an excerpt, as the shortest one."""
    sentences, worth = _weigh_sentences(text, question)
    return [_format(sentences, [at], None) for at, value in enumerate(worth) if value]


def _weigh_sentences(text: str, question: str) -> tuple[list[str], list[float]]:
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(text)][:_MOST_SENTENCES]
    terms = set(extract_question_terms(question)[0])
    return sentences, [
        len(terms.intersection(extract_terms(sentence))) + (_OPENING if not at else 0.0)
        for at, sentence in enumerate(sentences)
    ]


def _format(sentences: Sequence[str], chosen: Sequence[int], name: str | None) -> str:
    parts: list[str] = []
    for before, at in zip([-1, *chosen], chosen, strict=False):
        gap = GAP if at > before + 1 else " "
        parts.append(f"{gap}{sentences[at]}".lstrip(" " if not parts else ""))
    end = GAP if chosen and chosen[-1] < len(sentences) - 1 else ""
    counted = f"{len(chosen)} of {len(sentences)} sentences"
    head = "" if name is None else f"[{escape_unprintable(name)}: {counted}]\n"
    return f"{head}{''.join(parts)}{end}".rstrip()

"""From entries to a context that fits: select, order, write, count; select again where counts differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from linkstore.context.compiled import Compiled, Item, LeftOut
from linkstore.context.entries import CompilerSettings, Entries, continue_text
from linkstore.context.selection import (
    Candidate,
    Selection,
    order_topologically,
    put_best_at_edges,
    select_candidates,
)
from linkstore.context.surroundings import Surroundings
from linkstore.core.hits import Hits, get_page
from linkstore.engines.contract import PageEntry
from linkstore.errors import BudgetError

_MOST_FURTHER_SELECTIONS = 2
"""Maximum number of further selections with the tokens that joining saved."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """Selected documents as text: what each adds, by id, and the whole."""

    selection: Selection
    pieces: Mapping[str, str]
    text: str
    tokens: int


class Assembly:
    """Makes one context.

    Args:
        settings: Of the compiler.
        question: What was asked.
        hits: What was found.
        entries: What may be taken.
        around: Links among the entries.
        pages: The pages that entries belong to.
    """

    def __init__(
        self,
        settings: CompilerSettings,
        question: str,
        hits: Hits,
        entries: Entries,
        around: Surroundings,
        pages: Sequence[PageEntry],
    ) -> None:
        self._settings = settings
        self._question = question
        self._hits = hits
        self._entries = entries
        self._around = around
        pinned = [name for name, entry in entries.by_id.items() if entry.role == "pinned"]
        self._always = frozenset(pinned).union(*(entries.requires.get(name, ()) for name in pinned))
        # Best ranked first, then those that are only required.
        self._candidates = [
            Candidate(
                id=name,
                cost=entry.cost,
                value=entry.value,
                requires=entries.requires.get(name, frozenset()) - self._always,
            )
            for name, entry in entries.by_id.items()
            if name not in entries.same and name not in entries.refused and name not in self._always
        ]
        self._place = {name: at for page in pages for at, name in enumerate(page.ids)}
        self._room = settings.budget - (self._count_tokens("") if settings.frame is not str else 0)
        self._follows = _find_continued(pages, entries.overlaps)

    def compiled(self) -> Compiled:
        """Make the context.

        Raises:
            BudgetError: If what is pinned exceeds the budget.
        """
        draft, by_id = self._fit(), self._entries.by_id
        taken = draft.pieces.keys()
        return Compiled(
            question=self._question,
            text=draft.text,
            tokens=draft.tokens,
            budget=self._settings.budget,
            tokenizer=self._settings.counter.name,
            items=tuple(
                replace(by_id[name], text=text, repeats=self._entries.repeats_of(name))
                for name, text in draft.pieces.items()
            ),
            left_out=tuple(
                LeftOut(
                    id=name,
                    cost=entry.cost,
                    value=entry.value,
                    rank=entry.rank,
                    reason=self._explain_left_out(entry, draft),
                )
                for name, entry in by_id.items()
                if name not in taken and entry.rank is not None
            ),
            value=draft.selection.value,
            gap=draft.selection.gap,
            method=draft.selection.by,
            order=self._settings.order,
            notes=tuple(self._collect_notes(taken)),
            reason=None if taken else self._explain_empty(),
        )

    def _fit(self) -> _Draft:
        """Return the best draft that fits: selected by the costs of its parts, then counted as a whole."""
        budget = self._settings.budget
        alone = self._make_draft(Selection(ids=frozenset(), value=0.0, by="rank"))
        if alone.tokens > budget:
            raise BudgetError(
                f"the {len(alone.pieces)} pinned documents, with those they require, need {alone.tokens}"
                f" tokens, {alone.tokens - budget} more than the budget of {budget}; raise the budget, or pin"
                " fewer"
            )
        # The first text needs no separator.
        free = budget - alone.tokens if self._always else self._room + self._settings.separator_cost
        capacity, step = free, 1
        while capacity > 0:
            draft = self._select(capacity)
            if draft.tokens <= budget:
                return self._extend(self._spend_saved(capacity, draft))
            capacity -= step * (draft.tokens - budget)
            step *= 2
        return alone

    def _spend_saved(self, capacity: int, draft: _Draft) -> _Draft:
        """Spend the tokens that joining saved, if that makes the draft better."""
        for _ in range(_MOST_FURTHER_SELECTIONS):
            chosen, free = draft.selection.ids, self._settings.budget - draft.tokens
            if all(one.cost > free for one in self._candidates if one.id not in chosen):
                return draft
            used = sum(one.cost for one in self._candidates if one.id in chosen)
            other = self._select(max(capacity, used + free))
            if other.tokens > self._settings.budget or other.selection.value <= draft.selection.value:
                return draft
            draft = other
        return draft

    def _extend(self, draft: _Draft) -> _Draft:
        """Add neighbours of what is taken that fit because they are joined to it."""
        beside = self._follows.keys() | {name for others in self._follows.values() for name in others}
        waiting = [one for one in self._candidates if one.id in beside and one.value > 0]
        while True:
            chosen = draft.selection.ids
            free = self._settings.budget - draft.tokens
            for one in waiting:
                fits = one.requires <= chosen and self._find_least_cost(one, chosen) <= free
                if one.id not in chosen and fits:
                    worth = draft.selection.value + one.value
                    other = self._make_draft(replace(draft.selection, ids=chosen | {one.id}, value=worth))
                    if other.tokens <= self._settings.budget:
                        draft = other
                        break
            else:
                return draft

    def _find_least_cost(self, one: Candidate, chosen: Collection[str]) -> int:
        """Return the cost of a candidate if it is joined to a neighbour that is taken."""
        before = self._follows.get(one.id, frozenset()) & set(chosen)
        pairs = [(name, one.id) for name in sorted(before)]
        pairs += [(one.id, name) for name in sorted(chosen) if one.id in self._follows.get(name, ())]
        by_id = self._entries.by_id
        costs = [one.cost]
        for first, second in pairs:
            text = continue_text(by_id[first].text, by_id[second].text)
            costs.append(one.cost - by_id[second].cost + self._settings.counter.count([text])[0])
        return min(costs)

    def _select(self, capacity: int) -> _Draft:
        settings = self._settings
        return self._make_draft(
            select_candidates(self._candidates, capacity, settings.value, settings.exact_candidates)
        )

    def _make_draft(self, selection: Selection) -> _Draft:
        ordered = self._put_in_order({*self._always, *selection.ids})
        pieces: dict[str, str] = {}
        text, before = "", ""
        for name in ordered:
            entry = self._entries.by_id[name]
            if before in self._follows.get(name, ()):
                pieces[name] = continue_text(self._entries.by_id[before].text, entry.text)
                text += pieces[name]
            else:
                text += self._settings.separator if pieces else ""
                pieces[name] = self._settings.head_of(entry.document) + entry.text
                text += pieces[name]
            before = name
        return _Draft(selection, pieces, text, self._count_tokens(text) if text else 0)

    def _count_tokens(self, text: str) -> int:
        """Count the tokens that are sent for a text."""
        return self._settings.counter.count([self._settings.frame(text)])[0]

    def _put_in_order(self, chosen: Collection[str]) -> list[str]:
        by_id = self._entries.by_id
        first = [name for name in by_id if name in self._always]
        rest = sorted(
            {*chosen} - self._always,
            key=lambda name: (-by_id[name].value, by_id[name].rank or len(by_id), name),
        )
        match self._settings.order:
            case "relevance":
                return [*first, *rest]
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
                return order_topologically([*first, *rest], self._find_predecessors(chosen), continued)

    def _order_by_page(self, names: Sequence[str]) -> list[str]:
        """Order pages by their best document, and the documents of each as they stand on it."""
        pages: dict[str, list[str]] = {}
        for name in names:
            pages.setdefault(get_page(self._entries.by_id[name].document), []).append(name)
        last = len(self._place)
        return [
            name
            for page in pages.values()
            for name in sorted(page, key=lambda one: self._place.get(one, last))
        ]

    def _find_predecessors(self, chosen: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return the documents that must come before each document, by the links among them."""
        before: dict[str, set[str]] = {}
        for edge in self._around.links.among(chosen):
            first = self._settings.precedence.get(edge.kind)
            if first == "source":
                before.setdefault(edge.target, set()).add(edge.source)
            elif first == "target":
                before.setdefault(edge.source, set()).add(edge.target)
        return {name: frozenset(others) for name, others in before.items()}

    def _explain_left_out(self, entry: Item, draft: _Draft) -> str:
        """Say why a candidate was left out."""
        entries = self._entries
        if entry.id in entries.same:
            return f"says the same as {entries.same[entry.id]}"
        if entry.id in entries.refused:
            return entries.refused[entry.id]
        if entry.value <= 0:
            return "its value is not above 0"
        needed = entries.requires.get(entry.id, frozenset()) - self._always
        cost = entry.cost + sum(entries.by_id[name].cost for name in needed)
        free = self._settings.budget - draft.tokens if draft.text else self._room
        if cost > self._room:
            return "longer than the budget" + (" with what it requires" if needed else "")
        if cost > free:
            return (
                f"needs {cost} tokens" + (" with what it requires" if needed else "") + f", {free} are free"
            )
        return "what was taken is worth more"

    def _collect_notes(self, taken: Collection[str]) -> Sequence[str]:
        unresolved = [
            f"{name}: {text}"
            for name, texts in sorted(self._around.unresolved.items())
            if name in taken
            for text in texts
        ]
        unreadable = [why for name, why in self._entries.unreadable.items() if name in taken]
        return [*unresolved, *unreadable, *(str(cut) for cut in self._hits.cuts)]

    def _explain_empty(self) -> str:
        if not self._hits:
            return self._hits.reason or "nothing was found"
        if all(one.value <= 0 for one in self._candidates):
            return "no candidate has a value above 0"
        framed = self._settings.budget - self._room
        least = min(one.cost for one in self._entries.by_id.values()) + framed
        return (
            f"no document fits into the budget of {self._settings.budget} tokens; the shortest needs {least}"
        )


def _find_continued(pages: Sequence[PageEntry], overlaps: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return what each document continues: the previous one on its page, or one that it overlaps."""
    follows = {name: {before} for name, before in overlaps.items()}
    for page in pages:
        for before, name in zip(page.ids, page.ids[1:], strict=False):
            follows.setdefault(name, set()).add(before)
    return {name: frozenset(others) for name, others in follows.items()}

"""Replaces the links of stored documents; of a document only the column of links is written.

A relink amends one version of a document. Its timestamps follow directly on the one of that version, so every
update and every deletion, which have the time of day, wins over it whole: an update that was acknowledged is
not undone, and a document that was deleted does not come back. What was stored is read again afterwards;
where another write won, the links are replaced again, in what that one wrote.

Members are added first, as in every write, and what went is taken out afterwards. Two relinks may amend one
version at the same moment, with the same timestamps, and then one column of links wins. So what is taken out
is what was there up to the timestamp before: nothing that the other one added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import orjson

from linkstore.backends.base import Written
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State
from linkstore.backends.cassandra.members import MemberStatements, Placed
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import LinkCell, link_cell, memberships
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.errors import StoreBusyError
from linkstore.links import LINKS_KEY, Link, links_in
from linkstore.plans import Operation
from linkstore.storedlinks import with_other_links

TRIES: Final = 20
"""How many times the links of a document are replaced if other writers keep changing it meanwhile."""
_LATER: Final = 2
"""A relink's timestamp follows on that of what it amends; the one between is for what it takes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A document whose links change.

    Args:
        before: What is stored.
        cell: Its new column of links.
        placed: Where it lies then.
    """

    before: State
    cell: LinkCell
    placed: Placed

    @property
    def at(self) -> int:
        """The timestamp of the column of links, and of the members that follow from it."""
        return self.before.written + _LATER


class Relinker:
    """Carries out one replacement of links.

    Args:
        tables: Of the store.
        fetcher: Reads what is stored.
        buckets: Into how many partitions a side of a link group is split.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, buckets: int) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._buckets = buckets
        self._states = DerivedRows(tables, fetcher, buckets, lexical=False, lifetime=None)

    def replace(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Operation[Written]:
        """Replace the links of these kinds.

        Raises:
            StoreBusyError: If other writers changed the same documents again and again meanwhile.
        """
        left = list(links)
        found, changed = set[str](), set[str]()
        for _ in range(TRIES):
            known = yield from self._states.stored(left, {})
            found = found.difference(left) | known.keys()  # without those deleted since the last try
            steps = [
                step for id, one in known.items() if (step := _step(id, one, kinds, links[id])) is not None
            ]
            left = yield from self._try(steps)
            changed |= {step.placed.id for step in steps} - set(left)
            if not left:
                return Written(updated=len(changed), unchanged=len(found - changed))
        raise StoreBusyError(
            f"the links of {len(left)} documents ({', '.join(map(repr, left[:3]))}) could not be replaced:"
            f" other writers changed them during each of {TRIES} tries; try again when they are done"
        )

    def _try(self, steps: Sequence[_Step]) -> Operation[list[str]]:
        """Write the links; the ids of documents that another write changed meanwhile."""
        if not steps:
            return []
        yield from _run("write members", chain.from_iterable(map(self._add, steps)))
        yield from _run("write links", map(self._cell, steps))
        now = yield from self._states.stored([step.placed.id for step in steps], {})
        lost = [step for step in steps if not _has_won(step, now.get(step.placed.id))]
        won = [step for step in steps if step not in lost]
        last = (*map(self._finish, won), *(self._withdraw(step, now.get(step.placed.id)) for step in lost))
        yield from _run("finish members", chain.from_iterable(last))
        return [step.placed.id for step in lost]

    def _add(self, step: _Step) -> Iterator[Statement]:
        return self._members(step).add(step.placed.rows(self._buckets), step.at)

    def _finish(self, step: _Step) -> Iterator[Statement]:
        """Take out what members said before, and those that went."""
        now, before = step.placed, step.before.placed
        yield from self._members(step).replace(now.rows_differing(before, self._buckets), step.at)
        yield from self._members(step).delete(now.keys_gone(before, self._buckets), step.at - 1)

    def _withdraw(self, step: _Step, now: State | None) -> Iterator[Statement]:
        """Take out what was added and what was there before, if who won is later and added all anew."""
        if now is None or now.written > step.at:
            keys = {*step.placed.keys(self._buckets), *step.before.placed.keys(self._buckets)}
            yield from self._members(step).delete(keys, step.at)

    def _members(self, step: _Step) -> MemberStatements:
        return MemberStatements(self._tables, self._fetcher, step.before.lifetime)

    def _cell(self, step: _Step) -> Statement:
        lifetime = step.before.lifetime
        stamp = (step.at,) if lifetime is None else (step.at, lifetime)
        text = cql.write_links(self._tables, lifetime=lifetime is not None)
        return Statement(cql=text, values=(*stamp, step.cell, step.placed.id), level="write")


def _step(id: str, before: State, kinds: Collection[str], links: Sequence[Link]) -> _Step | None:
    """What is to be done to a document; None if it has these links."""
    metadata = {LINKS_KEY: orjson.loads(before.links)} if before.links else {}
    written = with_other_links(metadata, kinds, links)
    if written is None:
        return None
    cell = link_cell(orjson.dumps(written).decode(), links_in({LINKS_KEY: written}, id))
    placed = replace(before.placed, members=memberships(cell[1]))
    return _Step(before=before, cell=cell, placed=_coded(placed))


def _coded(placed: Placed) -> Placed:
    (code,) = codes.encode(placed.vector[None])
    return replace(placed, code=code)


def _has_won(step: _Step, now: State | None) -> bool:
    """Whether the links that were written are those that are stored, of the version they amend."""
    return now is not None and (now.written, now.links) == (step.at, step.cell[0])


def _run(what: str, statements: Iterable[Statement]) -> Operation[None]:
    all_of_them = tuple(statements)
    if all_of_them:
        yield Requests(statements=all_of_them, what=what)

"""Replaces links of some kinds in stored documents.

Each kind is a cell of the column of replaced links, so clients that replace links of different kinds never
write the same cell. A relink changes one version of a document. Its timestamps follow directly after that
version, so they are earlier than those of any later update or deletion, which forget replaced links. So a
relink neither reverts an acknowledged update nor restores a deleted document. Afterwards the document is read
again. If another write won, the links are replaced again in the version that it wrote.

Members are added first, as in every write, and old members are removed afterwards. All of them are of the
replaced kinds. If two relinks replace one kind in one version at once, they have the same timestamp, and one
cell wins. The other relink starts again. The removal has the timestamp before, which does not affect what the
other relink added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import orjson

from linkstore.backends.base import Written
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State
from linkstore.backends.cassandra.members import DocumentMembers, MemberStatements
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import Replaced, memberships, replacement, stored_links
from linkstore.backends.cassandra.transport.requests import Statement, sent
from linkstore.errors import StoreBusyError
from linkstore.links import LINKS_KEY, Link
from linkstore.plans import Operation
from linkstore.storedlinks import with_other_links

TRIES: Final = 20
"""How often the links of a document are replaced while other writers change it."""
_LATER: Final = 2
"""Distance of a relink's timestamp from that of the version it changes; the one between is for removals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A document whose links change.

    Args:
        before: The stored state.
        at: The timestamp of the replaced links, and of the members derived from them.
        cells: The replaced links.
        gone: Its members by links of these kinds.
        members: Those that replace them.
    """

    before: State
    at: int
    cells: Replaced
    gone: DocumentMembers
    members: DocumentMembers


class Relinker:
    """Carries out one replacement of links.

    Args:
        tables: The tables of the store.
        fetcher: Reads documents.
        buckets: Number of partitions of one side of a link group.
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
            steps = [step for id, one in known.items() if (step := _step(one, kinds, links[id])) is not None]
            left = yield from self._try(steps)
            changed |= {step.members.id for step in steps} - set(left)
            if not left:
                return Written(updated=len(changed), unchanged=len(found - changed))
        raise StoreBusyError(
            f"the links of {len(left)} documents ({', '.join(map(repr, left[:3]))}) could not be replaced:"
            f" other writers changed them during each of {TRIES} tries; try again when they are done"
        )

    def _try(self, steps: Sequence[_Step]) -> Operation[list[str]]:
        """Write the links, and return the ids of documents that another write changed meanwhile."""
        if not steps:
            return []
        yield from sent("write members", chain.from_iterable(map(self._add, steps)))
        yield from sent("write links", map(self._make_cell, steps))
        now = yield from self._states.stored([step.members.id for step in steps], {})
        lost = [step for step in steps if not _has_won(step, now.get(step.members.id))]
        removed = [step for step in lost if step.members.id not in now]
        last = (*(self._finish(step) for step in steps if step not in lost), *map(self._withdraw, removed))
        yield from sent("finish members", chain.from_iterable(last))
        return [step.members.id for step in lost]

    def _add(self, step: _Step) -> Iterator[Statement]:
        return self._make_statements(step).add(step.members.rows(self._buckets), step.at)

    def _finish(self, step: _Step) -> Iterator[Statement]:
        """Remove the previous states of members, and members that are not needed any more."""
        now, before = step.members, step.gone
        yield from self._make_statements(step).replace(now.rows_differing(before, self._buckets), step.at)
        yield from self._make_statements(step).delete(now.keys_gone(before, self._buckets), step.at - 1)

    def _withdraw(self, step: _Step) -> Iterator[Statement]:
        """Remove the members that were added, if the document is gone.

        If the document still exists, the next try needs these members.
        """
        yield from self._make_statements(step).delete(step.members.keys(self._buckets), step.at)

    def _make_statements(self, step: _Step) -> MemberStatements:
        return MemberStatements(self._tables, self._fetcher, step.before.lifetime)

    def _make_cell(self, step: _Step) -> Statement:
        lifetime = step.before.lifetime
        stamp = (step.at,) if lifetime is None else (step.at, lifetime)
        text = cql.write_links(self._tables, lifetime=lifetime is not None)
        return Statement(cql=text, values=(*stamp, dict(step.cells), step.members.id), level="write")


def _step(before: State, kinds: Collection[str], links: Sequence[Link]) -> _Step | None:
    """Return the change of a document, or None if it has these links already."""
    metadata = {LINKS_KEY: orjson.loads(before.links)} if before.links else {}
    if with_other_links(metadata, kinds, links) is None:
        return None
    replaced = {kind for kind, _, _ in before.members.weights if kind in kinds}
    at = before.written + _LATER
    cells = replacement(at, replaced | {link.kind for link in links}, [link.to_dict() for link in links])
    weights = {key: weight for key, weight in before.members.weights.items() if key[0] in kinds}
    gone = replace(before.members, weights=weights)
    members = replace(before.members, weights=memberships(stored_links(links)))
    return _Step(before=before, at=at, cells=cells, gone=gone, members=_coded(members))


def _coded(members: DocumentMembers) -> DocumentMembers:
    (code,) = codes.encode(members.vector[None])
    return replace(members, code=code)


def _has_won(step: _Step, now: State | None) -> bool:
    """Say whether the stored links of these kinds are those that were written."""
    return now is not None and now.relinked.items() >= step.cells.items()

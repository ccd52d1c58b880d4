"""Other links for documents that are stored: only their column of links is written.

A relink amends one version of a document. Its timestamps follow directly on the one of that version, so every
update and every deletion, which have the time of day, wins over it whole: an update that was acknowledged is
not undone, and a document that was deleted does not come back. What was stored is read again afterwards;
where another write won, the links are replaced again, in what that one wrote.

Members come first, as in every write, and all of them, with a timestamp of their own; what went is deleted
with the timestamp of the version that was amended, and so out of the reach of whatever is written later.
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
from linkstore.backends.cassandra.members import MemberKey, MemberRow, MemberRows, MemberStatements, Placed
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import LinkCell, link_cell, memberships
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.backends.cassandra.writing import Before, read_before
from linkstore.errors import StoreBusyError
from linkstore.links import LINKS_KEY, Link, links_in, with_other_links
from linkstore.plans import Operation

TRIES: Final = 20
"""How often the links of a document are replaced when other writers change it each time meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A document whose links change.

    Args:
        before: What is stored.
        cell: Its new column of links.
        placed: Where it lies then.
    """

    before: Before
    cell: LinkCell
    placed: Placed

    @property
    def at(self) -> int:
        """The timestamp of the column of links. Rows of members that are written first have one less.

        Those of the version that is amended have its timestamp, or the next.
        """
        return self.before.at + 3


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
        self._rows = MemberRows(buckets, renew=True)

    def replace(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Operation[Written]:
        """Replace the links of these kinds.

        Raises:
            StoreBusyError: If other writers changed the same documents again and again meanwhile.
        """
        left = list(links)
        found, changed = set[str](), set[str]()
        for _ in range(TRIES):
            known = yield from read_before(self._tables, self._fetcher, left)
            found |= known.keys()
            steps = [
                step
                for name, one in known.items()
                if (step := _step(name, one, kinds, links[name])) is not None
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
        first = (self._write(self._rows.first(one.placed, one.before.placed), one, -1) for one in steps)
        yield from _run("write members", chain.from_iterable(first))
        yield from _run("write links", map(self._cell, steps))
        ids = [step.placed.id for step in steps]
        now = yield from read_before(self._tables, self._fetcher, ids)
        lost = [step.placed.id for step in steps if not _has_won(step, now.get(step.placed.id))]
        last = (
            self._withdraw(step, now.get(step.placed.id)) if step.placed.id in lost else self._finish(step)
            for step in steps
        )
        yield from _run("finish members", chain.from_iterable(last))
        return lost

    def _finish(self, step: _Step) -> Iterator[Statement]:
        """Members that changed are written anew, those that went are deleted."""
        yield from self._write(self._rows.last(step.placed, step.before.placed), step, 0)
        yield from self._delete(self._rows.gone(step.before.placed, step.placed.members), step.at - 2)

    def _withdraw(self, step: _Step, now: Before | None) -> Iterator[Statement]:
        """Undo what was written of members, and delete what went: who won may not know of either."""
        if now is not None:
            yield from self._write(self._rows.last(_coded(now.placed), step.placed), step, 0)
        members = now.placed.members if now else {}
        yield from self._delete(self._rows.gone(step.placed, members), step.at - 1)
        yield from self._delete(self._rows.gone(step.before.placed, members), step.at - 2)

    def _write(self, rows: Iterator[MemberRow], step: _Step, later: int) -> Iterator[Statement]:
        statements = MemberStatements(self._tables, self._fetcher, step.before.lifetime)
        return statements.write(rows, step.at + later)

    def _delete(self, keys: Iterator[MemberKey], at: int) -> Iterator[Statement]:
        return MemberStatements(self._tables, self._fetcher).delete(keys, at)

    def _cell(self, step: _Step) -> Statement:
        lifetime = step.before.lifetime
        stamp = (step.at,) if lifetime is None else (step.at, lifetime)
        text = cql.write_links(self._tables, lifetime=lifetime is not None)
        return Statement(cql=text, values=(*stamp, step.cell, step.placed.id), level="write")


def _step(name: str, before: Before, kinds: Collection[str], links: Sequence[Link]) -> _Step | None:
    """What is to be done to a document; None if it has these links."""
    metadata = {LINKS_KEY: orjson.loads(before.written)} if before.written else {}
    written = with_other_links(metadata, kinds, links)
    if written is None:
        return None
    cell = link_cell(orjson.dumps(written).decode(), links_in({LINKS_KEY: written}, name))
    placed = replace(before.placed, members=memberships(cell[1]))
    return _Step(before=before, cell=cell, placed=_coded(placed))


def _coded(placed: Placed) -> Placed:
    (code,) = codes.encode(placed.vector[None])
    return replace(placed, code=code)


def _has_won(step: _Step, now: Before | None) -> bool:
    """Whether the links that were written are those that are stored, of the version they amend."""
    return now is not None and (now.at, now.written) == (step.at, step.cell[0])


def _run(what: str, statements: Iterable[Statement]) -> Operation[None]:
    all_of_them = tuple(statements)
    if all_of_them:
        yield Requests(statements=all_of_them, what=what)

"""Clients of one store, whose requests are carried out one after another in an order that a seed tells.

An operation of the backend is a generator of requests, so no threads are needed: a schedule holds the
requests of all clients, and again and again picks a client and lets it have the answers to some of its
statements. Some clients are cut off for good. Each seed is one schedule, and may be played again.

All documents are stored before, so that there is something to take out; and a client that is left alone
begins nothing more, because whoever writes alone mends what clients that overlapped have broken. In some
schedules clients add and delete the same documents in turns; in others all of them replace links, of one kind
or both. A further client may write after all others, whose acknowledged writes must not hide what it writes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from linkstore.core.arrays import Floats, normalize_vector
from linkstore.core.links import Link, parse_links
from linkstore.engines.cassandra.backend import CassandraBackend
from linkstore.engines.cassandra.writing import Clock
from linkstore.engines.contract import Record, WriteBatch
from linkstore.errors import ClockSkewError, StoreBusyError

DIMENSION: Final = 4
CLIENTS: Final = 3
DOCUMENTS: Final = 2
OPERATIONS: Final = (1, 1, 1, 2, 3)
"""How many each client carries out, one of these: the fewer, the less is mended by what comes after."""
NEVER: Final = 1 << 60
KINDS: Final = ("k", "m")
"""The kinds of links."""
WORDS: Final = ("zebra", "quagga", "okapi")
VECTORS: Final[Sequence[Floats]] = [
    normalize_vector([random.Random(n).gauss(0, 1) for _ in range(DIMENSION)]) for n in range(2)
]


class Skewed(Clock):
    """A clock that is ahead of the others, or behind them.

    Args:
        ahead: By so many seconds.
    """

    waited = 0.0
    """Seconds for which clients of schedules waited; no schedule takes them, but all these clocks go on."""

    def __init__(self, ahead: float = 0.0) -> None:
        super().__init__()
        self._ahead = ahead

    def time_of_day(self) -> int:
        """What this clock says."""
        return super().time_of_day() + round((self._ahead + Skewed.waited) * 1e6)


@dataclass(slots=True, kw_only=True)
class Done:
    """What a client did to a document: steps of the schedule from its first request to its last answer.

    Args:
        id: Of the document.
        put: What was written; None: nothing.
        relinked: Tags of the links that were written, by kind; None: the operation was no relink.
        start: Step of the first request.
        end: Step after the last answer; NEVER if the client was cut off.
    """

    id: str
    put: Record | None = None
    relinked: Mapping[str, frozenset[str]] | None = None
    start: int
    end: int = NEVER


@dataclass(slots=True)
class _Client:
    """A client: what it does, and which statements of it wait."""

    backend: CassandraBackend
    plans: Iterator[tuple[Any, list[Done]]]
    operation: Any = None
    done: list[Done] = field(default_factory=list)
    requests: Any = None
    answers: list[Any] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    turns: int = 0


class Schedule:
    """One seed's operations, carried out.

    Args:
        seed: Of everything.
        clients: Each has the store open for itself.
    """

    def __init__(self, seed: int, clients: Sequence[CassandraBackend]) -> None:
        self.prefix = f"s{seed}"
        self.history: list[Done] = []
        self.cut_off = False
        self._random = random.Random(seed)
        self._step = 0
        self._operations = self._random.choice(OPERATIONS)
        self._clients = [_Client(backend, self._plans(backend)) for backend in clients]
        # After so many turns a client is cut off, most of them within their first change.
        self._cuts = {
            client: self._random.randrange(1, 16) for client in range(CLIENTS) if self._random.random() < 0.4
        }
        self._manner = self._random.choices(["any", "in turns", "relink"], [50, 20, 30])[0]
        self._stay = self._random.choice([0.0, 0.5, 0.8])
        """How likely the client that was picked is picked again: from finely mixed to long runs."""

    @property
    def ids(self) -> list[str]:
        """The documents it is about."""
        return [f"{self.prefix}-d{n}" for n in range(DOCUMENTS)]

    @property
    def tags(self) -> list[str]:
        """The tags that its links have."""
        return [f"{self.prefix}-t{n}" for n in range(3)]

    def play(self) -> None:
        """Carry out everything."""
        self._store_all()
        alive = dict(enumerate(self._clients))
        number = 0
        while alive:
            if number not in alive or self._random.random() >= self._stay:
                number = self._random.choice(sorted(alive))
            if alive[number].turns >= self._cuts.get(number, NEVER):
                self.cut_off = True
                del alive[number]
            elif not self._advance(alive[number], alone=len(alive) == 1):
                del alive[number]
            self._step += 1

    def follow(self, backend: CassandraBackend) -> None:
        """A client that writes when all others have ended: each document, some of them after a deletion."""
        for name in self.ids:
            if self._random.random() < 0.5:
                self._write(backend, WriteBatch(remove=[name]), Done(id=name, start=NEVER))
            record = self._record(name)
            self._write(backend, WriteBatch(put=[record]), Done(id=name, put=record, start=NEVER))

    def _write(self, backend: CassandraBackend, change: WriteBatch, done: Done) -> None:
        backend.run(backend.write(change))
        self._step += 2
        done.start, done.end = self._step - 1, self._step
        self.history.append(done)

    def _store_all(self) -> None:
        """The state before: each document is stored."""
        records = [self._record(name) for name in self.ids]
        backend = self._clients[0].backend
        backend.run(backend.write(WriteBatch(put=records)))
        self.history += [Done(id=one.id, put=one, start=0, end=0) for one in records]
        self._step = 1

    def _advance(self, client: _Client, *, alone: bool) -> bool:
        """Let a client have some answers, or begin its next operation; whether it goes on."""
        client.turns += 1
        if client.operation is None:
            if alone:
                return False
            client.operation, client.done = next(client.plans, (None, []))
            if client.operation is None:
                return False
            self.history += client.done
            for done in client.done:
                done.start = self._step
            self._resume(client, None)
            return True
        size = len(client.waiting)
        some = size if size > 40 else self._random.randint(1, size)
        chosen, client.waiting = client.waiting[:some], client.waiting[some:]
        statements = tuple(client.requests.statements[at] for at in chosen)
        answers = client.backend._executor.run(replace(client.requests, statements=statements))
        for at, answer in zip(chosen, answers, strict=True):
            client.answers[at] = answer
        if not client.waiting:
            self._resume(client, client.answers)
        return True

    def _resume(self, client: _Client, answers: list[Any] | None) -> None:
        try:
            client.requests = client.operation.send(answers)
        except StopIteration:
            client.operation = None
            for done in client.done:
                done.end = self._step
            return
        except (StoreBusyError, ClockSkewError):  # what was overtaken too often acknowledges nothing
            client.operation = None
            return
        Skewed.waited += client.requests.wait
        count = len(client.requests.statements)
        client.answers = [None] * count
        client.waiting = self._random.sample(range(count), count)
        if not count:
            self._resume(client, [])

    def _plans(self, backend: CassandraBackend) -> Iterator[tuple[Any, list[Done]]]:
        """The operations of a client, each with what it does to documents."""
        for turn in range(self._operations if self._manner == "any" else 3):
            kind = self._random.choices(
                ["put", "delete", "relink", "both", "verify", "repair"], [40, 15, 25, 16, 2, 2]
            )[0]
            if self._manner == "in turns":
                kind = "put" if turn % 2 else "delete"
            elif self._manner == "relink":
                kind = "relink"
            names = self._random.sample(self.ids, self._random.randint(1, DOCUMENTS))
            names = self.ids if self._manner == "relink" else names
            if kind in {"verify", "repair"}:
                yield getattr(backend, kind)(), []
            elif kind == "relink":
                kinds = self._random.choice([("k",), ("m",), ("k",), ("m",), KINDS])
                links = {name: tuple(link for kind in kinds for link in self._links(kind)) for name in names}
                done = [
                    Done(id=name, relinked={kind: _tags(of, kind) for kind in kinds}, start=NEVER)
                    for name, of in links.items()
                ]
                yield backend.relink(kinds, links), done
            else:
                put = names if kind == "put" else names[1:] if kind == "both" else []
                records = [self._record(name) for name in put]
                removed = [name for name in names if name not in put]
                done = [Done(id=one.id, put=one, start=NEVER) for one in records]
                done += [Done(id=name, start=NEVER) for name in removed]
                yield backend.write(WriteBatch(put=records, remove=removed)), done

    def _record(self, name: str) -> Record:
        words = " ".join(self._random.choices(WORDS, k=self._random.randint(1, 2)))
        links = (*self._links("k"), *self._links("m"))
        metadata = {"links": [link.to_dict() for link in links], "n": self._random.randrange(10**9)}
        return Record(
            id=name,
            text=f"{words} {self.prefix}",
            metadata=metadata,
            vector=self._random.choice(VECTORS),
            links=parse_links(metadata, name),
        )

    def _links(self, kind: str) -> tuple[Link, ...]:
        tags = self._random.sample(self.tags, self._random.randint(0, 3))
        return tuple(
            Link(
                kind=kind,
                tag=tag,
                direction=self._random.choice(["in", "out", "bidir"]),
                weight=self._random.choice([1.0, 1.0, 0.5]),
            )
            for tag in tags
        )


def wrong_winner(history: Sequence[Done], name: str, stored: Record | None) -> str | None:
    """What is wrong with a stored document, given all that was done to it; None if it is as it may be.

    What is stored was written by someone whom nobody followed: whose operation did not end before another,
    which was carried out to its end, began.
    """
    of = [done for done in history if done.id == name]
    writes = [done for done in of if done.relinked is None]
    last = [done for done in writes if not _is_followed(done, writes)]
    if stored is None:
        absent = not any(done.end < NEVER and done.put is not None for done in writes)
        return (
            None if absent or any(done.put is None for done in last) else "it is gone, but was written last"
        )
    winner = next((done for done in last if done.put and _content(done.put) == _content(stored)), None)
    if winner is None or winner.put is None:
        return f"it is {_content(stored)}, which is none of those written last"
    return next(filter(None, (_wrong_links(kind, of, winner, stored) for kind in KINDS)), None)


def _wrong_links(kind: str, of: Sequence[Done], winner: Done, stored: Record) -> str | None:
    """What is wrong with the links of a kind in a document that one of the operations wrote last."""
    relinks = [done for done in of if kind in (done.relinked or ()) and winner.start <= done.end]
    after = [winner, *relinks]
    possible = [done for done in after if not _is_followed(done, after)]
    written = [_tags(done.put.links, kind) if done.put else (done.relinked or {})[kind] for done in possible]
    tags = _tags(stored.links, kind)
    return None if tags in written else f"its links {kind} are {sorted(tags)}, none of those written last"


def _is_followed(done: Done, others: Sequence[Done]) -> bool:
    return any(done.end < other.start and other.end < NEVER for other in others)


def _content(record: Record) -> tuple[str, int, bytes]:
    return record.text, record.metadata["n"], record.vector.tobytes()


def _tags(links: Sequence[Link], kind: str) -> frozenset[str]:
    return frozenset(link.tag for link in links if link.kind == kind)

"""Interrupts at random points of what a store does, checked against a plain dict.

An interrupt is what a signal raises (``KeyboardInterrupt``, by a timer), the cancellation of an asyncio
task, or a lack of memory (by a limit on the address space). What was acknowledged must be there afterwards;
what was not may be there or not, whole; and every answer must be right, at once and in a store opened anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from stores import DIMENSION, SNAPSHOTS, record, vectors

from linkstore.core.arrays import Floats
from linkstore.core.links import Link
from linkstore.core.plans import (
    Candidates,
    Documents,
    Ids,
    Members,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    StoredDocument,
)
from linkstore.engines.contract import Manifest, WriteBatch
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import LinkStoreError

IDS = 400
Version = int | None
_NOWHERE = np.empty(0, np.int64)


class Sweep:
    """A store, what it must hold, and operations on both.

    Args:
        folder: Where the store lies.
        seed: Of everything random.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.interrupted: Counter[str] = Counter()
        self.kept: list[BaseException] = []
        self._may_be: dict[int, set[Version]] = {n: {None} for n in range(IDS)}
        self._relinked: dict[int, set[str]] = {}
        self.open()

    def open(self) -> None:
        """Open the store, anew."""
        self.store = EmbeddedBackend(self.folder, settings=SNAPSHOTS)
        if self.store.run(self.store.manifest()).dimension is None:
            self.store.run(self.store.claim(Manifest(embedding="test", dimension=DIMENSION)))

    def operations(self) -> dict[str, Callable[[], object]]:
        """What may be interrupted, by name."""
        return {
            "search": self._search,
            "add": self._add,
            "add one": lambda: self._add(1),
            "delete": self._delete,
            "relink": self._relink,
            "flush": lambda: self.store.run(self.store.flush()),
            "close": self._close,
            "repair": lambda: self.store.run(self.store.repair()),
            "verify": lambda: self.store.run(self.store.verify()),
            "compact": lambda: self.store.run(self.store.compact()),
        }

    def _change(self, numbers: list[int], version: Version, change: WriteBatch) -> None:
        for n in numbers:
            self._may_be[n] = self._may_be[n] | {version}
        self.store.run(self.store.write(change))
        for n in numbers:
            self._may_be[n] = {version}

    def _add(self, count: int | None = None) -> None:
        numbers = self.chance.sample(range(IDS), count or self.chance.randint(20, 120))
        version = self.chance.randrange(6)
        self._change(numbers, version, WriteBatch(put=[record(n, version) for n in numbers]))

    def _delete(self) -> None:
        numbers = self.chance.sample(range(IDS), self.chance.randint(1, 60))
        self._change(numbers, None, WriteBatch(remove=[f"d{n}" for n in numbers]))

    def _relink(self) -> None:
        """Replace keywords by themselves: links are written anew, and nothing changes for an answer."""
        numbers = self.chance.sample(range(IDS), 40)
        links = {f"d{n}": (Link.bidir(kind="keyword", tag=f"k{n % 17}"),) for n in numbers}
        self.store.run(self.store.relink({"keyword"}, links))

    def _search(self) -> None:
        n = self.chance.randrange(IDS)
        self.store.run(self.store.answer(looked_up(vectors([n], 0)[0])))

    def _close(self) -> None:
        try:
            self.store.close()
        finally:
            self.open()

    def write_cancelled(
        self,
        n: int,
        version: int,
        how: Callable[[random.Random, EmbeddedBackend, WriteBatch], BaseException | None],
    ) -> BaseException | None:
        """Write one document from a task that is cancelled."""
        self._may_be[n] = self._may_be[n] | {version}
        error = how(self.chance, self.store, WriteBatch(put=[record(n, version)]))
        if error is None:
            self._may_be[n] = {version}
        return error

    def interrupt(self, name: str, how: Callable[[str, Callable[[], object]], BaseException | None]) -> None:
        """Do an operation, interrupted if chance has it so."""
        error = how(name, self.operations()[name])
        if name == "close" and error is not None:
            self.open()  # the one before may be half closed, and is left to the collector
        self.done[name] += 1
        if error is not None:
            self.interrupted[name] += 1
            self.kept = [*self.kept[-2:], error]  # as an interactive session keeps the last traceback

    def check(self) -> None:
        """Every document is there as acknowledged, every answer right; then nothing is in doubt."""
        stored = {item.id: item for item in self.store.run(self.store.scan(None, 10 * IDS))}
        for n in range(IDS):
            found = stored.pop(f"d{n}", None)
            version: Version = None if found is None else int(found.metadata["v"])
            assert version in self._may_be[n], (n, version, self._may_be[n])
            self._may_be[n] = {version}
            if found is not None:
                assert version is not None
                right = record(n, version)
                assert (found.text, found.vector.tobytes()) == (right.text, right.vector.tobytes())
                assert sorted(found.links) == sorted(right.links)
        assert not stored
        self._check_answers()

    def _check_answers(self) -> None:
        there = {n: version for n, (version,) in self._may_be.items() if version is not None}
        for n in self.chance.sample(sorted(there), min(8, len(there))):
            made = record(n, there[n])
            names, texts = self.store.run(self.store.answer(looked_up(made.vector)))
            assert (names, texts) == ([made.id], [made.text])
        tag = self.chance.randrange(17)
        members = self.store.run(self.store.answer(keyword(f"k{tag}")))
        assert members == sorted(f"d{n}" for n in there if n % 17 == tag)

    def check_anew(self) -> None:
        """As :meth:`check`, with a store that is opened for it; also that ``verify`` finds nothing."""
        self.check()
        found = self.store.run(self.store.verify()).findings
        assert not found, found
        self.store.close()
        self.open()
        self.check()
        found = self.store.run(self.store.verify()).findings
        assert not found, found


def looked_up(vector: Floats) -> Plan[tuple[list[str], list[str]]]:
    """Name and text of the nearest document."""
    found: Candidates = yield Nearest(vector=vector, k=1)
    ids: list[str] = yield Ids(refs=found.refs)
    documents: list[StoredDocument] = yield Documents(refs=found.refs)
    return ids, [document.text for document in documents]


def keyword(tag: str) -> Plan[list[str]]:
    """Who has a keyword."""
    groups = yield Resolve(tags=(("keyword", tag),))
    groups = groups[groups >= 0]
    reached: ReachedMembers = yield Members(
        groups=groups, side="in", vector=vectors([1])[0], take=IDS, cap=IDS, exclude=_NOWHERE
    )
    ids: list[str] = yield Ids(refs=reached.refs)
    return sorted(ids)


@contextlib.contextmanager
def signals() -> Iterator[None]:
    """The timer's signal raises KeyboardInterrupt."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Timers:
    """Interrupts operations by a timer, at a random moment of the time that they have taken so far.

    Args:
        chance: What is random.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._typical: dict[str, float] = {}

    def interrupt(self, name: str, work: Callable[[], object]) -> BaseException | None:
        """Do the work; the interrupt, if it came in time."""
        started = time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, self._chance.uniform(0.00005, self._typical.get(name, 0.02)))
            work()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as error:
            return error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            took = time.perf_counter() - started
            self._typical[name] = max(0.0005, 0.7 * self._typical.get(name, took) + 0.45 * took)
        return None


def short_of_memory(chance: random.Random, work: Callable[[], object]) -> BaseException | None:
    """Do the work with up to 80 MiB left, mostly less; the error, if it was too little."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + int(chance.random() ** 3 * (80 << 20))
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
        work()
    except (MemoryError, LinkStoreError, OSError) as error:
        return error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    return None


def cancelled(chance: random.Random, store: EmbeddedBackend, change: WriteBatch) -> BaseException | None:
    """Write from a task that is cancelled at a random moment; waits until its thread is done."""

    async def attempt() -> None:
        task = asyncio.ensure_future(store.arun(store.write(change)))
        await asyncio.sleep(chance.uniform(0, 0.01))
        task.cancel()
        await task

    try:
        asyncio.run(attempt())
    except asyncio.CancelledError as error:
        return error
    return None

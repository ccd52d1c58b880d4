"""An interrupt anywhere loses nothing acknowledged, spoils no answer, and leaves the store usable."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import pytest
from internals import AnnIndex
from interrupting import IDS, Sweep, Timers, cancelled, short_of_memory, signals
from stores import Child, backend, nearest, put, times, vectors

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits are those of POSIX")
DROPPED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Python drops what a signal raises in a destructor or a callback of a weak reference, and says so."""
ROUND = 15
"""So many operations between checks in a process that opens the store anew."""


@DROPPED
@pytest.mark.parametrize("seed", range(times(2, 25)))
def test_signals_at_random_points(tmp_path, seed) -> None:
    sweep = Sweep(tmp_path / "kb", seed)
    timers = Timers(sweep.chance)
    names = sorted(sweep.operations())
    sweep.operations()["add"]()
    wanted = times(50, 200)
    with signals():
        while sum(sweep.interrupted.values()) < wanted:
            for _ in range(ROUND):
                sweep.interrupt(sweep.chance.choice(names), timers.interrupt)
                sweep.check()
            sweep.check_anew()
    print(f"signals, seed {seed}: {dict(sweep.interrupted)} of {dict(sweep.done)}")
    sweep.store.close()


def lack_memory(told, folder, seed: int) -> None:
    sweep = Sweep(folder, seed)
    sweep.operations()["add"]()
    names = ["search", "add", "add one", "delete", "relink", "flush", "repair", "compact"]
    for turn in range(times(45, 200)):
        sweep.interrupt(sweep.chance.choice(names), lambda _, work: short_of_memory(sweep.chance, work))
        sweep.check()
        if turn % ROUND == 0:
            sweep.check_anew()
    told.send(f"memory, seed {seed}: {dict(sweep.interrupted)} of {dict(sweep.done)}")
    sweep.store.close()


@pytest.mark.parametrize("seed", range(times(1, 5)))
def test_lack_of_memory_at_random_points(tmp_path, seed) -> None:
    """In a process of its own: an allocation in C that nobody checks would end it."""
    print(*Child(lack_memory, tmp_path / "kb", seed).finish())


@pytest.mark.parametrize("seed", range(times(1, 5)))
def test_cancelled_tasks(tmp_path, seed) -> None:
    """A write goes on in its thread after its task was cancelled; it is done whole or not at all."""
    sweep = Sweep(tmp_path / "kb", seed)
    chance = random.Random(seed)
    for _ in range(times(30, 100)):
        n = chance.randrange(IDS)
        version = chance.randrange(6)
        sweep.interrupt(
            "add one", lambda *_, n=n, version=version: sweep.write_cancelled(n, version, cancelled)
        )
        sweep.check()
    sweep.check_anew()
    print(f"cancellations, seed {seed}: {dict(sweep.interrupted)} of {dict(sweep.done)}")
    sweep.store.close()


def interrupted(chance: random.Random, work) -> bool:
    """Whether the timer's signal came while ``work`` was done, again and again."""
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.003))  # may come before it returns
        for _ in range(10_000):
            work()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def test_an_interrupted_search_of_the_index_raises_the_interrupt(tmp_path) -> None:
    """usearch runs signal handlers too, and raises RuntimeError where one raised."""
    store, chance, asked = backend(tmp_path / "kb"), random.Random(1), vectors([3])[0]
    put(store, 0, 300)
    store.run(store.flush())
    wanted = nearest(store, asked)
    view = store._store.read_view(lambda view: view)
    assert view.index is not None
    with signals():
        for _ in range(60):
            assert interrupted(chance, lambda: view.index.near(asked, 10))
    assert nearest(store, asked) == wanted
    store.close()


def test_an_interrupted_addition_to_the_index_raises_the_interrupt() -> None:
    """Taken for a lack of memory, it would be put off, and the interrupt lost."""
    rows, chance = vectors(range(2000)), random.Random(2)

    def fill() -> None:
        AnnIndex.make(rows.shape[1]).extend(np.arange(2000), lambda keys: rows[keys], 2000)

    with signals():
        for _ in range(40):
            assert interrupted(chance, fill)

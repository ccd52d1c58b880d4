"""A lock that interrupts do not leave held."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest
from internals import Lock
from interrupting import signals


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_anywhere_leaves_it_free() -> None:
    """With a lock of ``threading`` and Python 3.14, most interrupts of this loop leave it held."""
    chance, lock = random.Random(1), Lock()
    with signals():
        for _ in range(300):
            with pytest.raises(KeyboardInterrupt):
                take_until_interrupted(lock, chance.uniform(0.00002, 0.0005))
            assert is_free(lock)


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_of_a_thread_that_waits_takes_nothing() -> None:
    lock, held, leave = Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    with signals(), pytest.raises(KeyboardInterrupt):
        take_until_interrupted(lock, 0.05)
    assert not is_free(lock)
    leave.set()
    thread.join()
    assert is_free(lock)


def test_a_thread_may_take_it_again() -> None:
    lock = Lock()
    with lock:
        with lock:
            assert not is_free(lock)
        assert not is_free(lock)
    assert is_free(lock)


def take_until_interrupted(lock: Lock, seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        with lock:
            pass


def is_free(lock: Lock) -> bool:
    """Tell whether another thread can take it."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]

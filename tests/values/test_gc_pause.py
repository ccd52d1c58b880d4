"""The garbage collector is held off, and comes back."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading

import pytest
from interrupting import signals

from linkstore.gc_pause import collection_paused


@pytest.fixture(autouse=True)
def collected():
    """The collector is on before and after, whatever a test did."""
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_is_off_inside_and_on_after() -> None:
    def work() -> tuple[bool, ...]:
        return gc.isenabled(), collection_paused(gc.isenabled), gc.isenabled()

    assert collection_paused(work) == (False, False, False)
    assert gc.isenabled()


def test_it_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        collection_paused(lambda: 1 // 0)
    assert gc.isenabled()


def test_whoever_turned_it_off_finds_it_off() -> None:
    gc.disable()
    collection_paused(lambda: None)
    assert not gc.isenabled()


def test_pauses_of_two_threads_may_overlap() -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(5)

    thread = threading.Thread(target=collection_paused, args=(hold,))

    def overlap() -> None:
        thread.start()
        entered.wait(5)

    collection_paused(overlap)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a destructor
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_anywhere_leaves_no_pause_behind() -> None:
    chance, interrupts = random.Random(3), 0
    with signals():
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.0005))
                while True:
                    collection_paused(lambda: None)
            except KeyboardInterrupt:
                interrupts += 1
            collection_paused(lambda: None)
            assert gc.isenabled()
    assert interrupts == 300

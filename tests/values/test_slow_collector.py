"""The garbage collector runs less often, and then as before."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading

import pytest
from internals import infrequent_gc
from interrupting import signals


@pytest.fixture(autouse=True)
def collected():
    """The collector is on before and after, whatever a test did."""
    assert gc.isenabled()
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.set_threshold(*before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a destructor
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_after_an_interrupt_anywhere_the_next_use_restores_the_thresholds() -> None:
    chance, interrupts, before = random.Random(3), 0, gc.get_threshold()
    with signals():
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.0005))
                while True:
                    with infrequent_gc():
                        pass
            except KeyboardInterrupt:
                interrupts += 1
            with infrequent_gc():
                pass
            assert gc.get_threshold() == before
    assert interrupts == 300


def test_collections_are_rare_inside_and_as_before_afterwards() -> None:
    gc.set_threshold(700, 9, 8)
    with infrequent_gc():
        with infrequent_gc():
            assert gc.get_threshold() == (20_000, 9, 8)
        assert gc.get_threshold() == (20_000, 9, 8)
    assert gc.get_threshold() == (700, 9, 8)


def test_they_are_as_before_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), infrequent_gc():
        raise ZeroDivisionError
    assert gc.get_threshold() == before


@pytest.mark.parametrize("own", [(0, 10, 10), (50_000, 10, 10)], ids=["none", "rarer"])
def test_whoever_has_them_rarer_keeps_that(own) -> None:
    gc.set_threshold(*own)
    with infrequent_gc():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_collections_stay_rare_until_the_last_of_two_threads_is_done() -> None:
    before = gc.get_threshold()
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with infrequent_gc():
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    with infrequent_gc():
        thread.start()
        assert entered.wait(5)
    assert gc.get_threshold()[0] == 20_000
    leave.set()
    thread.join()
    assert gc.get_threshold() == before

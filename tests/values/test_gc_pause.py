"""The garbage collector is held off, and comes back."""

from __future__ import annotations

import gc
import threading

import pytest

from linkstore.gc_pause import collection_paused


def test_it_is_off_inside_and_on_after():
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_comes_back_after_an_error():
    with pytest.raises(ZeroDivisionError), collection_paused():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_whoever_turned_it_off_finds_it_off():
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_pauses_of_two_threads_may_overlap():
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with collection_paused():
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    with collection_paused():
        thread.start()
        entered.wait(5)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()

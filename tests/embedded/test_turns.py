"""Who may write, and what an interrupt or a rollback leaves behind."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import pytest
from internals import (
    FORKS,
    Ids,
    Link,
    Members,
    Plan,
    ReachedMembers,
    Record,
    Resolve,
    WriteBatch,
    run_exclusively,
)
from stores import backend, put, record, records

from linkstore.errors import StoreFullError


class _Interrupted(BaseException):
    """What a signal raises."""


def test_an_interrupt_in_a_write_leaves_no_transaction_even_while_its_traceback_is_kept(tmp_path) -> None:
    store = backend(tmp_path / "kb")

    def interrupted(connection) -> None:
        connection.execute("DELETE FROM setting WHERE name = 'dimension'")
        raise _Interrupted

    with pytest.raises(_Interrupted) as kept:
        store._database.write(interrupted)
    put(store, 0, 5)
    assert kept.value.__traceback__ is not None
    other = backend(tmp_path / "kb")
    put(other, 5, 6)
    other.close()
    store.close()


def group_of(kind: str, tag: str) -> Plan[list[str]]:
    groups = yield Resolve(tags=((kind, tag),))
    vector = record(1).vector
    reached: ReachedMembers = yield Members(
        groups=groups, side="in", vector=vector, take=1000, cap=1000, exclude=groups[:0]
    )
    ids: list[str] = yield Ids(refs=reached.refs)
    return sorted(ids)


def test_link_groups_of_a_change_that_was_rolled_back_are_forgotten_at_once(tmp_path) -> None:
    """Two threads: the second writes between the first one's rollback and whatever it does after."""
    store = backend(tmp_path / "kb")
    put(store, 0, 5)
    (connection,) = store._database._pool.idle
    rolled_back, go_on = threading.Event(), threading.Event()
    real = store._database.write

    def slow_to_tell(work):
        try:
            return real(work)
        except StoreFullError:
            rolled_back.set()
            go_on.wait(10)
            raise

    def fail() -> None:
        with pytest.raises(StoreFullError):
            store.run(store.write(WriteBatch(put=records(100, 3000))))

    store._database.write = slow_to_tell
    connection.pragma("max_page_count", connection.pragma("page_count") + 20)
    thread = threading.Thread(target=fail)
    thread.start()
    assert rolled_back.wait(30)
    store.run(store.write(WriteBatch(put=[record(200)])))  # u200, which the other had just made
    go_on.set()
    thread.join()
    store.run(store.write(WriteBatch(put=[record(300)])))
    assert store.run(store.answer(group_of("hyperlink", "u200"))) == ["d200"]
    assert store.run(store.answer(group_of("hyperlink", "u300"))) == ["d300"]
    assert store.run(store.verify()).sound
    store.close()


def test_two_that_write_in_turns_share_link_groups_though_each_knows_all_of_its_own(tmp_path) -> None:
    """Each knows every link group when it writes first; what the other adds, it must look up."""

    def tagged(number: int, *tags: str) -> Record:
        links = tuple(Link.incoming(kind="k", tag=tag) for tag in tags)
        return replace(record(number), links=links, metadata={"links": [link.to_dict() for link in links]})

    first, second = backend(tmp_path / "kb"), backend(tmp_path / "kb")
    first.run(first.write(WriteBatch(put=[tagged(0, "a", "b")])))
    first.run(first.write(WriteBatch(put=[tagged(1, "a", "c")])))
    second.run(second.write(WriteBatch(put=[tagged(2, "b", "d")])))
    first.run(first.write(WriteBatch(put=[tagged(3, "d", "e", "a")])))
    second.run(second.write(WriteBatch(put=[tagged(4, "e", "c", "f")])))
    first.run(first.write(WriteBatch(put=[tagged(5, "f", "g", "b")])))
    found = {tag: first.run(first.answer(group_of("k", tag))) for tag in "abcdefg"}
    assert found == {
        "a": ["d0", "d1", "d3"],
        "b": ["d0", "d2", "d5"],
        "c": ["d1", "d4"],
        "d": ["d2", "d3"],
        "e": ["d3", "d4"],
        "f": ["d4", "d5"],
        "g": ["d5"],
    }
    count = "SELECT count(*) FROM link_group"
    assert first._database.read(lambda connection: connection.execute(count).get) == 7
    assert first.run(first.verify()).sound
    first.close()
    second.close()


def test_an_interrupt_on_entry_to_any_function_of_a_write_leaves_the_store_usable(tmp_path) -> None:
    """Where a signal is handled: on entry to a function written in Python."""
    store, entered = backend(tmp_path / "kb"), 0
    put(store, 0, 5)

    def interrupting(left):
        def trace(frame, event, _) -> None:
            nonlocal left
            if event == "call" and "linkstore" in frame.f_code.co_filename:
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt

        return trace

    while True:
        entered += 1
        sys.settrace(interrupting(entered))
        try:
            put(store, 5 + entered, 6 + entered)
            break
        except KeyboardInterrupt:
            sys.settrace(None)
            assert not FORKS.under_way
        finally:
            sys.settrace(None)
    assert entered > 20, "the write was interrupted again and again"
    put(store, 3, 4)
    store.close()


def test_who_does_not_wait_for_their_turn_is_told_so_at_once(tmp_path) -> None:
    lock = tmp_path / "snapshot.lock"
    assert (
        run_exclusively(lock, lambda: run_exclusively(lock, lambda: "done", wait=False), wait=False) is None
    )
    assert run_exclusively(lock, lambda: "done", wait=False) == "done"


def test_who_waits_for_their_turn_has_it_after_the_other(tmp_path) -> None:
    lock, order = tmp_path / "snapshot.lock", []
    begun, waiting = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        waiting.wait(10)
        order.append("first")

    thread = threading.Thread(target=run_exclusively, args=(lock, first), kwargs={"wait": True})
    thread.start()
    begun.wait(10)
    threading.Timer(0.2, waiting.set).start()
    run_exclusively(lock, lambda: order.append("second"), wait=True)
    thread.join()
    assert order == ["first", "second"]


def _trace(at: int, act) -> None:
    """Act once, before line ``at`` of those that ``run_exclusively`` runs."""
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        if frame.f_code is not run_exclusively.__code__:
            return None
        if event == "line":
            passed += 1
            if passed == at:
                act()
        return trace

    sys.settrace(trace)


def test_an_interrupt_in_any_line_leaves_the_lock_free(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(FORKS, "locks", {})

    def interrupt() -> None:
        raise _Interrupted

    for at in range(1, 100):
        lock = tmp_path / f"{at}.lock"
        _trace(at, interrupt)
        try:
            done = run_exclusively(lock, lambda: True, wait=False)
        except _Interrupted:
            done = False
        finally:
            sys.settrace(None)
        assert run_exclusively(lock, lambda: "free", wait=False) == "free", at
        if done:
            break
    assert at > 5, "the lock was interrupted again and again"

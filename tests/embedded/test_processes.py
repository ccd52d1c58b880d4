"""One writer and many readers, in threads and processes."""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from awaited import until
from internals import WriteBatch, normalize_vectors
from stores import (
    DIMENSION,
    Child,
    backend,
    document,
    documents,
    embedding,
    exact,
    meanwhile,
    nearest,
    put,
    record,
    records,
    times,
    vectors,
)

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings, database
from linkstore.errors import StoreBusyError, StoreClosedError
from linkstore.strategies import Eager, Similarity

ASKED = vectors([10_000])[0]
MANY = EmbeddedSettings(exact_below=200, durable=False)


def hold(told, folder) -> None:
    """Hold the store's write lock until told to go on."""
    store = backend(folder)

    def wait(_) -> None:
        told.send("held")
        told.recv()

    store._database.write(wait)
    store.close()


def holding(folder) -> Child:
    """A process that holds the store's write lock."""
    child = Child(hold, folder)
    assert child.connection.recv() == "held"
    return child


def released(child: Child) -> None:
    """Have it let go."""
    child.connection.send("go on")
    child.finish()


def write_more(told, folder) -> None:
    with LinkStore.open(folder, embedding()) as store:
        store.add_documents(documents(20, 50))
        store.delete(["d1"])


def test_a_reader_sees_what_another_process_wrote(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_documents(documents(0, 20))
        assert len(store.similarity_search("doc", k=100)) == 20
        Child(write_more, tmp_path / "kb").finish()
        assert len(store.similarity_search("doc", k=100)) == 49
        assert [d.id for d in store.get_by_ids(["d1", "d49"])] == ["d49"]
        hits = store.search(document(49).page_content, strategy=Eager(start_k=1, depth=1))
        assert {f"d{n}" for n in range(49, 0, -17)} <= {hit.document.id for hit in hits}


def test_writers_that_wait_in_vain_say_for_whom_and_each_waits_for_its_own_time(
    tmp_path, monkeypatch
) -> None:
    """Not one after the other: the last one would wait for more than 10 s."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 2.0)
    store = backend(tmp_path / "kb")
    child = holding(tmp_path / "kb")
    path = tmp_path / "kb" / "linkstore.db"

    def wait_in_vain(n: int) -> float:
        time.sleep(n / 5)
        started = time.monotonic()
        with pytest.raises(
            StoreBusyError, match=re.escape(f"{path} has been locked by process {child.pid} ")
        ):
            put(store, n, n + 1)
        return time.monotonic() - started

    with ThreadPoolExecutor(6) as pool:
        waited = list(pool.map(wait_in_vain, range(6)))
    assert 1.8 < min(waited) <= max(waited) < 8
    released(child)
    put(store, 0, 1)
    store.close()


def test_readers_do_not_wait_for_a_writer(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 60.0)
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    child = holding(tmp_path / "kb")
    started = time.monotonic()
    assert nearest(store, ASKED) == exact(range(100), ASKED)
    other = EmbeddedBackend(tmp_path / "kb", create=False)
    assert nearest(other, ASKED) == exact(range(100), ASKED)
    assert time.monotonic() - started < 50  # a wait in vain takes 60
    other.close()
    released(child)
    store.close()


def test_a_lock_does_not_outlive_its_holder(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    child = holding(tmp_path / "kb")
    child.kill()
    put(store, 0, 1)
    store.close()


def create_at(told, folder, moment: float, n: int) -> None:
    time.sleep(max(0.0, moment - time.time()))
    store = backend(folder)
    put(store, n, n + 1)
    store.close()


def test_processes_that_create_a_store_at_once_all_open_it(tmp_path) -> None:
    for turn in range(times(2, 30)):
        moment = time.time() + 1
        children = [Child(create_at, tmp_path / f"kb{turn}", moment, n) for n in range(6)]
        for child in children:
            child.finish()
        store = backend(tmp_path / f"kb{turn}")
        assert store.run(store.survey()).documents == 6
        store.close()


def write_and_remove(told, folder, first: int, count: int) -> None:
    store = backend(folder, MANY)
    for n in range(first, first + count, 5):
        put(store, n, n + 5)
    store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(first, first + count, 10)])))
    store.close()


def read_until(told, folder, count: int) -> None:
    store = backend(folder, MANY)
    names: list[str] = []
    looks = 0
    while looks < 1 or len(names) != count:
        names = nearest(store, ASKED, 100_000)
        assert len(set(names)) == len(names)
        survey = store.run(store.survey())
        assert survey.links.get("keyword", 0) == survey.links.get("hyperlink", 0) / 2 == survey.documents
        looks += 1
    told.send(looks)
    store.close()


def test_8_writers_and_4_readers_count_exactly(tmp_path) -> None:
    """Each writer puts its own documents in batches of 5 and removes every tenth."""
    each = times(60, 1000)
    backend(tmp_path / "kb").close()
    readers = [Child(read_until, tmp_path / "kb", 8 * each * 9 // 10) for _ in range(4)]
    writers = [Child(write_and_remove, tmp_path / "kb", n * each, each) for n in range(8)]
    for writer in writers:
        writer.finish()
    for reader in readers:
        assert reader.finish()[0] >= 1
    left = [n for n in range(8 * each) if n % 10]
    store = EmbeddedBackend(tmp_path / "kb")
    survey = store.run(store.survey())
    assert (survey.documents, survey.links) == (
        len(left),
        {"hyperlink": 2 * len(left), "keyword": len(left)},
    )
    assert nearest(store, ASKED, len(left) + 1) == exact(left, ASKED, len(left))
    assert store.run(store.verify()).sound
    store.close()


def read_through_swaps(told, folder, last: int) -> None:
    store = backend(folder)
    right, used = exact(range(300), ASKED), set()
    found: list[str] = []
    while f"d{last}" not in found:
        found = nearest(store, ASKED, 100_000)
        assert [name for name in found if int(name[1:]) < 300][:10] == right
        held = store._store.derived._held
        assert held is not None
        if not used:
            told.send("ready")
        used.add(held.followed)
    told.send(len(used))
    store.close()


def test_readers_in_other_processes_outlive_index_swaps(tmp_path) -> None:
    swaps = times(8, 100)
    store = backend(tmp_path / "kb")
    put(store, 0, 300)
    store.run(store.flush())
    readers = [Child(read_through_swaps, tmp_path / "kb", 299 + 10 * swaps) for _ in range(4)]
    for reader in readers:
        assert reader.connection.recv() == "ready"
    for turn in range(swaps):
        put(store, 300 + 10 * turn, 310 + 10 * turn)
        store.run(store.flush())
    assert len(list((tmp_path / "kb").glob("index-*.bin"))) <= 2
    for reader in readers:
        assert reader.finish()[0] > 1
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_reads_and_writes_while_the_parent_goes_on(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 200)
    store.run(store.flush())
    assert nearest(store, ASKED) == exact(range(200), ASKED)
    children = []
    for number in range(3):
        child = os.fork()
        if not child:
            status = 1
            try:
                first = 1000 * (number + 1)
                ok = nearest(store, ASKED)[:1] == exact(range(200), ASKED, 1)
                for n in range(first, first + 50):
                    put(store, n, n + 1)
                store.run(store.flush())
                mine = f"d{first + 49}"
                ok &= nearest(store, vectors([first + 49])[0], 1) == [mine]
                store.close()
                status = 0 if ok else 2
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(status)
        children.append(child)
    for n in range(200, 250):
        put(store, n, n + 1)
        nearest(store, ASKED)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    there = [*range(250), *(first + n for first in (1000, 2000, 3000) for n in range(50))]
    assert nearest(store, ASKED, 1000) == exact(there, ASKED, 1000)
    assert store.run(store.verify()).sound
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_leaves_a_temporary_store_to_its_parent() -> None:
    store = backend(":memory:")
    put(store, 0, 10)
    child = os.fork()
    if not child:
        try:
            store.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len(nearest(store, ASKED, 100)) == 10
    store.close()


def test_threads_share_a_store(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    right = exact(range(100), ASKED, 3)

    def read() -> None:
        assert [name for name in nearest(store, ASKED, 10_000) if int(name[1:]) < 100][:3] == right

    def write(first: int) -> None:
        for n in range(first, first + 100, 10):
            put(store, n, n + 10)

    with meanwhile(read, read):
        writers = [threading.Thread(target=write, args=(1000 * n,)) for n in range(1, 5)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    assert store.run(store.survey()).documents == 500
    store.close()


def test_a_closed_store_says_so(tmp_path) -> None:
    store = LinkStore.open(tmp_path / "kb", embedding())
    store.add_documents(documents(0, 3))
    store.close()
    store.close()
    for use in (
        lambda: store.search("x"),
        lambda: store.add_documents(documents(0, 1)),
        lambda: store.delete(["d1"]),
        lambda: store.get_by_ids(["d1"]),
        store.survey,
        store.verify,
        lambda: store.backend.run(store.backend.flush()),
        lambda: list(store.scan()),
    ):
        with pytest.raises(StoreClosedError, match="closed"):
            use()


def test_closing_while_others_read_gives_answers_or_the_error(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    outcomes: list[object] = []

    def read() -> None:
        try:
            while True:
                outcomes.append(len(nearest(store, ASKED)))
        except StoreClosedError as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: bool(outcomes))
    store.close()
    for thread in threads:
        thread.join()
    assert outcomes.count(StoreClosedError) == 3
    assert set(outcomes) == {10, StoreClosedError}


def write_until_killed(told, folder, n: int) -> None:
    store = backend(folder, EmbeddedSettings(exact_below=100))
    told.send("ready")
    while True:
        if n % 50 == 40:
            store.run(store.write(WriteBatch(remove=[f"d{n - 39}"])))
            told.send(("removed", n - 39))
        put(store, n, n + 10)
        told.send(("put", n))
        n += 10


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path) -> None:
    """Killed at random moments: every acknowledged change is there, and none by half."""
    there: set[int] = set()
    gone: set[int] = set()
    first, chance = 0, random.Random(5)
    for _ in range(times(10, 200)):
        child = Child(write_until_killed, tmp_path / "kb", first)
        assert child.connection.recv() == "ready"
        time.sleep(chance.uniform(0, 0.25))
        for what, number in child.kill():
            if what == "put":
                there |= set(range(number, number + 10))
                first = number + 10
            else:
                gone.add(number)
        started = time.process_time()
        store = EmbeddedBackend(tmp_path / "kb", create=False)
        store.run(store.manifest())
        assert time.process_time() - started < 1
        found = {scanned.id: scanned for scanned in store.run(store.scan(None, 1_000_000))}
        numbers = {int(name[1:]) for name in found}
        assert not gone & numbers
        assert there - gone - numbers <= {first - 39}  # a removal that was not acknowledged
        gone |= there - numbers
        underway = numbers - there
        assert underway in (set(), set(range(first, first + 10)))
        for name in list(found)[-30:]:
            whole = record(int(name[1:]))
            assert found[name].metadata == whole.metadata
            assert found[name].links == whole.links
            assert found[name].vector.tobytes() == whole.vector.tobytes()
        assert store.run(store.verify()).sound
        assert nearest(store, ASKED, 5) == exact(sorted(numbers), ASKED, 5)
        there, first = there | underway, first + 10 * bool(underway)
        store.close()


def write_10_000(told, folder) -> None:
    store = backend(folder, EmbeddedSettings())
    rows = normalize_vectors(np.random.default_rng(0).standard_normal((10_000, DIMENSION)))
    given = records(0, 100)
    every = [replace(given[n % 100], id=f"d{n}", vector=rows[n]) for n in range(10_000)]
    store.run(store.write(WriteBatch(put=every)))
    told.send("done")
    told.recv()


def test_10_000_documents_open_within_a_second_after_a_kill(tmp_path) -> None:
    child = Child(write_10_000, tmp_path / "kb")
    assert child.connection.recv() == "done"
    child.kill()
    started = time.process_time()
    store = EmbeddedBackend(tmp_path / "kb", create=False)
    assert len(nearest(store, ASKED)) == 10
    assert time.process_time() - started < 1
    assert store.run(store.survey()).documents == 10_000
    store.close()


def test_async_readers_share_a_store(tmp_path) -> None:
    with LinkStore.open(
        tmp_path / "kb", embedding(), settings=EmbeddedSettings(exact_below=50, durable=False)
    ) as store:
        store.add_documents(documents(0, 100))
        wanted = [hit.document.id for hit in store.search("doc 5", strategy=Similarity(k=5))]

        async def ask() -> list[str | None]:
            hits = await store.asearch("doc 5", strategy=Similarity(k=5))
            return [hit.document.id for hit in hits]

        async def all_at_once() -> list[list[str | None]]:
            return await asyncio.gather(*(ask() for _ in range(20)))

        assert asyncio.run(all_at_once()) == [wanted] * 20

"""Many processes write into one store on a server, and come to harm: in the end it is that of one process."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import threading
import time

import pytest
from internals import CassandraSettings, make_url_backend, write_json_lines
from stores import Child, document, documents, embedding, times

from linkstore import LinkStore
from linkstore.errors import StoreNotFoundError, StoreUnavailableError
from linkstore.ingest import FolderSource, Partition, WriteCounts, Writer, index
from linkstore.store import base

distributed = pytest.importorskip("distributed", reason="needs Dask")

PARTS = [(start, start + 40) for start in range(0, 200, 40)]
QUICK = CassandraSettings(timeout=1.5, deadline=3)


@pytest.fixture
def url(cassandra, keyspace):
    """The address of a store of the test's own, such as ``url("kb")``."""
    return lambda table: cassandra.store_url(keyspace, table)


@pytest.fixture
def made(url):
    writer = Writer(url("kb"), embedding(), batch_documents=8)
    yield writer
    writer.close()


@contextlib.contextmanager
def two_workers():
    """Two processes of Dask."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture
def cluster():
    """Two processes of Dask, of this test alone."""
    with two_workers() as client:
        yield client


def exported(place):
    with LinkStore(embedding(), backend=make_url_backend(place, create=False)) as store:
        return b"".join(write_json_lines(store))


@pytest.fixture
def expected(url):
    """What the store of one process exports."""
    with LinkStore(embedding(), backend=make_url_backend(url("one"))) as store:
        for part in PARTS:
            store.add_documents(documents(*part))
    return exported(url("one"))


def assert_sound(made, place, expected):
    assert exported(place) == expected
    assert made.finish().problems == {}
    settled = make_url_backend(place, create=False, settings=CassandraSettings(settle=1e-6))
    with LinkStore(embedding(), backend=settled) as store:
        assert {one.problem.split(" ")[0] for one in store.verify().findings} <= {"members", "words"}
        store.verify(repair=True)
        assert store.verify().sound
    assert exported(place) == expected


def test_tasks_of_dask_make_the_store_of_one_process(made, url, cluster, expected):
    tasks = cluster.map(made.write, [documents(*part) for part in PARTS])
    done = made.finish(cluster.gather(tasks))
    assert (done.counts, done.problems) == (WriteCounts(added=200), {})
    assert exported(url("kb")) == expected
    again = cluster.map(made.write, [documents(*part) for part in PARTS], pure=False)
    assert sum(cluster.gather(again), WriteCounts()) == WriteCounts(unchanged=200)
    assert_sound(made, url("kb"), expected)


@pytest.mark.parametrize("seed", range(29, 29 + times(1, 10)))
def test_workers_of_dask_that_are_killed_are_made_up_for(made, url, expected, seed):
    """Two of them, since Dask's local cluster may lose count of more."""
    chance = random.Random(seed)
    with two_workers() as cluster:
        tasks = [
            cluster.submit(slowly, made, *part, pure=False, retries=20) for part in PARTS for _ in range(2)
        ]
        for _ in range(2):
            time.sleep(chance.uniform(0.3, 1.5))
            os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)
            cluster.wait_for_workers(2, timeout=120)
        counts = sum(cluster.gather(tasks), WriteCounts())
    assert counts.total == 400, "each was done twice"
    assert_sound(made, url("kb"), expected)


def slowly(made, start, stop):
    """Write documents one by one as they come."""
    return made.write(late(n) for n in range(start, stop))


def late(n):
    time.sleep(0.02)
    return document(n)


def drive(connection, place):
    """Do the whole job, and tell of each task."""
    made = Writer(place, embedding(), batch_documents=8)
    for part in PARTS:
        connection.send(made.write(documents(*part)))


def drive_until_killed(connection, place):
    """Do the whole job over and over."""
    while True:
        drive(connection, place)


def test_a_driver_that_is_killed_and_started_again_ends_the_job(url, expected):
    chance = random.Random(31)
    for _ in range(times(2, 20)):
        child = Child(drive_until_killed, url("kb"))
        for _ in range(chance.randrange(0, 4)):
            child.connection.recv()
        time.sleep(chance.uniform(0, 0.2))
        child.kill()
    counts = sum(Child(drive, url("kb")).finish(), WriteCounts())
    assert counts.total == 200
    made = Writer(url("kb"), embedding())
    assert_sound(made, url("kb"), expected)
    made.close()


class TestPause:
    """A server that does not answer for a while is waited for."""

    def test_a_pause_is_waited_for(self, proxied, keyspace, url, expected, monkeypatch):
        """It ends after the first batch that failed for it."""
        failed = threading.Event()

        def heal_and_sleep(seconds):
            failed.set()
            proxied.heal()
            time.sleep(seconds)

        monkeypatch.setattr(base, "sleep", heal_and_sleep)
        place = f"cassandra://{proxied.host}:{proxied.port}/{keyspace}/kb"
        made = Writer(place, embedding(), batch_documents=8, settings=QUICK, patience=120)
        counts = made.write(documents(*PARTS[0]))
        failed.clear()
        proxied.stall()
        counts = sum((made.write(documents(*part)) for part in PARTS[1:]), counts)
        assert failed.is_set()
        assert counts.total == 200
        assert_sound(made, url("kb"), expected)
        made.close()

    def test_a_longer_one_is_an_error(self, proxied, keyspace):
        place = f"cassandra://{proxied.host}:{proxied.port}/{keyspace}/kb"
        made = Writer(place, embedding(), settings=QUICK)
        made.write(documents(0, 1))
        object.__setattr__(made, "patience", 1.0)
        proxied.stall()
        begun = time.monotonic()
        with pytest.raises(StoreUnavailableError):
            made.write(documents(1, 2))
        assert 2 < time.monotonic() - begun < 30
        object.__setattr__(made, "patience", 120.0)
        proxied.heal()
        assert made.write(documents(1, 2)).total == 1
        made.close()


def test_a_copy_of_a_writer_makes_no_store(cassandra_session, keyspace, url):
    made = Writer(url("kb"), embedding())
    written = pickle.dumps(made)
    made.close()
    listed = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    tables = [row.table_name for row in cassandra_session.execute(listed, (keyspace,))]
    assert tables
    for name in tables:
        cassandra_session.execute(f'DROP TABLE "{keyspace}"."{name}"')
    with pytest.raises(StoreNotFoundError, match=r"no store at cassandra://.*where it is constructed"):
        pickle.loads(written).write(documents(0, 1))


def test_parts_of_a_folder_are_indexed_at_once(url, tmp_path):
    for n in range(30):
        text = (
            f'<title>Page {n}</title><h1>Page {n}</h1><p><a href="p{(n + 1) % 30}.html">next</a> text {n}</p>'
        )
        (tmp_path / f"p{n}.html").write_text(text)
    children = [Child(index_part, url("parts"), tmp_path, number) for number in (1, 2, 3)]
    assert sum(added for child in children for added in child.finish()) == 30
    source = FolderSource(tmp_path)
    for table in ("parts", "whole"):
        with LinkStore(embedding(), backend=make_url_backend(url(table))) as store:
            done = index(store, source)
            assert done.pages.total == 30
            assert done.pages.added == (30 if table == "whole" else 0)
    assert exported(url("parts")) == exported(url("whole"))


def index_part(connection, place, folder, number):
    with LinkStore(embedding(), backend=make_url_backend(place)) as store:
        done = index(store, FolderSource(folder), partition=Partition(number, 3), jobs=1)
        connection.send(done.pages.added)

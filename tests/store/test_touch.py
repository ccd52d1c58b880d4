"""``touch`` and ``accessed``: when documents were last used."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from stores import documents, embedding

from linkstore import LinkStore
from linkstore.errors import DocumentError
from linkstore.store import migrate

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def store():
    with LinkStore(embedding()) as made:
        made.add_documents(documents(0, 5))
        yield made


def test_an_access_is_now_unless_said_otherwise(store):
    before = datetime.now(UTC)
    assert store.accesses.record(["d0", "d1", "no such id", "d1"]) == 2
    found = store.accesses.read(["d1", "d4", "no such id", "d0"])
    assert list(found) == ["d1", "d0"]
    assert all(before - timedelta(microseconds=1) <= at <= datetime.now(UTC) for at in found.values())
    store.accesses.record(["d1"], at=NOON)
    assert store.accesses.read(["d1"])["d1"] >= before - timedelta(microseconds=1)  # the latest stays


def test_times_are_exact_and_in_utc(store):
    tokyo = timezone(timedelta(hours=9))
    at = datetime(2026, 1, 2, 21, 0, 0, 123_457, tzinfo=tokyo)
    store.accesses.record(["d0"], at=at)
    assert store.accesses.read(["d0"]) == {"d0": at}
    assert store.accesses.read(["d0"])["d0"].utcoffset() == timedelta(0)


def test_async_forms(store):
    async def use() -> dict[str, datetime]:
        assert await store.accesses.arecord(["d0"], at=NOON) == 1
        return await store.accesses.aread(["d0", "d1"])

    assert asyncio.run(use()) == {"d0": NOON}


def test_times_that_make_no_sense_are_refused(store):
    with pytest.raises(DocumentError, match="time zone"):
        store.accesses.record(["d0"], at=datetime(2026, 1, 2))  # noqa: DTZ001 - what is refused
    with pytest.raises(DocumentError, match="1970"):
        store.accesses.record(["d0"], at=datetime(1969, 12, 31, tzinfo=UTC))
    assert store.accesses.read(["d0"]) == {}


def test_an_access_in_the_future_is_refused(store):
    """The latest access stays: one typed with the wrong year would hide all that follow."""
    now = datetime.now(UTC)
    for late in (
        now + timedelta(minutes=5),
        datetime(2999, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ):
        with pytest.raises(DocumentError, match="must not lie in the future"):
            store.accesses.record(["d0"], at=late)
        with pytest.raises(DocumentError, match="must not lie in the future"):
            asyncio.run(store.accesses.arecord(["d0"], at=late))
    assert store.accesses.read(["d0"]) == {}
    assert (
        store.accesses.record(["d0"], at=now + timedelta(seconds=30)) == 1
    )  # a clock that is a little ahead


def test_hostile_ids_are_ids_that_do_not_exist(store):
    hostile = ["", "\0", "\ud800", "d0\0", "'; DROP TABLE access; --", "%", "D0"]
    assert store.accesses.record(hostile, at=NOON) == 0
    assert store.accesses.read(hostile) == {}


def test_an_update_keeps_the_access_and_a_copy_of_the_store_has_it(store):
    store.accesses.record(["d0", "d3"], at=NOON)
    store.add_documents(documents(0, 1, version=1))
    with LinkStore(embedding()) as other:
        migrate(store.backend, other.backend)
        assert other.accesses.read([f"d{n}" for n in range(5)]) == {"d0": NOON, "d3": NOON}
        store.delete(["d3"])
        assert list(store.accesses.read(["d0", "d3"])) == ["d0"]


def test_many_at_once(store):
    store.add_documents(documents(5, 3000))
    ids = [f"d{n}" for n in range(3000)]
    assert store.accesses.record(ids, at=NOON) == 3000
    assert len(store.accesses.read(ids)) == 3000

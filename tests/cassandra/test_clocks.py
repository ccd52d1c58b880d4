"""Clients whose clocks differ: refused beyond a bound, and below it every acknowledged write takes effect."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from cassandra_tables import own_keyspace
from conformance.probe import CLAIM, Probe, drive_by_run, link_both, make_record
from internals import CassandraBackend, CassandraSettings, Clock, PageEntry, WriteBatch, WriteCounts

from linkstore.engines.cassandra import tables
from linkstore.errors import BackendError, ClockSkewError

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def space(cassandra_session):
    with own_keyspace(cassandra_session, "clocks") as name:
        yield name


@pytest.fixture
def opened(cassandra_session, space):
    name = f"t{next(NUMBERS)}"
    return lambda **options: CassandraBackend(cassandra_session, space, name, **options)


@pytest.mark.parametrize("seconds", [-600, -30, 30, 600])
def test_a_clock_that_is_far_off_is_refused(opened, monkeypatch, seconds) -> None:
    """With both times and what to do."""
    opened().close()
    monkeypatch.setattr(tables, "_now", lambda: time.time() + seconds)
    with pytest.raises(ClockSkewError, match=r"clock of this machine says 2.*node .* says 2.*NTP"):
        opened()
    opened(settings=CassandraSettings(max_clock_skew=abs(seconds) + 10.0)).close()


def test_a_clock_that_is_a_little_off_is_accepted(opened, monkeypatch) -> None:
    monkeypatch.setattr(tables, "_now", lambda: time.time() + 0.5)
    opened().close()


def test_no_skew_at_all_cannot_be_asked_for() -> None:
    with pytest.raises(BackendError, match="max_clock_skew"):
        CassandraSettings(max_clock_skew=0)


@pytest.mark.parametrize("ahead", [0.05, 600])
def test_what_a_client_ahead_wrote_others_can_change(opened, ahead) -> None:
    """Documents, links, words and pages: updated and removed, not only said to be."""
    first, second = opened(), opened()
    clock, right = first._clock, first._clock._last
    clock._last = time.time_ns() // 1000 + int(ahead * 1e6)
    assert clock._last > right
    page = PageEntry(source="s", url="u", digest="1", ids=("a",))
    a, b = Probe(first, drive_by_run), Probe(second, drive_by_run)
    a.do(first.claim(CLAIM))
    a.write(
        put=[
            make_record("a", 0.9, link_both("old"), text="old zebra"),
            make_record("b", 0.5, link_both("old")),
        ],
        put_pages=[page],
    )
    assert b.write(
        put=[make_record("a", 0.1, link_both("new"), text="new quagga")], remove=["b"]
    ) == WriteCounts(updated=1, removed=1)
    assert b.stored("a")[0].text == "new quagga"
    assert b.near(5) == ["a"]
    assert b.met(["old", "new"]).of == {"old": [], "new": ["a"]}
    assert b.do(second.verify()).sound
    b.write(remove_pages=[("s", "u")])
    assert b.do(second.pages(None)) == []
    b.do(second.relink({"k"}, {"a": (link_both("newest"),)}))
    assert b.met(["new", "newest"]).of == {"new": [], "newest": ["a"]}
    b.do(second.write(WriteBatch(remove=["a"])))
    assert b.near(5) == b.ids() == []
    assert b.do(second.verify()).sound


def test_what_a_client_ahead_removed_others_can_add_again(opened) -> None:
    """The deletion is later than the clock of who adds, and cannot be read."""
    first, second = opened(), opened()
    a, b = Probe(first, drive_by_run), Probe(second, drive_by_run)
    a.do(first.claim(CLAIM))
    a.write(
        put=[
            make_record("a", 0.9, link_both("old"), text="old zebra"),
            make_record("b", 0.5, link_both("old")),
        ]
    )
    first._clock = Ahead(3.5)
    a.write(remove=["a", "b"])
    again = [
        make_record("a", 0.2, link_both("new"), text="new quagga"),
        make_record("c", 0.1, link_both("new")),
    ]
    assert b.write(put=again) == WriteCounts(added=2)
    assert b.ids() == ["a", "c"]
    assert b.met(["old", "new"]).of == {"old": [], "new": ["a", "c"]}
    assert b.do(second.verify()).sound
    assert b.write(put=[make_record("d", 0.2)]) == WriteCounts(added=1)
    assert second._clock._last < time.time_ns() // 1000 + 1_000, "this client is not ahead from now on"
    b.do(second.write(WriteBatch(remove=["a"])))
    assert b.ids() == ["c", "d"]


def test_clients_that_add_and_delete_in_turns_do_not_write_ahead_of_their_clocks(opened) -> None:
    """Whose clocks differ by 50 ms; and then a third adds the document."""
    first, second, third = opened(), opened(), opened()
    a, b, c = (Probe(one, drive_by_run) for one in (first, second, third))
    a.do(first.claim(CLAIM))
    first._clock = Ahead(0.05)
    for turn in range(15):
        assert b.write(put=[make_record("d", 0.5, link_both("x"), text=f"zebra {turn}")]) == WriteCounts(
            added=1
        )
        assert b.stored("d")[0].text == f"zebra {turn}"
        written = b.do(second._fetcher.versions(["d"]))["d"].written
        assert written <= time.time_ns() // 1000 + 60_000
        assert b.write(put=[make_record("d", 0.5, link_both("y"))]) == WriteCounts(updated=1)
        assert a.write(remove=["d"]) == WriteCounts(removed=1)
        assert a.ids() == []
    assert c.write(put=[make_record("d", 0.5, link_both("x"))]) == WriteCounts(added=1)
    assert c.ids() == ["d"]
    assert c.met(["x", "y"]).of == {"x": ["d"], "y": []}
    assert c.do(third.verify()).sound


def test_a_page_entry_that_a_client_ahead_removed_can_be_put_again(opened) -> None:
    first, second = opened(), opened()
    first._clock = Ahead(1.0)
    page = PageEntry(source="s", url="u", digest="1", ids=("a",))
    b = Probe(second, drive_by_run)
    b.write(put_pages=[page])
    Probe(first, drive_by_run).write(remove_pages=[("s", "u")])
    b.write(put_pages=[page])
    assert b.do(second.pages("s")) == [page]


@pytest.mark.parametrize("what", ["documents", "page entries"])
def test_what_cannot_be_added_is_not_acknowledged(opened, what) -> None:
    """The client that removed it was an hour ahead when it wrote, which nothing noticed."""
    first, second = opened(), opened(settings=CassandraSettings(max_clock_skew=0.05))
    a, b = Probe(first, drive_by_run), Probe(second, drive_by_run)
    a.do(first.claim(CLAIM))
    page = PageEntry(source="s", url="u", digest="1", ids=("a",))
    change = {"put": [make_record("a", 0.9)]} if what == "documents" else {"put_pages": [page]}
    a.write(**change)
    first._clock = Ahead(3600.0)
    a.write(remove=["a"], remove_pages=[("s", "u")])
    with pytest.raises(
        ClockSkewError, match=rf"1 {what} were written and are not there.*ahead of that of this"
    ):
        b.write(**change)
    if what == "documents":
        assert b.write(put=[make_record("other", 0.9)]) == WriteCounts(added=1)
        assert b.ids() == ["other"]


def test_waiting_to_write_again_leaves_the_event_loop_free(opened) -> None:
    first, second = opened(), opened()
    a = Probe(first, drive_by_run)
    a.do(first.claim(CLAIM))
    a.write(put=[make_record("a", 0.9)])
    first._clock = Ahead(0.5)
    a.write(remove=["a"])

    async def both() -> int:
        adding = asyncio.ensure_future(second.arun(second.write(WriteBatch(put=[make_record("a", 0.2)]))))
        turns = 0
        while not adding.done():
            await asyncio.sleep(0.005)
            turns += 1
        assert adding.result() == WriteCounts(added=1)
        return turns

    assert asyncio.run(both()) > 10
    assert a.ids() == ["a"]


class Ahead(Clock):
    """The clock of a machine that is ahead of this one by so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def time_of_day(self) -> int:
        return super().time_of_day() + round(self._seconds * 1e6)


def test_clients_that_write_after_one_that_is_ahead_do_so_at_different_times() -> None:
    """They all read its timestamp; with equal ones, each column would be of one or the other."""
    ahead = time.time_ns() // 1000 + 60_000_000
    given = [Clock().now(after=ahead) for _ in range(100)]
    assert len(set(given)) > 80
    assert all(ahead + 4 <= one < ahead + 2_000 for one in given)

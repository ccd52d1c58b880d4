"""A search within a filter equals one of a store that holds nothing else, and reads no more than it must."""

from __future__ import annotations

import math
from collections import Counter
from itertools import count

import numpy as np
import pytest
from cassandra_tables import split_early
from conformance.probe import CLAIM, QUERY_VECTOR, Probe, drive_by_run, link_both, make_record
from differential import find_scope_differences
from internals import Ids, Lexical, Members, Nearest, Resolve, WriteBatch
from stores import times

from linkstore.core import lexical
from linkstore.errors import FilterError

PUBLIC = {"access": "all"}
BY_NAME = {"access": {"$ne": "staff"}}
NUMBERS = count()


@pytest.fixture(scope="module")
def keyspace(cassandra_session):
    from cassandra_tables import own_keyspace

    with own_keyspace(cassandra_session, "scopes") as name:
        yield name


@pytest.fixture
def opened(cassandra_session, keyspace):
    """Opens new stores."""
    from internals import CassandraBackend, CassandraSettings

    backends = []

    def open_one(name: str | None = None, **settings):
        table = name or f"s{next(NUMBERS)}"
        backends.append(
            CassandraBackend(cassandra_session, keyspace, table, settings=CassandraSettings(**settings))
        )
        return backends[-1]

    yield open_one
    for backend in backends:
        backend.close()


def probe(backend) -> Probe:
    backend.run(backend.claim(CLAIM))
    return Probe(backend, drive_by_run)


@pytest.mark.parametrize("seed", range(times(2, 50)))
def test_searches_equal_those_of_a_store_of_the_scope_to_the_last_bit(opened, seed) -> None:
    whole, alone = opened(), opened()
    found = find_scope_differences(
        whole, alone, 2000 + seed, documents=40, searches=15, words=True, exactly=True
    )
    assert found == []


@pytest.fixture(params=[PUBLIC, BY_NAME], ids=["equality", "other"])
def scope(request):
    """A filter that the server's index knows, and one that it does not."""
    return request.param


@pytest.mark.parametrize("splitting", [False, True])
def test_hubs_and_words_are_counted_past_what_is_hidden(opened, monkeypatch, scope, splitting) -> None:
    from linkstore.engines.cassandra import lexical as wordsearch
    from linkstore.engines.cassandra import members as groups
    from linkstore.engines.cassandra import reading

    if splitting:
        split_early(monkeypatch)
    monkeypatch.setattr(groups, "_LARGEST_MEMBER_PAGE", 40)
    monkeypatch.setattr(wordsearch, "_LARGEST_POSTING_PAGE", 40)
    monkeypatch.setattr(wordsearch, "FIRST_POSTINGS", 20)
    monkeypatch.setattr(reading, "_MAX_CHECKED_BY_ID", 100)
    public = [
        make_record(f"p{n:03}", n / 40, link_both("x"), text=f"hay {'needle ' * (n % 3)}", access="all")
        for n in range(30)
    ]
    hidden = [
        make_record(f"h{n:03}", 0.9, link_both("x"), text="needle " * (n % 5), access="staff")
        for n in range(400)
    ]
    whole, alone = (probe(opened()) for _ in range(2))
    whole.put(*hidden, *public)
    alone.put(*public)
    within = whole.within(scope)

    def worded():
        found = yield Lexical(terms=("hay", "needle"), k=50)
        return (yield Ids(refs=found.refs)), found.score.tolist(), found.left_out

    for cap in (0, 1, 28, 29, 30, 31, 100):
        met, expected = within.met(["x"], cap=cap), alone.met(["x"], cap=cap)
        assert (met.of, met.sizes, met.filtered) == (expected.of, expected.sizes, 0)
    assert within.plan(worded()) == alone.plan(worded())
    assert within.near(50) == alone.near(50)


def test_words_that_too_many_hidden_documents_have_are_looked_up(opened, monkeypatch, scope) -> None:
    """Which words are left out follows from the scope alone."""
    from linkstore.engines.cassandra import lexical as wordsearch

    monkeypatch.setattr(wordsearch, "POSTINGS", 30)
    monkeypatch.setattr(lexical, "POSTINGS", 30)
    monkeypatch.setattr(wordsearch, "FIRST_POSTINGS", 20)
    public = [
        make_record(f"p{n}", n / 40, text="hay " + "straw " * (n % 3 == 0), access="all") for n in range(40)
    ]
    hidden = [make_record(f"h{n}", 0.9, text="straw", access="staff") for n in range(200)]
    whole, alone = (probe(opened()) for _ in range(2))
    whole.put(*hidden, *public)
    alone.put(*public)

    def worded():
        found = yield Lexical(terms=("hay", "straw"), k=50)
        return (yield Ids(refs=found.refs)), found.score.tolist(), found.left_out

    assert whole.within(scope).plan(worded()) == alone.plan(worded())
    assert alone.plan(worded())[2] == ("hay",)


def test_a_search_that_would_look_at_too_many_is_refused(opened) -> None:
    whole = probe(opened(scan_limit=50))
    whole.put(*(make_record(f"h{n}", 0.5, link_both("x"), text="needle", access="staff") for n in range(100)))
    whole.put(make_record("p", 0.5, link_both("x"), text="needle", access="all"))
    with pytest.raises(FilterError, match="scan_limit \\(50\\)"):
        whole.within(BY_NAME).met(["x"])
    with pytest.raises(FilterError, match="scan_limit \\(50\\)"):
        whole.within(BY_NAME).plan(_found("needle"))


def _found(word: str, k: int = 5):
    found = yield Lexical(terms=(word,), k=k)
    return (yield Ids(refs=found.refs))


def test_what_another_client_hides_is_hidden_at_once(opened) -> None:
    """Also where the same client judged the documents before: no verdict outlives a search."""
    name = f"s{next(NUMBERS)}"
    mine, theirs = probe(opened(name)), probe(opened(name))
    theirs.put(*(make_record(f"d{n}", 0.5, link_both("x"), text="needle", access="all") for n in range(4)))
    public = mine.within(PUBLIC)
    for left in (4, 3, 2):
        assert (
            len(public.near(9))
            == len(public.met(["x"]).of["x"])
            == len(public.plan(_found("needle")))
            == left
        )
        theirs.put(make_record(f"d{left - 1}", 0.5, link_both("x"), text="needle", access="staff"))


def test_a_document_hidden_during_a_search_is_told_of_in_one_state(opened) -> None:
    name = f"s{next(NUMBERS)}"
    mine, theirs = probe(opened(name)), probe(opened(name))
    theirs.put(
        make_record("a", 0.9, link_both("x"), access="all"),
        make_record("b", 0.8, link_both("x"), access="staff"),
    )

    def plan():
        near = yield Nearest(vector=QUERY_VECTOR, k=5)
        change = [
            make_record("a", 0.9, link_both("x"), access="staff"),
            make_record("b", 0.8, link_both("x"), access="all"),
        ]
        theirs.do(theirs.backend.write(WriteBatch(put=change)))
        groups = yield Resolve(tags=(("k", "x"),))
        found = yield Members(
            groups=groups, side="in", vector=QUERY_VECTOR, take=9, cap=9, exclude=np.empty(0, np.int64)
        )
        ids = yield Ids(refs=near.refs)
        return ids, (yield Ids(refs=found.refs))

    names, members = mine.within(PUBLIC).plan(plan())
    assert names == ["a"]
    assert set(members) == {"a", "b"}  # a as it was when it was named, b as it is now
    assert mine.within(PUBLIC).near(5) == ["b"]


def test_a_listing_is_no_longer_than_what_is_checked_and_is_not_repeated(opened, monkeypatch) -> None:
    from internals import CorpusTotals

    from linkstore.engines.cassandra import reading

    monkeypatch.setattr(reading, "_MAX_CHECKED_BY_ID", 20)
    whole = probe(opened())
    whole.put(*(make_record(f"p{n}", 0.5, text="hay", access="all") for n in range(120)))
    whole.put(*(make_record(f"n{n}", 0.5, text="needle", access="all") for n in range(30)))
    whole.put(*(make_record(f"h{n}", 0.5, text="needle", access="staff") for n in range(10)))
    monkeypatch.setattr(whole.backend._corpus, "get_totals", lambda scope: CorpusTotals(150, 150))
    public, ran = whole.within(PUBLIC), _counted(whole.backend)
    for listed, checked in ((41, 40), (0, 40)):
        assert len(public.plan(_found("needle", 50))) == 30
        assert ran.pop("look up the documents of a filter", 0) == listed
        assert ran.pop("read what filters ask for", 0) <= checked


def test_the_nearest_are_asked_for_without_the_filter_if_most_pass_it(opened) -> None:
    whole = probe(opened())
    whole.backend._history.large_until = math.inf
    whole.put(*(make_record(f"p{n:03}", n / 200, access="all") for n in range(100)))
    whole.put(*(make_record(f"h{n:03}", n / 200, access="staff") for n in range(20)))
    texts = _statements(whole.backend)
    assert whole.within(PUBLIC).near(5) == [f"p{n:03}" for n in range(99, 94, -1)]
    assert ["WHERE" in text for text in texts] == [False]
    whole.put(*(make_record(f"h{n:03}", 0.9, access="staff") for n in range(100)))
    texts.clear()
    for _ in range(2):
        assert whole.within(PUBLIC).near(5) == [f"p{n:03}" for n in range(99, 94, -1)]
    assert ["WHERE" in text for text in texts if "ANN" in text] == [False, True, True]


def _counted(backend) -> Counter[str]:
    """Counts rows by what they are for, from now on."""
    ran: Counter[str] = Counter()
    run = backend._executor.run

    def counting(requests):
        answers = run(requests)
        ran[requests.what] += sum(map(len, answers))
        return answers

    backend._executor.run = counting
    return ran


def _statements(backend) -> list[str]:
    """The statements that are run from now on."""
    texts: list[str] = []
    run = backend._executor.run

    def noting(requests):
        texts.extend(statement.cql for statement in requests.statements)
        return run(requests)

    backend._executor.run = noting
    return texts

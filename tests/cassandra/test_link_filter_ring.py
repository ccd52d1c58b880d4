"""``link_filter`` on Cassandra: what the embedded engine follows, and what it costs."""

from __future__ import annotations

import drugs
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_tables import own_keyspace
from differential import compare_hits
from internals import Report

from linkstore import Link, LinkStore
from linkstore.errors import UnknownNameError
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank

SINCE = {"year": {"$gte": 2020}}


@pytest.fixture(scope="module")
def pharmacies(cassandra_session):
    """The same documents on both engines."""
    with (
        own_keyspace(cassandra_session, "dated") as space,
        LinkStore() as embedded,
        LinkStore.cassandra(session=cassandra_session, keyspace=space, table="drugs") as clustered,
    ):
        for store in (embedded, clustered):
            store.add_documents(list(drugs.documents(dated=True)))
        yield embedded, clustered


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize(
    "strategy", [Eager(depth=2), Mmr(fetch_k=10), AllPaths(), PageRank()], ids=lambda one: type(one).__name__
)
def test_both_engines_follow_the_same_links(pharmacies, strategy, direction):
    embedded, clustered = pharmacies
    followed = strategy.__class__(**{**settings(strategy), "direction": direction})
    for drug in drugs.drugs()[5:8]:
        options = {"strategy": followed, "link_filter": {"year": {"$not": {"$lt": 2020}}}}
        question = drugs.question(drug)
        roots = [f"drug/{drug.name}", f"approval/{drug.name}"]
        found, wanted = (
            store.search(question, initial_roots=roots, **options) for store in (clustered, embedded)
        )
        assert compare_hits(found, wanted) == []
        steps = [[step.data for step in hit.path] for hit in found]
        assert steps == [[step.data for step in hit.path] for hit in wanted]


def settings(strategy: object) -> dict[str, object]:
    return {name: getattr(strategy, name) for name in ("depth", "fetch_k") if hasattr(strategy, name)}


def test_approvals_since_2020_are_followed_and_earlier_ones_are_not(pharmacies):
    _, clustered = pharmacies
    some = drugs.drugs()[:20]
    hits = clustered.search(
        "x",
        strategy=Eager(start_k=0, k=99),
        initial_roots=[f"drug/{drug.name}" for drug in some],
        link_filter=SINCE,
    )
    reached = {hit.document.id for hit in hits if hit.depth}
    assert reached == {f"approval/{drug.name}" for drug in some if drug.approved >= 2020}
    assert len(reached) not in (0, 20)


def test_a_field_that_no_link_has_is_an_error(pharmacies):
    _, clustered = pharmacies
    with pytest.raises(UnknownNameError, match=r"field of link data 'yaer'; did you mean 'year'\?"):
        clustered.search("x", strategy=Eager(), link_filter={"yaer": 2020})


def test_other_data_are_written_and_the_store_is_sound(pharmacies):
    _, clustered = pharmacies
    drug = drugs.drugs()[30]
    kinds = ["HAS_APPROVAL"]
    search = {"strategy": Eager(start_k=0), "initial_roots": [f"drug/{drug.name}"]}

    def relink(year: object) -> tuple[int, bool]:
        data = {"year": year}
        link = Link.outgoing(kind="HAS_APPROVAL", tag=f"approval/{drug.name}", data=data)
        written = clustered.links.replace(kinds, {f"drug/{drug.name}": [link]})
        hits = clustered.search("x", link_filter=SINCE, **search)
        return written.updated, any(hit.depth for hit in hits)

    assert relink(1999) == (1, False)
    assert relink(1999) == (0, False)
    assert relink(2024) == (1, True)
    assert relink(2024.0) == (1, True)
    assert clustered.verify() == Report()

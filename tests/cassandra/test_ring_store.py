"""A store on three nodes, each a replica of everything, at LOCAL_QUORUM: nodes are killed, paused, come back.

A node that comes back is not told by the others what it missed, for hints are off: what it knows is old until
somebody repairs it, and readers must not notice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from cassandra_server import Ring, create_keyspace
from differential import compare_hits
from internals import PATIENCE
from langchain_core.documents import Document
from oracle import OracleBackend
from stores import embedding, times

from linkstore import Link, LinkStore, add_links
from linkstore.errors import StoreUnavailableError
from linkstore.strategies import Eager

pytestmark = pytest.mark.xdist_group("ring")
KEYSPACE = "ring_store"
TIMEOUT, DEADLINE = 1.0, 2.5
SLACK = 3.0
"""Seconds that an error may come late on a machine with more nodes than cores."""
PAUSE = times(6, 30)
LONGEST = 60
PAGES = 20
FOLLOWED = Eager(start_k=0, depth=2, direction="both", hub_cap=1000, adjacent_k=100)


def page(name: str, *links: Link, version: int = 0) -> Document:
    """Its vector depends on its name alone."""
    made = Document(id=name, page_content=f"page {name}", metadata={"version": version})
    add_links(made, *links)
    return made


def to(tag: str) -> Link:
    return Link.outgoing(kind="page", tag=tag)


def at(tag: str) -> Link:
    return Link.incoming(kind="page", tag=tag)


def pages(side: str) -> list[Document]:
    """A root, pages it links to, and one that links to them and later does not."""
    linked = [page(f"{side} {n}", at(side)) for n in range(PAGES)]
    return [page(f"{side} root", to(side)), page(f"{side} fickle", to(side)), *linked]


@dataclass(frozen=True, slots=True)
class Stores:
    """The same documents in Cassandra and in an oracle."""

    cassandra: LinkStore
    oracle: LinkStore

    def each(self) -> tuple[LinkStore, LinkStore]:
        return self.cassandra, self.oracle

    def change(self, side: str) -> None:
        """Relink some pages, delete some, add some; in both."""
        for store in self.each():
            away = [page(f"{side} {n}", at("away"), version=1) for n in range(3)]
            more = [page(f"{side} {n}", at(side), version=1) for n in range(PAGES, PAGES + 3)]
            store.add_documents([*away, *more, page(f"{side} fickle", version=1)])
            store.delete([f"{side} {n}" for n in range(3, 6)])

    def assert_alike(self, side: str, store: LinkStore | None = None) -> None:
        """By id and by links, from where the search starts."""
        roots = [f"{side} root", f"{side} fickle", f"{side} 0", f"{side} 4", f"{side} {PAGES}"]
        both = (store or self.cassandra, self.oracle)
        assert both[0].get_by_ids(roots) == self.oracle.get_by_ids(roots)
        for root in roots:
            hits = [one.search("page", strategy=FOLLOWED, initial_roots=[root]) for one in both]
            assert compare_hits(*hits) == [], root


@pytest.fixture(scope="module")
def opened(ring: Ring) -> Iterator[Callable[..., LinkStore]]:
    """Opens the store: with all nodes, or through one of them alone.

    Without words: what becomes of their rows when a client or server stops is tested on one node.
    """
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy, WhiteListRoundRobinPolicy
    from internals import CassandraSettings

    clusters = []
    with ring.connect() as session:
        create_keyspace(session, KEYSPACE, replicas=3)

    def store(*only: str, deadline: float = 30, timeout: float = 10) -> LinkStore:
        policy = WhiteListRoundRobinPolicy(only) if only else RoundRobinPolicy()
        cluster = Cluster(
            list(only) or ring.hosts,
            port=ring.port,
            protocol_version=5,
            connect_timeout=10,
            reconnection_policy=ConstantReconnectionPolicy(0.5, max_attempts=None),
            execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(load_balancing_policy=policy)},
        )
        clusters.append(cluster)
        session = cluster.connect()
        settings = CassandraSettings(timeout=timeout, deadline=deadline, lexical=False)
        return LinkStore.cassandra(embedding(), session=session, keyspace=KEYSPACE, settings=settings)

    yield store
    for cluster in clusters:
        cluster.shutdown()


@pytest.fixture(scope="module")
def stores(ring: Ring, opened) -> Stores:
    """With the pages of each test in them.

    Members that a node did not see deleted come back after ``gc_grace_seconds``. Readers ignore them, but
    count them; and the nodes may need longer than the usual minute to come back on a slow machine.
    """
    made = Stores(opened(), LinkStore(embedding(), backend=OracleBackend()))
    for store in made.each():
        for side in ("killed", "paused"):
            store.add_documents(pages(side))
    with ring.connect(KEYSPACE) as session:
        session.execute("ALTER TABLE linkstore_members WITH gc_grace_seconds = 3600", timeout=LONGEST)
    return made


def warm(store: LinkStore) -> None:
    """Have the store do once what it will do in trouble."""
    store.add_documents([page("warm", at("warm"))])
    store.search("page", strategy=FOLLOWED, initial_roots=["warm"])
    store.delete(["warm"])


def refused_in_time(work: Callable[[], object]) -> str:
    """What the store says that cannot do it."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError) as error:
        work()
    assert time.monotonic() - began < DEADLINE + SLACK
    return error.value.message


WAYS = ("deleted", "linked elsewhere")


def near(way: str) -> list[str]:
    """The names of pages that are changed in this way while a node is down."""
    return [f"near {way} {n}" for n in range(PAGES)]


@pytest.fixture(scope="module")
def missed(ring: Ring, opened, stores) -> list[str]:
    """Nodes that were killed and are back without what they missed: one missed changes, then two were down.

    What was refused meanwhile.
    """
    hurried = opened(deadline=DEADLINE, timeout=TIMEOUT)
    for store in stores.each():
        for way in WAYS:
            store.add_documents([page(name, to(name), at(f"{way} before")) for name in near(way)])
    try:
        ring.nodes[2].kill()
        stores.change("killed")
        for store in stores.each():
            store.delete(near("deleted"))
            elsewhere = near("linked elsewhere")
            store.add_documents([page(name, at("elsewhere after"), version=1) for name in elsewhere])
        stores.assert_alike("killed")
        ring.nodes[1].kill()
        new = page("killed new", at("killed"))
        return [
            refused_in_time(lambda: hurried.add_documents([new])),
            refused_in_time(lambda: hurried.get_by_ids(["killed root"])),
            refused_in_time(lambda: hurried.search("x", strategy=FOLLOWED, initial_roots=["killed root"])),
        ]
    finally:
        ring.heal()


def test_nodes_are_killed_and_come_back_without_what_they_missed(ring, opened, stores, missed) -> None:
    """With one down all goes on, with two down there is a typed error in time, healed all is right."""
    for message in missed:
        assert message.startswith("could not read "), message
        assert ": Cassandra at 127.0.0." in message
        assert "nodetool status" in message
    stale = opened(ring.hosts[2])
    stores.assert_alike("killed", stale)
    stores.assert_alike("killed")
    for store in stores.each():
        store.add_documents([page("killed new", at("killed"))])
        store.delete(["killed 9"])
    stores.assert_alike("killed", stale)
    assert stale.verify().sound


@pytest.mark.parametrize("way", WAYS)
def test_nearest_neighbours_are_those_that_a_quorum_knows(ring, opened, stores, missed, way) -> None:
    """Also where the index of a node that missed the changes proposes them."""
    stale = opened(ring.hosts[2])
    wrong = []
    for name in near(way):
        found = [
            one.search(f"page {name}", strategy=Eager(start_k=1, depth=1, direction="both", k=3))
            for one in (stale, stores.oracle)
        ]
        if compare_hits(*found):
            wrong.append((name, found[0][0].document))
    assert wrong == []


@pytest.mark.long
def test_a_paused_node_is_got_around(ring, opened, stores) -> None:
    """What it does not answer goes on with the others, or is a typed error in time."""
    hurried = opened(deadline=DEADLINE, timeout=TIMEOUT)
    warm(hurried)
    acknowledged, refused, slowest = [], 0, 0.0
    new = page("paused extra 0", at("paused"))
    ring.nodes[2].pause()
    try:
        until = time.monotonic() + PAUSE
        late = until + LONGEST  # on a busy machine it takes some tries until the driver leaves the node out
        while (began := time.monotonic()) < until or (len(acknowledged) <= refused and began < late):
            try:
                hurried.add_documents([new])
                acknowledged.append(new)
                new = page(f"paused extra {len(acknowledged)}", at("paused"))
                hurried.search("page", strategy=FOLLOWED, initial_roots=["paused root"])
            except StoreUnavailableError:
                refused += 1
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.05)
    finally:
        ring.heal()
    assert slowest < 2 * DEADLINE + SLACK, "an addition and a search, each with its deadline"
    assert len(acknowledged) > refused
    stores.oracle.add_documents([*acknowledged, new])
    stores.cassandra.add_documents([new])  # it may have been refused and be there all the same
    stores.change("paused")
    stores.assert_alike("paused")
    stores.assert_alike("paused", opened(ring.hosts[2]))


@pytest.mark.long
@pytest.mark.parametrize("first", [False, True], ids=["warm", "nothing prepared"])
def test_a_node_that_hangs_delays_calls_by_seconds(ring, opened, stores, first) -> None:
    """Two of three copies are enough; with the default times, nobody waits until an attempt is given up."""
    client = opened()
    if not first:
        warm(client)
    ring.nodes[2].pause()
    try:
        for work in (
            lambda: client.get_by_ids([f"paused {n}" for n in range(PAGES)]),
            lambda: client.add_documents([page("while one hangs", at("hanging"))]),
            lambda: client.search("page", strategy=FOLLOWED, initial_roots=["paused root"]),
        ):
            began = time.monotonic()
            work()
            assert time.monotonic() - began < 2 * PATIENCE + SLACK
    finally:
        ring.heal()
    stores.cassandra.delete(["while one hangs"])


@pytest.mark.long
def test_what_is_done_for_the_first_time_while_a_node_hangs_is_done_or_refused_in_time(ring, opened) -> None:
    """Statements are prepared when they are first met, and that waits for nodes too."""
    hurried = opened(deadline=DEADLINE, timeout=TIMEOUT)
    ring.nodes[2].pause()
    try:
        began = time.monotonic()
        with suppress(StoreUnavailableError):
            hurried.get_by_ids(["paused root"])
        assert time.monotonic() - began < DEADLINE + SLACK
    finally:
        ring.heal()

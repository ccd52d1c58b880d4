"""A link group with very many members costs a reader no more than the cap on hubs, and a writer nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from stores import DIMENSION, embedding, times

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_executors import Counting
from cassandra_server import create_keyspace
from cassandra_tables import new_name
from internals import (
    DEFAULT_HUB_CAP,
    MAX_SHOWN_MEMBERS,
    Requests,
    Statement,
    Tables,
    normalize_vectors,
    pack_member_state,
)

from linkstore import Link, LinkStore, add_links
from linkstore.engines.cassandra import codec as codes
from linkstore.engines.cassandra import statements
from linkstore.strategies import Eager, Mmr

MEMBERS = times(20_000, 100_000)
DOCUMENTS = 400
"""So many of the members are documents; the others are rows alone, which keeps the test quick."""
A_BATCH = 40
HUB = ("keyword", "everyone")
GROUPS = "read link groups"
CAPPED = DEFAULT_HUB_CAP + 2
"""One member more than the cap, and the row that would be the mark of a group that was split."""


def member(n: int, version: int = 0) -> Document:
    """Lies on the hub, and on a link group with one other."""
    made = Document(id=f"m{n:06}", page_content=f"member {n} v{version}", metadata={"v": version})
    add_links(
        made,
        Link.bidir(kind=HUB[0], tag=HUB[1], weight=1 - version / 2),
        Link.bidir(kind="pair", tag=f"{n // 2}"),
    )
    return made


def crowd(numbers: Sequence[int]) -> Iterator[Statement]:
    """Rows of members without their documents, in batches of one partition."""
    random = np.random.default_rng(5)
    packed = codes.encode_vectors(normalize_vectors(random.standard_normal((len(numbers), DIMENSION))))
    for side in ("in", "out"):
        rows = [
            (0, {pack_member_state(1.0, code)}, *HUB, side, 0, f"m{n:06}")
            for n, code in zip(numbers, packed, strict=True)
        ]
        for start in range(0, len(rows), A_BATCH):
            batch = rows[start : start + A_BATCH]
            text = statements.write_rows(statements.MEMBER_ROWS, len(batch), replace=False)
            values = (1, *(value for row in batch for value in row))
            yield Statement(cql=text, values=values, level="write")


@pytest.fixture(scope="module")
def crowded(cassandra_session) -> Iterator[tuple[LinkStore, Counting, Tables]]:
    """A store with a hub, what counts its statements, and its tables."""
    tables = Tables(new_name("hub"), "t")
    create_keyspace(cassandra_session, tables.keyspace)
    options: dict[str, Any] = {"session": cassandra_session, "keyspace": tables.keyspace, "table": "t"}
    with LinkStore.cassandra(embedding(), **options) as store:
        store.add_documents([member(n) for n in range(DOCUMENTS)])
        counting = Counting(store.backend._executor)
        rows = tuple(crowd(range(DOCUMENTS, MEMBERS)))
        counting.run(Requests(statements=rows, what="write members"))
        store.backend._executor = counting
        yield store, counting, tables
    cassandra_session.execute(f'DROP KEYSPACE "{tables.keyspace}"')


@pytest.fixture
def store(crowded) -> LinkStore:
    return crowded[0]


@pytest.fixture
def counting(crowded) -> Counting:
    crowded[1].reset()
    return crowded[1]


def members_there(session, tables: Tables, side: str = "in") -> int:
    """How many rows the hub has on a side, counted by the server."""
    members = tables.name_in("$members")
    count = f"SELECT count(*) FROM {members} WHERE kind = %s AND tag = %s AND side = %s AND bucket = 0"
    return int(session.execute(count, (*HUB, side)).one()[0])


def test_the_hub_has_that_many_members(crowded, cassandra_session) -> None:
    assert members_there(cassandra_session, crowded[2]) == MEMBERS
    assert members_there(cassandra_session, crowded[2], "out") == MEMBERS


@pytest.mark.parametrize(
    "strategy", [Eager(start_k=4, depth=1), Mmr(k=4, fetch_k=4, depth=1)], ids=["eager", "mmr"]
)
def test_a_search_reads_the_cap_and_little_more_and_says_that_there_is_a_hub(
    store, counting, strategy
) -> None:
    """Other links of the same documents are followed."""
    found = store.search("member 7 v0", strategy=strategy)
    assert found[0].document.id == "m000007"
    assert "m000006" in {hit.document.id for hit in found}
    assert counting.rows(GROUPS)
    assert all(CAPPED <= rows <= CAPPED + 2 * 4 for rows in counting.rows(GROUPS))
    assert counting.statements < 20
    said = f"hub: 1 at depth 1 — more than hub_cap {DEFAULT_HUB_CAP} members: keyword everyone"
    assert said in found.explain()


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_nor_is_more_read_of_a_hub_that_the_search_starts_from(store, counting, direction) -> None:
    sides = 2 if direction == "both" else 1
    link = Link.bidir(kind=HUB[0], tag=HUB[1])
    strategy = Eager(start_k=0, depth=1, direction=direction)
    found = store.search("x", strategy=strategy, initial_links=[link])
    assert "hub: 1 at depth 0" in str(found.reason)
    assert sum(counting.rows(GROUPS)) <= sides * (CAPPED + 2)
    assert sum(counting.rows()) <= sides * (CAPPED + 2), "no document"


@pytest.mark.parametrize("cap", [0, 10, 1_000])
def test_the_cap_says_how_many_rows_are_read(store, counting, cap) -> None:
    found = store.search("member 7 v0", strategy=Eager(start_k=1, depth=1, hub_cap=cap, kinds=["keyword"]))
    assert [hit.document.id for hit in found] == ["m000007"]
    assert counting.rows(GROUPS) in ([cap + 1], [cap + 2]), "a hub that is known already, or not"
    assert f"more than hub_cap {cap} members: keyword everyone" in found.explain()


def test_neighbours_are_listed_up_to_a_limit_and_it_is_said_that_there_are_more(store, counting) -> None:
    found = store.links.neighbours("m000007")
    assert [(one.link.tag, one.ids, one.more) for one in found.outgoing] == [
        ("everyone", (), True),
        ("3", ("m000006",), False),
    ]
    assert all(rows <= MAX_SHOWN_MEMBERS + 2 + 2 for rows in counting.rows(GROUPS))


def test_documents_of_the_hub_are_replaced_and_deleted_without_reading_it(
    crowded, counting, cassandra, cassandra_session, caplog
) -> None:
    """And what they leave behind does not make the server warn of those who read it."""
    store, _, tables = crowded
    log = Path(cassandra.folder) / "server.log"
    start = log.stat().st_size
    with caplog.at_level(logging.WARNING):
        there = members_there(cassandra_session, tables)
        store.add_documents([member(n, version=1) for n in range(100)])
        store.delete([f"m{n:06}" for n in range(100, 200)])
        assert sum(counting.rows()) == 3 * 100 + 2 * 100, "documents, read again before they are written"
        counting.reset()
        found = store.search("member 7 v1", strategy=Eager(start_k=1, depth=1))
        assert [hit.document.id for hit in found] == ["m000007", "m000006"]
        assert sum(counting.rows(GROUPS)) <= CAPPED + 2
        assert store.get_by_ids(["m000100"]) == []
        assert members_there(cassandra_session, tables) == there - 100
    assert not caplog.text
    with log.open("rb") as file:
        file.seek(start)
        said = file.read().decode(errors="replace")
    assert not [line for line in said.splitlines() if tables.keyspace in line and "tombstone" in line]

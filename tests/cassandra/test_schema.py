"""A schema on Cassandra: recorded among the settings, and checked by every client."""

from __future__ import annotations

import threading

import drugs
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_server import connect
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.errors import SchemaError
from linkstore.store import Relation, Schema


@pytest.fixture
def opened(cassandra_session, emptied_keyspace):
    def opened(session=cassandra_session) -> LinkStore:
        return LinkStore.cassandra(embedding(), session=session, keyspace=emptied_keyspace)

    return opened


def node(id: str, of: str, *links: Link) -> Document:
    made = Document(id=id, page_content=id, metadata={"type": of})
    add_links(made, *links)
    return made


def test_a_drafted_schema_is_kept_and_obeyed_by_other_clients(opened):
    store, other = opened(), opened()
    store.add_documents(list(drugs.documents()))
    drafted = Schema.infer(store)
    store.schema.set(drafted)
    assert other.schema.get() == drafted
    assert other.schema.check().sound
    other.add_documents([node("drug/new", "drug", Link.outgoing(kind="BELONGS_TO", tag="class/1"))])
    wrong = {
        "leads to no document": Link.outgoing(kind="BELONGS_TO", tag="class/none"),
        "wrong direction": Link.incoming(kind="BELONGS_TO", tag="x"),
        "unknown kind": Link.outgoing(kind="BELONGS", tag="class/1"),
    }
    for text, link in wrong.items():
        with pytest.raises(SchemaError, match=text):
            other.add_documents([node("x", "drug", link)])
    assert other.get_by_ids(["x"]) == []
    assert store.schema.reach("drug").unreached == {"comment": drugs.COMMENTS}


def test_problems_that_are_warned_of_are_recorded(opened):
    store = opened()
    store.schema.set(Schema(types={"a", "b"}, relations=[Relation("k", "a", "b")]), "warn")
    store.add_documents(
        [node("1", "a", Link.outgoing(kind="k", tag="t")), node("2", "b", Link.incoming(kind="k", tag="t"))]
    )
    store.add_documents([node("3", "c")])
    (problem,) = store.schema.problems()
    assert (problem.id, "type 'c' is unknown" in problem.text) == ("3", True)


def test_of_several_clients_at_once_one_sets_its_schema(opened, cassandra):
    opened()
    together, came = threading.Barrier(4), []

    def client(number: int) -> None:
        with connect([cassandra.host], cassandra.port) as session:
            store = opened(session)
            together.wait()
            try:
                store.schema.set(Schema(types={f"type {number}"}))
            except SchemaError:
                return
            came.append(number)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(came) == 1
    assert opened().schema.get().types == {f"type {came[0]}"}

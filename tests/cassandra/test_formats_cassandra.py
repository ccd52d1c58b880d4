"""Tables that were made before are those of a store: see ``tests/support/golden.py``."""

from __future__ import annotations

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from golden import NUMBERS, SCHEMAS, make_record, read_schema
from internals import SCHEMA_VERSION, CassandraBackend, Manifest, Report, WriteBatch
from stores import DIMENSION, vectors

from linkstore.strategies import Eager, Question

WRITTEN = range(1, SCHEMA_VERSION + 1)


def test_tables_are_made_as_recorded() -> None:
    assert read_schema() == (SCHEMAS / f"schema-{SCHEMA_VERSION}.cql").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", WRITTEN)
@pytest.mark.parametrize("expiring", [False, True])
def test_a_store_of_tables_that_were_made_before_can_be_used(
    cassandra_session, keyspace, version, expiring
) -> None:
    text = (SCHEMAS / f"schema-{version}.cql").read_text(encoding="utf-8")
    _, lasting, expired = text.split("-- documents")
    part = (expired if expiring else lasting).partition("\n")[2]
    for statement in part.replace('"golden"', f'"{keyspace}"').split(";\n"):
        if statement.strip():
            cassandra_session.execute(statement, timeout=60)
    settings = {
        "version": str(version),
        "buckets": "1",
        "words": "built",
        "ttl": "60" if expiring else "none",
    }
    for name, value in settings.items():
        cassandra_session.execute(
            f'INSERT INTO "{keyspace}"."kb_settings" (name, value) VALUES (%s, %s)', (name, value)
        )
    store = CassandraBackend(cassandra_session, keyspace, "kb", create=False)
    store.run(store.claim(Manifest(embedding="test", dimension=DIMENSION)))
    store.run(store.write(WriteBatch(put=[make_record(n, 0) for n in NUMBERS[:20]])))
    question = Question(vector=vectors([3])[0])
    hits = store.run(store.answer(Eager(start_k=1, depth=1).plan(question)))
    assert hits[0].document.id == "d3"
    assert store.run(store.verify()) == Report()
    store.close()

"""What docs/how-to/operate-cassandra.md tells operators to do works on real servers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cassandra_server import Server, create_keyspace
from internals import QUESTION, CassandraSettings, site
from stores import embedding

from linkstore import LinkStore
from linkstore.errors import StoreUnavailableError
from linkstore.ingest import FolderSource, index

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "operate-cassandra.md"
KEPT = ("kb", "kb_texts", "kb_pages", "kb_accesses", "kb_settings")
LONGEST = 60


def statements_after(heading: str) -> list[str]:
    """The CQL of a section of the page."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sql$(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return [text.strip() for block in blocks for text in block.split(";") if text.strip()]


def options_of(session: Any, keyspace: str, store: str) -> dict[str, tuple[int, dict[str, str]]]:
    """How long the tables of a store keep tombstones, and how they are compacted."""
    rows = session.execute(
        "SELECT table_name, gc_grace_seconds, compaction FROM system_schema.tables WHERE keyspace_name = %s",
        [keyspace],
    )
    return {
        row.table_name.removeprefix(store): (row.gc_grace_seconds, dict(row.compaction))
        for row in rows
        if row.table_name.startswith(store)
    }


@pytest.mark.long
def test_a_store_founded_without_ttl_is_made_like_one_founded_with_it(keyspace, cassandra_session) -> None:
    """By the statements of the page; clients that have no ttl read it in as many parts then."""
    for table, ttl in (("kb", None), ("with_ttl", 86_400)):
        settings = CassandraSettings(ttl=ttl)
        store = LinkStore.cassandra(
            embedding(), session=cassandra_session, keyspace=keyspace, table=table, settings=settings
        )
        store.add_texts(["a"])
    found = statements_after("Updates and deletions")
    assert len(found) == 5
    for text in found:
        cassandra_session.execute(text.replace("keyspace.", f'"{keyspace}".'), timeout=LONGEST)
    changed = options_of(cassandra_session, keyspace, "kb")
    expected = options_of(cassandra_session, keyspace, "with_ttl")
    assert {end: changed[end] for end in expected if end != "_settings"} == {
        end: expected[end] for end in expected if end != "_settings"
    }
    again, like = (
        LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=keyspace, table=table)
        for table in ("kb", "with_ttl")
    )
    assert again.backend._fetcher._ranges == like.backend._fetcher._ranges > 1


def test_what_to_watch_is_there(emptied_keyspace, cassandra_session) -> None:
    LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=emptied_keyspace).add_texts(["a"])
    found = statements_after("What to watch")
    assert len(found) == 5
    for text in found:
        rows = cassandra_session.execute(text.replace("'keyspace'", f"'{emptied_keyspace}'")).all()
        assert rows or "pending_hints" in text, text


@pytest.mark.long
def test_a_store_is_restored_on_a_new_cluster_from_snapshots(own_cassandra, tmp_path) -> None:
    """Of five of its tables; the others are made and written by repair."""
    old: Server = own_cassandra()
    with old.connect() as session:
        create_keyspace(session, "kept")
        store = LinkStore.cassandra(table="kb", session=session, keyspace="kept")
        with site() as folder:
            index(store, FolderSource(folder))
        expected = [hit.document.id for hit in store.search(QUESTION)]
    old.nodetool("snapshot", "--tag", "nightly", "--kt-list", ",".join(f"kept.{table}" for table in KEPT))
    taken = old.node.folder.glob("data/kept/*/snapshots/nightly")
    folders = {path.parents[1].name.partition("-")[0]: path for path in taken}
    assert set(folders) == set(KEPT)
    shutil.copytree(old.node.folder / "data" / "kept", tmp_path / "kept")
    old.stop()

    new: Server = own_cassandra()
    with new.connect() as session:
        create_keyspace(session, "kept")
        for table, path in folders.items():
            snapshot = tmp_path / "kept" / path.parents[1].name / "snapshots" / "nightly"
            for text in (snapshot / "schema.cql").read_text().split(";\n"):
                if text.strip():
                    session.execute(text, timeout=LONGEST)
            new.nodetool("import", "--copy-data", "kept", table, str(snapshot))
        store = LinkStore.cassandra(table="kb", session=session, keyspace="kept")
        with pytest.raises(StoreUnavailableError, match=r"kb_members|kb_words"):
            store.search(QUESTION)
        assert not store.verify().sound
        store.verify(repair=True)
        assert store.verify().sound
        assert [hit.document.id for hit in store.search(QUESTION)] == expected

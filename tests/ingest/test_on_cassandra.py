"""Each source on a store in Cassandra."""

from __future__ import annotations

import json

import pytest
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.errors import SourceConflictError
from linkstore.ingest import DocumentsSource, FolderSource, JsonLinesSource, VaultSource, WriteCounts, index


@pytest.fixture
def store(cassandra_session, keyspace):
    with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace) as opened:
        yield opened


def test_every_source_is_indexed_again_and_removed(store, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.html").write_text('<h1>A</h1><p>See <a href="b.html">b</a>.</p>')
    (tmp_path / "site" / "b.html").write_text("<h1>B</h1><p>Text.</p>")
    (tmp_path / "site" / "old.html").write_text('<meta http-equiv="refresh" content="0;url=b.html">')
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "N.md").write_text("---\ntags: t\n---\n# N\n\nSee [[M]].\n")
    (tmp_path / "vault" / "M.md").write_text("# M\n\nText.\n")
    lines = [{"id": "x", "text": "x", "links": ["y"]}, {"id": "y", "text": "y"}]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, lines)))
    documents = [Document(page_content=f"text {n}", id=f"{n}") for n in range(3)]

    def run(**options):
        return [
            index(store, FolderSource(tmp_path / "site", prefix="site"), **options).pages,
            index(store, VaultSource(tmp_path / "vault", prefix="vault"), **options).pages,
            index(store, JsonLinesSource(tmp_path / "d.jsonl"), **options).pages,
            index(store, DocumentsSource(documents, "loaded"), **options).pages,
        ]

    assert run(dry_run=True) == [WriteCounts(added=n) for n in (2, 2, 2, 3)]
    assert store.pages.digests() == {}
    assert run() == [WriteCounts(added=n) for n in (2, 2, 2, 3)]
    assert [(page.url, page.links) for page in store.pages.survey()[1]] == [
        ("y", 1),
        ("site/b.html", 1),
        ("vault/M.md", 1),
    ]
    assert run() == [WriteCounts(unchanged=n) for n in (2, 2, 2, 3)]
    with pytest.raises(SourceConflictError, match=r"'site/a.html' was already indexed"):
        index(store, FolderSource(tmp_path / "site", prefix="site"), name="again")
    documents.pop()
    (tmp_path / "vault" / "M.md").unlink()
    assert run()[1::2] == [WriteCounts(updated=1, removed=1), WriteCounts(unchanged=2, removed=1)]
    assert store.verify().sound

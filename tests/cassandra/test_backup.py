"""A backup needs the documents, not what follows from them, as docs/how-to/operate-cassandra.md says."""

from __future__ import annotations

from internals import QUESTION, site

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Eager, PageRank, Similarity

STRATEGIES = (Eager(start_k=3, depth=2), PageRank(start_k=3))


def found(store):
    return [[hit.document.id for hit in store.search(QUESTION, strategy=one)] for one in STRATEGIES]


def test_members_and_words_are_made_anew_from_the_documents_alone(keyspace, cassandra_session):
    with LinkStore.cassandra(table="kb", session=cassandra_session, keyspace=keyspace) as store:
        with site() as folder:
            index(store, FolderSource(folder))
        before = found(store)
    for table in ("kb_members", "kb_words"):
        cassandra_session.execute(f'DROP TABLE "{keyspace}"."{table}"')

    with LinkStore.cassandra(table="kb", session=cassandra_session, keyspace=keyspace) as restored:
        (missing,) = restored.verify().findings
        assert missing.examples == ("kb_members", "kb_words")
        restored.verify(repair=True)
        assert restored.verify().sound
        assert found(restored) == before


def test_a_store_whose_members_were_lost_is_searched_by_the_index(keyspace, cassandra_session):
    """Its list of documents is empty then, which does not mean that the store is."""
    with LinkStore.cassandra(table="kb", session=cassandra_session, keyspace=keyspace) as store:
        store.add_texts(["a", "b", "c"])
        cassandra_session.execute(f'TRUNCATE "{keyspace}"."kb_members"')
        assert len(store.search("a", strategy=Similarity(k=3))) == 3

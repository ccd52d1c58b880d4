"""Whatever a string holds, the store in Cassandra takes it as it is, and answers as an oracle does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from differential import compare_hits
from hostile import strings
from internals import Hits, PageDocuments
from langchain_core.documents import Document
from oracle import OracleBackend
from stores import embedding, times

from linkstore import Link, LinkStore, add_links
from linkstore.strategies import Eager, Similarity

STRINGS = times(1_000, 10_000)
ROLES = 5
A_STORE = 1_500
"""Strings of one store: it has so few documents that nearest neighbours are exact."""
LONGEST_FIELD = 512
"""Bytes of the longest metadata key that is used here; longer ones have tests of their own."""
LONGEST_ID = 65_000
"""Bytes of the longest id: with a word it fits into the longest key that Cassandra has."""
WALK = Eager(start_k=1, depth=2, direction="both", adjacent_k=3)


def made_of(texts: list[str]) -> list[Document]:
    """Documents whose every part is one of the strings; each links to the one before and the one after."""
    parts = list(zip(*[iter(texts)] * ROLES, strict=True))
    taken = {"links", "nested", "n"}
    field = [text for text in texts if len(text.encode()) <= LONGEST_FIELD and text not in taken]
    documents = []
    for at, (name, text, kind, tag, other) in enumerate(parts):
        metadata = {field[at]: other, field[-1 - at]: tag, "nested": {other: [kind, {tag: None}]}, "n": at}
        made = Document(id=name, page_content=text, metadata=metadata)
        _, _, kind_before, tag_before, _ = parts[at - 1]
        add_links(
            made,
            Link.outgoing(kind=kind, tag=tag, label=other),
            Link.bidir(kind=kind, tag=other, weight=0.5),
            Link.bidir(kind="keyword", tag=field[at % 7]),
            Link.incoming(kind=kind_before, tag=tag_before),
        )
        documents.append(made)
    return documents


@pytest.fixture
def opened(cassandra_session, emptied_keyspace) -> Iterator[LinkStore]:
    with LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=emptied_keyspace) as store:
        yield store


def both_with(store: LinkStore, documents: list[Document]) -> tuple[LinkStore, LinkStore]:
    """The store and an oracle, with these documents in them."""
    oracle = LinkStore(embedding(), backend=OracleBackend())
    for one in (store, oracle):
        one.add_documents(documents)
    return store, oracle


def filters_of(document: Document, at: int) -> list[dict]:
    """About a document's own metadata, by equality and, of every eighth, by the other operators."""
    strings = {key: value for key, value in document.metadata.items() if isinstance(value, str)}
    wanted = [(key, value) for key, value in strings.items() if not key.startswith("$")]
    asked: list[dict] = [{key: value} for key, value in wanted]
    if wanted and at % 8 == 0:
        key, value = wanted[0]
        asked += [{key: {op: value}} for op in ("$ne", "$gte", "$lt")]
        asked += [
            {"nested": {"$eq": document.metadata["nested"]}},
            {"$or": [{key: {"$in": [value, document.id]}}, {"n": at + 1}]},
            {"$not": {key: {"$nin": [value]}}},
            {key: {"$exists": True}},
        ]
    return asked


def asked_of(document: Document, at: int) -> Iterator[dict]:
    """Arguments of searches: by filter, and along links from the document itself or from a link."""
    for wanted in filters_of(document, at):
        yield {"query": "x", "strategy": Similarity(k=3), "filter": wanted}
    link = Link.outgoing(kind="keyword", tag=document.metadata["links"][2]["tag"])
    start = {"initial_roots": [document.id]} if at % 2 else {"initial_links": [link]}
    yield {"query": document.page_content, "strategy": WALK, **start}


async def answers(store: LinkStore, searches: list[dict]) -> list[Hits]:
    """Some at once, which takes less time than one after another."""
    found: list[Hits] = []
    for start in range(0, len(searches), 16):
        some = searches[start : start + 16]
        found += await asyncio.gather(*(store.asearch(**search) for search in some))
    return found


def assert_alike(both: tuple[LinkStore, LinkStore], documents: list[Document]) -> None:
    """In what is found by filters and along links, and in lists of neighbours."""
    searches = [search for at, document in enumerate(documents) for search in asked_of(document, at)]
    found, expected = (asyncio.run(answers(store, searches)) for store in both)
    for search, *hits in zip(searches, found, expected, strict=True):
        assert compare_hits(*hits) == [], search
    for document in documents[::4]:
        name = str(document.id)
        assert both[0].links.neighbours(name) == both[1].links.neighbours(name)


@pytest.mark.parametrize("part", range(-(-STRINGS // A_STORE)))
def test_any_string_is_an_id_a_tag_a_kind_a_key_a_value_and_a_text(opened, part) -> None:
    seed = 20 + part
    print(f"seed {seed}")
    documents = made_of(strings(min(STRINGS, A_STORE), seed))
    both = both_with(opened, documents)
    assert opened.get_by_ids([str(one.id) for one in documents]) == documents
    assert_alike(both, documents[:: times(3, 1)])
    assert opened.survey() == both[1].survey()
    gone = [str(one.id) for one in random.Random(seed).sample(documents, len(documents) // 3)]
    for one in both:
        one.delete(gone)
    assert opened.get_by_ids(gone) == []
    left = [one for one in documents if one.id not in set(gone)]
    assert_alike(both, left[:: times(10, 1)])
    assert opened.verify().sound


def test_any_string_is_a_source_and_a_url(opened) -> None:
    texts = strings(60, seed=7)
    oracle = LinkStore(embedding(), backend=OracleBackend())
    for one in (opened, oracle):
        for url, source in zip(texts[:30], texts[30:], strict=True):
            page = Document(id=url, page_content=source)
            one.pages.put(source, [PageDocuments(url=url, digest=source, documents=(page,))])
        one.pages.remove(texts[:1], texts[30])
    assert opened.pages.digests() == oracle.pages.digests()
    for source in texts[30:]:
        assert opened.pages.digests(source) == oracle.pages.digests(source)
    assert opened.get_by_ids(texts[:30]) == oracle.get_by_ids(texts[:30])


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_an_id_may_be_as_long_as_a_key_of_cassandra(opened, letter) -> None:
    """Nearly so: 65,000 bytes, in the tables of documents, members and words."""
    long = ("x" * 3 + letter * LONGEST_ID).encode()[:LONGEST_ID].decode(errors="ignore")
    assert LONGEST_ID - 4 < len(long.encode()) <= LONGEST_ID
    first, second = Document(id=long, page_content="long"), Document(id="short", page_content="short")
    add_links(first, Link.bidir(kind="k", tag="t"))
    add_links(second, Link.bidir(kind="k", tag="t"))
    both = both_with(opened, [first, second])
    assert opened.get_by_ids([long]) == [first]
    for one in both:
        found = one.search("short", strategy=Eager(start_k=1, depth=1))
        assert [hit.document.id for hit in found] == ["short", long]
    assert opened.links.neighbours(long) == both[1].links.neighbours(long)
    opened.delete([long])
    assert opened.get_by_ids([long, "short"]) == [second]
    assert opened.verify().sound

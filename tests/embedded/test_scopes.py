"""A search within a filter tells nothing of what the filter hides: it equals one of a store without that."""

from __future__ import annotations

import random

import numpy as np
import pytest
from differential import RandomSearch, compare_hits, find_scope_differences
from internals import (
    Ids,
    Lexical,
    Manifest,
    Members,
    Nearest,
    Record,
    Resolve,
    WriteBatch,
    normalize_vectors,
    parse_filter,
)
from oracle import OracleBackend
from stores import times

from linkstore import Link, LinkStore
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings, derived, filters, lexical, reader
from linkstore.strategies import DEFAULT_STRATEGY, Eager, Mmr, Question, Similarity, Words

DIMENSION = 8
PUBLIC = parse_filter({"access": "all"})
WORDS = [f"word{n}" for n in range(40)]
NONE = np.empty(0, np.int64)


@pytest.mark.parametrize("seed", range(times(6, 200)))
def test_searches_equal_those_of_a_store_of_the_scope_to_the_last_bit(seed) -> None:
    found = find_scope_differences(
        EmbeddedBackend(":memory:"),
        EmbeddedBackend(":memory:"),
        1000 + seed,
        searches=40,
        words=True,
        exactly=True,
    )
    assert found == []


@pytest.mark.parametrize("seed", range(times(2, 50)))
def test_they_do_where_an_index_searches_all_documents(tmp_path, seed) -> None:
    """The store is larger than what is searched exactly, the scope is not."""
    indexed = EmbeddedBackend(tmp_path, settings=EmbeddedSettings(exact_below=60))
    found = find_scope_differences(
        indexed, EmbeddedBackend(":memory:"), seed, documents=80, searches=20, words=True, exactly=True
    )
    assert found == []
    indexed.close()


def record(number: int, *, hidden: bool, rng: random.Random, tags: int = 30) -> Record:
    """A document with words, a name and links; what is hidden has more of all."""
    words = [WORDS[min(39, int(rng.paretovariate(0.8)) - 1)] for _ in range(rng.randint(3, 30))]
    title = " ".join(rng.choices(WORDS, k=rng.randint(1, 2)))
    tagged = rng.sample(range(tags), k=4 if hidden else 3)
    links = [Link.bidir(kind="keyword", tag=f"tag{tag}") for tag in tagged]
    links += [Link.outgoing(kind="hyperlink", tag=f"/{rng.randrange(400)}") for _ in range(3)]
    links += [Link.incoming(kind="hyperlink", tag=f"/{number}"), Link.incoming(kind="mention", tag=title)]
    return Record(
        id=f"{'hidden' if hidden else 'public'} {number}",
        text=" ".join(words),
        metadata={"title": title, "access": "staff" if hidden else "all"},
        vector=normalize_vectors([[rng.gauss(0, 1) for _ in range(DIMENSION)]])[0],
        links=tuple({(link.kind, link.tag, link.direction): link for link in links}.values()),
    )


def filled(backend: EmbeddedBackend | OracleBackend, records: list[Record]):
    backend.run(backend.claim(Manifest(embedding="test", dimension=DIMENSION)))
    backend.run(backend.write(WriteBatch(put=records)))
    return backend


def searches(seed: int, count: int) -> list[RandomSearch]:
    rng = random.Random(seed)
    strategies = (
        DEFAULT_STRATEGY,
        Similarity(k=10),
        Words(k=10),
        Eager(direction="both", hub_cap=30),
        Mmr(),
    )
    found = []
    for _ in range(count):
        vector = normalize_vectors([[rng.gauss(0, 1) for _ in range(DIMENSION)]])[0]
        question = Question(vector=vector, text=" ".join(rng.choices(WORDS, k=4)), filtered=True)
        found += [RandomSearch(strategy=one, question=question, scope=PUBLIC) for one in strategies]
    return found


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """One with an index that holds 3,000 documents, 600 of them public; one that holds those alone."""
    rng = random.Random(5)
    records = [record(n, hidden=n % 5 != 0, rng=rng) for n in range(3000)]
    settings = EmbeddedSettings(exact_below=1000)
    whole = filled(EmbeddedBackend(tmp_path_factory.mktemp("whole"), settings=settings), records)
    whole.run(whole.flush())
    alone = filled(EmbeddedBackend(":memory:"), [one for one in records if one.metadata["access"] == "all"])
    yield whole, alone
    whole.close()
    alone.close()


def test_a_small_part_of_a_large_store_is_searched_exactly(stores) -> None:
    whole, alone = stores
    assert sorted(whole.folder.glob("index-*.bin"))
    for search in searches(1, 12):
        assert compare_hits(search.on(whole), search.on(alone), 0.0) == []


def test_a_small_part_is_compared_alone_where_no_index_is_used(tmp_path, monkeypatch) -> None:
    """An index that finds too little is not used, and a filter still saves the comparison with the rest."""
    monkeypatch.setattr(derived, "LEAST_RECALL", 2.0)
    rng = random.Random(5)
    records = [record(n, hidden=n % 5 != 0, rng=rng) for n in range(3000)]
    store = filled(EmbeddedBackend(tmp_path, settings=EmbeddedSettings(exact_below=1000)), records)
    store.run(store.flush())
    compared: list[int] = []
    actual = reader.cosine_similarities
    monkeypatch.setattr(
        reader, "cosine_similarities", lambda *given: compared.append(len(given[0])) or actual(*given)
    )
    (search,) = [one for one in searches(1, 1) if isinstance(one.strategy, Similarity)]
    search.on(store)
    assert compared == [600]
    store.close()


def test_words_that_too_many_hidden_documents_have_are_looked_up(stores, monkeypatch) -> None:
    """Which words are left out follows from the scope alone, also where postings are read in pages."""
    monkeypatch.setattr(lexical, "POSTINGS", 300)
    monkeypatch.setattr(lexical, "_PAGE", 7)
    monkeypatch.setattr("linkstore.core.lexical.POSTINGS", 300)
    whole, alone = stores

    def plan():
        found = yield Lexical(terms=("word0", "word6", "word20", "word30"), k=20)
        return (yield Ids(refs=found.refs)), found.score.tolist(), found.left_out

    within, whole_store, expected = (
        store.run(store.answer(plan(), scope))
        for store, scope in ((whole, PUBLIC), (whole, parse_filter(None)), (alone, parse_filter(None)))
    )
    assert within == expected
    assert within[2]
    assert whole_store[2] != within[2]


def test_the_postings_of_a_word_are_read_once_in_a_scope_until_something_changes(monkeypatch) -> None:
    read: list[str] = []
    actual = lexical.read_posting

    def counted(connection, word, *arguments):
        read.append(word)
        return actual(connection, word, *arguments)

    monkeypatch.setattr(lexical, "read_posting", counted)

    def search(question, **options):
        return {hit.document.id for hit in store.search(question, strategy=Words(), **options)}

    with LinkStore.open(":memory:") as store:
        texts = ["tea with milk", "tea", "milk"]
        store.add_texts(texts, ids=["a", "b", "c"], metadatas=[{"n": n} for n in (1, 2, 2)])
        assert search("tea milk") == {"a", "b", "c"}
        assert search("tea") == {"a", "b"}
        assert sorted(read) == ["milk", "tea"]
        assert search("tea", filter={"n": 2}) == {"b"}
        assert sorted(read) == ["milk", "tea", "tea"]
        store.add_texts(["tea again"], ids=["d"], metadatas=[{"n": 2}])
        assert search("tea") == {"a", "b", "d"}
        store.delete(["a"])
        assert search("tea") == {"b", "d"}
        assert search("tea", filter={"n": 2}) == {"b", "d"}
        assert sorted(read) == ["milk", *["tea"] * 5]


def test_a_word_of_too_many_documents_is_read_to_the_end_where_all_are_needed(monkeypatch) -> None:
    """Its first postings, which show that there are too many, are kept too."""
    monkeypatch.setattr(lexical, "POSTINGS", 3)
    monkeypatch.setattr(lexical, "_PAGE", 2)
    with LinkStore.open(":memory:") as store:
        store.add_texts(["tea"] * 9, ids=list("abcdefghi"), metadatas=[{"n": 1}] * 9)
        for _ in range(2):
            hits = store.search("tea", strategy=Words(), k=9, filter={"n": 1})
            assert {hit.document.id for hit in hits} == set("abcdefghi")


@pytest.mark.parametrize("page", [3, 7, 64])
def test_postings_of_a_document_that_fill_several_pages_are_of_one_document(monkeypatch, page) -> None:
    """Also where whole pages are of a document outside the scope."""

    def search():
        with LinkStore.open(":memory:") as store:
            texts = ["tea " * 20, "tea " * 3, "tea " * 40, "coffee"]
            store.add_texts(texts, ids=["a", "b", "c", "d"], metadatas=[{"n": n} for n in (1, 2, 2, 2)])
            return store.search("tea", strategy=Words(), filter={"n": 2})

    monkeypatch.setattr(lexical, "_PAGE", page)
    paged = search()
    monkeypatch.undo()
    whole = search()
    assert [(hit.document.id, hit.score) for hit in paged] == [(hit.document.id, hit.score) for hit in whole]
    assert {hit.document.id for hit in paged} == {"b", "c"}


@pytest.mark.parametrize("cap", [0, 1, 20, 79, 80, 81, 1000])
def test_hubs_are_counted_past_what_is_hidden(stores, monkeypatch, cap) -> None:
    monkeypatch.setattr(reader, "_FIRST", 2)
    whole, alone = stores

    def plan():
        groups = yield Resolve(tags=tuple(("keyword", f"tag{n}") for n in range(30)))
        fetch = Members(
            groups=groups,
            side="in",
            vector=np.eye(DIMENSION, dtype=np.float32)[0],
            take=5,
            cap=cap,
            exclude=NONE,
        )
        found = yield fetch
        ids = yield Ids(refs=found.refs)
        return found.sizes.tolist(), found.group.tolist(), ids, found.similarity.tolist(), found.filtered

    assert whole.run(whole.answer(plan(), PUBLIC)) == alone.run(alone.answer(plan()))


def test_a_scope_follows_updates_and_an_older_reader_keeps_its_own() -> None:
    rng = random.Random(3)
    store = filled(EmbeddedBackend(":memory:"), [record(n, hidden=n % 2 == 0, rng=rng) for n in range(40)])
    vector = np.eye(DIMENSION, dtype=np.float32)[0]

    def ids():
        found = yield Nearest(vector=vector, k=100)
        worded = yield Lexical(terms=tuple(WORDS), k=100)
        ids = yield Ids(refs=found.refs)
        return sorted(ids), sorted((yield Ids(refs=worded.refs))), worded.score.tolist()

    def meanwhile():
        before = yield from ids()
        changes = [record(n, hidden=False, rng=rng) for n in range(0, 40, 2)]
        removed = [f"public {n}" for n in range(1, 40, 2)]
        store.run(store.write(WriteBatch(put=changes, remove=removed)))
        store.run(store.answer(ids(), PUBLIC))
        return before, (yield from ids())

    before, during = store.run(store.answer(meanwhile(), PUBLIC))
    assert before == during
    assert before[0] == sorted(f"public {n}" for n in range(1, 40, 2))
    after = store.run(store.answer(ids(), PUBLIC))
    assert after[0] == after[1] == sorted(f"public {n}" for n in range(0, 40, 2))
    store.close()


def test_many_scopes_in_turn_do_not_mix(monkeypatch) -> None:
    monkeypatch.setattr(filters, "MOST_CACHE_BYTES", 3 * 8 * 15)
    rng = random.Random(4)
    records = []
    for n in range(120):
        made = record(n, hidden=False, rng=rng)
        records.append(Record(**{**_fields(made), "metadata": {**made.metadata, "tenant": n % 8}}))
    store = filled(EmbeddedBackend(":memory:"), records)
    alone = [
        filled(EmbeddedBackend(":memory:"), [one for one in records if one.metadata["tenant"] == tenant])
        for tenant in range(8)
    ]
    for search in searches(9, 2):
        for tenant, own in enumerate(alone):
            within = RandomSearch(
                strategy=search.strategy, question=search.question, scope=parse_filter({"tenant": tenant})
            )
            assert compare_hits(within.on(store), within.on(own), 0.0) == []


def _fields(one: Record) -> dict:
    return {name: getattr(one, name) for name in ("id", "text", "metadata", "vector", "links")}

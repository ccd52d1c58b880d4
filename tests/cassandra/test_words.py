"""Search by words in Cassandra beyond the contract: what is read, what is stale, what was made without."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xxhash

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

import oracle
from cassandra_executors import Counting
from cassandra_tables import new_name, own_keyspace
from conformance.probe import CLAIM, QUERY_VECTOR, make_record
from internals import (
    DOCUMENT_BATCH_SIZES,
    EVERYTHING,
    POSTING_HEAD,
    WORD_ROWS,
    CassandraBackend,
    CassandraSettings,
    CorpusStatistics,
    CorpusTotals,
    DerivedRows,
    Documents,
    DocumentVersion,
    Filter,
    Ids,
    Lexical,
    LexicalMatches,
    Nearest,
    PageRank,
    Plan,
    Record,
    StoredDocument,
    WriteBatch,
    compute_stamp,
    derive_postings,
    hash_text,
    parse_filter,
    split_rows,
)
from oracle import OracleBackend

from linkstore.core import lexical
from linkstore.engines.cassandra import derived
from linkstore.engines.cassandra import lexical as corpus
from linkstore.engines.cassandra import lexical as wordsearch
from linkstore.errors import CapabilityError, FilterError
from linkstore.strategies import Question, Words, first_stage
from linkstore.strategies import first_stage as words_strategy

Scored = list[tuple[str, float]]
COMMON = {f"w{n}" for n in range(5)}
"""Words of :func:`of_many_sizes` that more than 300 of 900 documents have."""


@pytest.fixture(scope="module")
def space(cassandra_session) -> Iterator[str]:
    """A keyspace of this module."""
    with own_keyspace(cassandra_session, "words") as name:
        yield name


@pytest.fixture
def made(cassandra_session, space):
    """Opens a new store, or the same again: backends, claimed unless told otherwise."""
    name = new_name("t")

    def make(*, claim: bool = True, **settings: Any) -> CassandraBackend:
        given = CassandraSettings(**{"settle": 1e-6, **settings})
        backend = CassandraBackend(cassandra_session, space, name, settings=given)
        if claim:
            backend.run(backend.claim(CLAIM))
        return backend

    return make


def held(*records: Record) -> OracleBackend:
    """An oracle of these records."""
    made = OracleBackend()
    made.run(made.claim(CLAIM))
    put(made, *records)
    return made


def put(backend: Any, *records: Record) -> None:
    backend.run(backend.write(WriteBatch(put=records)))


def remove(backend: Any, *names: str) -> None:
    backend.run(backend.write(WriteBatch(remove=names)))


def asked(backend: Any, *words: str, k: int = 1000, condition: Filter | None = None) -> tuple[Scored, Any]:
    """Ids with scores, and the words left out."""

    def plan() -> Plan[tuple[Scored, Any]]:
        parsed = parse_filter(condition) if condition else EVERYTHING
        found: LexicalMatches = yield Lexical(terms=words, k=k, filter=parsed)
        ids: list[str] = yield Ids(refs=found.refs)
        return list(zip(ids, found.score.tolist(), strict=True)), found.left_out

    return backend.run(backend.answer(plan()))


def ids(backend: Any, *words: str) -> set[str]:
    return {name for name, _ in asked(backend, *words)[0]}


def run_cql(backend: CassandraBackend, text: str, *values: Any) -> list[Any]:
    """Behind the backend's back; ``T`` stands for the table of documents, ``T_words`` for that of words."""
    tables = backend._tables
    named = re.sub(r"\bT(_\w+)?\b", rf'"{tables.keyspace}"."{tables.name}\1"', text)
    return list(backend._executor.session.execute(named, values or None))


# --- without a server ---------------------------------------------------------------------------


HEAD = struct.Struct(">Q")


def posting_reading(hashes, *, more):
    """A reading of 500 postings that found these."""
    rows = [(HEAD.pack(one) + bytes(16), f"{one}") for one in hashes]
    return wordsearch.PostingReading("w", (0, 0), 500, rows=rows, last=(rows or [(b"", "")])[-1], more=more)


class TestEstimates:
    """How many there are, by the hashes of the first."""

    @pytest.mark.parametrize("documents", [0, 1, 499])
    def test_all_that_were_read_are_counted(self, documents):
        assert posting_reading(range(documents), more=False).count() == documents

    def test_two_states_of_a_document_are_one(self):
        assert posting_reading([3, 3, 9], more=False).count() == 2

    def test_a_part_of_a_scope_counts_for_the_part_that_was_looked_at(self):
        part = posting_reading([1, 2, 3], more=True)
        part.last = HEAD.pack(1 << 62) + bytes(16), "outside"
        assert part.count() == pytest.approx(12)

    @pytest.mark.parametrize("documents", [500, 3_000, 100_000, 1_000_000])
    def test_more_are_estimated_within_five_standard_errors(self, documents):
        hashes = np.sort(np.random.default_rng(documents).integers(0, 1 << 63, documents, np.uint64) * 2)
        found = posting_reading(hashes[:500].tolist(), more=True).count()
        assert found == pytest.approx(documents, rel=5 / 500**0.5)

    def test_a_word_has_at_least_what_was_read(self):
        heads = np.zeros(4, POSTING_HEAD)
        heads["hash"] = np.arange(4) << 60
        rows = [(head.tobytes(), f"{n}") for n, head in enumerate(heads)]
        part = wordsearch.PostingReading("w", (0, 0), 4, rows=rows, last=rows[-1])
        assert wordsearch.WordRows("w", [part]).count_documents() >= 4

    def test_totals_hold_for_a_while_and_follow_what_is_written(self, monkeypatch):
        now = [100.0]
        monkeypatch.setattr(corpus.time, "monotonic", lambda: now[0])
        known = CorpusStatistics()
        assert known.get_totals() is None
        known.learn(CorpusTotals(corpus.MAX_ALWAYS_COUNTED, 5_000))
        assert known.get_totals() is None, "so few are counted anew"
        known.learn(CorpusTotals(4_000, 40_000))
        mine = parse_filter({"access": "me"})
        known.learn(CorpusTotals(2_000, 9_000), mine)
        known.add(1, -18)
        assert known.get_totals() == CorpusTotals(4_001, 39_982)
        assert known.get_totals(mine) == CorpusTotals(2_000, 9_000)
        now[0] += corpus.COUNT_LIFETIME
        assert known.get_totals() is known.get_totals(mine) is None

    def test_the_average_of_no_words_divides(self):
        assert CorpusTotals(3, 0).average == CorpusTotals().average == 1


def version(text: str, metadata: dict[str, Any], id: str = "a") -> DocumentVersion:
    vector = np.ones(1, np.float32)
    return DocumentVersion.of_record(Record(id=id, text=text, metadata=metadata, vector=vector, links=()))


class TestRows:
    """Postings of a document."""

    def test_a_stamp_stands_for_title_and_text(self):
        stamps = {
            compute_stamp(version(text, metadata))
            for text in ("a", "b", "1\0a")
            for metadata in ({}, {"title": "a"}, {"title": "b"}, {"title": "a\0"})
        }
        assert len(stamps) == 12
        assert (
            compute_stamp(version("a", {"title": ["no", "title"]}))
            == compute_stamp(version("a", {"other": 1}))
            == compute_stamp(version("a", {}))
        )

    def test_a_document_has_a_row_for_each_word_and_one_for_itself(self):
        rows = derive_postings(version("Red red green", {"title": "The red"}, "é" * 9), 256)
        keys = list(rows)
        assert [word for _, _, word, _, _ in keys] == ["", "red", "green"]
        heads = np.frombuffer(b"".join(key[3] + state for key, state in rows.items()), POSTING_HEAD)
        assert heads["count"].tolist() == [0, 4, 1]
        assert set(heads["length"].tolist()) == {5}
        assert len(set(heads["hash"].tolist())) == len(set(heads["stamp"].tolist())) == 1
        for shard, bucket, word, _, _ in keys:
            assert shard in derived.list_shards(word, 256)
            assert bucket == 0

    def test_batches_hold_all_rows_once(self):
        rows = [(b"%d" % n, b"x" * (n % 7) * 300) for n in range(200)]
        parts = list(split_rows(rows, DOCUMENT_BATCH_SIZES))
        assert [row for part in parts for row in part] == rows
        assert {len(part) for part in parts} <= set(DOCUMENT_BATCH_SIZES)
        assert all(
            len(part) == 1 or sum(len(value) for row in part for value in row) < 5_120 for part in parts
        )

    def test_rows_of_one_partition_share_statements_up_to_a_size(self):
        rows = {(1, 0, f"w{n}", b"", "a" * (30_000 * (n % 50 == 0) + 1)): b"" for n in range(333)}
        rows |= {(n, 0, "w", b"", "a"): b"" for n in range(2, 9)}
        made = list(DerivedRows(OneNode(), 1, lexical=True).write(WORD_ROWS, rows.items(), 7))
        assert sorted(one.cql.count("UPDATE") for one in made) == [7, 96, 128, 128]
        sent = {tuple(one.values[at + 2 : at + 7]) for one in made for at in range(1, len(one.values), 7)}
        assert len(sent) == len(rows)
        for one in made:
            assert sum(map(len, one.values)) < derived.PARTITION_BATCH_BYTES

    @pytest.mark.parametrize("size", [1, 50, 400, 900, 5_000])
    def test_a_batch_of_several_partitions_is_one_that_the_server_accepts(self, size):
        """It has at most ten partitions and 5 KiB, also with the row that is repeated."""
        random = np.random.default_rng(size)
        rows = {
            (int(shard), 0, f"w{n}", b"", "a" * size): b"s" * 16
            for n, shard in enumerate(random.zipf(1.3, 600) % 256)
        }
        made = list(DerivedRows(OneNode(), 1, lexical=True).write(WORD_ROWS, rows.items(), 7))
        assert len(made) < len(rows) / min(5, 1 + 900 // size)
        sent = set()
        for one in made:
            parts = [tuple(one.values[at : at + 7]) for at in range(1, len(one.values), 7)]
            assert len(parts) in derived.BATCH_SIZES
            shards = {part[2] for part in parts}
            if len(shards) > 1:
                assert len(shards) < 10
                assert sum(56 + sum(map(len, part)) for part in parts) < 5_120
            sent.update(part[2:] for part in parts)
        assert len(sent) == len(rows)


class OneNode:
    """A fetcher for a cluster of one node, and the placement in it."""

    @property
    def placement(self):
        return self

    def by_replica(self, items):
        return [([*items.values()], None)]


# --- what is read -------------------------------------------------------------------------------


@pytest.fixture
def tight(monkeypatch):
    """Few documents may be looked up, so that words are left out of small stores too."""
    for module in (lexical, wordsearch, oracle):
        monkeypatch.setattr(module, "POSTINGS", 300)
    monkeypatch.setattr(wordsearch, "FIRST_POSTINGS", 100)
    monkeypatch.setattr(wordsearch, "_SURE_SHARE", 0.5)


def of_many_sizes(count: int) -> list[Record]:
    """Documents with words that all have, that half of them have, and so on."""
    chance = random.Random(7)
    shares = {f"w{n}": 0.8**n for n in range(30)}
    texts = [[word for word, share in shares.items() if chance.random() < share] for _ in range(count)]
    return [make_record(f"{n}", text=" ".join(words * (1 + n % 3))) for n, words in enumerate(texts)]


def looked_at(found: Scored, most: int) -> Scored:
    """Of an oracle's answer, the documents that are first by the hash of their ids."""
    first = sorted((name for name, _ in found), key=lambda name: xxhash.xxh3_64_intdigest(name.encode()))[
        :most
    ]
    return [one for one in found if one[0] in set(first)]


def test_common_words_are_left_out_as_the_oracle_does_and_not_read(made, tight) -> None:
    """B-7: whichever words are asked together; of one that is left out only the first documents are read."""
    records = of_many_sizes(900)
    backend, oracle_backend = made(), held(*records)
    put(backend, *records)
    backend._executor = counting = Counting(backend._executor)
    chance = random.Random(3)
    left = set()
    for _ in range(25):
        words = tuple(chance.sample([f"w{n}" for n in range(32)], chance.randrange(1, 6)))
        if all(word in COMMON for word in words):
            continue  # only some documents of the rarest are looked at
        found, expected = (asked(one, *words, k=20) for one in (backend, oracle_backend))
        assert found == expected, words
        left |= set(found[1])
    assert {"w0", "w1"} <= left
    counting.reset()
    assert asked(backend, "w0", "w1", "w2", "w20", k=1)[1] == ("w0", "w1", "w2")
    assert sum(counting.rows("look words up")) <= 900 + 4 * 100


@pytest.mark.parametrize("condition", [None, {"odd": True}, {"odd": False}])
def test_of_one_word_that_most_documents_have_some_documents_are_looked_at(made, tight, condition) -> None:
    """The first by the hash of their ids, a random sample; in the order that all would have."""
    records = [replace(one, metadata={"odd": n % 2 == 1}) for n, one in enumerate(of_many_sizes(900))]
    backend, store = made(), held(*records)
    put(backend, *records)
    (_, everything), backend._executor = asked(store, "w0"), Counting(backend._executor)
    assert everything == ()
    found, left = asked(backend, "w0", "w1", condition=condition)
    whole = looked_at(asked(store, "w0", "w1")[0], 401)
    passing = {one.id for one in records if condition is None or one.metadata == condition}
    assert left == ("w1",)
    assert [name for name, _ in found] == [name for name, _ in whole if name in passing]
    assert [score for _, score in found] == pytest.approx([s for n, s in whole if n in passing], rel=0.3)
    assert sum(backend._executor.rows("look words up")) <= 900 + 2 * 100 + 301


@pytest.mark.parametrize("k", [1, 20])
def test_the_hits_say_that_only_some_documents_of_a_word_were_looked_at(made, tight, monkeypatch, k) -> None:
    """By either strategy, beside the words that were not looked up; and nothing where all were."""
    records = of_many_sizes(900)
    backend = made()
    put(backend, *records)
    for module in (words_strategy, first_stage):
        monkeypatch.setattr(module, "POSTINGS", 300)
    for strategy in (Words(k=k), PageRank(k=k)):
        common, rare = (
            backend.run(backend.answer(strategy.plan(Question(text=text, vector=QUERY_VECTOR))))
            for text in ("w0 w1", "w20")
        )
        assert [str(cut) for cut in common.cuts if cut.reason == "lexical"] == [
            "lexical: 1 at depth 0 — words in too many documents: w1",
            "lexical: 1 at depth 0 — only about 300 of the documents with a word were looked at: w0",
        ]
        assert not [cut for cut in rare.cuts if cut.reason == "lexical"]


def test_a_sample_without_a_document_that_passes_is_said_to_be_one(made, tight, monkeypatch) -> None:
    backend = made()
    put(backend, *of_many_sizes(900))
    monkeypatch.setattr(words_strategy, "POSTINGS", 300)
    question = Question(text="w0", vector=QUERY_VECTOR, result_filter=parse_filter({"n": {"$gt": 10}}))
    hits = backend.run(backend.answer(Words(k=5).plan(question)))
    assert "and passes the filter, of the about 300 that were looked at" in hits.reason


def test_the_documents_of_more_than_a_few_are_counted_now_and_then(made, monkeypatch) -> None:
    """And what the client itself writes is counted at once."""
    monkeypatch.setattr(corpus, "MAX_ALWAYS_COUNTED", 10)
    records = [make_record(f"{n}", text="needle " * (n % 3) + "hay") for n in range(40)]
    backend, oracle_backend = made(), held(*records)
    put(backend, *records)
    assert asked(backend, "needle") == asked(oracle_backend, "needle")
    backend._executor = counting = Counting(backend._executor)
    for one in (backend, oracle_backend):
        put(one, make_record("0", text="needle straw straw straw"), make_record("more", text="straw"))
        remove(one, "1", "nobody")
    assert asked(backend, "needle", "straw") == asked(oracle_backend, "needle", "straw")
    assert max(counting.rows("look words up")) < 40, "not all documents"


def test_very_many_documents_are_estimated(made, monkeypatch) -> None:
    monkeypatch.setattr(corpus, "COUNT_SAMPLE_SIZE", 400)
    records = [make_record(f"{n}", text="needle" if n % 50 == 0 else "hay hay") for n in range(1_200)]
    backend = made()
    put(backend, *records)
    found, expected = (asked(one, "needle")[0] for one in (backend, held(*records)))
    assert {name for name, _ in found} == {name for name, _ in expected}
    assert found[0][1] == pytest.approx(expected[0][1], rel=0.1)


def test_a_filter_that_would_read_too_much_is_refused(made) -> None:
    backend = made(scan_limit=20)
    put(backend, *(make_record(f"{n}", text="needle", n=n) for n in range(60)))
    assert len(asked(backend, "needle", k=5, condition={"n": {"$lt": 55}})[0]) == 5
    with pytest.raises(FilterError, match=r"fewer than 5 .*raise scan_limit"):
        asked(backend, "needle", k=5, condition={"n": 59})


# --- what is stale ------------------------------------------------------------------------------


def test_a_document_that_changed_behind_its_postings_is_as_it_is(made) -> None:
    """Whatever postings say of another state, the document decides; verify finds them, repair mends them."""
    backend = made()
    records = [make_record(f"{n}", text="needle " * n + "hay") for n in range(1, 8)]
    put(backend, *records)
    digest = hash_text("straw hay") + bytes(16)
    run_cql(backend, "UPDATE T SET body = %s, digest = %s WHERE id = %s", "straw hay", digest, "7")
    run_cql(backend, "DELETE FROM T WHERE id = %s", "6")
    assert ids(backend, "needle") == {"1", "2", "3", "4", "5"}
    assert {one.problem: one.count for one in backend.run(backend.verify()).findings} == {
        "members of link groups without a document that has the link": 1,  # in the list of documents
        "words without a document that has them": 4,
        "documents whose words are not all indexed": 1,
        "words that differ from their document": 2,
    }
    backend.run(backend.repair())
    assert backend.run(backend.verify()).sound
    right = held(*records[:5], make_record("7", text="straw hay"))
    for words in (("needle",), ("straw",), ("hay", "needle")):
        assert asked(backend, *words) == asked(right, *words)


def test_words_that_went_missing_are_found_and_written_again(made) -> None:
    backend = made()
    records = [make_record("a", text="needle hay"), make_record("b", text="needle")]
    put(backend, *records)
    for row in run_cql(backend, "SELECT shard, bucket, word, hash, id FROM T_words"):
        if row.id == "a" and row.word == "needle":
            key = "shard = %s AND bucket = %s AND word = %s AND hash = %s AND id = %s"
            run_cql(backend, f"DELETE FROM T_words WHERE {key}", *row)
    (finding,) = backend.run(backend.verify()).findings
    assert (finding.problem, finding.examples) == ("documents whose words are not all indexed", ("a",))
    backend.run(backend.repair())
    assert asked(backend, "needle", "hay") == asked(held(*records), "needle", "hay")


def test_a_plan_that_has_read_a_document_keeps_to_it(made) -> None:
    """R-1: what is written meanwhile changes neither its words nor its text for the plan."""
    backend = made()
    put(backend, make_record("a", text="needle"), make_record("b", text="hay"))

    def plan() -> Plan[list[StoredDocument]]:
        yield Nearest(vector=QUERY_VECTOR, k=2)
        put(backend, make_record("a", text="hay"), make_record("b", text="needle needle"))
        found: LexicalMatches = yield Lexical(terms=("needle", "hay"), k=9)
        stored: list[StoredDocument] = yield Documents(refs=found.refs)
        return stored

    assert {one.id: one.text for one in backend.run(backend.answer(plan()))} == {"a": "needle", "b": "hay"}


# --- stores without words -------------------------------------------------------------------------


def test_a_store_may_be_made_without(made) -> None:
    """That is fixed; strategies go on without words and say so, and repair adds none."""
    backend, later = made(lexical=False), made()
    put(later, make_record("a", text="needle"))
    for one in (backend, later):
        with pytest.raises(CapabilityError, match="created with lexical=False"):
            asked(one, "needle")
        hits = one.run(one.answer(PageRank(start_k=1).plan(Question(vector=QUERY_VECTOR, text="needle"))))
        assert [hit.document.id for hit in hits] == ["a"]
        assert "lexical" in {cut.reason for cut in hits.cuts}
        assert one.run(one.verify()).sound
        assert one.run(one.repair()).sound
    names = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    there = {row.table_name for row in run_cql(backend, names, backend._tables.keyspace)}
    assert f"{backend._tables.name}_words" not in there

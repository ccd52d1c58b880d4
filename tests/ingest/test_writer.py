"""Rows and documents that many processes write make the store that one process makes, byte for byte."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from stores import DIMENSION, PROCESSES, Child, document, documents, embedding, times

from linkstore import Link, LinkStore
from linkstore.cli.export import write_json_lines
from linkstore.core.links import get_links
from linkstore.engines.embedded import EmbeddedBackend, database
from linkstore.errors import (
    ArgumentError,
    DocumentError,
    EmbeddingError,
    LinkError,
    StoreBusyError,
    StoreNotFoundError,
    StrategyError,
)
from linkstore.ingest import JsonLinesSource, WriteCounts, Writer, index, writer

LINKED = {"kind": "cites", "tag": "a", "direction": "out"}


def rows(start, stop):
    return [
        {
            "id": f"r{n}",
            "text": f"row {n}",
            "url": f"https://a.org/{n}",
            "links": [f"https://a.org/{(n + 1) % 100}", {**LINKED, "label": "see"}],
            "metadata": {"n": n, "deep": {"x": [n]}},
        }
        for n in range(start, stop)
    ]


def exported(path):
    with LinkStore.open(path, embedding(), create=False) as store:
        return b"".join(write_json_lines(store))


@pytest.fixture
def writer_of(tmp_path):
    """Makes writers on one folder, closed in the end."""
    made = []

    def make(**options):
        made.append(Writer(tmp_path / "kb", options.pop("embedding", embedding()), **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


class CountingEmbedding(DeterministicFakeEmbedding):
    """Notes the texts it is given in a file, whatever process it is in."""

    size: int = DIMENSION
    file: str

    def embed_documents(self, texts):
        with Path(self.file).open("a") as file:
            file.writelines(f"{text}\n" for text in texts)
        return super().embed_documents(texts)


def test_rows_are_stored_as_lines_of_json_are(writer_of, tmp_path):
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows(0, 30))))
    with LinkStore.open(tmp_path / "lines", embedding()) as store:
        index(store, JsonLinesSource(tmp_path / "d.jsonl"), links=[])
    counts = writer_of().write(rows(0, 30))
    assert counts == WriteCounts(added=30)
    assert exported(tmp_path / "kb") == exported(tmp_path / "lines") != b""


def frame(listed):
    return pd.DataFrame(listed)


FORMS = {
    "list": list,
    "tuple": tuple,
    "iterator": iter,
    "generator": lambda listed: (one for one in listed),
    "pandas": frame,
    "arrow": pa.Table.from_pylist,
    "record batch": pa.RecordBatch.from_pylist,
    "columns": lambda listed: {name: [row[name] for row in listed] for name in listed[0]},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_rows_makes_the_same_store(form, writer_of, tmp_path):
    with LinkStore.open(tmp_path / "expected", embedding()) as store:
        store.add_documents(
            [
                Document(
                    id=f"{n}",
                    page_content=f"text {n}",
                    metadata={
                        "year": 2000 + n,
                        **({"score": n / 2} if n % 3 else {}),
                        "title": f"T{n}",
                        "links": [{"kind": "hyperlink", "tag": f"./{n}", "direction": "in"}],
                    },
                )
                for n in range(20)
            ]
        )
    listed = [
        {"id": n, "text": f"text {n}", "title": f"T{n}", "year": 2000 + n, "score": n / 2 if n % 3 else None}
        for n in range(20)
    ]
    made = writer_of(metadata=["year", "score"], batch_rows=7)
    assert made.write(FORMS[form](listed)) == WriteCounts(added=20)
    found = {one.id: (one.page_content, one.metadata) for one in scanned(tmp_path / "kb")}
    expected = {one.id: (one.page_content, one.metadata) for one in scanned(tmp_path / "expected")}
    for _, metadata in (*found.values(), *expected.values()):
        metadata.pop("links")
    assert found == expected
    assert all(type(metadata["year"]) is int for _, metadata in found.values())


def scanned(path):
    with LinkStore.open(path, embedding(), create=False) as store:
        return list(store.scan())


def test_dates_lists_and_structures_of_tables_are_stored_as_json(writer_of, tmp_path):
    table = pd.DataFrame(
        {
            "id": ["a", "b"],
            "text": ["x", "y"],
            "when": [datetime(2026, 1, 2, tzinfo=UTC), None],
            "tags": [np.array(["p", "q"]), []],
            "links": [[LINKED], None],
        }
    )
    writer_of(metadata=["when", "tags"]).write(pa.Table.from_pandas(table))
    first, second = scanned(tmp_path / "kb")
    assert first.metadata["when"].startswith("2026-01-02T00:00:00")
    assert (first.metadata["tags"], second.metadata["tags"]) == (["p", "q"], [])
    assert "when" not in second.metadata
    assert {(link.kind, link.tag) for link in get_links(first)} == {("cites", "a"), ("hyperlink", "/a")}


class TestIds:
    """Nothing is written of rows whose ids would not name them."""

    BAD = (
        ([{"id": None, "text": "x"}], r"row 2 has the id None"),
        ([{"text": "x"}], r"row 2 has the id None"),
        ([{"id": float("nan"), "text": "x"}], r"row 2 has the id None"),
        ([{"id": " ", "text": "x"}], r"row 2 has the id ' '"),
        ([{"id": True, "text": "x"}], r"row 2 has the id True"),
        ([{"id": 1.5, "text": "x"}], r"row 2 has the id 1.5"),
        ([Document(page_content="x")], r"row 2 has the id None"),
        ([{"id": "ok", "text": "again"}], r"row 2: an earlier row has the same id 'ok'"),
        ([{"id": "a\0b", "text": "x"}], r"NUL"),
        ([{"id": "\ud800", "text": "x"}], r"lone surrogate"),
    )

    @pytest.mark.parametrize(("bad", "message"), BAD)
    def test_null_and_repeated_ids_are_refused_before_anything_is_written(
        self, bad, message, writer_of, tmp_path
    ):
        with pytest.raises(DocumentError, match=message):
            writer_of(batch_rows=1).write([{"id": "ok", "text": "fine"}, *bad])
        assert scanned(tmp_path / "kb") == []

    def test_numbers_are_ids_as_in_lines_of_json(self, writer_of, tmp_path):
        writer_of().write({"id": np.arange(3), "text": np.array(["a", "b", "c"])})
        assert [one.id for one in scanned(tmp_path / "kb")] == ["0", "1", "2"]

    def test_an_iterator_is_checked_batch_by_batch(self, writer_of, tmp_path):
        given = (one for one in [*({"id": f"{n}", "text": "x"} for n in range(5)), {"id": "0", "text": "y"}])
        with pytest.raises(DocumentError, match=r"row 6.*same id '0'"):
            writer_of(batch_rows=2).write(given)
        assert len(scanned(tmp_path / "kb")) == 4


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("text", ArgumentError, r"rows must be a list or table"),
        (5, ArgumentError, r"rows must be a list or table"),
        (Document(id="a", page_content="x"), ArgumentError, r"rows must be a list or table"),
        (["text"], ArgumentError, r"row 1 is 'text'; give Documents or dicts"),
        ({"id": "a", "text": "x"}, ArgumentError, r"id must be a list of cells"),
        ({"id": ["a"], "text": []}, ArgumentError, r"columns differ in length"),
        (
            [{"id": "a", "text": "x", "b": 1, "c": 2}],
            DocumentError,
            r"unknown columns b, c.*metadata=\('b', 'c'\)",
        ),
        ([{"id": "a", "text": ""}], DocumentError, r'row 1: it has no "text"'),
        ([{"id": "a", "text": 5}], DocumentError, r'row 1: "text" is a int'),
        (
            [{"id": "a", "text": "x", "links": [{"kind": "", "tag": "t", "direction": "out"}]}],
            LinkError,
            r"row 1",
        ),
        ([{"id": "a", "text": "x", "links": [7]}], DocumentError, r"row 1: the link '7'"),
        ([{"id": "a", "text": "x\ud800"}], DocumentError, r"row 1.*cannot be stored"),
        (
            [{"id": "a", "text": "x", "vector": [1.0]}, {"id": "b", "text": "x"}],
            DocumentError,
            r"row 2: give a vec",
        ),
        ([{"id": "a", "text": "x", "vector": [1.0] * 3}], EmbeddingError, r"dimension 16"),
        ([{"id": "a", "text": "x", "vector": 3.0}], DocumentError, r"row 1: a vector is a list of numbers"),
        ([{"id": "a", "text": "x", "vector": ["a"]}], EmbeddingError, r"a list of numbers"),
        ([{"id": "a", "text": "x", "metadata": nested(2000)}], DocumentError, r"row 1 .*100 deep"),
        ([{"id": "a", "text": "x", "vector": [0.0] * DIMENSION}], DocumentError, r"is zero"),
        ([{"id": "a", "text": "x", "vector": [float("nan")] * DIMENSION}], DocumentError, r"not finite"),
    ],
)
def test_what_cannot_be_written_says_so_by_its_row(given, error, message, writer_of, tmp_path):
    made = writer_of()
    made.write([{"id": "first", "text": "fixes the dimension"}])
    with pytest.raises(error, match=message):
        made.write(given)
    assert [one.id for one in scanned(tmp_path / "kb")] == ["first"]


def test_wrong_arguments_are_refused_where_the_writer_is_made(tmp_path):
    with pytest.raises(ArgumentError, match="in memory"):
        Writer(":memory:")
    with pytest.raises(ArgumentError, match="path of a file or folder"):
        Writer(None)
    for name in ("batch_rows", "batch_bytes"):
        with pytest.raises(StrategyError, match=name):
            Writer(tmp_path / "kb", **{name: 0})
    with pytest.raises(ArgumentError, match="metadata"):
        Writer(tmp_path / "kb", metadata="year")
    with pytest.raises(ArgumentError, match="metadata names text, vector"):
        Writer(tmp_path / "kb", metadata=["text", "vector"])
    with pytest.raises(EmbeddingError, match="unknown embedding"):
        Writer(tmp_path / "kb", "word2vec")
    for wrong in (5, dict, {}):
        with pytest.raises(ArgumentError, match="the name of an embedding"):
            Writer(tmp_path / "kb", wrong)
    for wrong in (-1, float("nan"), "5"):
        with pytest.raises(StrategyError, match="patience"):
            Writer(tmp_path / "kb", patience=wrong)
    assert not (tmp_path / "kb").exists()


class TestVectors:
    """Vectors that somebody has computed are stored as they are, and nothing is embedded."""

    class Mute(Embeddings):
        def embed_documents(self, texts):
            raise AssertionError("nothing is embedded")

        embed_query = embed_documents

    def test_beside_rows_and_in_them(self, writer_of, tmp_path):
        texts = [f"text {n}" for n in range(10)]
        vectors = np.array(embedding().embed_documents(texts))
        made = writer_of(batch_rows=3)
        made.write([{"id": f"{n}", "text": text} for n, text in enumerate(texts)])
        expected = exported(tmp_path / "kb")
        found = {}
        for name, write in {
            "beside": lambda one: one.write(
                [{"id": f"{n}", "text": t} for n, t in enumerate(texts)], vectors
            ),
            "arrow": lambda one: one.write(
                pa.table({"id": [*map(str, range(10))], "text": texts, "vector": vectors.tolist()})
            ),
            "lists": lambda one: one.write(
                [
                    {"id": f"{n}", "text": t, "vector": v}
                    for n, (t, v) in enumerate(zip(texts, vectors, strict=True))
                ]
            ),
        }.items():
            own = Writer(tmp_path / name, self.Mute(), batch_rows=3)
            assert write(own) == WriteCounts(added=10)
            assert write(own) == WriteCounts(unchanged=10)
            own.close()
            assert exported(tmp_path / name) == expected
            with LinkStore.open(tmp_path / name, embedding()) as store:
                found[name] = store.similarity_search_with_score("text 3", k=2)
        assert found["beside"] == found["arrow"] == found["lists"]
        assert found["beside"][0][1] == pytest.approx(1)

    def test_there_must_be_one_for_each_row(self, writer_of):
        with pytest.raises(DocumentError, match=r"got 1 rows and 2 vectors"):
            writer_of().write([{"id": "a", "text": "x"}], np.ones((2, DIMENSION)))
        with pytest.raises(DocumentError, match=r"got an iterator of rows and 1 vectors"):
            writer_of().write(iter([{"id": "a", "text": "x"}]), np.ones((1, DIMENSION)))

    def test_finish_finds_vectors_of_another_embedding(self, writer_of):
        made = writer_of()
        made.write([{"id": "a", "text": "x", "vector": np.ones(DIMENSION)}])
        done = made.finish()
        assert (done.sampled, list(done.problems)) == (1, ["a"])
        assert "not that of its text" in done.problems["a"]


def test_what_is_stored_already_is_not_embedded_again(writer_of, tmp_path):
    log = tmp_path / "texts"
    made = writer_of(embedding=CountingEmbedding(file=str(log)), batch_rows=4)
    assert made.write(documents(0, 10)) == WriteCounts(added=10)
    changed = [*documents(0, 9), document(9, 1), document(10)]
    assert made.write(changed) == WriteCounts(added=1, updated=1, unchanged=9)
    assert log.read_text().splitlines()[10:] == ["doc 9 v1", "doc 10 v0"]
    for other in ({"n": 1.0}, {"n": True}):
        same = [Document(id="typed", page_content="x", metadata={"n": 1})]
        made.write(same)
        assert made.write([Document(id="typed", page_content="x", metadata=other)]) == WriteCounts(
            updated=1
        ), other


def test_batches_are_bounded_in_rows_and_bytes(writer_of, monkeypatch):
    sizes = []
    put = writer.put_documents

    def put_and_note(store, listed, vectors):
        sizes.append((len(listed), sum(len(one.page_content) for one in listed)))
        return put(store, listed, vectors)

    monkeypatch.setattr(writer, "put_documents", put_and_note)
    lengths = [10] * 9 + [600, 600, 5000, 10]
    made = writer_of(batch_rows=4, batch_bytes=1000)
    made.write([{"id": f"{n}", "text": "x" * length} for n, length in enumerate(lengths)])
    assert [rows for rows, _ in sizes] == [4, 4, 2, 1, 1, 1]
    assert [size for rows, size in sizes if rows > 1 and size > 1000] == []


class TestProcesses:
    """A writer is sent to others, which open the store that it made."""

    def test_a_copy_opens_the_store_once_and_makes_none(self, writer_of, tmp_path, monkeypatch):
        made = writer_of()
        written = pickle.dumps(made)
        assert len(written) < 1500, "neither a connection nor a model"
        opened = []
        begin = EmbeddedBackend.__init__
        monkeypatch.setattr(
            EmbeddedBackend, "__init__", lambda self, *a, **o: (opened.append(a), begin(self, *a, **o))[1]
        )
        made.close()
        for again in (pickle.loads(written), pickle.loads(written), copy.deepcopy(made)):
            assert again == made
            again.write(documents(0, 3))
        assert len(opened) == 1, "copies in one process share the store"
        made.close()
        (tmp_path / "kb").rename(tmp_path / "elsewhere")
        with pytest.raises(StoreNotFoundError, match=r"Other machines do not have that folder.*cassandra://"):
            pickle.loads(written).write(documents(0, 1))
        assert not (tmp_path / "kb").exists()

    def test_a_relative_place_means_the_same_elsewhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        made = Writer("kb", embedding())
        made.close()
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        made.write(documents(0, 1))
        made.close()
        assert len(scanned(tmp_path / "kb")) == 1

    def test_stores_that_are_not_used_any_more_are_closed(self, tmp_path, monkeypatch):
        closed = []
        close = EmbeddedBackend.close
        monkeypatch.setattr(EmbeddedBackend, "close", lambda self: (closed.append(self), close(self))[1])
        made = [Writer(tmp_path / f"{n}", embedding()) for n in range(writer._MOST_OPEN + 2)]
        assert sum(str(tmp_path) in repr(one) for one in closed) == 2
        for one in made:
            one.write(documents(0, 1))
            one.close()

    def test_threads_share_one_store(self, writer_of, tmp_path):
        made = writer_of(batch_rows=5)
        made.close()
        copies = [pickle.loads(pickle.dumps(made)) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            done = pool.map(lambda n: copies[n].write(documents(n * 10, n * 10 + 20)), range(4))
            assert sum(done, WriteCounts()).total == 80
        with LinkStore.open(tmp_path / "one", embedding()) as store:
            store.add_documents(documents(0, 50))
        assert exported(tmp_path / "kb") == exported(tmp_path / "one")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    def test_a_forked_child_opens_the_store_for_itself(self, writer_of, tmp_path):
        made = writer_of()
        made.write(documents(0, 5))
        child = os.fork()
        if child == 0:
            made.write(documents(5, 10))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        made.write(documents(10, 12))
        assert len(scanned(tmp_path / "kb")) == 12


def work(connection, made, start, stop):
    """Write documents in small batches, and tell of each."""
    made.write(one for n in range(start, stop) for one in told(connection, n))
    connection.send("done")


def work_until_killed(*task):
    """Do a task over and over."""
    while True:
        work(*task)


def told(connection, n):
    connection.send(n)
    yield document(n)


def hold(connection, path):
    """Hold the lock of writers, and release it a while after a word."""
    import apsw

    held = apsw.Connection(str(path / "linkstore.db"))
    held.execute("BEGIN IMMEDIATE")
    connection.send("held")
    connection.recv()
    time.sleep(1.5)
    held.execute("ROLLBACK")
    held.close()


class TestFaults:
    """Whatever happens to its tasks, a job that is done again to its end leaves the store of one process."""

    def expected(self, tmp_path, stop):
        with LinkStore.open(tmp_path / "one", embedding()) as store:
            store.add_documents(documents(0, stop))
        return exported(tmp_path / "one")

    def test_tasks_that_are_killed_are_done_again(self, writer_of, tmp_path):
        chance = random.Random(4711)
        made = writer_of(batch_rows=8)
        made.close()
        parts = [(0, 60), (60, 120)]
        for _ in range(times(2, 60)):
            part = chance.choice(parts)
            child = Child(work_until_killed, made, *part)
            for _ in range(chance.randrange(1, 50)):
                child.connection.recv()
            time.sleep(chance.random() / 100)
            child.kill()
        children = [Child(work, made, *part) for part in parts for _ in range(2)]  # each task runs twice
        assert all(child.finish()[-1] == "done" for child in children)
        assert exported(tmp_path / "kb") == self.expected(tmp_path, 120)
        with LinkStore.open(tmp_path / "kb", embedding()) as store:
            assert store.verify().sound
        assert made.finish().problems == {}

    def test_a_writer_waits_for_another_as_long_as_it_is_told(self, writer_of, tmp_path, monkeypatch):
        """Longer than one write waits."""
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
        patient, hasty = writer_of(), writer_of(patience=0)
        patient.write(documents(0, 1))
        holder = Child(hold, tmp_path / "kb")
        assert holder.connection.recv() == "held"
        with pytest.raises(StoreBusyError):
            hasty.write(documents(1, 2))
        holder.connection.send("release")
        assert patient.write(documents(1, 2)) == WriteCounts(added=1)
        holder.finish()


class TestFinish:
    """What needs all documents is done in the end."""

    def test_counts_are_added_and_titles_linked(self, writer_of, tmp_path):
        made = writer_of()
        first = [{"id": "a", "text": "The Old Tower burned.", "title": "Fire"}]
        second = [{"id": "b", "text": "A tower.", "title": "Old Tower"}]
        done = made.finish([made.write(first), made.write(second), made.write(second)], links=["mention"])
        assert done.counts == WriteCounts(added=2, unchanged=1)
        assert done.linked.changed == 2
        assert (done.sampled, done.problems) == (2, {})
        mentioned = {
            one.id: {(link.tag, link.direction) for link in get_links(one) if link.kind == "mention"}
            for one in scanned(tmp_path / "kb")
        }
        assert ("old tower", "out") in mentioned["a"]
        assert ("old tower", "in") in mentioned["b"]

    def test_a_sample_that_its_groups_lack_is_reported(self, writer_of, monkeypatch):
        made = writer_of()
        made.write(documents(0, 30))
        assert made.finish(sample=0).sampled == 0
        assert (made.finish().sampled, made.finish().problems) == (30, {})
        assert made.finish(sample=7).sampled == 7
        scan = EmbeddedBackend.scan

        def lacking(self, after, limit):
            found = yield from scan(self, after, limit)
            return [replace(one, links=(*one.links, Link.bidir(kind="keyword", tag="lost"))) for one in found]

        monkeypatch.setattr(EmbeddedBackend, "scan", lacking)
        problems = made.finish(sample=3).problems
        assert len(problems) == 3
        assert all("the link group keyword 'lost' lacks it" in one for one in problems.values())

    def test_counts_add_up(self):
        total = sum([WriteCounts(added=1, updated=2), WriteCounts(unchanged=3)], WriteCounts())
        assert (total, total.total) == (WriteCounts(added=1, updated=2, unchanged=3), 6)
        with pytest.raises(TypeError):
            WriteCounts() + 1


class TestPool:
    """Of the standard library, as everywhere else: a method of a writer is what workers are given."""

    def test_processes_write_by_turns_what_one_writes(self, writer_of, tmp_path):
        made = writer_of(batch_rows=10)
        parts = [documents(start, start + 25) for start in range(0, 100, 25)]
        with PROCESSES.Pool(2) as pool:
            done = sum(pool.map(made.write, parts), WriteCounts())
        assert done == WriteCounts(added=100)
        with LinkStore.open(tmp_path / "one", embedding()) as store:
            store.add_documents(documents(0, 100))
        assert exported(tmp_path / "kb") == exported(tmp_path / "one")

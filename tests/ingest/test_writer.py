"""Documents that many processes write make the store that one process makes, byte for byte."""

from __future__ import annotations

import copy
import os
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from internals import get_links, write_json_lines
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from stores import DIMENSION, PROCESSES, Child, document, documents, embedding, times

from linkstore import Link, LinkStore
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
from linkstore.ingest import WriteCounts, Writer, writer


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


FORMS = {
    "list": list,
    "tuple": tuple,
    "iterator": iter,
    "generator": lambda listed: (one for one in listed),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_documents_makes_the_same_store(form, writer_of, tmp_path):
    with LinkStore.open(tmp_path / "expected", embedding()) as store:
        store.add_documents(documents(0, 20))
    assert writer_of(batch_documents=7).write(FORMS[form](documents(0, 20))) == WriteCounts(added=20)
    assert exported(tmp_path / "kb") == exported(tmp_path / "expected") != b""


def scanned(path):
    with LinkStore.open(path, embedding(), create=False) as store:
        return list(store.scan())


def test_dates_and_tuples_are_stored_in_their_usual_form(writer_of, tmp_path):
    metadata = {"when": datetime(2026, 1, 2, tzinfo=UTC), "tags": (1, 2)}
    made = writer_of()
    for counts in (WriteCounts(added=1), WriteCounts(unchanged=1)):
        assert made.write([Document(id="a", page_content="x", metadata=metadata)]) == counts
    (stored,) = scanned(tmp_path / "kb")
    assert stored.metadata["when"].startswith("2026-01-02T00:00:00")
    assert stored.metadata["tags"] == [1, 2]


def text(id, content="x", **metadata):
    return Document(id=id, page_content=content, metadata=metadata)


class TestIds:
    """Nothing is written of documents whose ids would not name them."""

    BAD = (
        (Document(page_content="x"), r"document 2 has the id None"),
        (text(" "), r"document 2 has the id ' '"),
        (text("ok", "again"), r"document 2: an earlier one has the same id 'ok'"),
        (text("a\0b"), r"NUL"),
        (text("\ud800"), r"lone surrogate"),
    )

    @pytest.mark.parametrize(("bad", "message"), BAD)
    def test_null_and_repeated_ids_are_refused_before_anything_is_written(
        self, bad, message, writer_of, tmp_path
    ):
        with pytest.raises(DocumentError, match=message):
            writer_of(batch_documents=1).write([text("ok"), bad])
        assert scanned(tmp_path / "kb") == []

    def test_an_iterator_is_checked_batch_by_batch(self, writer_of, tmp_path):
        with pytest.raises(DocumentError, match=r"document 6.*same id '0'"):
            writer_of(batch_documents=2).write(text(f"{n % 5}") for n in range(6))
        assert len(scanned(tmp_path / "kb")) == 4


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("text", ArgumentError, r"documents must be a list or iterator of Documents"),
        (5, ArgumentError, r"documents must be a list"),
        ({"id": ["a"], "text": ["x"]}, ArgumentError, r"documents must be a list"),
        (text("a"), ArgumentError, r"documents must be a list"),
        (["text"], ArgumentError, r"document 1 is 'text'; make a Document of it"),
        ([{"id": "a", "text": "x"}], ArgumentError, r"document 1 is {.*make a Document of it"),
        (
            [text("a", links=[{"kind": "", "tag": "t", "direction": "out"}])],
            LinkError,
            r"document 1",
        ),
        ([text("a", "x\ud800")], DocumentError, r"document 1: .*cannot be stored: .*surrogates"),
        ([text("a", deep=nested(2000))], DocumentError, r"document 1: .*100 levels"),
    ],
)
def test_what_cannot_be_written_says_so_by_its_place(given, error, message, writer_of, tmp_path):
    made = writer_of()
    made.write([text("first")])
    with pytest.raises(error, match=message):
        made.write(given)
    assert [one.id for one in scanned(tmp_path / "kb")] == ["first"]


def test_wrong_arguments_are_refused_where_the_writer_is_made(tmp_path):
    with pytest.raises(ArgumentError, match="in memory"):
        Writer(":memory:")
    with pytest.raises(ArgumentError, match="path of a file or folder"):
        Writer(None)
    for name in ("batch_documents", "batch_bytes"):
        with pytest.raises(StrategyError, match=name):
            Writer(tmp_path / "kb", **{name: 0})
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

    def test_of_documents_and_of_texts(self, writer_of, tmp_path):
        texts = [f"text {n}" for n in range(10)]
        ids, metadatas = [f"{n}" for n in range(10)], [{"n": n} for n in range(10)]
        vectors = np.array(embedding().embed_documents(texts))
        listed = [text(id, content, **own) for id, content, own in zip(ids, texts, metadatas, strict=True)]
        writer_of(batch_documents=3).write(listed)
        expected = exported(tmp_path / "kb")
        for name, write in {
            "documents": lambda made: made.write(listed, vectors),
            "lists": lambda made: made.write(listed, vectors.tolist()),
            "texts": lambda made: made.write_texts(texts, vectors, ids=ids, metadatas=metadatas),
        }.items():
            made = Writer(tmp_path / name, self.Mute(), batch_documents=3)
            assert write(made) == WriteCounts(added=10)
            assert write(made) == WriteCounts(unchanged=10)
            made.close()
            assert exported(tmp_path / name) == expected
            with LinkStore.open(tmp_path / name, embedding()) as store:
                ((best, score),) = store.similarity_search_with_score("text 3", k=1)
            assert (best.id, score) == ("3", pytest.approx(1))

    def test_texts_need_no_metadata(self, writer_of, tmp_path):
        assert writer_of().write_texts(["x"], np.ones((1, DIMENSION)), ids=["a"]) == WriteCounts(added=1)
        assert scanned(tmp_path / "kb") == [text("a")]

    def test_there_must_be_one_for_each_document(self, writer_of):
        with pytest.raises(DocumentError, match=r"got 1 documents and 2 vectors"):
            writer_of().write([text("a")], np.ones((2, DIMENSION)))
        with pytest.raises(DocumentError, match=r"got an iterator of documents and 1 vectors"):
            writer_of().write(iter([text("a")]), np.ones((1, DIMENSION)))
        with pytest.raises(DocumentError, match=r"got 1 texts, 2 ids, 1 metadatas; pass as many of each"):
            writer_of().write_texts(["x"], np.ones((1, DIMENSION)), ids=["a", "b"])

    @pytest.mark.parametrize(
        ("vector", "error", "message"),
        [
            ([1.0] * 3, EmbeddingError, r"dimension 16"),
            (["a"], EmbeddingError, r"a list of numbers"),
            ([0.0] * DIMENSION, DocumentError, r"is zero"),
            ([float("nan")] * DIMENSION, DocumentError, r"not finite"),
        ],
    )
    def test_vectors_that_do_not_fit_are_refused(self, writer_of, tmp_path, vector, error, message):
        made = writer_of()
        made.write([text("first")])
        with pytest.raises(error, match=message):
            made.write([text("a")], [vector])
        assert [stored.id for stored in scanned(tmp_path / "kb")] == ["first"]

    def test_finish_finds_vectors_of_another_embedding(self, writer_of):
        made = writer_of()
        made.write([text("a")], np.ones((1, DIMENSION)))
        done = made.finish()
        assert (done.sampled, list(done.problems)) == (1, ["a"])
        assert "not that of its text" in done.problems["a"]


def test_what_is_stored_already_is_not_embedded_again(writer_of, tmp_path):
    log = tmp_path / "texts"
    made = writer_of(embedding=CountingEmbedding(file=str(log)), batch_documents=4)
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
    made = writer_of(batch_documents=4, batch_bytes=1000)
    made.write([text(f"{n}", "x" * length) for n, length in enumerate(lengths)])
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
        made = writer_of(batch_documents=5)
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
        made = writer_of(batch_documents=8)
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
        first = [text("a", "The Old Tower burned.", title="Fire")]
        second = [text("b", "A tower.", title="Old Tower")]
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
        made = writer_of(batch_documents=10)
        parts = [documents(start, start + 25) for start in range(0, 100, 25)]
        with PROCESSES.Pool(2) as pool:
            done = sum(pool.map(made.write, parts), WriteCounts())
        assert done == WriteCounts(added=100)
        with LinkStore.open(tmp_path / "one", embedding()) as store:
            store.add_documents(documents(0, 100))
        assert exported(tmp_path / "kb") == exported(tmp_path / "one")

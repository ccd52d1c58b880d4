"""Migration between backends: nothing is lost or embedded, and an interrupted run is gone on with."""

from __future__ import annotations

import json

import numpy as np
import pytest
from documented import linkstore
from internals import Batch, Manifest, Record, WriteBatch, find_recorded_name
from langchain_core.documents import Document
from migrating import PAGES, every, same
from oracle import OracleBackend
from stores import DIMENSION, backend, document, embedding, record, records

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.embeddings import get_embedding, name_embedding
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import (
    ArgumentError,
    BackendError,
    DocumentError,
    EmbeddingError,
    LinkStoreError,
    StoreBusyError,
    StoreUnavailableError,
)
from linkstore.store import migrate


@pytest.fixture
def source(tmp_path):
    """Thirty documents and seven pages."""
    made = backend(tmp_path / "source")
    made.run(made.write(WriteBatch(put=records(0, 30), put_pages=PAGES)))
    yield made
    made.close()


@pytest.fixture
def target(tmp_path):
    """An empty store without an embedding."""
    made = EmbeddedBackend(tmp_path / "target")
    yield made
    made.close()


class Refusing(OracleBackend):
    """A backend that refuses a change with one of some documents, or fails at one.

    Args:
        refused: Ids.
        error: What it raises.
    """

    def __init__(self, refused: set[str], error: Exception) -> None:
        super().__init__()
        self.refused, self.error = refused, error

    def write(self, change):
        if any(one.id in self.refused for one in change.put):
            raise self.error
        return (yield from super().write(change))


# --- what is copied ---------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 30, 500])
def test_documents_vectors_links_and_pages_are_copied_as_they_are(source, target, batch):
    report = migrate(source, target, batch=batch)

    before, after = every(source), every(target)
    assert before.keys() == after.keys()
    assert all(same(before[name], after[name]) for name in before)
    assert target.run(target.pages(None)) == PAGES
    assert target.run(target.manifest()) == Manifest(embedding="test", dimension=DIMENSION)
    assert (report.documents, report.written.added, report.pages) == (30, 30, 7)
    assert report.links == source.run(source.survey()).links
    assert report.refused == {}
    assert target.run(target.verify()).sound


def test_what_the_target_has_besides_stays_and_what_changed_is_replaced(source, target):
    target.run(target.claim(Manifest(embedding="test", dimension=DIMENSION)))
    other = record(99)
    target.run(target.write(WriteBatch(put=[record(3, version=5), record(4), other])))

    report = migrate(source, target)

    assert (report.written.added, report.written.updated, report.written.unchanged) == (28, 1, 1)
    assert every(target).keys() == {*every(source), "d99"}
    assert same(every(target)["d3"], record(3))


def test_what_a_store_records_for_its_searches_comes_along(source, target):
    """Its schema and minimum similarity; those that the target has stay."""
    for name, text, later in (("min_similarity", "0.31", "0.5"), ("schema", '{"version": 1}', "{}")):
        source.run(source.set_note(name, text, None))
        migrate(source, target)
        assert target.run(target.note(name)) == text
        source.run(source.set_note(name, later, text))
        migrate(source, target)
        assert target.run(target.note(name)) == text


def test_a_second_run_copies_what_changed_since(source, target):
    migrate(source, target)
    source.run(source.write(WriteBatch(put=[record(5, version=1), record(40)])))

    report = migrate(source, target)

    assert (report.written.added, report.written.updated, report.written.unchanged) == (1, 1, 29)
    assert not report.resumed


def test_an_empty_store_gives_an_empty_store(tmp_path, target):
    with LinkStore.open(tmp_path / "empty") as empty:
        assert migrate(empty.backend, target).documents == 0
    assert target.run(target.manifest()) == Manifest()


@pytest.mark.parametrize("recorded", [("other", DIMENSION), ("test", 3)])
def test_a_target_of_another_embedding_is_refused_before_anything_is_written(source, target, recorded):
    name, dimension = recorded
    target.run(target.claim(Manifest(embedding=name, dimension=dimension)))

    with pytest.raises(EmbeddingError, match=f"'{name}' of dimension {dimension}.*'test' of dimension 16"):
        migrate(source, target)
    assert every(target) == {}


def test_a_batch_of_nothing_is_refused(source, target):
    with pytest.raises(LinkStoreError, match="batch must be an integer of at least 1, not 0"):
        migrate(source, target, batch=0)


def test_progress_counts_what_was_read(source, target):
    said = []
    migrate(source, target, batch=12, progress=lambda *told: said.append(told))

    names = list(every(source))
    assert said == [(12, 0, names[11]), (24, 0, names[23]), (30, 0, names[29])]


# --- what is refused --------------------------------------------------------------------------


def test_documents_that_the_source_cannot_give_are_reported(source, target):
    class WithBadRows:
        """Gives two bad rows with each batch."""

        def manifest(self):
            return source.run(source.manifest())

        def batch(self, after, limit):
            got = source.run(source.scan(after, limit))
            bad = {f"bad {got[0].id}": "it has no text", "bad": "zero"} if got else {}
            return Batch(cursor=got[-1].id if got else None, records=got, refused=bad)

        def pages(self):
            return ()

    report = migrate(WithBadRows(), target, batch=20)

    assert report.refused == {"bad d0": "it has no text", "bad": "zero", "bad d27": "it has no text"}
    assert report.documents == 30


@pytest.mark.parametrize("error", [DocumentError("too long"), BackendError("too long")])
def test_documents_that_the_target_refuses_are_found_and_the_rest_is_written(source, error):
    target = Refusing({"d3", "d20"}, error)

    report = migrate(source, target, batch=10)

    assert report.refused == {"d3": "too long", "d20": "too long"}
    assert every(target).keys() == every(source).keys() - {"d3", "d20"}
    assert report.documents == 28
    assert sum(report.links.values()) == 28 * 3


def test_a_target_that_refuses_all_is_an_error_and_no_list_of_documents(source):
    target = Refusing(set(every(source)), BackendError("no permission"))

    with pytest.raises(BackendError, match="no permission"):
        migrate(source, target)


# --- interrupted ------------------------------------------------------------------------------


def test_an_interrupted_run_is_gone_on_with(source, tmp_path):
    """What was written is not read again, and the report is that of both runs."""
    names = list(every(source))
    target = Refusing({names[17]}, StoreUnavailableError("gone"))
    with pytest.raises(StoreUnavailableError, match="gone"):
        migrate(source, target, batch=5, checkpoint="run")
    assert every(target).keys() == set(names[:15])
    target.refused = set()
    read = []

    report = migrate(source, target, batch=5, checkpoint="run", progress=lambda done, *_: read.append(done))

    assert read == [5, 10, 15], "fifteen of thirty were left"
    assert (report.documents, report.written.added, report.resumed) == (30, 30, True)
    assert sum(report.links.values()) == 90
    assert every(target).keys() == set(names)
    assert target.run(target.note("migration run")) is None


def interrupt(source, target, name="run", after=10) -> None:
    """Begin a run that ends after some documents."""

    def stop(done, *_):
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(source, target, batch=10, checkpoint=name, progress=stop)


def test_refused_documents_of_the_interrupted_run_are_in_the_report(source):
    names = list(every(source))
    target = Refusing({names[2]}, DocumentError("bad"))
    interrupt(source, target, after=20)
    target.refused = set()

    report = migrate(source, target, batch=10, checkpoint="run")

    assert report.refused == {names[2]: "bad"}
    assert report.documents == 29
    assert target.run(target.note("migration run")) is None


@pytest.mark.parametrize("kind", ["embedded", "oracle"])
def test_a_target_that_was_made_anew_gets_all(source, tmp_path, kind):
    """How far the run is stands in the target, and so is gone with it."""
    interrupt(source, OracleBackend() if kind == "oracle" else backend(tmp_path / "first"))
    target = OracleBackend() if kind == "oracle" else backend(tmp_path / "second")

    report = migrate(source, target, checkpoint="run")

    assert every(target).keys() == every(source).keys()
    assert (report.documents, report.resumed) == (30, False)
    target.run(target.flush())


def test_migrations_from_several_sources_are_noted_apart(source, tmp_path):
    target = OracleBackend()
    interrupt(source, target, "one")
    interrupt(source, target, "two", after=20)

    assert migrate(source, target, checkpoint="one").written.unchanged == 10
    assert migrate(source, target, checkpoint="three").written.unchanged == 30
    assert migrate(source, target, checkpoint="two").resumed


def test_a_batch_that_was_written_and_not_noted_is_read_again(source):
    """As after a kill between both."""
    target = OracleBackend()
    interrupt(source, target)
    noted = target.run(target.note("migration run"))
    interrupt(source, target)
    now = target.run(target.note("migration run"))
    target.run(target.set_note("migration run", noted, now))

    report = migrate(source, target, batch=10, checkpoint="run")

    assert (report.written.added, report.written.unchanged, report.resumed) == (20, 10, True)
    assert every(target).keys() == every(source).keys()


def test_two_runs_of_one_migration_at_once_are_refused(source):
    target = OracleBackend()

    def run_another(done, *_):
        if done == 10:
            interrupt(source, target)

    with pytest.raises(StoreBusyError, match="another run of this migration is under way"):
        migrate(source, target, batch=10, checkpoint="run", progress=run_another)
    assert migrate(source, target, checkpoint="run").resumed
    assert every(target).keys() == every(source).keys()


def test_a_path_is_no_name_of_a_checkpoint(source, tmp_path):
    with pytest.raises(ArgumentError, match="checkpoint must be a name"):
        migrate(source, OracleBackend(), checkpoint=tmp_path)


def test_a_short_name_is_recorded_as_a_store_records_it():
    """Else the store would not open with the embedding that it names."""
    for name in ("wordllama", "wordllama-256"):
        assert find_recorded_name(name) == name_embedding(get_embedding("wordllama"))
    for name in ("openai:text-embedding-3-small", "mine.Embedding", "mine.Embedding:model"):
        assert find_recorded_name(name) == name
    assert find_recorded_name(embedding()) == name_embedding(embedding())


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A store made with a built-in embedding."""
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents([document(n) for n in range(5)])
    return tmp_path / "kb"


def test_the_command_copies_a_store_that_can_then_be_asked(folder, tmp_path):
    copy = str(tmp_path / "copy")

    code, out, err = linkstore("migrate", str(folder), copy)

    assert (code, err) == (0, ""), "nothing on stderr where it is no terminal"
    assert (
        out == "documents 5 added, 0 updated, 0 unchanged\nlinks     10 hyperlink, 5 keyword\npages     0\n"
    )
    first, second = (linkstore("query", "doc 3", "--store", place, "--json") for place in (str(folder), copy))
    assert first == second
    assert {one.name for one in tmp_path.iterdir()} == {"kb", "copy"}, "no checkpoint is left"


def test_json_tells_all_of_the_report(folder, tmp_path):
    code, out, _ = linkstore("migrate", str(folder), str(tmp_path / "copy"), "--json")

    assert code == 0
    assert json.loads(out) == {
        "links": {"hyperlink": 10, "keyword": 5},
        "pages": 0,
        "refused": {},
        "resumed": False,
        "written": {"added": 5, "updated": 0, "unchanged": 0, "removed": 0},
    }


def test_an_interrupted_command_says_how_to_go_on(folder, tmp_path, monkeypatch):
    """The same command finishes what it began."""

    def stop(*_):
        raise KeyboardInterrupt

    copy = tmp_path / "copy"
    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedBackend, "pages", stop)
        code, out, err = linkstore("migrate", str(folder), str(copy))
    assert (code, out) == (exits.INTERRUPTED, "")
    assert err == "not done; the same command goes on from where it stopped\nstopped\n"

    code, out, _ = linkstore("migrate", str(folder), str(copy), "--json")

    assert code == 0
    assert json.loads(out)["resumed"]
    assert {one.name for one in tmp_path.iterdir()} == {"kb", "copy"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("kb", "kb"), exits.USAGE, "the same"),
        (("kb", "x/../kb"), exits.USAGE, "the same"),
        (("kb", ""), exits.USAGE, "a place is empty"),
        (("http://h/ks/t", "kb"), exits.USAGE, "no backend is known for http://"),
        (("cassandra://h/only", "new"), exits.USAGE, "cassandra://host:port/keyspace/table"),
        (("kb", "cassandra://h/ks/no-name"), exits.USAGE, "cannot name tables"),
        (("nothing", "new"), exits.NOT_FOUND, "there is no store at nothing to copy from"),
        (("kb", "new", "--embedding-name", "other"), exits.EMBEDDING_MISSING, "other"),
    ],
)
def test_what_cannot_be_migrated_is_said_and_nothing_is_made(
    folder, tmp_path, monkeypatch, words, code, said
):
    monkeypatch.chdir(tmp_path)

    got, out, err = linkstore("migrate", *words)

    assert (got, out) == (code, "")
    assert said in err
    assert not (tmp_path / "new").exists()


def test_refused_documents_are_named_for_a_person(capsys):
    from internals import show_migration

    target = Refusing({"d1\x1b"}, DocumentError("too \x07long"))
    source = OracleBackend()
    source.run(source.claim(Manifest(embedding="e", dimension=2)))
    vector = np.array([1, 0], np.float32)
    put = [Record(id=name, text="", metadata={}, vector=vector, links=()) for name in ("d0", "d1\x1b")]
    source.run(source.write(WriteBatch(put=put)))

    show_migration(migrate(source, target))

    assert capsys.readouterr().out.splitlines() == [
        "documents 1 added, 0 updated, 0 unchanged",
        "links     none",
        "pages     0",
        "refused   d1\\x1b: too \\x07long",
    ]


def test_documents_of_other_languages_and_sizes_are_copied(tmp_path):
    odd = [
        Document(id="Ω/'\"%", page_content="текст\0" * 1000, metadata={"π": [1, {"a": None}], "x": 1.0}),
        Document(id=" ", page_content="a", metadata={"links": []}),
    ]
    with LinkStore.open(tmp_path / "a") as first, LinkStore.open(tmp_path / "b") as second:
        first.add_documents(odd)
        migrate(first.backend, second.backend, batch=1)
        assert list(second.scan()) == list(first.scan())

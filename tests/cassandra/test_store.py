"""`LinkStore.cassandra` and `--store cassandra://…`, from opening to errors, on a real server."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import subprocess
import sys
import time

import pytest
from documented import ROOT, linkstore, run_markdown
from internals import Manifest, site
from langchain_core.embeddings import DeterministicFakeEmbedding, FakeEmbeddings
from stores import DIMENSION, document, documents, embedding

from linkstore import Link, LinkRetriever, LinkStore
from linkstore.cli import exits
from linkstore.errors import (
    BackendError,
    EmbeddingError,
    StoreClosedError,
    StoreFormatError,
    StoreNotFoundError,
    StoreUnavailableError,
)
from linkstore.strategies import Eager

NUMBERS = itertools.count()
QUESTION = "What does the train pass through?"


@pytest.fixture(scope="module")
def space(cassandra_session):
    """A keyspace of this module's own."""
    from cassandra_tables import own_keyspace

    with own_keyspace(cassandra_session, "store") as name:
        yield name


@pytest.fixture
def table():
    """A name that no store has yet."""
    return f"t{next(NUMBERS)}"


@pytest.fixture(scope="module")
def filled(cassandra_session, space):
    """Name of a store of ten documents, which tests leave as it is."""
    with LinkStore.cassandra(embedding(), table="filled", session=cassandra_session, keyspace=space) as store:
        store.add_documents(documents(0, 10))
    return "filled"


@pytest.fixture
def no_cassio(monkeypatch):
    """As if ``cassio.init`` had not been called; what a test calls is undone, and its session closed."""
    import cassio.config

    monkeypatch.setattr(cassio.config, "default_session", None)
    monkeypatch.setattr(cassio.config, "default_keyspace", None)
    yield
    if cassio.config.default_session is not None:
        cassio.config.default_session.cluster.shutdown()


def tables_of(session, keyspace) -> set[str]:
    look = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    return {row.table_name for row in session.execute(look, (keyspace,))}


# --- opening ------------------------------------------------------------------------------------


def test_session_and_keyspace_come_from_cassio(no_cassio, cassandra, space, filled):
    import cassio

    options = {"port": cassandra.port, "protocol_version": 5}
    cassio.init(contact_points=cassandra.host, keyspace=space, cluster_kwargs=options)
    with LinkStore.cassandra(embedding(), table=filled) as store:
        assert store.search("doc 1 v0")[0].document.id == "d1"


def test_a_given_session_is_left_open(cassandra_session, space, filled):
    with LinkStore.cassandra(embedding(), table=filled, session=cassandra_session, keyspace=space) as store:
        assert len(list(store.scan())) == 10
    store.close()
    with pytest.raises(StoreClosedError, match="'filled' is closed"):
        store.search("x")
    assert cassandra_session.execute("SELECT release_version FROM system.local").one()


def test_without_a_session_it_is_said_where_one_may_come_from(no_cassio, cassandra_possible):
    with pytest.raises(BackendError, match=r"no Cassandra session is given; pass session=.*cassio\.init"):
        LinkStore.cassandra(embedding(), keyspace="k")


def test_without_a_keyspace_it_is_said_where_one_may_come_from(no_cassio, cassandra_session):
    with pytest.raises(BackendError, match=r"pass keyspace=…, or call cassio\.init"):
        LinkStore.cassandra(embedding(), session=cassandra_session)


@pytest.mark.parametrize("name", ["nowhere", 'a"; DROP TABLE x; --', "Ünder", "a" * 300])
def test_a_missing_keyspace_is_an_error_that_says_how_to_make_it(cassandra_session, name):
    with pytest.raises(
        BackendError, match=r"has no keyspace .*check its spelling.*create it: CREATE KEYSPACE"
    ):
        LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=name)


def test_a_store_that_is_not_there_is_made_only_where_asked_for(cassandra_session, space, table):
    options = {"table": table, "session": cassandra_session, "keyspace": space}
    before = tables_of(cassandra_session, space)
    with pytest.raises(StoreNotFoundError, match=f"the keyspace '{space}' has no store named '{table}'"):
        LinkStore.cassandra(embedding(), create=False, **options)
    assert tables_of(cassandra_session, space) == before
    LinkStore.cassandra(FakeEmbeddings(size=3), **options).close()
    with LinkStore.cassandra(embedding(), create=False, **options) as store:
        assert store.backend.run(store.backend.manifest()) == Manifest(), "recorded with the first document"
        assert store.search("x").reason == "the store is empty"
        start = [Link.outgoing(kind="hyperlink", tag="nowhere")]
        assert store.search("x", initial_links=start).reason == "the store is empty"
        store.add_documents(documents(0, 2))
        recorded = store.backend.run(store.backend.manifest())
        assert recorded.dimension == DIMENSION
        assert str(recorded.embedding).endswith("DeterministicFakeEmbedding")
    made = {table, f"{table}_members", f"{table}_pages", f"{table}_settings", f"{table}_words"}
    made |= {f"{table}_accesses", f"{table}_texts"}
    assert tables_of(cassandra_session, space) - before == made


def test_the_recorded_embedding_is_used_where_none_is_given(cassandra_session, space, table):
    """And wordllama in a new store."""
    options = {"table": table, "session": cassandra_session, "keyspace": space}
    with LinkStore.cassandra(**options) as store:
        store.add_texts(["The tower is tall."], ids=["tower"])
        assert store.backend.run(store.backend.manifest()).embedding == "wordllama-256"
    with LinkStore.cassandra(create=False, **options) as store:
        assert store.similarity_search("a high tower", k=1)[0].id == "tower"


def test_another_embedding_is_refused_and_named(cassandra_session, space, filled):
    options = {"table": filled, "session": cassandra_session, "keyspace": space}
    with LinkStore.cassandra(FakeEmbeddings(size=DIMENSION), **options) as store:
        for use in (lambda: store.search("x"), lambda: store.add_documents(documents(20, 21))):
            with pytest.raises(EmbeddingError, match=r"DeterministicFakeEmbedding.*not .*FakeEmbeddings"):
                use()
        assert store.survey().documents == 10


def test_another_dimension_is_refused(cassandra_session, space, filled):
    wrong = DeterministicFakeEmbedding(size=DIMENSION + 1)
    with LinkStore.cassandra(wrong, table=filled, session=cassandra_session, keyspace=space) as store:
        for use in (lambda: store.add_documents(documents(20, 21)), lambda: store.search("x")):
            with pytest.raises(EmbeddingError, match=f"dimension {DIMENSION}.*gives {DIMENSION + 1}"):
                use()
        assert store.survey().documents == 10


@pytest.mark.parametrize("version", ["0", "77"])
def test_a_version_that_is_not_known_is_refused(cassandra_session, space, table, version):
    options = {"table": table, "session": cassandra_session, "keyspace": space}
    LinkStore.cassandra(embedding(), **options).close()
    write = f"INSERT INTO {space}.{table}_settings (name, value) VALUES ('version', %s)"
    cassandra_session.execute(f"{write} USING TIMESTAMP {1 << 62}", (version,))
    refused = f"version {version}, and this linkstore reads version 1: .* drop its tables and index"
    for create in (True, False):
        with pytest.raises(StoreFormatError, match=refused):
            LinkStore.cassandra(embedding(), create=create, **options)


def test_settings_that_linkstore_did_not_write_are_named(cassandra_session, space, table):
    options = {"table": table, "session": cassandra_session, "keyspace": space}
    LinkStore.cassandra(embedding(), **options).close()
    write = f"INSERT INTO {space}.{table}_settings (name, value) VALUES ('version', 'six')"
    cassandra_session.execute(f"{write} USING TIMESTAMP {1 << 62}")
    with pytest.raises(StoreFormatError, match=r"_settings has .* did not write .*'six'.*from a backup"):
        LinkStore.cassandra(embedding(), **options)


def test_a_misspelled_keyspace_is_shown_those_that_there_are(cassandra_session, space):
    there = sorted(name for name in cassandra_session.cluster.metadata.keyspaces if name[:6] != "system")
    with pytest.raises(BackendError, match=f"no keyspace '{space.upper()}' \\(it has '{there[0]}'"):
        LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=space.upper())


HOSTILE = [
    "",
    " ",
    "1a",
    "_a",
    "a-b",
    "a.b",
    'a"b',
    "a'b",
    "a\n",
    "ä",
    "a;DROP TABLE t",
    "a" * 39,
    "a\0",
    "a b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_none_for_tables_is_refused(cassandra_session, space, name):
    before = tables_of(cassandra_session, space)
    with pytest.raises(BackendError, match="cannot name tables in Cassandra: take a letter and up to 37"):
        LinkStore.cassandra(embedding(), table=name, session=cassandra_session, keyspace=space)
    assert tables_of(cassandra_session, space) == before


@pytest.mark.parametrize("name", ["Select", "select", "A_" + "9" * 36])
def test_names_keep_their_case_and_may_be_words_of_cql(cassandra_session, space, name):
    """Two stores whose names differ in case are two stores."""
    with LinkStore.cassandra(embedding(), table=name, session=cassandra_session, keyspace=space) as store:
        assert store.survey().documents == 0
        store.add_documents([document(1), document(35)])
        found = store.search("doc 1 v0", strategy=Eager(start_k=1, depth=1))
        assert [hit.document.id for hit in found] == ["d1", "d35"]
        assert store.verify().sound


async def test_it_opens_and_works_inside_a_running_loop(cassandra_session, space, table):
    """Sync methods too, as in a notebook."""
    with LinkStore.cassandra(embedding(), table=table, session=cassandra_session, keyspace=space) as store:
        store.add_documents(documents(0, 20))
        await store.aadd_documents(documents(20, 40))
        expected = store.search("doc 1 v0")
        assert expected[0].document.id == "d1"
        found = await asyncio.gather(*(store.asearch("doc 1 v0") for _ in range(20)))
        assert found == [expected] * 20
        assert LinkRetriever(store=store).invoke("doc 1 v0")[0].id == "d1"
        assert store.delete(["d1"])
        assert await store.adelete(["d2"])
        assert store.survey().documents == 38


def test_without_the_extra_it_is_named():
    """In a process of its own, where the driver cannot be imported."""
    script = (
        "import sys; sys.modules['cassandra'] = None\n"
        "from linkstore import LinkStore\n"
        "from linkstore.errors import MissingExtraError\n"
        "try:\n"
        "    LinkStore.cassandra()\n"
        "except MissingExtraError as error:\n"
        "    print(error.extra)\n"
        "from linkstore.cli import main\n"
        "main(['doctor', '--store', 'cassandra://127.0.0.1:1/k/t'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (exits.EMBEDDING_MISSING, "cassandra\n")
    assert done.stderr.count("\n") == 1
    assert "pip install 'langchain-linkstore[cassandra]'" in done.stderr


def test_the_page_on_cassandra_runs_and_prints_what_it_shows(no_cassio, cassandra, space, tmp_path):
    """On this server instead of the one that it tells how to start."""
    page = (ROOT / "docs" / "how-to" / "use-cassandra.md").read_text()
    for there, here in (
        ("9042", str(cassandra.port)),
        ('"linkstore"', f'"{space}"'),
        ("/linkstore/", f"/{space}/"),
    ):
        assert there in page
        page = page.replace(there, here)
    (tmp_path / "page.md").write_text(page)
    assert run_markdown(tmp_path / "page.md", tmp_path) >= 7


# --- the command line ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def indexed(cassandra, space, tmp_path_factory):
    """The demo's site in Cassandra and in a folder: what ``--store`` says for both."""
    places = (cassandra.store_url(space, "site"), str(tmp_path_factory.mktemp("site") / "kb"))
    with site() as pages:
        said = [linkstore("index", str(pages), "--source", "demo", "--store", place) for place in places]
        again = linkstore("index", str(pages), "--source", "demo", "--store", places[0], "--json")
    assert said[0] == said[1]
    assert said[0][::2] == (0, "")
    assert json.loads(again[1])["pages"] == {"added": 0, "updated": 0, "unchanged": 15, "removed": 0}
    return places


@pytest.mark.parametrize(
    "words",
    [
        ("query", QUESTION, "--json"),
        ("query", QUESTION, "-k", "2", "--depth", "2", "--kinds", "hyperlink", "--explain"),
        ("query", QUESTION, "--strategy", "mmr", "--json"),
        ("query", QUESTION, "--filter", '{"page": {"$in": ["uptown.html", "monorail.html"]}}', "--json"),
        ("query", QUESTION, "--filter", '{"page": "nowhere.html"}'),
        ("doctor", "--json"),
        ("links", "monorail.html#route", "--json"),
        ("links", "monorail.html"),
        ("doctor", "--verify", "--json"),
    ],
    ids=lambda words: " ".join(words[:1] + words[2:4]),
)
def test_commands_say_of_a_store_in_cassandra_what_they_say_of_a_folder(indexed, words):
    in_cassandra, in_folder = (linkstore(*words, "--store", place) for place in indexed)
    assert in_cassandra == in_folder
    assert in_cassandra[0] == 0


def test_delete_verify_and_repair(cassandra, cassandra_session, space, table):
    """A member of a link group whose document is not there is found, and mended."""
    url = cassandra.store_url(space, table)
    with LinkStore.cassandra(table=table, session=cassandra_session, keyspace=space) as store:
        store.add_documents(documents(0, 5))
    assert linkstore("delete", "d1", "nobody", "--store", url)[0] == exits.OTHER
    code, _, err = linkstore("delete", "d1", "d2", "--store", url)
    assert (code, "deleted 0 pages, 2 documents" in err) == (0, True)
    assert json.loads(linkstore("doctor", "--store", url, "--json")[1])["documents"] == 3
    assert linkstore("doctor", "--verify", "--store", url) == (0, "the store is sound\n", "")

    where = "WHERE kind = 'k' AND tag = 't' AND side = 'in' AND bucket = 0 AND id ="
    for name, seconds, found in (("just added", 0, 0), ("left", 3600, exits.DAMAGED)):
        at = time.time_ns() // 1000 - seconds * 1_000_000
        stray = f"UPDATE {space}.{table}_members USING TIMESTAMP {at} SET states = {{0x00}}"
        cassandra_session.execute(f"{stray} {where} '{name}'")
        assert linkstore("doctor", "--verify", "--store", url)[0] == found, "a write may be under way"
    code, out, _ = linkstore("doctor", "--verify", "--store", url)
    assert (code, out.startswith("found: members of link groups without a document")) == (exits.DAMAGED, True)
    assert linkstore("doctor", "--repair", "--store", url)[1].startswith(
        "repaired: members of link groups without"
    )
    assert linkstore("doctor", "--verify", "--store", url) == (0, "the store is sound\n", "")


def test_as_a_process_it_prints_results_and_nothing_else(cassandra, space, table, tmp_path):
    """Whatever the driver logs; the server has warnings where tables are made."""
    (tmp_path / "a.md").write_text("# Alpha\n\nThe first page.\n")
    words = [sys.executable, "-c", "from linkstore.cli import main; main()", "index", str(tmp_path)]
    words += ["--store", cassandra.store_url(space, table)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pages     1 added")


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("", "use cassandra://host:port/keyspace/table"),
        ("127.0.0.1:9042", "use cassandra"),
        ("127.0.0.1:9042/keyspace", "use cassandra"),
        ("127.0.0.1:9042/keyspace/", "use cassandra"),
        ("127.0.0.1:9042/keyspace/table/more", "use cassandra"),
        ("127.0.0.1:99999/keyspace/table", "is not a host"),
        ("me:secret@127.0.0.1/keyspace/table", "set the environment variables LINKSTORE_CASSANDRA_USERNAME"),
        ("127.0.0.1/keyspace/a%22b", "cannot name tables"),
    ],
)
def test_a_wrong_url_is_wrong_usage_and_said_in_one_line(cassandra_possible, rest, says):
    code, out, err = linkstore("doctor", "--store", f"cassandra://{rest}")
    assert (code, out, err.count("\n")) == (exits.USAGE, "", 1)
    assert err.startswith("linkstore: --store: ")
    assert says in err
    assert "secret" not in err


@pytest.mark.parametrize(
    "command", [("doctor",), ("query", "x"), ("delete", "x"), ("doctor", "--verify"), ("doctor", "--repair")]
)
def test_a_store_that_is_not_there_has_the_exit_code_of_one(cassandra, space, command):
    url = cassandra.store_url(space, "nobody")
    code, out, err = linkstore(*command, "--store", url)
    assert (code, out, err.count("\n")) == (exits.NOT_FOUND, "", 1)
    assert f"there is no store at {url}; make one with: linkstore index SOURCE --store {url}" in err


def test_a_missing_keyspace_is_said_in_one_line(cassandra):
    code, _, err = linkstore("doctor", "--store", cassandra.store_url("nowhere", "t"))
    assert (code, err.count("\n")) == (exits.OTHER, 1)
    assert "create it: CREATE KEYSPACE" in err


def test_a_server_that_is_down_has_an_exit_code_of_its_own(cassandra_possible, unused_tcp_port):
    """As a process, so that nothing the driver's threads say is missed."""
    url = f"cassandra://127.0.0.1:{unused_tcp_port}/k/t"
    words = [sys.executable, "-c", "from linkstore.cli import main; main()", "doctor", "--store", url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (exits.UNAVAILABLE, "")
    assert done.stderr.startswith("linkstore: could not connect: Cassandra at 127.0.0.1")
    assert done.stderr.count("\n") == 1


def test_a_name_without_an_address_is_a_server_that_is_not_there(cassandra_possible):
    code, _, err = linkstore("doctor", "--store", "cassandra://no-such-host.invalid/k/t")
    assert (code, err.count("\n")) == (exits.UNAVAILABLE, 1)
    assert "no-such-host.invalid" in err


def test_a_server_that_goes_away_ends_a_command_in_one_line(
    proxied, cassandra_session, space, table, monkeypatch
):
    """Between opening the store and reading it."""
    from internals import CassandraSettings, CoreStore

    from linkstore.engines.cassandra import backend

    def cut_off(store):
        proxied.cut()
        return survey(store)

    LinkStore.cassandra(table=table, session=cassandra_session, keyspace=space).close()
    survey = CoreStore.survey
    monkeypatch.setattr(CoreStore, "survey", cut_off)
    monkeypatch.setattr(backend, "CassandraSettings", functools.partial(CassandraSettings, deadline=2))
    url = f"cassandra://{proxied.host}:{proxied.port}/{space}/{table}"
    started = time.monotonic()
    code, out, err = linkstore("doctor", "--store", url)
    assert (code, out, err.count("\n")) == (exits.UNAVAILABLE, "", 1)
    assert f"Cassandra at {proxied.host}:{proxied.port}" in err
    assert time.monotonic() - started < 10


def test_the_same_holds_in_python(cassandra_possible, unused_tcp_port):
    from internals import make_url_backend

    with pytest.raises(StoreUnavailableError, match="could not connect"):
        make_url_backend(f"cassandra://127.0.0.1:{unused_tcp_port}/k/t")

"""An argument of a wrong type is refused where it is given: the message names it and what to pass."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from internals import (
    CassandraSettings,
    as_path,
    chat_model,
    omit_none,
    require,
    require_having,
    require_list,
    staleness,
    with_links,
)
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from scripted_model import ScriptedChatModel

from linkstore import LinkRetriever, LinkStore
from linkstore.agents import ModelExtractor, aindex_facts, graph_reader, graph_tools, index_facts
from linkstore.context import ContextCompiler, Decay, counter_of
from linkstore.embeddings import get_embedding
from linkstore.engines.embedded import EmbeddedSettings
from linkstore.errors import (
    ArgumentError,
    DocumentError,
    LinkStoreError,
    SchemaError,
    StoreFormatError,
    StrategyError,
)
from linkstore.evaluate import GoldQuestion, Telemetry, calibrate_min_similarity, evaluate, examine, profile
from linkstore.ingest import (
    ChunkLimits,
    DocumentsSource,
    FolderSource,
    JsonLinesSource,
    PageSettings,
    VaultSource,
    WebSettings,
    WebsiteSource,
    WikiDumpSource,
    aindex,
    index,
    link_corpus,
)
from linkstore.memory import ConversationMemory
from linkstore.store import Relation, Schema, migrate
from linkstore.strategies import PageRank

FACTS = ModelExtractor(ScriptedChatModel(script=[]))
QUESTION = GoldQuestion(question="tower", gold=("t",))
NO_STORES = ["kb", Path("kb"), None, LinkStore, 3]
STORE_TAKERS = {
    "graph_tools": graph_tools,
    "ConversationMemory": ConversationMemory,
    "ContextCompiler": lambda store: ContextCompiler(store, budget=100),
    "graph_reader": lambda store: graph_reader(store, "openai:gpt-4.1-mini"),
    "index_facts": lambda store: index_facts(store, FACTS, facts=store),
    "aindex_facts": lambda store: asyncio.run(aindex_facts(store, FACTS, facts=store)),
    "Telemetry": Telemetry,
    "examine": examine,
    "profile": profile,
    "calibrate_min_similarity": lambda store: calibrate_min_similarity(store, []),
    "LinkRetriever": lambda store: LinkRetriever(store=store),
    "index": lambda store: index(store, FolderSource(".")),
    "aindex": lambda store: asyncio.run(aindex(store, DocumentsSource([], "x"))),
    "link_corpus": link_corpus,
    "staleness": lambda store: staleness(store, None, "x"),
}


@pytest.fixture
def store():
    with LinkStore.from_texts(["tower", "bars"], DeterministicFakeEmbedding(size=16), ids=["t", "b"]) as made:
        yield made


@pytest.mark.parametrize("wrong", NO_STORES, ids=str)
@pytest.mark.parametrize("taker", STORE_TAKERS)
def test_what_is_not_an_open_store_is_refused_at_once(taker, wrong, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=r"^store must be .*LinkStore\.open\(") as error:
        STORE_TAKERS[taker](wrong)
    assert repr(wrong)[:200] in str(error.value)


def test_the_message_says_how_to_open_the_path_that_was_given() -> None:
    with pytest.raises(ArgumentError, match=r"such as LinkStore\.open\('notes/kb'\), not 'notes/kb'"):
        graph_tools("notes/kb")


ARGUMENTS = {
    "limits": (ArgumentError, lambda store, wrong: graph_tools(store, limits=wrong), ["x", {}]),
    "about": (ArgumentError, lambda store, wrong: graph_tools(store, about=wrong), [3, None]),
    "prefix": (ArgumentError, lambda store, wrong: graph_tools(store, prefix=wrong), [3, None]),
    "knowledge": (ArgumentError, ConversationMemory, ["kb", LinkStore]),
    "ttl": (ArgumentError, lambda store, wrong: ConversationMemory(store, ttl=wrong), [30, "1 day"]),
    "model": (ArgumentError, lambda store, wrong: ConversationMemory(store, model=wrong), ["openai:x", 3]),
    "reranker": (ArgumentError, lambda store, wrong: ConversationMemory(store, reranker=wrong), ["x"]),
    "entities": (ArgumentError, lambda store, wrong: ConversationMemory(store, entities=wrong), ["x", None]),
    "decay": (ArgumentError, lambda store, wrong: ContextCompiler(store, budget=9, decay=wrong), ["x", 0]),
    "precedence": (
        ArgumentError,
        lambda store, wrong: ContextCompiler(store, budget=9, precedence=wrong),
        ["next", None],
    ),
    "requires": (
        ArgumentError,
        lambda store, wrong: ContextCompiler(store, budget=9, requires=wrong),
        ["requires", None],
    ),
    "separator": (
        ArgumentError,
        lambda store, wrong: ContextCompiler(store, budget=9, separator=wrong),
        [None, 3],
    ),
    "header": (ArgumentError, lambda store, wrong: ContextCompiler(store, budget=9, header=wrong), ["x"]),
    "last_access": (
        ArgumentError,
        lambda store, wrong: ContextCompiler(store, budget=9, last_access=wrong),
        ["x"],
    ),
    "now": (
        ArgumentError,
        lambda store, wrong: ContextCompiler(store, budget=99).compile("x", now=wrong),
        ["2024"],
    ),
    "tokenizer": (ArgumentError, lambda _, wrong: counter_of(wrong), ["llama", 3]),
    "touch": (ArgumentError, lambda store, wrong: ContextCompiler(store, budget=9, touch=wrong), ["x", 0]),
    "rewriter": (ArgumentError, lambda store, wrong: ConversationMemory(store, rewriter=wrong), ["x", 3]),
    "model of a reader": (ArgumentError, graph_reader, [None, 3]),
    "budget": (ArgumentError, lambda store, wrong: graph_reader(store, "x:y", budget=wrong), [40]),
    "facts": (ArgumentError, lambda store, wrong: index_facts(store, FACTS, facts=wrong), ["kb"]),
    "extractor": (
        ArgumentError,
        lambda store, wrong: index_facts(store, wrong, facts=store),
        ["rules", None],
    ),
    "model of an extractor": (ArgumentError, lambda _, wrong: ModelExtractor(wrong), ["openai:x", None]),
    "name": (ArgumentError, lambda _, wrong: chat_model(wrong), [None, 3]),
    "name of an embedding": (ArgumentError, lambda _, wrong: get_embedding(wrong), [None, 3, ["wordllama"]]),
    "rate": (ArgumentError, lambda _, wrong: chat_model("x:y", rate=wrong), ["fast"]),
    "sources": (ArgumentError, lambda store, wrong: examine(store, sources=wrong), [["x"], "x"]),
    "names": (ArgumentError, lambda store, wrong: examine(store, names=wrong), ["entity", None]),
    "source": (ArgumentError, index, ["docs", None]),
    "source of a corpus": (ArgumentError, lambda _, wrong: evaluate(wrong, [QUESTION]), ["kb", None]),
    "source of a copy": (ArgumentError, lambda store, wrong: migrate(wrong, store.backend), ["kb", None]),
    "target": (ArgumentError, lambda store, wrong: migrate(store.backend, wrong), ["kb", None]),
    "path": (ArgumentError, lambda store, wrong: index(store, FolderSource(wrong)), [None, 3, ""]),
    "path of a vault": (ArgumentError, lambda store, wrong: index(store, VaultSource(wrong)), [None, 3, ""]),
    "path of rows": (ArgumentError, lambda store, wrong: index(store, JsonLinesSource(wrong)), [None, 3, ""]),
    "path of a dump": (
        ArgumentError,
        lambda store, wrong: index(store, WikiDumpSource(wrong)),
        [None, 3, ""],
    ),
    "path of a store": (ArgumentError, lambda _, wrong: LinkStore.open(wrong), [None, 3, "", LinkStore]),
    "backend": (ArgumentError, lambda _, wrong: LinkStore(backend=wrong), ["kb", LinkStore]),
    "session": (ArgumentError, lambda _, wrong: LinkStore.cassandra(session=wrong), ["127.0.0.1"]),
    "settings": (ArgumentError, lambda _, wrong: LinkStore.open(":memory:", settings=wrong), ["x", {}]),
    "links": (ArgumentError, lambda store, wrong: link_corpus(store, wrong), ["mention", None]),
    "links of a corpus": (ArgumentError, lambda _, wrong: with_links([], wrong), ["keyword"]),
    "documents": (ArgumentError, lambda store, wrong: store.add_documents(wrong), [None, 3]),
    "documents of a corpus": (ArgumentError, lambda _, wrong: with_links(wrong), ["x", None]),
    "questions": (ArgumentError, evaluate, ["tower"]),
    "question": (ArgumentError, lambda store, wrong: profile(store, [wrong]), ["tower", 3]),
    "strategies": (ArgumentError, lambda store, wrong: evaluate(store, [QUESTION], wrong), ["similarity"]),
    "strategy": (
        StrategyError,
        lambda store, wrong: evaluate(store, [QUESTION], {"mine": wrong}),
        ["pagerank", PageRank],
    ),
    "strategy of a memory": (
        StrategyError,
        lambda store, wrong: ConversationMemory(store, strategy=wrong),
        ["pagerank", PageRank],
    ),
    "strategy of a compiler": (
        StrategyError,
        lambda store, wrong: ContextCompiler(store, budget=9, strategy=wrong),
        ["pagerank", PageRank],
    ),
    "texts": (ArgumentError, lambda store, wrong: store.add_texts(wrong), [None, 3]),
    "ids": (ArgumentError, lambda store, wrong: store.get_by_ids(wrong), [None, 3]),
    "ids of an access": (ArgumentError, lambda store, wrong: store.accesses.record(wrong), ["t", None]),
    "kinds": (ArgumentError, lambda store, wrong: store.links.replace(wrong, {}), ["next", None]),
    "links to replace": (ArgumentError, lambda store, wrong: store.links.replace(["k"], wrong), [None, []]),
    "schema": (ArgumentError, lambda store, wrong: store.schema.set(wrong), ["x", {}]),
    "initial_roots": (
        ArgumentError,
        lambda store, wrong: store.search("x", initial_roots=wrong),
        ["t", None],
    ),
    "initial_links": (ArgumentError, lambda store, wrong: store.search("x", initial_links=wrong), ["t", 3]),
    "ids of accesses": (ArgumentError, lambda store, wrong: store.accesses.read(wrong), ["t", None]),
    "documents to index": (
        ArgumentError,
        lambda store, wrong: index(store, DocumentsSource(wrong, "x")),
        ["text", None],
    ),
    "name of documents": (
        ArgumentError,
        lambda store, wrong: index(store, DocumentsSource([], wrong)),
        [None, 3],
    ),
    "claims": (
        ArgumentError,
        lambda store, wrong: index(store, DocumentsSource([Document(page_content="x")], "x", claims=wrong)),
        ["all", None],
    ),
    "jobs": (
        StrategyError,
        lambda store, wrong: index(store, DocumentsSource([], "x"), jobs=wrong),
        [0, "x", 1.5],
    ),
    "url": (ArgumentError, lambda store, wrong: index(store, WebsiteSource(wrong)), [None, 3]),
    "batch": (
        StrategyError,
        lambda store, wrong: migrate(store.backend, store.backend, batch=wrong),
        [0, "x", 1.5],
    ),
    "checkpoint": (
        ArgumentError,
        lambda store, wrong: migrate(store.backend, store.backend, checkpoint=wrong),
        ["", 3],
    ),
    "source of a schema": (ArgumentError, lambda _, wrong: Schema.infer(wrong), ["kb", None]),
}
"""By the name of the argument, which the words after it tell from others of its name."""


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, wrong) for name, (_, _, values) in ARGUMENTS.items() for wrong in values],
    ids=str,
)
def test_the_message_names_the_argument_and_the_value(store, name, wrong) -> None:
    kind, call, _ = ARGUMENTS[name]
    says = rf"^{name.split()[0]} must be .*not (the string )?{re.escape(repr(wrong)[:200])}"
    with pytest.raises(kind, match=says):
        call(store, wrong)


SETTINGS = {
    "longest": (ChunkLimits, [0, "x", float("nan")]),
    "shortest": (ChunkLimits, [-1, 1.5]),
    "bases": (PageSettings, ["https://example.org/", 3]),
    "policy": (PageSettings, ["keep"]),
    "limits": (PageSettings, [1600]),
    "encoding": (PageSettings, [3]),
    "max_bytes": (PageSettings, ["x", -1, 1.5]),
    "allow": (WebSettings, ["/docs/"]),
    "deny": (WebSettings, [3]),
    "rate": (WebSettings, ["x", None]),
    "max_pages": (WebSettings, ["x"]),
    "max_depth": (WebSettings, ["x", 1.5]),
    "exact_below": (EmbeddedSettings, [-1, "x", 1.5]),
    "grow_share": (EmbeddedSettings, [-1, "x", float("nan")]),
    "timeout": (CassandraSettings, ["x", None]),
    "ttl": (CassandraSettings, ["1 day"]),
    "half_life": (Decay, [3, "x"]),
    "resistance": (Decay, ["x", 2, float("nan")]),
}


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name, (_, values) in SETTINGS.items() for wrong in values], ids=str
)
def test_settings_are_checked_when_they_are_made(name, wrong) -> None:
    kind, _ = SETTINGS[name]
    with pytest.raises(LinkStoreError, match=rf"^{name} must be .*not {re.escape(repr(wrong))}$"):
        kind(**{name: wrong})


SAID = {
    "query": lambda memory, wrong: memory.add("s", wrong),
    "response": lambda memory, wrong: memory.add_later("s", "q", wrong),
    "entities": lambda memory, wrong: memory.add("s", "q", entities=wrong),
    "sources": lambda memory, wrong: asyncio.run(memory.aadd("s", "q", sources=wrong)),
    "time": lambda memory, wrong: memory.add("s", "q", time=wrong),
    "question": lambda memory, wrong: memory.recall("s", wrong),
    "last": lambda memory, wrong: memory.turns("s", last=wrong),
    "supersedes": lambda memory, wrong: memory.add("s", "q", supersedes=wrong),
    "metadata": lambda memory, wrong: memory.add("s", "q", metadata=wrong),
    "id": lambda memory, wrong: memory.update(wrong),
    "ids": lambda memory, wrong: memory.delete(wrong),
    "user_id": lambda memory, wrong: memory.sessions(user_id=wrong),
    "agent_id": lambda memory, wrong: memory.forget(agent_id=wrong),
    "entity": lambda memory, wrong: memory.forget(entity=wrong),
    "run_id": lambda memory, wrong: memory.middleware(wrong),
    "k": lambda memory, wrong: memory.middleware("s", k=wrong),
}
WRONG = {
    "query": None,
    "entities": "Bob",
    "sources": "c1",
    "time": "2024-01-01",
    "question": None,
    "run_id": None,
}


@pytest.mark.parametrize("name", SAID)
def test_a_memory_refuses_what_it_cannot_use_and_stores_nothing(store, name) -> None:
    wrong = WRONG.get(name, 1.5)
    with ConversationMemory(store) as memory:
        with pytest.raises(LinkStoreError, match=rf"^{name} must be .*not '?{re.escape(str(wrong))}"):
            SAID[name](memory, wrong)
        assert memory.turns("s") == []


def test_an_empty_user_is_refused(store) -> None:
    """It would forget the sessions that have no user."""
    with ConversationMemory(store) as memory:
        memory.add("s", "hello")
        with pytest.raises(DocumentError, match="user_id must be a string of 1 to 500 characters"):
            memory.forget(user_id="")
        assert len(memory.turns("s")) == 1


def test_wrong_types_of_a_relation_are_refused_with_its_kind() -> None:
    with pytest.raises(SchemaError, match="governs: name one type or several, not 3"):
        Relation("governs", 3, "class")


@pytest.mark.parametrize("url", ["cassandra://localhost/ks/kb", "https://example.org/kb"])
def test_a_url_is_not_taken_for_a_folder(url, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreFormatError, match=r"is a URL and not a folder; .*LinkStore\.cassandra"):
        LinkStore.open(url)
    assert list(tmp_path.iterdir()) == []


def test_subclasses_and_other_objects_with_the_methods_are_accepted() -> None:
    class Text(str):
        __slots__ = ()

    require(str, "a string", one=Text("x"))
    require((int, float), "a number", one=1, other=1.5, **omit_none(third=None))
    require_having("__call__", "a function", one=len, other=str)
    require_having("total_seconds", "a time", one=timedelta(1))
    require_list("names", one=[], two=(), three=iter("x"), four={"x": 1})
    assert as_path("path", "x") == as_path("path", Path("x")) == Path("x")


@pytest.mark.parametrize(
    "refused",
    [
        lambda: require(int, "an integer", one="x"),
        lambda: require_having("total_seconds", "a time", one=timedelta),
        lambda: require_having("total_seconds", "a time", one=datetime.now(UTC)),
        lambda: require_list("names", one="x"),
        lambda: require_list("names", one=b"x"),
        lambda: require_list("names", one=None),
        lambda: as_path("one", ""),
        lambda: as_path("one", None),
    ],
)
def test_an_argument_error_is_also_a_type_error(refused) -> None:
    with pytest.raises(TypeError, match=r"^one must be ") as error:
        refused()
    assert isinstance(error.value, LinkStoreError)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ArgumentError) as error:
        require(int, "an integer", one=Document(page_content="x" * 9999))
    assert len(str(error.value)) < 300

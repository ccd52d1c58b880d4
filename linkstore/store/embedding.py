"""The embedding of a store, and whether it made the vectors in the store.

The vectors in the store decide, and not the name that it records: one model has many names, such as that of
a cache around it or of a class in a process that was spawned, and one name may stand for many models. The
probe is a stored document: its text is embedded again, and compared with its vector. So nothing more needs to
be recorded, and stores of any age can be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from linkstore.core.arrays import Floats, cosine_similarities, normalize_vectors
from linkstore.core.calls import Operation, call, call_engine, call_plan
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.lexical import extract_question_terms
from linkstore.core.plans import Lexical, Plan, Vectors, ask
from linkstore.embeddings.encoder import AbsentEncoder, Encoder
from linkstore.embeddings.names import has_model, name_embedding
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Record
from linkstore.errors import EmbeddingError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    Embedding: TypeAlias = Encoder | Embeddings

MIN_COSINE: Final = 0.99
"""The least cosine of two vectors of one text that are taken for those of one embedding.

The built-in ones give at least 0.9999997, whatever the batch; MiniLM with and without a prefix before its
texts gives 0.97 in the median."""
_FEEDBACK_DOCUMENTS: Final = 8
_PROBE_CANDIDATES: Final = 8
"""The probe is the shortest text of so many documents."""
_REMEDY: Final = "open it with the embedding that it was built with, or build a new store"


class StoreEmbedding:
    """An embedding that was or will be used for all vectors of a store.

    Args:
        backend: The engine of the store.
        model: Turns texts into vectors.

    Raises:
        EmbeddingError: If it is certain, without embedding anything, that it is not that of the store:
            it is built in, and the store holds vectors of another dimension.
    """

    def __init__(self, backend: Backend, model: Embedding, manifest: Manifest) -> None:
        self.model = model
        self.name = name_embedding(model)
        self._backend = backend
        self._is_known = manifest.embedding == self.name and has_model(model)
        self._found_empty = False
        if isinstance(model, Encoder) and manifest.dimension not in {None, model.dimension}:
            raise EmbeddingError(
                f"{self._describe_mismatch(manifest)}: the store holds vectors of dimension"
                f" {manifest.dimension}, and it gives {model.dimension}; {_REMEDY}"
            )

    def embed_query(self, text: str, scope: Condition = EVERYTHING) -> Operation[Any]:
        """Return the embedding of a question: a vector.

        Raises:
            EmbeddingError: If this is not the embedding of the store.
        """
        yield from self._check()
        if isinstance(self.model, AbsentEncoder) and self.model.by_words:
            return (yield from call_plan(self._backend, _average_matches(text), scope))
        return (yield from self._embed("embed_query", text))

    def embed_documents(self, texts: Sequence[str]) -> Operation[Any]:
        """Return the embeddings of texts: (n, d) vectors.

        Raises:
            EmbeddingError: If this is not the embedding of the store.
        """
        yield from self._check()
        return (yield from self._embed("embed_documents", list(texts)))

    def _embed(self, method: str, given: str | list[str]) -> Operation[Any]:
        if method == "embed_documents" and (embed := getattr(self.model, "embed_array", None)) is not None:
            return call(embed, None, given)
        awaiting = None if isinstance(self.model, Encoder) else getattr(self.model, f"a{method}", None)
        return call(getattr(self.model, method), awaiting, given)

    def _check(self) -> Operation[None]:
        """Check that the store was built with this embedding, before it first embeds something.

        It need not be compared with itself if the store had none before, and now has this name.
        """
        if self._is_known:
            return
        manifest = yield from call_engine(self._backend, self._backend.manifest())
        if manifest.dimension is None:
            self._found_empty = True
        elif self._found_empty and manifest.embedding == self.name:
            self._is_known = True
        else:
            self._is_known = yield from self._probe(manifest)

    def _probe(self, manifest: Manifest) -> Operation[bool]:
        """Raise unless this embedding computes the vectors of the store, and return whether that is certain.

        The probe is embedded once, or twice if the vectors differ, because an embedding that gives another
        vector each time can only be known by its name. In a store without documents nothing is certain.
        """
        records = yield from call_engine(self._backend, self._backend.scan(None, _PROBE_CANDIDATES))
        stored: list[Record] = [record for record in records if record.text.strip()]
        if not stored:
            return False
        probe = min(stored, key=lambda record: len(record.text))
        vector = yield from self._embed_probe(probe, manifest)
        alike = float(cosine_similarities(vector, probe.vector)[0])
        if alike >= MIN_COSINE:
            return True
        again = yield from self._embed_probe(probe, manifest)
        if float(cosine_similarities(again, vector[0])[0]) >= MIN_COSINE:
            raise EmbeddingError(
                f"{self._describe_mismatch(manifest)}: for the text of document {probe.id!r} it gives a"
                f" vector whose cosine with the stored one is {alike:.3f}, less than {MIN_COSINE}; {_REMEDY}"
            )
        if manifest.embedding != self.name:
            raise EmbeddingError(
                f"{self._describe_mismatch(manifest)}: it gives another vector each time that it embeds a"
                f" text; {_REMEDY}"
            )
        return True

    def _embed_probe(self, probe: Record, manifest: Manifest) -> Operation[Floats]:
        vectors = yield from self._embed("embed_documents", [probe.text])
        return normalize_vectors(vectors, manifest.dimension, [probe.id])

    def _describe_mismatch(self, manifest: Manifest) -> str:
        if self.name == manifest.embedding:
            return (
                f"the store was built with another embedding than this {self.name!r}, although both have this"
                " name"
            )
        return f"the store was built with the embedding {manifest.embedding!r}, not {self.name!r}"


def _average_matches(text: str) -> Plan[Floats]:
    """Return the mean vector of the documents that match the words of a question best.

    It stands for the vector of the question where that cannot be computed, as in relevance feedback:
    J. Rocchio, Relevance Feedback in Information Retrieval, 1971.

    Raises:
        EmbeddingError: If no document has a word of the question.
    """
    terms, _ = extract_question_terms(text)
    matches = yield from ask(Lexical(terms=terms, k=_FEEDBACK_DOCUMENTS))
    if not len(matches.refs):
        raise EmbeddingError(
            f"no document has a word of {text[:80]!r}, and without the embedding of the store questions are"
            " compared by words alone; use other words"
        )
    vectors = yield from ask(Vectors(refs=matches.refs))
    mean: Floats = np.average(vectors, axis=0, weights=matches.score).astype(np.float32)
    return mean

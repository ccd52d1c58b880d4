"""Decides whether an embedding computes the vectors that a store holds.

The vectors in the store decide, and not the name that it records: one model has many names, such as that of
a cache around it or of a class in a process that was spawned, and one name may stand for many models. The
probe is a stored document: its text is embedded again, and compared with its vector. So nothing more needs to
be recorded, and stores of any age can be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from linkstore.backends.base import Backend, Manifest, Record
from linkstore.embeddings.encoder import Encoder
from linkstore.embeddings.names import embedding_name, has_model
from linkstore.errors import EmbeddingError
from linkstore.plans import Operation
from linkstore.requests import EmbedProbe, Engine
from linkstore.vectors import Floats, similarities, unit_vectors

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    Embedding: TypeAlias = Encoder | Embeddings

ALIKE: Final = 0.99
"""The least cosine of two vectors of one text that are taken for those of one embedding.

The built-in ones give at least 0.9999997, whatever the batch; MiniLM with and without a prefix before its
texts gives 0.97 in the median."""
_LOOKED_AT: Final = 8
"""The probe is the shortest text of so many documents."""


def check_opened(manifest: Manifest, embedding: Embedding) -> None:
    """Raise if it is certain, without embedding anything, that an embedding cannot be that of a store.

    Raises:
        EmbeddingError: If the embedding is built in, and the store holds vectors of another dimension.
    """
    if isinstance(embedding, Encoder) and manifest.dimension not in {None, embedding.dimension}:
        raise EmbeddingError(
            f"{_refused(manifest, embedding)}: the store holds vectors of dimension {manifest.dimension}, and"
            f" it gives {embedding.dimension}; {_REMEDY}"
        )


def is_told_by_name(manifest: Manifest, embedding: Embedding) -> bool:
    """Say whether the name of an embedding is recorded, and determines what it computes."""
    return manifest.embedding == embedding_name(embedding) and has_model(embedding)


def check_probe(backend: Backend, manifest: Manifest, embedding: Embedding) -> Operation[bool]:
    """Raise unless an embedding computes the vectors of a store, and return whether that is certain.

    The probe is embedded once, or twice if the vectors differ, because an embedding that gives another vector
    each time can only be known by its name. In a store without documents nothing is certain.

    Raises:
        EmbeddingError: If it is another embedding.
    """
    stored: list[Record] = yield Engine(backend.scan(None, _LOOKED_AT))
    probe = min((one for one in stored if one.text.strip()), key=lambda one: len(one.text), default=None)
    if probe is None:
        return False
    vector: Floats = unit_vectors((yield EmbedProbe(probe.text)), manifest.dimension, [probe.id])
    alike = float(similarities(vector, probe.vector)[0])
    if alike >= ALIKE:
        return True
    again: Floats = unit_vectors((yield EmbedProbe(probe.text)), manifest.dimension, [probe.id])
    if float(similarities(again, vector[0])[0]) >= ALIKE:
        raise EmbeddingError(
            f"{_refused(manifest, embedding)}: for the text of document {probe.id!r} it gives a vector whose"
            f" cosine with the stored one is {alike:.3f}, less than {ALIKE}; {_REMEDY}"
        )
    if manifest.embedding != embedding_name(embedding):
        raise EmbeddingError(
            f"{_refused(manifest, embedding)}: it gives another vector each time that it embeds a text;"
            f" {_REMEDY}"
        )
    return True


def _refused(manifest: Manifest, embedding: Embedding) -> str:
    name = embedding_name(embedding)
    if name == manifest.embedding:
        return f"the store was built with another embedding than this {name!r}, although both have this name"
    return f"the store was built with the embedding {manifest.embedding!r}, not {name!r}"


_REMEDY: Final = "open it with the embedding that it was built with, or build a new store"

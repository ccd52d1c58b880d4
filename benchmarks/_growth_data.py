"""Synthetic documents of any number: clustered vectors, Zipf-like keywords, hyperlinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import Link
from linkstore.core.arrays import Floats, Ints

DIMENSION = 256
QUESTIONS = 200


@dataclass(frozen=True, slots=True)
class GrowthData:
    """What ``n`` documents are made of.

    Args:
        vectors: (n, 256) unit vectors around n / 200 centres (at least 50).
        keywords: (n, 5) from a vocabulary of n / 5 (at least 2,000), the r-th with weight 1 / (r + 50).
        targets: (n, 3) the documents each one links to.
        questions: (200, 256) unit vectors around the same centres.
        words: How many words a text has beside its number, the r-th of 50,000 with weight 1 / (r + 20).
    """

    vectors: Floats
    keywords: Ints
    targets: Ints
    questions: Floats
    words: int = 0

    def __len__(self) -> int:
        return len(self.vectors)

    def batches(self, size: int) -> Iterator[tuple[int, list[Document]]]:
        """Documents in order, with where each batch begins."""
        for start in range(0, len(self), size):
            yield start, [self.document(n) for n in range(start, min(start + size, len(self)))]

    def links(self, n: int) -> Iterator[Link]:
        """Five keywords both ways, three hyperlinks, and the document's own URL."""
        for keyword in sorted(set(self.keywords[n].tolist())):
            yield Link.bidir(kind="keyword", tag=f"k{keyword}")
        for target in sorted(set(self.targets[n].tolist())):
            yield Link.outgoing(kind="hyperlink", tag=f"u{target}")
        yield Link.incoming(kind="hyperlink", tag=f"u{n}")

    def text(self, n: int) -> str:
        """The text of document ``n``."""
        drawn = np.random.default_rng(n).random(self.words)
        ranks = 20 * (50_020 / 20) ** drawn - 20
        return " ".join([f"doc {n}", *(f"w{int(rank)}" for rank in ranks)])

    def document(self, n: int) -> Document:
        """Document ``n``."""
        links = [link.to_dict() for link in self.links(n)]
        return Document(id=str(n), page_content=self.text(n), metadata={"links": links})


def make(n: int, seed: int = 11) -> GrowthData:
    """The data of ``n`` documents; the same for the same seed."""
    random = np.random.default_rng(seed)
    topics = max(50, n // 200)
    centres = random.standard_normal((topics, DIMENSION), dtype=np.float32)
    weights = 1 / (np.arange(max(2000, n // 5)) + 50.0)
    return GrowthData(
        vectors=_around(random, centres, n),
        keywords=random.choice(len(weights), size=(n, 5), p=weights / weights.sum()),
        targets=random.integers(0, n, size=(n, 3)),
        questions=_around(random, centres, QUESTIONS),
    )


def _around(random: np.random.Generator, centres: Floats, count: int) -> Floats:
    vectors = random.standard_normal((count, DIMENSION), dtype=np.float32)
    vectors *= np.float32(0.9)
    vectors += centres[random.integers(0, len(centres), count)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


class GivenVectors(Embeddings):
    """Looks vectors up: ``doc 7`` and ``question 7`` have the seventh of each, so embedding costs nothing.

    Args:
        data: Whose vectors.
    """

    def __init__(self, data: GrowthData) -> None:
        self._data = data

    def embed_array(self, texts: Sequence[str]) -> Floats:
        """(n, 256) vectors of documents."""
        return self._data.vectors[[int(text.split()[1]) for text in texts]]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The same as lists."""
        rows: list[list[float]] = self.embed_array(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        row: list[float] = self._data.questions[int(text.removeprefix("question "))].tolist()
        return row

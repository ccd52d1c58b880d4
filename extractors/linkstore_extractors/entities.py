"""Entities: links two or three texts that name the same person, place or work.

Entities are capitalised phrases. Those that few documents of a corpus share are found in 8 bytes for each
phrase of each document.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash
from langchain_core.documents import Document

from linkstore.core.links import Link
from linkstore.core.text import find_phrases
from linkstore.errors import ExtractionError
from linkstore.extract.protocol import Review
from linkstore_extractors.mentions import bears_names, find_names

_BLOCK: Final = 1 << 20
Hashes = npt.NDArray[np.uint64]


class SharedPhrases:
    """Counts documents by phrase, where nearly all phrases are of one document and of no interest.

    A phrase is its 64-bit hash. Of 100 million different ones, two have the same hash in one corpus of
    3,700; there a link more or less is made, and nothing else is wrong.

    Args:
        least: Documents that must have a phrase for it to count as shared.
        most: Documents that may.
    """

    __slots__ = ("_blocks", "_least", "_most", "_open", "_shared")

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most
        self._open = array("Q")
        self._blocks: list[Hashes] = []
        self._shared: Hashes | None = None

    def add(self, phrases: Sequence[str]) -> None:
        """Count one document's phrases, each of which is given once."""
        self._open.extend(map(_hash_phrase, phrases))
        self._shared = None
        if len(self._open) >= _BLOCK:
            self._close_block()

    def select_shared(self, phrases: Sequence[str]) -> list[str]:
        """Return the phrases that few documents share, in the order given."""
        if self._shared is None:
            self._shared = self._count_hashes()
        shared_hashes = self._shared
        if not len(shared_hashes) or not phrases:
            return []
        hashes = np.fromiter(map(_hash_phrase, phrases), dtype=np.uint64, count=len(phrases))
        at = np.minimum(np.searchsorted(shared_hashes, hashes), len(shared_hashes) - 1)
        return [
            phrase
            for phrase, is_shared in zip(phrases, shared_hashes[at] == hashes, strict=True)
            if is_shared
        ]

    def _count_hashes(self) -> Hashes:
        self._close_block()
        if not self._blocks:
            return np.empty(0, dtype=np.uint64)
        self._blocks = [np.concatenate(self._blocks)]
        self._blocks[0].sort()
        hashes, counts = np.unique(self._blocks[0], return_counts=True)
        return hashes[(counts >= self._least) & (counts <= self._most)]

    def _close_block(self) -> None:
        if self._open:
            self._blocks.append(np.frombuffer(self._open, dtype=np.uint64))
            self._open = array("Q")


def _hash_phrase(phrase: str) -> int:
    return xxhash.xxh3_64_intdigest(phrase.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySettings:
    """The rules for entities.

    Args:
        most_documents: A phrase that more documents hold joins none of them.
        weight: Of the links.
        kind: Of the links.

    Raises:
        ExtractionError: If a setting is out of range.
    """

    most_documents: int = 3
    weight: float = 0.3
    kind: str = "entity"

    def __post_init__(self) -> None:
        if self.most_documents < 2 or not 0 < self.weight <= 1 or not self.kind:
            raise ExtractionError(
                "most_documents must be at least 2, weight above 0 and up to 1, kind not empty"
            )


DEFAULTS: Final = EntitySettings()


class EntityExtractor:
    """Capitalised phrases that two or three documents share: ``observe`` all, then ``extract`` each.

    - **At least two words.** A single capitalised word is too often the start of a sentence, a month, a
      first name; whoever shares it need have nothing in common.
    - **Two or three documents.** What one document holds joins nothing; what many hold ("United States")
      joins what has nothing else in common.
    - **Titles count** for the documents that bear them, also titles of one word, so that two passages
      of the same title meet.

    Links go both ways; the tag is the phrase's words joined by spaces, the label how it is first written.
    Made for English and other languages that write names with capitals, and common nouns without; German
    gives too many phrases, scripts without capitals none.

    Args:
        settings: What counts as an entity.
    """

    source = Document

    def __init__(self, settings: EntitySettings = DEFAULTS) -> None:
        self._settings = settings
        self._sharing = SharedPhrases(2, settings.most_documents)

    @property
    def kinds(self) -> frozenset[str]:
        """The kind of the links."""
        return frozenset({self._settings.kind})

    def keys(self, document: Document) -> frozenset[str]:
        """Return the phrases in the document."""
        return frozenset(_find_entities(document))

    def observe(self, sources: Iterable[Document]) -> None:
        """Count the phrases of these documents. A document observed twice counts twice."""
        for source in sources:
            self._sharing.add(list(_find_entities(source)))

    def review(self, before: Mapping[str, int], after: Mapping[str, int]) -> Review:
        """Find the documents that hold a phrase with a changed number of documents."""
        changed = {key for key in {*before, *after} if before.get(key, 0) != after.get(key, 0)}

        def may_have_changed(document: Document) -> bool:
            entities = list(_find_entities(document))
            self._sharing.add(entities)
            return not changed.isdisjoint(entities)

        return may_have_changed

    def extract(self, source: Document) -> tuple[Link, ...]:
        """Return links for the phrases that others share, in order of appearance."""
        entities = _find_entities(source)
        kind, weight = self._settings.kind, self._settings.weight
        return tuple(
            Link.bidir(kind=kind, tag=tag, label=entities[tag], weight=weight)
            for tag in self._sharing.select_shared(list(entities))
        )


def _find_entities(document: Document) -> dict[str, str | None]:
    """Return the phrases of a text and the names the document bears, as first written, by tag."""
    entities: dict[str, str | None] = {}
    for tag, written in find_phrases(document.page_content):
        entities.setdefault(tag, written)
    if bears_names(document):
        for name in find_names(document):
            entities.setdefault(name, None)
    return entities

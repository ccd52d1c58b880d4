"""Entities: links two or three texts that name the same person, place or work.

Names are found without a model, as phrases of capitalised words. Many such phrases are not names, so two
more rules select the useful ones: a phrase has at least two words, and few documents contain it
(docs/explanation/mentions-and-entities.md has figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from langchain_core.documents import Document

from linkstore.errors import ExtractionError
from linkstore.extraction.upkeep import Review
from linkstore.links import Link
from linkstore_extractors._naming import bears_names, names_of
from linkstore_extractors._phrases import phrases
from linkstore_extractors._sharing import Sharing


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
        self._sharing = Sharing(2, settings.most_documents)

    @property
    def kinds(self) -> frozenset[str]:
        """The kind of the links."""
        return frozenset({self._settings.kind})

    def keys(self, document: Document) -> frozenset[str]:
        """Return the phrases in the document."""
        return frozenset(_entities(document))

    def observe(self, sources: Iterable[Document]) -> None:
        """Count the phrases of these documents. A document observed twice counts twice."""
        for source in sources:
            self._sharing.add(list(_entities(source)))

    def review(self, before: Mapping[str, int], after: Mapping[str, int]) -> Review:
        """Find the documents that hold a phrase whose number of documents changed."""
        changed = {key for key in {*before, *after} if before.get(key, 0) != after.get(key, 0)}

        def may_have_changed(document: Document) -> bool:
            found = list(_entities(document))
            self._sharing.add(found)
            return not changed.isdisjoint(found)

        return may_have_changed

    def extract(self, source: Document) -> tuple[Link, ...]:
        """Return links for the phrases that others share, in order of appearance."""
        found = _entities(source)
        kind, weight = self._settings.kind, self._settings.weight
        return tuple(
            Link.bidir(kind=kind, tag=tag, label=found[tag], weight=weight)
            for tag in self._sharing.shared(list(found))
        )


def _entities(document: Document) -> dict[str, str | None]:
    """Return the phrases of a text and the names the document bears, as first written, by tag."""
    found: dict[str, str | None] = {}
    for tag, written in phrases(document.page_content):
        found.setdefault(tag, written)
    if bears_names(document):
        for name in names_of(document):
            found.setdefault(name, None)
    return found

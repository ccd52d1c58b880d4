"""Entities by GLiNER: a small model finds names of people, places and whatever else is requested.

U. Zaratiana et al., "GLiNER: Generalist Model for Named Entity Recognition using Bidirectional
Transformer", NAACL 2024, Apache-2.0. Extra ``gliner``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from operator import itemgetter
from typing import Any, Final, Protocol, cast

from langchain_core.documents import Document

from linkstore.core.links import Link, merge_links
from linkstore.errors import ExtractionError, MissingExtraError
from linkstore.extract.phrases import make_name_tag

MODEL: Final = "urchade/gliner_small-v2.1"
LABELS: Final = ("person", "organization", "location", "creative work", "event", "product")
_WINDOW: Final = 1200
"""Characters of a text that the model reads at once; it cuts off what is beyond 384 words."""


class GlinerModel(Protocol):
    """The methods of ``gliner.GLiNER`` that are used."""

    def predict_entities(self, text: str, labels: list[str], **options: Any) -> list[dict[str, Any]]:
        """Return dicts with ``text``, ``score``, ``start`` and ``end``."""
        ...


class GlinerExtractor:
    """Entities of a document on its own, without a look at the corpus.

    Links go both ways, of the kind that the ``entity`` extractor makes; the tag is the name's words
    joined by spaces, the label how it is written, and the data say of which type it is, as
    ``{"type": "person"}``. Names too trivial for a mention (fewer than 4 letters,
    stop words, numbers) are left out. How many documents share an entity is not known here: strategies
    pass over groups that are too large.

    Args:
        model: A loaded GLiNER, or the name or folder of one; a name is downloaded on first use.
        labels: What to look for, in words.
        threshold: The least score of an entity, from 0 to 1.
        weight: Of the links.
        kind: Of the links.
        scored: Whether links say how sure the model is at the first mention, as
            ``data={"confidence": 0.83}``; default False. A ``link_filter`` of a search tests it, and
            ``linkstore doctor`` counts doubtful links.

    Raises:
        MissingExtraError: If ``model`` is to be loaded and the extra ``gliner`` is not installed.
        ExtractionError: If a setting is out of range.
    """

    source = Document

    def __init__(
        self,
        model: str | GlinerModel = MODEL,
        *,
        labels: Sequence[str] = LABELS,
        threshold: float = 0.5,
        weight: float = 0.3,
        kind: str = "entity",
        scored: bool = False,
    ) -> None:
        if not labels or not 0 <= threshold <= 1 or not 0 < weight <= 1 or not kind:
            raise ExtractionError(
                "labels and kind must not be empty, threshold from 0 to 1, weight above 0 and up to 1"
            )
        if isinstance(model, str):
            if find_spec("gliner") is None:
                raise MissingExtraError("the extractor 'gliner'", "gliner")
            model = import_module("gliner").GLiNER.from_pretrained(model)
        self._model = cast("GlinerModel", model)
        self._labels = list(labels)
        self._threshold = threshold
        self._weight = weight
        self._kind = kind
        self._scored = scored

    def extract(self, source: Document) -> tuple[Link, ...]:
        """Return the entities of the document, in order of appearance."""
        return self._links(source.page_content)

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return links to the entities of a question. Whether a document has them is not known."""
        return self._links(text)

    def _links(self, text: str) -> tuple[Link, ...]:
        return merge_links(link for window in _split_windows(text) for link in self._read_window(window))

    def _read_window(self, window: str) -> Iterator[Link]:
        entities = self._model.predict_entities(window, self._labels, threshold=self._threshold)
        for entity in sorted(entities, key=itemgetter("start")):
            data: dict[str, Any] = {"type": entity["label"]}
            if self._scored:
                data["confidence"] = round(float(entity["score"]), 4)
            tag = make_name_tag(entity["text"])
            if tag is not None:
                yield Link.bidir(
                    kind=self._kind, tag=tag, label=entity["text"], weight=self._weight, data=data
                )


def _split_windows(text: str) -> Iterator[str]:
    """Divide a text into pieces that the model can read, cut between lines, else sentences, else words."""
    start = 0
    while start < len(text):
        end = start + _WINDOW
        if end < len(text):
            places = (text.rfind(gap, start + _WINDOW // 2, end) for gap in ("\n", ". ", " "))
            end = next((place + 1 for place in places if place >= 0), end)
        if text[start:end].strip():
            yield text[start:end]
        start = end

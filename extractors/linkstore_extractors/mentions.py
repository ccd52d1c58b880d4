"""Mentions: links a text to the documents whose titles or aliases it contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.links import Link
from linkstore.errors import ExtractionError
from linkstore.extract.phrases import Automaton, find_written_forms, make_name_tag
from linkstore.extract.protocol import Review


def find_names(document: Document) -> tuple[str, ...]:
    """Return the names of a document's page, from ``metadata["title"]`` and the list ``metadata["aliases"]``.

    Values that are not strings are passed over: metadata is the user's own.
    """
    metadata = document.metadata
    aliases = metadata.get("aliases")
    values: Iterable[Any] = (metadata.get("title"), *(aliases if isinstance(aliases, list | tuple) else ()))
    tags = (make_name_tag(name) for name in values if isinstance(name, str))
    return tuple(dict.fromkeys(tag for tag in tags if tag is not None))


def bears_names(document: Document) -> bool:
    """Say whether links to the names of its page lead to this document.

    Of a page that was divided into chunks, only the first chunk bears the names. Its ``metadata["url"]`` is
    that of the page, and its id is not numbered (``page~2``). Otherwise all chunks of a page would bear its
    name.
    """
    page = document.metadata.get("page")
    if not isinstance(page, str):
        return True
    return document.metadata.get("url", page) == page and f"{page}~" not in (document.id or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionSettings:
    """The rules for mentions.

    Args:
        shared: A name that more documents bear names none of them.
        weight: Of the links that texts have to the names in them.
        kind: Kind of the links. Queries are searched for names of the kind ``"mention"``.

    Raises:
        ExtractionError: If a setting is out of range.
    """

    shared: int = 5
    weight: float = 1.0
    kind: str = "mention"

    def __post_init__(self) -> None:
        if self.shared < 1 or not 0 < self.weight <= 1 or not self.kind:
            raise ExtractionError("shared must be at least 1, weight above 0 and up to 1, kind not empty")


DEFAULTS: Final = MentionSettings()


class MentionExtractor:
    """Titles and aliases named in texts: ``observe`` all documents, then ``extract`` each.

    **Names.** A document bears its ``metadata["title"]`` and each of the list ``metadata["aliases"]``,
    without a bracket at the end: "Mercury (planet)" is called "Mercury". It has an incoming link for each,
    whose tag is the words of the name (``text.tokenize``) joined by spaces. Of a page in chunks, the
    first bears them. Left out, because they would be found everywhere and mean nothing:

    - names of fewer than 4 letters, and of stop words and numbers alone ("It", "1984", "The The");
    - names of more than 8 words, which are sentences.

    **Mentions.** A text has an outgoing link for each name in it, as whole words, whatever stands between
    them; the label is how the first of them is written. Of names that overlap the longest counts, reading
    from left to right: "New York City" does not mention "New York". Not a mention is

    - a single word written without a capital, in scripts that have capitals: "mercury", "time";
    - a name that more than ``shared`` documents bear, since it leads anywhere;
    - a name that only the document itself, or its own page, bears.

    Args:
        settings: What counts as a mention.
    """

    source = Document

    def __init__(self, settings: MentionSettings = DEFAULTS) -> None:
        self._settings = settings
        self._bearers: Counter[str] = Counter()
        self._known: Automaton | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kind of the links."""
        return frozenset({self._settings.kind})

    def keys(self, document: Document) -> frozenset[str]:
        """Return the names that lead to the document."""
        return frozenset(find_names(document)) if bears_names(document) else frozenset()

    def observe(self, sources: Iterable[Document]) -> None:
        """Learn the names of these documents. A document observed twice bears its names twice."""
        self._known = None
        for source in sources:
            self._bearers.update(self.keys(source))

    def review(self, before: Mapping[str, int], after: Mapping[str, int]) -> Review:
        """Find the texts that hold a name with a changed count of bearers, by an automaton of just these."""
        names = {*before, *after}
        changed = Automaton(sorted(name for name in names if before.get(name, 0) != after.get(name, 0)))

        def may_have_changed(document: Document) -> bool:
            self.observe((document,))
            return changed.occurs(document.page_content)

        return may_have_changed

    def extract(self, source: Document) -> tuple[Link, ...]:
        """Return the document's names, then the names in its text, each in order of appearance."""
        own = find_names(source)
        links = []
        if bears_names(source):
            links += [Link.incoming(kind=self._settings.kind, tag=name) for name in own]
        alone = {name for name in own if self._bearers[name] <= 1}
        links += [
            Link.outgoing(kind=self._settings.kind, tag=name, label=label, weight=self._settings.weight)
            for name, label in self._mentions(source.page_content).items()
            if name not in alone
        ]
        return tuple(links)

    def _mentions(self, text: str) -> dict[str, str]:
        """Return the names that a text mentions, with how the first mention is written."""
        if self._known is None:
            shared = self._settings.shared
            self._known = Automaton(name for name, count in self._bearers.items() if count <= shared)
        matches = self._known.find(text)
        written = find_written_forms(text, [(start, end) for _, start, end in matches])
        mentions: dict[str, str] = {}
        for (name, _, _), label in zip(matches, written, strict=True):
            if name not in mentions and (" " in name or _is_name(label)):
                mentions[name] = label or name
        return mentions


def _is_name(word: str | None) -> bool:
    """Say whether a word is written as a name is: with a capital, or in a script that has none."""
    return word is not None and (word != word.lower() or word == word.upper())

"""Atomic facts and key elements, and how they are stored.

A fact is a document whose outgoing links of the kind :data:`KEY_ELEMENT` name its key elements; a key element
leads to all facts that name it. Facts are the documents of a page entry that stands for their chunk, so the
facts of a chunk are replaced, and removed, in one change.

Source: S. Li et al., "GraphReader: Building Graph-based Agent to Enhance Long-Context Abilities of Large
Language Models", EMNLP Findings 2024, https://arxiv.org/abs/2406.14550.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Protocol

import xxhash
from langchain_core.documents import Document

from linkstore.core.documents import PageDocuments
from linkstore.core.lexical import get_document_name
from linkstore.core.links import LINKS_KEY
from linkstore.core.text import fold, is_unicode
from linkstore.errors import LinkError
from linkstore.extract.names import normalize_name

KEY_ELEMENT: Final = "key_element"
"""The kind of the links from facts to their key elements."""
FACT_SOURCE: Final = "linkstore:facts"
"""The source of the page entries that stand for chunks."""
CHUNK_KEY: Final = "chunk"
"""The metadata key of a fact that holds the id of its chunk."""
MOST_ELEMENTS: Final = 10
"""Maximum number of key elements of a fact, the first ones."""
_ARTICLE: Final = re.compile(r"^(?:the|an?) (?=\S{2})", re.IGNORECASE)
LONGEST_ELEMENT: Final = 80
"""Longer key elements, in characters, are phrases and left out."""
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[.,\s](?=\d{3})")
_STEM: Final = 4
"""Letters by which a name in a fact is looked for in its chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """The smallest statement that stands alone.

    Args:
        text: In a sentence.
        key_elements: The names, nouns, verbs and adjectives that it cannot do without, as written.
    """

    text: str
    key_elements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A chunk whose facts could not be extracted; the next run tries again.

    Args:
        chunk: Its id.
        reason: What went wrong.
    """

    chunk: str
    reason: str


Extracted = Sequence[Fact] | Failed
"""The facts of a chunk, or why there are none."""


class FactExtractor(Protocol):
    """Extracts facts from chunks.

    Facts are extracted anew when ``name`` changes, so it names all that the result depends on.
    """

    @property
    def name(self) -> str:
        """The name of the extractor, with its version."""
        ...

    def prompt_tokens(self, chunks: Sequence[Document]) -> int:
        """Count the tokens that would be sent to a model for these chunks."""
        ...

    def extract(self, chunks: Sequence[Document]) -> list[Extracted]:
        """Return the facts of each chunk, or the reason why there are none."""
        ...

    async def aextract(self, chunks: Sequence[Document]) -> list[Extracted]:
        """Return the facts of each chunk, or the reason why there are none."""
        ...


def read_place(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return title and innermost heading of a chunk, as far as it has them, once if they are the same."""
    title = metadata.get("title")
    names = (title if isinstance(title, str) else "", get_document_name(metadata))
    return tuple(dict.fromkeys(short for name in names if (short := " ".join(name.split()))))


def compute_digest(chunk: Document, extractor: str) -> str:
    """Return a hash of all that the facts of a chunk depend on."""
    parts = (extractor, chunk.page_content, *read_place(chunk.metadata))
    hashed = xxhash.xxh3_128(b"\0".join(part.encode("utf-8", "surrogatepass") for part in parts))
    return hashed.hexdigest()


def find_doubt(fact: str, chunk: Document) -> str:
    """Return the first name or number in a fact that its chunk, title and headings lack, or an empty string.

    A word counts as a name if it has a capital and does not begin the fact. Words are compared by their
    beginnings, so that "Norwegian" is not missed in a chunk that says "Norway", and numbers without signs.
    """
    return find_missing_name(fact, " ".join([*read_place(chunk.metadata), chunk.page_content]))


def find_missing_name(fact: str, source: str) -> str:
    """Return the first name or number in a fact that a text lacks, as :func:`find_doubt` does."""
    text = fold(source)
    numbers = set(_list_numbers(text))
    lacking = (number for number in _list_numbers(fact) if number not in numbers)
    names = (word for word in _WORD.findall(fact)[1:] if word[0].isupper() and fold(word)[:_STEM] not in text)
    return next(chain(lacking, names), "")


def _list_numbers(text: str) -> list[str]:
    """Return the numbers of a text, without leading zeros and what stands between groups of digits."""
    return [number.lstrip("0") for number in re.findall(r"\d+", _BETWEEN_DIGITS.sub("", text))]


def make_chunk_url(id: str) -> str:
    """Return the URL of the page entry that stands for a chunk."""
    return f"chunk:{id}"


def make_fact_page(chunk: Document, digest: str, facts: Iterable[Fact]) -> PageDocuments:
    """Make the page whose documents are the facts of a chunk, each once."""
    id = chunk.id or ""
    kept = {key: chunk.metadata[key] for key in ("title", "headings", "url") if key in chunk.metadata}
    common = {**kept, "type": "fact", "page": make_chunk_url(id), CHUNK_KEY: id}
    place = {name: fold(name) for name in read_place(chunk.metadata)}
    by_text: dict[str, Fact] = {}
    for fact in facts:
        by_text.setdefault(fold(fact.text), fact)
    by_text.pop("", None)
    documents = []
    for number, (fact_text, fact) in enumerate(by_text.items(), 1):
        lacking = ", ".join(name for name, folded in place.items() if folded not in fact_text)
        text = f"{lacking}: {fact.text}" if lacking else fact.text
        metadata = {**common, LINKS_KEY: make_element_links(fact)}
        documents.append(Document(id=f"fact:{id}:{number}", page_content=text, metadata=metadata))
    return PageDocuments(url=make_chunk_url(id), digest=digest, documents=tuple(documents))


def make_element_links(fact: Fact) -> list[dict[str, Any]]:
    """Return the links of a fact to its key elements, one for each name, with the first spelling as label.

    A name has at most :data:`LONGEST_ELEMENT` characters, of which one is visible; an article before it is
    left out.
    """
    spellings: dict[str, str] = {}
    for element in fact.key_elements:
        spelling = _ARTICLE.sub("", " ".join(element.split()))
        if len(spelling) <= LONGEST_ELEMENT and is_text(spelling):
            with suppress(LinkError):  # none of its characters is visible
                spellings.setdefault(normalize_name(spelling), spelling)
    return [
        {"kind": KEY_ELEMENT, "tag": name, "direction": "out"}
        | ({} if spelling == name else {"label": spelling})
        for name, spelling in islice(spellings.items(), MOST_ELEMENTS)
    ]


def is_text(text: str) -> bool:
    """Say whether a text has neither NUL characters nor lone surrogates."""
    return "\0" not in text and is_unicode(text)

"""Atomic facts and key elements, how they are stored, and a report on their spellings.

A fact is a document whose outgoing links of the kind :data:`KEY_ELEMENT` name its key elements; a key element
that several facts name is a document with the incoming link. Facts are the documents of a page entry that
stands for their chunk, so the facts of a chunk are replaced, and removed, in one change.

Source: S. Li et al., "GraphReader: Building Graph-based Agent to Enhance Long-Context Abilities of Large
Language Models", EMNLP Findings 2024, https://arxiv.org/abs/2406.14550.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, Protocol

import xxhash
from langchain_core.documents import Document

from linkstore.core.documents import PageDocuments
from linkstore.core.lexical import get_document_name
from linkstore.core.links import LINKS_KEY, OVERLAP, SECTION, parse_links
from linkstore.core.text import STOP_WORDS, fold, is_unicode, tokenize
from linkstore.errors import LinkError
from linkstore.extract.names import NameNormalizer

KEY_ELEMENT: Final = "key_element"
"""The kind of the links from facts to their key elements."""
FACT_SOURCE: Final = "linkstore:facts"
"""The source of the page entries that stand for chunks."""
ELEMENT_SOURCE: Final = "linkstore:key elements"
"""The source of the page entries that stand for key elements."""
ELEMENT_PREFIX: Final = "element:"
"""The beginning of the id of a key element."""
CHUNK_KEY: Final = "chunk"
"""The metadata key of a fact that holds the id of its chunk."""
MOST_ELEMENTS: Final = 10
"""Maximum number of key elements of a fact, the first ones."""
_ARTICLE: Final = re.compile(r"(?:the|an?)\s+(?=\S{2})", re.IGNORECASE)
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$", re.IGNORECASE)
LONGEST_ELEMENT: Final = 80
"""Longer key elements, in characters, are phrases and left out."""
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[.,\s](?=\d{3})")
_STEM: Final = 4
"""Letters by which a name in a fact is looked for in its chunk."""
_CACHED_SPELLINGS: Final = 1 << 16
"""Number of spellings that are cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """The smallest statement that stands alone.

    Args:
        text: In a sentence.
        key_elements: The names, nouns, verbs and adjectives that it cannot do without, as written.
        doubt: Why it is not taken for a statement of its chunk; such a fact is counted and not stored.
    """

    text: str
    key_elements: tuple[str, ...] = ()
    doubt: str = ""


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

    @property
    def calls_model(self) -> bool:
        """Whether each chunk costs a call of a model."""
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
    repeated = count_repeated(chunk)
    parts = (
        extractor,
        chunk.page_content,
        *read_place(chunk.metadata),
        *([f"{repeated}"] if repeated else ()),
    )
    hashed = xxhash.xxh3_128(b"\0".join(part.encode("utf-8", "surrogatepass") for part in parts))
    return hashed.hexdigest()


def count_repeated(chunk: Document) -> int:
    """Return how many characters at the beginning of a chunk are also the end of the one before."""
    links = parse_links({LINKS_KEY: chunk.metadata.get(LINKS_KEY)}, chunk.id)
    counts = (link.data.get(OVERLAP, 0) for link in links if link.kind == SECTION and link.data)
    return next(
        (count for count in counts if isinstance(count, int) and 0 < count < len(chunk.page_content)), 0
    )


def select_facts(chunk: Document, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts to store: each once, neither in doubt nor repeated from the chunk before.

    The chunk before has a fact whose words all stand in what both chunks share, or in the title or heading.
    """
    shared = set(
        tokenize(" ".join([chunk.page_content[: count_repeated(chunk)], *read_place(chunk.metadata)]))
    )
    kept: dict[str, Fact] = {}
    for fact in facts:
        text = fold(fact.text)
        words = set(tokenize(text)) - STOP_WORDS
        if text and not fact.doubt and not (count_repeated(chunk) and words <= shared):
            kept.setdefault(text, fact)
    return list(kept.values())


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


def make_fact_page(chunk: Document, digest: str, facts: Sequence[Fact], names: ElementNames) -> PageDocuments:
    """Make the page whose documents are the facts of a chunk."""
    id = chunk.id or ""
    kept = {key: chunk.metadata[key] for key in ("title", "headings", "url") if key in chunk.metadata}
    common = {**kept, "type": "fact", "page": make_chunk_url(id), CHUNK_KEY: id}
    place = {name: fold(name) for name in read_place(chunk.metadata)}
    documents = []
    for number, fact in enumerate(select_facts(chunk, facts), 1):
        fact_text = fold(fact.text)
        lacking = ", ".join(name for name, folded in place.items() if folded not in fact_text)
        text = f"{lacking}: {fact.text}" if lacking else fact.text
        metadata = {**common, LINKS_KEY: names.links(fact)}
        documents.append(Document(id=f"fact:{id}:{number}", page_content=text, metadata=metadata))
    return PageDocuments(url=make_chunk_url(id), digest=digest, documents=tuple(documents))


def make_element_page(name: str) -> PageDocuments:
    """Make the page whose document is a key element."""
    id = f"{ELEMENT_PREFIX}{name}"
    link = {"kind": KEY_ELEMENT, "tag": name, "direction": "in"}
    metadata = {"type": "key element", "page": id, LINKS_KEY: [link]}
    document = Document(id=id, page_content=name, metadata=metadata)
    return PageDocuments(url=id, digest="", documents=(document,))


def read_element_name(url: str) -> str:
    """Return the key element that a page entry stands for."""
    return url.removeprefix(ELEMENT_PREFIX)


class ElementNames:
    """The links of facts to their key elements, by the names under which spellings meet.

    Args:
        variants: Joins spellings.
    """

    def __init__(self, variants: NameNormalizer) -> None:
        self._variants = variants
        self._known = lru_cache(maxsize=_CACHED_SPELLINGS)(self._normalize)

    def links(self, fact: Fact) -> list[dict[str, Any]]:
        """Return the links of a fact, one for each name. The first spelling is the label, if it differs.

        Key elements are kept that are short and have a visible character.
        """
        spellings: dict[str, str] = {}
        for element in fact.key_elements:
            entry = self._known(element) if len(element) <= LONGEST_ELEMENT else self._normalize(element)
            if entry is not None:
                spellings.setdefault(*entry)
        return [
            {"kind": KEY_ELEMENT, "tag": name, "direction": "out"}
            | ({} if spelling == name else {"label": spelling})
            for name, spelling in islice(spellings.items(), MOST_ELEMENTS)
        ]

    def _normalize(self, written: str) -> tuple[str, str] | None:
        """Return the name and the spelling of a key element, or None if it is not kept.

        An article before it and a possessive after it are removed, so that "the Rhine's" meets "Rhine".
        """
        spelling = " ".join(written.split())
        if article := _ARTICLE.match(spelling):
            spelling = spelling[article.end() :]
        if "'" in spelling or "\u2019" in spelling:
            spelling = _POSSESSIVE.sub("", spelling)
        if len(spelling) > LONGEST_ELEMENT or not is_text(spelling):
            return None
        try:
            return self._variants.name(spelling), spelling
        except LinkError:  # none of its characters is visible
            return None


def is_text(text: str) -> bool:
    """Say whether a text has neither NUL characters nor lone surrogates."""
    return "\0" not in text and is_unicode(text)

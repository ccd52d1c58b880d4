"""Facts without a model: the sentences of a chunk, and the phrases in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from langchain_core.documents import Document

from linkstore.agents.facts import Extracted, Fact
from linkstore.agents.phrases import key_elements
from linkstore.agents.pronouns import pronouns_of, subject_of, with_subject
from linkstore.agents.sentences import sentences
from linkstore.drivers import in_thread
from linkstore.gc_pause import collection_paused
from linkstore.text import tokens

SHORTEST: Final = 3
"""Sentences of fewer words say nothing alone."""


class RuleExtractor:
    """Extracts facts with rules for English, without a model.

    Each sentence of at least three words is a fact. A pronoun that opens it is replaced by the subject of its
    section: the title of the page, else the heading. Its key elements are names (words with capitals), then
    the other phrases between stop words, then the subject.
    """

    @property
    def name(self) -> str:
        """The rules, with their version."""
        return "rules 1"

    @property
    def calls_model(self) -> bool:
        """False: no model is called."""
        return False

    def prompt_tokens(self, chunks: Sequence[Document]) -> int:
        """Return 0: no model is called."""
        return 0

    def extract(self, chunks: Sequence[Document]) -> list[Extracted]:
        """Return the facts of each chunk."""
        return collection_paused(lambda: [facts_of(chunk) for chunk in chunks])

    async def aextract(self, chunks: Sequence[Document]) -> list[Extracted]:
        """Return the facts of each chunk."""
        return await in_thread(self.extract, chunks)


def facts_of(chunk: Document) -> tuple[Fact, ...]:
    """Return the facts of a chunk, in order."""
    subject = subject_of(chunk.metadata)
    headings, pronouns = _heading_words(chunk), pronouns_of(chunk.page_content)
    found = dict.fromkeys(
        with_subject(sentence, subject, pronouns)
        for sentence in sentences(chunk.page_content)
        if len(words := sentence.split()) >= SHORTEST and not _is_heading(words, headings)
    )
    own = [subject] if subject else []
    return tuple(Fact(text=text, key_elements=(*key_elements(text), *own)) for text in found)


def _is_heading(words: Sequence[str], headings: frozenset[str]) -> bool:
    """Say whether a sentence has words of title and headings only, checking its first words first."""
    return all(map(headings.issuperset, map(_folded, words)))


@lru_cache(maxsize=1 << 16)
def _folded(word: str) -> tuple[str, ...]:
    return tokens(word)


def _heading_words(chunk: Document) -> frozenset[str]:
    """Return the words of title and headings. A sentence of nothing else is a heading."""
    title, headings = chunk.metadata.get("title"), chunk.metadata.get("headings")
    names = [title, *(headings if isinstance(headings, list) else ())]
    return frozenset(word for name in names if isinstance(name, str) for word in tokens(name))

"""Facts by rules, for tests: a sentence is a fact, and its words with capitals are its key elements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from scripted_model import ScriptedChatModel

from linkstore.agents import Fact
from linkstore.agents.facts import Extracted, ExtractedFact, ExtractedFacts
from linkstore.core.text import STOP_WORDS, split_sentences

_NAME: Final = re.compile(r"[A-Z]\w*(?:(?: of)? [A-Z]\w*)*")


class RuleExtractor:
    """Extracts facts without a model."""

    @property
    def name(self) -> str:
        return "rules"

    def prompt_tokens(self, chunks: Sequence[Document]) -> int:
        return 0

    def extract(self, chunks: Sequence[Document]) -> list[Extracted]:
        return [extract_facts(chunk.page_content) for chunk in chunks]

    async def aextract(self, chunks: Sequence[Document]) -> list[Extracted]:
        return self.extract(chunks)


def extract_facts(text: str) -> list[Fact]:
    """The facts of a text, in order."""
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(text)]
    names = [[name for name in _NAME.findall(text) if name.lower() not in STOP_WORDS] for text in sentences]
    return [Fact(text=text, key_elements=tuple(of)) for text, of in zip(sentences, names, strict=True)]


def model_by_rules() -> ScriptedChatModel:
    """A model that extracts the facts of a passage as the rules do."""
    return ScriptedChatModel(script=_answer)


def _answer(messages: Sequence[BaseMessage]) -> ExtractedFacts:
    facts = extract_facts(str(messages[-1].text).rpartition("Passage:\n")[2])
    made = [ExtractedFact(fact=fact.text, key_elements=list(fact.key_elements)) for fact in facts]
    return ExtractedFacts(facts=made)

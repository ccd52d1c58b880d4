"""Models that stand in for a chat model in the benchmark of the reader: an oracle, and overlap of words."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from linkstore.core.text import STOP_WORDS, tokenize

LINE = re.compile(r"^- \[P(\d+)\] (.*)$", re.MULTILINE)
PASSAGE = re.compile(r"^\[P(\d+)\][^\n]*\n<text((?:-\d+)?)>\n(.*?)\n</text\2>$", re.MULTILINE | re.DOTALL)
ELEMENTS = re.compile(r"^Key elements, .*?: (.*)$", re.MULTILINE)
SENTENCE = re.compile(r"(?<=[.!?])\s+")
WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")


class StandIn:
    """Answers a reader's prompts; subclasses decide what to read.

    Args:
        most: After so many passages the reading ends.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._read = 0

    def __call__(self, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        """Answer one prompt."""
        task, shown = str(messages[0].text), str(messages[-1].text)
        if task.startswith("A library"):
            return {"search": []}
        if "the exploration has ended" in task:
            return {"answered": False}
        passages = {number: text for number, _, text in PASSAGE.findall(shown)}
        self._read += len(passages)
        after = PASSAGE.sub("", shown)
        return self.decide(passages, dict(LINE.findall(after)), ELEMENTS.findall(after))

    def decide(
        self, passages: Mapping[str, str], lines: Mapping[str, str], elements: Sequence[str]
    ) -> dict[str, Any]:
        """Decide what to do after reading.

        Args:
            passages: Those just read, by number.
            lines: What may be read, by number.
            elements: What may be explored, in one string.
        """
        raise NotImplementedError


class Oracle(StandIn):
    """Knows which passages answer the question, and chooses these, else key elements that lead to them.

    Args:
        gold: Ids of the passages.
        naming: Key elements that facts of each of them name.
        numbered: The ids that the reader has numbered so far; the caller keeps it up to date.
    """

    def __init__(
        self, gold: frozenset[str], naming: Mapping[str, frozenset[str]], numbered: list[str], most: int
    ) -> None:
        super().__init__(most)
        self._wanted = set(gold)
        self._naming, self._numbered = naming, numbered

    def decide(
        self, passages: Mapping[str, str], lines: Mapping[str, str], elements: Sequence[str]
    ) -> dict[str, Any]:
        """Choose gold, else a key element of gold, else nothing."""
        self._wanted -= {self._id(number) for number in passages}
        if not self._wanted or self._read >= self._most:
            return {"finished": True}
        gold = [number for number in lines if self._id(number) in self._wanted]
        if gold:
            return {"read": gold, "sure": True}
        offered = [name for line in elements for name in line.split("; ")]
        leading = (name for name in offered if any(name in self._naming.get(id, ()) for id in self._wanted))
        return {"key_elements": list(leading)[:1]}

    def _id(self, number: str) -> str:
        return self._numbered[int(number) - 1]


class WordOverlap(StandIn):
    """Chooses the passage with the most words of the question, with noise: now and then, any passage.

    It is never sure. Its note is the sentence with the most words of the question. It searches for the words
    of the question that its note lacks, with the names in the note that the question lacks.

    Args:
        question: As it was asked.
        noise: How often, from 0 to 1, it chooses at random.
        seed: Of the random choices.
    """

    def __init__(self, question: str, noise: float, seed: int, most: int) -> None:
        super().__init__(most)
        self._question = question
        self._words = content_words(question)
        self._noise, self._random = noise, random.Random(seed)

    def decide(
        self, passages: Mapping[str, str], lines: Mapping[str, str], elements: Sequence[str]
    ) -> dict[str, Any]:
        """Note, choose and search."""
        if self._read >= self._most:
            return {"finished": True}
        sentences = [(one, number) for number, text in passages.items() for one in SENTENCE.split(text)]
        note, number = max(sentences, key=lambda one: self._share(one[0]), default=("", ""))
        decision: dict[str, Any] = {
            "notes": f"{note} [P{number}]" if note else "",
            "search": [query] if (query := " ".join(self._missing(note))) else [],
        }
        if lines:
            best = max(lines, key=lambda number: self._share(lines[number]))
            number = self._random.choice(list(lines)) if self._random.random() < self._noise else best
            decision |= {"read": [f"P{number}"]}
        return decision

    def _share(self, text: str) -> float:
        return len(self._words & content_words(text)) / max(1, len(self._words))

    def _missing(self, note: str) -> Iterator[str]:
        if note:
            known = content_words(note)
            yield from (word for word in WORD.findall(self._question) if not content_words(word) <= known)
            names = (word for word in WORD.findall(note) if word[0].isupper())
            yield from dict.fromkeys(name for name in names if not content_words(name) <= self._words)


def content_words(text: str) -> set[str]:
    """The words of a text that are no stop words."""
    return set(tokenize(text)) - STOP_WORDS

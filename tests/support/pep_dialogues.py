"""Dialogues about the PEPs, each with a question that refers to what was said, and what it refers to.

``tests/memory/dialogues.json`` holds 60 dialogues of five kinds: pronouns, ellipsis, positions in a list,
returns to an earlier topic, and ambiguity. Up to 40 turns on other subjects stand before or in a dialogue.
A reference is resolved if the question then has a spelling of each thing that it needs, and nothing that it
does not mean. Half of each kind is for development, the other half is held out; it was looked at once, and
then ``later_dialogues.json``, with two of each kind, was held out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from linkstore.core.text import fold

FILE = Path(__file__).parents[1] / "memory" / "dialogues.json"
Half = Literal["dev", "held-out"]
Exchange = tuple[str, str]
"""A query and its response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A conversation that ends with a question.

    Args:
        id: Its kind and number.
        kind: ``pronoun``, ``ellipsis``, ``ordinal``, ``return`` or ``ambiguity``.
        half: Which half it belongs to.
        said: The turns before the question.
        ask: The question.
        any_of: For each thing that the question needs, its spellings.
        none_of: What the question does not mean.
        page: The PEP that answers the question.
    """

    id: str
    kind: str
    half: str
    said: tuple[Exchange, ...]
    ask: str
    any_of: tuple[tuple[str, ...], ...]
    none_of: tuple[str, ...]
    page: str

    def is_resolved(self, question: str) -> bool:
        """Whether a question says what this one means."""
        has_all = all(any(map(_pattern(question), group)) for group in self.any_of)
        return has_all and not any(_names(question, wrong) for wrong in self.none_of)


def dialogues(half: Half | None = None, file: Path = FILE) -> list[Dialogue]:
    """All dialogues of a file, or those of one half."""
    content = json.loads(file.read_text(encoding="utf-8"))
    unrelated = [(one["query"], one["response"]) for one in content["unrelated"]]
    return [
        Dialogue(
            id=one["id"],
            kind=one["kind"],
            half=one["half"],
            said=tuple(_exchanges(one["turns"], unrelated)),
            ask=one["ask"],
            any_of=tuple(map(tuple, one["gold"]["any_of"])),
            none_of=tuple(one["gold"]["none_of"]),
            page=one["gold"]["page"],
        )
        for one in content["dialogues"]
        if half in (None, one["half"])
    ]


def share_resolved(told: Sequence[Dialogue], resolve: Callable[[Dialogue], str]) -> float:
    """The share of the dialogues whose question is resolved, in [0, 1]."""
    return sum(one.is_resolved(resolve(one)) for one in told) / len(told)


def _exchanges(turns: Sequence[dict[str, str | int]], unrelated: Sequence[Exchange]) -> Iterator[Exchange]:
    for turn in turns:
        if "unrelated" in turn:
            yield from unrelated[: int(turn["unrelated"])]
        else:
            yield str(turn["query"]), str(turn["response"])


def _pattern(question: str) -> Callable[[str], bool]:
    """Whether the question has a word that begins with a spelling; numbers end where they end."""
    return lambda spelling: _found(question, spelling, r"(?!\d)" if spelling[-1].isdigit() else "")


def _names(question: str, name: str) -> bool:
    return _found(question, name, r"(?!\w)")


def _found(question: str, words: str, end: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(fold(words))}{end}", fold(question)) is not None

"""Summaries of closed topic segments, read instead of their turns.

Without a model a summary is extractive: the sentences that the segment's most frequent entities are in, as in
H. P. Luhn, "The Automatic Creation of Literature Abstracts", IBM Journal 2(2), 1958.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import Operation, Plan, read_documents
from linkstore.core.text import fold
from linkstore.memory.recalled import format_turn
from linkstore.memory.requests import ask_model
from linkstore.memory.turns import MENTIONS, SUMMARISES, SessionKey, Summary, Turn, format_time, make_metadata

FEWEST_TURNS: Final = 3
"""A segment with fewer turns has no summary: its turns are as short."""
MOST_SUMMARIES: Final = 3
"""How many summaries a recall gives, those of the latest closed segments."""
_MOST_SENTENCES: Final = 4
_MOST_KEY_ENTITIES: Final = 8
_LONGEST_SENTENCE: Final = 240
"""Characters of a sentence in a summary."""
_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_SUMMARY_PROMPT: Final = """
Summarise this part of a conversation in at most three sentences: what was asked, what was answered, and what
was decided. Add nothing.

{conversation}

Summary:"""


def make_summary_document(turns: Sequence[Turn], text: str) -> Document:
    """Make the document of a segment's summary, linked to the segment and to its key entities."""
    session, segment = turns[0].session, turns[0].segment
    names = rank_key_entities(turns)
    links = [Link.outgoing(kind=SUMMARISES, tag=session.segment(segment))]
    links += (Link.outgoing(kind=MENTIONS, tag=session.entity(segment, name), label=name) for name in names)
    metadata = {
        **make_metadata("summary", session),
        "segment": segment,
        "time": format_time(min(turn.time for turn in turns)),
        LINKS_KEY: [link.to_dict() for link in links],
    }
    return Document(id=session.summary(segment), page_content=text, metadata=metadata)


def summarise(turns: Sequence[Turn], model: BaseLanguageModel[Any] | None) -> Operation[str]:
    """Summarise a segment, by the model if there is one."""
    if model is None:
        return extract_sentences(turns)
    conversation = "\n".join(map(format_turn, turns))
    answer: str = yield from ask_model(model, _SUMMARY_PROMPT.strip().format(conversation=conversation))
    return answer or extract_sentences(turns)


def extract_sentences(turns: Sequence[Turn]) -> str:
    """Return the sentences of turns that have most of their frequent entities, in order."""
    counts = Counter(word for turn in turns for name in turn.entities for word in fold(name).split())
    sentences = [
        sentence.strip()[:_LONGEST_SENTENCE]
        for turn in turns
        for text in (turn.query, turn.response or "")
        for sentence in _END.split(text)
        if sentence.strip()
    ]
    distinct = list(dict.fromkeys(sentences))

    def worth(at: int) -> tuple[float, int]:
        words = set(fold(distinct[at]).split())
        return -sum(counts[word] for word in words) / (8 + len(words)), at

    chosen = sorted(sorted(range(len(distinct)), key=worth)[:_MOST_SENTENCES])
    return " ".join(distinct[at] for at in chosen) or turns[0].text[:_LONGEST_SENTENCE]


def rank_key_entities(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the entities that most of the turns mention, the first mentioned first among equals."""
    spelled = {fold(name): name for turn in reversed(turns) for name in reversed(turn.entities)}
    counts = Counter(fold(name) for turn in turns for name in turn.entities)
    return tuple(spelled[key] for key, _ in counts.most_common(_MOST_KEY_ENTITIES))


def read_summaries(
    session: SessionKey, last_segment: int, most: int = MOST_SUMMARIES, since: datetime | None = None
) -> Plan[list[Summary]]:
    """Return the summaries of the latest closed segments, in order.

    Args:
        session: The conversation.
        last_segment: The segment that is not closed.
        most: How many segments are looked at.
        since: Leave out the summaries of segments with an earlier turn.
    """
    numbers = range(max(1, last_segment - most), last_segment)
    stored = yield from read_documents(map(session.summary, numbers))
    return [
        Summary(
            segment=one.metadata["segment"],
            text=one.text,
            entities=tuple(link["label"] for link in one.metadata[LINKS_KEY] if link["kind"] == MENTIONS),
        )
        for one in stored
        if since is None or one.metadata["time"] >= format_time(since)
    ]

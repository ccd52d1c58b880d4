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

from linkstore.links import LINKS_KEY, Link
from linkstore.memory.keys import SessionKey
from linkstore.memory.recalled import shown_turn
from linkstore.memory.requests import think
from linkstore.memory.turns import MENTIONS, SUMMARISES, Summary, Turn, common_metadata, written_time
from linkstore.plans import Candidates, Documents, Find, Operation, Plan, Stored
from linkstore.text import fold

FEWEST_TURNS: Final = 3
"""A segment with fewer turns has no summary: its turns are as short."""
READ: Final = 3
"""How many summaries a recall gives, those of the latest closed segments."""
_SENTENCES: Final = 4
_KEY_ENTITIES: Final = 8
_LONGEST: Final = 240
"""Characters of a sentence in a summary."""
_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_PROMPT: Final = """
Summarise this part of a conversation in at most three sentences: what was asked, what was answered, and what
was decided. Add nothing.

{conversation}

Summary:"""


def summary_document(turns: Sequence[Turn], text: str) -> Document:
    """Make the document of a segment's summary, linked to the segment and to its key entities."""
    session, segment = turns[0].session, turns[0].segment
    names = key_entities(turns)
    links = [Link.outgoing(kind=SUMMARISES, tag=session.segment(segment))]
    links += (Link.outgoing(kind=MENTIONS, tag=session.entity(segment, name), label=name) for name in names)
    metadata = {
        **common_metadata("summary", session),
        "segment": segment,
        "time": written_time(min(turn.time for turn in turns)),
        LINKS_KEY: [link.to_dict() for link in links],
    }
    return Document(id=session.summary(segment), page_content=text, metadata=metadata)


def summary_text(turns: Sequence[Turn], model: BaseLanguageModel[Any] | None) -> Operation[str]:
    """Summarise a segment, by the model if there is one."""
    if model is None:
        return extracted(turns)
    conversation = "\n".join(map(shown_turn, turns))
    answer: str = yield from think(model, _PROMPT.strip().format(conversation=conversation))
    return answer or extracted(turns)


def extracted(turns: Sequence[Turn]) -> str:
    """Return the sentences of turns that have most of their frequent entities, in order."""
    counts = Counter(word for turn in turns for name in turn.entities for word in fold(name).split())
    sentences = [
        sentence.strip()[:_LONGEST]
        for turn in turns
        for text in (turn.query, turn.response or "")
        for sentence in _END.split(text)
        if sentence.strip()
    ]
    distinct = list(dict.fromkeys(sentences))

    def worth(at: int) -> tuple[float, int]:
        words = set(fold(distinct[at]).split())
        return -sum(counts[word] for word in words) / (8 + len(words)), at

    chosen = sorted(sorted(range(len(distinct)), key=worth)[:_SENTENCES])
    return " ".join(distinct[at] for at in chosen) or turns[0].text[:_LONGEST]


def key_entities(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the entities that most of the turns mention, the first mentioned first among equals."""
    spelled = {fold(name): name for turn in reversed(turns) for name in reversed(turn.entities)}
    counts = Counter(fold(name) for turn in turns for name in turn.entities)
    return tuple(spelled[key] for key, _ in counts.most_common(_KEY_ENTITIES))


def stored_summaries(
    session: SessionKey, last_segment: int, most: int = READ, since: datetime | None = None
) -> Plan[list[Summary]]:
    """Return the summaries of the latest closed segments, in order.

    Args:
        session: The conversation.
        last_segment: The segment that is not closed.
        most: How many segments are looked at.
        since: Leave out the summaries of segments with an earlier turn.
    """
    numbers = range(max(1, last_segment - most), last_segment)
    found: Candidates = yield Find(ids=tuple(map(session.summary, numbers)))
    stored: list[Stored] = yield Documents(refs=found.refs)
    return [
        Summary(
            segment=one.metadata["segment"],
            text=one.text,
            entities=tuple(link["label"] for link in one.metadata[LINKS_KEY] if link["kind"] == MENTIONS),
        )
        for one in stored
        if since is None or one.metadata["time"] >= written_time(since)
    ]

"""The questions that a store did not answer, kept in it with their counts, for ``linkstore doctor``.

The tools of an agent record them; other searches write nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from linkstore.core.calls import Operation, call_engine
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import LinkStoreError

UNANSWERED_NOTE: Final = "unanswered questions"
"""The note that holds them."""
MAX_KEPT: Final = 200
"""How many different questions are kept, those asked last."""
MAX_LENGTH: Final = 300
"""How many characters of a question are kept."""
_MAX_TRIES: Final = 3
_LOG: Final = logging.getLogger("linkstore")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredQuestion:
    """A question that found nothing.

    Args:
        question: Its first characters.
        count: How often it was asked.
        last: When it was asked last, in UTC.
    """

    question: str
    count: int
    last: datetime


def read_unanswered(backend: Backend) -> Operation[list[UnansweredQuestion]]:
    """Return the questions that are kept, the most frequent first, then the latest."""
    text = yield from call_engine(backend, backend.note(UNANSWERED_NOTE))
    rows = orjson.loads(text) if text else {}
    questions = [
        UnansweredQuestion(question=question, count=count, last=datetime.fromisoformat(last))
        for question, (count, last) in rows.items()
    ]
    return sorted(questions, key=lambda question: (question.count, question.last), reverse=True)


def record_unanswered(backend: Backend, questions: Iterable[str]) -> Operation[None]:
    """Count questions that found nothing. An unwritable store stays as it is."""
    asked = [" ".join(question.split())[:MAX_LENGTH] for question in questions]
    if not (asked := [question for question in asked if question]):
        return

    def count(text: str | None) -> str:
        rows: dict[str, tuple[int, str]] = orjson.loads(text) if text else {}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for question in asked:
            rows[question] = rows.pop(question, (0, ""))[0] + 1, now
        return orjson.dumps(dict(list(rows.items())[-MAX_KEPT:])).decode()

    try:
        yield from call_engine(backend, backend.change_note(UNANSWERED_NOTE, count, _MAX_TRIES))
    except LinkStoreError as error:
        _LOG.debug("a question without an answer is not kept: %s", error)

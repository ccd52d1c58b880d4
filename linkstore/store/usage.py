"""What a store keeps of its use: when documents were last accessed, and the questions that found nothing.

The tools of an agent record such questions, for ``linkstore doctor``; other searches write nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from linkstore.core.arguments import omit_none, require
from linkstore.core.calls import Operation, arun, call_engine, run
from linkstore.core.documents import keep_storable
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import DocumentError, LinkStoreError

_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
"""How far the clock of whoever says when an access was may be ahead of this machine's."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
UNANSWERED_NOTE: Final = "unanswered questions"
"""The note that holds them."""
MAX_KEPT: Final = 200
"""How many different questions are kept, those asked last."""
MAX_LENGTH: Final = 300
"""How many characters of a question are kept."""
_MAX_TRIES: Final = 3
_LOG: Final = logging.getLogger("linkstore")


class StoreAccesses:
    """When the documents of a store were last accessed: ``store.accesses``."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def record(self, ids: Sequence[str], at: datetime | None = None) -> int:
        """Record that documents were accessed. Documents, vectors and indexes are not written.

        The latest access is kept. It stays when a document is updated, and goes when it is removed.

        Args:
            ids: The documents. Ids that do not exist are ignored.
            at: When they were accessed, with a time zone. None: now.

        Returns:
            How many of the documents exist.

        Raises:
            DocumentError: If ``at`` has no time zone, or lies before 1970 or more than a
                minute in the future.
            ArgumentError: If the ids are not a list of strings.
        """
        return self._backend.run(self._backend.touch(make_access_times(ids, at)))

    async def arecord(self, ids: Sequence[str], at: datetime | None = None) -> int:
        """Record that documents were accessed: see :meth:`record`."""
        return await self._backend.arun(self._backend.touch(make_access_times(ids, at)))

    def read(self, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when documents were last accessed, in UTC, by id, leaving out those never accessed."""
        return run(read_access_times(self._backend, ids))

    async def aread(self, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when documents were last accessed: see :meth:`read`."""
        return await arun(read_access_times(self._backend, ids))


def read_access_times(backend: Backend, ids: Sequence[str]) -> Operation[dict[str, datetime]]:
    """Return when documents were last accessed, for those with a recorded time."""
    asked = list(dict.fromkeys(keep_storable("ids", ids)))
    times = yield from call_engine(backend, backend.accessed(asked))
    return {id: _EPOCH + timedelta(microseconds=times[id]) for id in asked if id in times}


def convert_access_time(moment: datetime) -> int:
    """Return a time of access as engines keep it, in microseconds since 1970.

    Raises:
        DocumentError: If it lies before 1970.
    """
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    if micros < 0:
        raise DocumentError(f"the time of an access must not lie before 1970: {moment!r}")
    return micros


def make_access_times(ids: Sequence[str], at: datetime | None) -> dict[str, int]:
    """Return the time of an access in microseconds since 1970, by the ids of the documents.

    Raises:
        DocumentError: If ``at`` has no time zone, or lies before 1970 or in the future.
    """
    require(datetime, "a datetime", **omit_none(at=at))
    now = datetime.now(UTC)
    moment = now if at is None else at
    if moment.tzinfo is None:
        raise DocumentError(f"the time of an access needs a time zone: {moment!r}; use datetime.now(UTC)")
    micros = convert_access_time(moment)
    if moment > now + _CLOCK_TOLERANCE:
        raise DocumentError(
            f"the time of an access must not lie in the future: {moment!r}, and it is {now!r}; the latest"
            " access stays, so this one would hide those to come"
        )
    return dict.fromkeys(keep_storable("ids", ids), micros)


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

"""When the documents of a store were last accessed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from linkstore.core.arguments import omit_none, require
from linkstore.core.calls import Operation, arun, call_engine, run
from linkstore.core.documents import keep_storable
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import DocumentError

_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
"""How far the clock of whoever says when an access was may be ahead of this machine's."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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

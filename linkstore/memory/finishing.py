"""Forgettings that were interrupted are finished by the memories that are open."""

from __future__ import annotations

import logging
import time
from typing import Final

from linkstore.errors import StoreBusyError, StoreReadOnlyError
from linkstore.memory.forgetting import finished
from linkstore.memory.parts import Parts
from linkstore.plans import Operation

LOOK_SECONDS: Final = 60.0
"""How often an open memory looks for forgettings that were interrupted."""
_LOG: Final = logging.getLogger("linkstore.memory")


class Finisher:
    """Finishes forgettings that were interrupted: at the first operation of a memory all that there are.

    Then it looks again with the first operation after each minute, and finishes those that it found the last
    time as well: the others may be under way in other processes.

    Args:
        parts: Of the memory.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._looks_at = 0.0
        self._found: frozenset[str] | None = None

    def look(self) -> Operation[None]:
        """Finish what is to be finished now, if it is time to look.

        If the store is read-only or busy, this is logged, and the next look tries again.
        """
        if time.monotonic() < self._looks_at:
            return
        try:
            self._found = yield from finished(self._parts, self._found)
        except (StoreReadOnlyError, StoreBusyError) as error:
            _LOG.warning("turns that are to be forgotten may be there for now: %s", error)
        self._looks_at = time.monotonic() + LOOK_SECONDS

"""Python's cyclic garbage collector, held off while many objects are made that live on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LOCK: Final = threading.Lock()
_PAUSES: Final[list[bool]] = []
"""One entry for each pause in force; the first says whether the collector was on before."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Hold the collector off for the length of a block that waits for nobody.

    Reading 10,000 documents makes 100,000 links and no cycle; the collector would look at all of
    them, and at everything else in the process, again and again: a third of the time of a bulk load.
    """
    with _LOCK:
        _PAUSES.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            was_on = _PAUSES.pop(0) if len(_PAUSES) == 1 else _PAUSES.pop()
            if was_on and not _PAUSES:
                gc.enable()

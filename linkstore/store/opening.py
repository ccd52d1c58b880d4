"""Closes what was opened if the rest of the opening fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Closable(Protocol):
    """An object that can be closed."""

    def close(self) -> object:
        """Release everything."""
        ...


@contextmanager
def closed_on_failure(opened: Closable) -> Iterator[None]:
    """Close what was opened if the block raises anything, an interrupt included."""
    try:
        yield
    except BaseException:
        opened.close()
        raise

"""Exit codes: one table, the same for every command."""

from __future__ import annotations

from typing import Final

from linkstore.errors import (
    EmbeddingError,
    FilterError,
    LinkStoreError,
    MissingExtraError,
    SourceConflictError,
    StoreBusyError,
    StoreFormatError,
    StoreNotFoundError,
    StoreUnavailableError,
    StrategyError,
)

OTHER: Final = 1
"""Anything that has no code of its own."""
USAGE: Final = 2
"""What was asked makes no sense: an unknown option, an empty query, a bad filter, a wrong path or URL."""
NOT_FOUND: Final = 3
"""There is no store at the given place."""
BUSY: Final = 4
"""Another process held the store for too long."""
DAMAGED: Final = 5
"""The store is damaged, or of another version."""
EMBEDDING: Final = 6
"""The embedding is unknown or not the store's, or an optional dependency is not installed."""
UNAVAILABLE: Final = 7
"""A server below could not be reached, or did not answer in time."""
INTERRUPTED: Final = 130
"""Stopped by Ctrl-C."""


class UsageError(LinkStoreError, ValueError):
    """What the user asked for on the command line makes no sense."""


_CODES: Final[tuple[tuple[type[LinkStoreError], int], ...]] = (
    (StoreNotFoundError, NOT_FOUND),
    (StoreBusyError, BUSY),
    (StoreFormatError, DAMAGED),
    (StoreUnavailableError, UNAVAILABLE),
    (EmbeddingError, EMBEDDING),
    (MissingExtraError, EMBEDDING),
    (SourceConflictError, USAGE),
    (FilterError, USAGE),
    (StrategyError, USAGE),
    (UsageError, USAGE),
)


def exit_code(error: BaseException) -> int:
    """The exit code that an error ends the command with."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), OTHER)

"""Exit codes: one table for all commands."""

from __future__ import annotations

import signal
from typing import Final

from linkstore.cli.starting import Terminated
from linkstore.errors import (
    BudgetError,
    EmbeddingError,
    EvaluationError,
    FilterError,
    LinkStoreError,
    MissingExtraError,
    SourceConflictError,
    StoreBusyError,
    StoreFormatError,
    StoreNotFoundError,
    StoreUnavailableError,
    StrategyError,
    UnknownNameError,
)

OTHER: Final = 1
"""Anything that has no code of its own."""
USAGE: Final = 2
"""Wrong usage: an unknown option, an empty query, a bad filter, a wrong path or URL."""
NOT_FOUND: Final = 3
"""The store does not exist."""
BUSY: Final = 4
"""Another process held the store for too long."""
DAMAGED: Final = 5
"""The store is damaged, or of another version."""
EMBEDDING: Final = 6
"""The embedding is unknown or not the store's, or an optional dependency is not installed."""
UNAVAILABLE: Final = 7
"""A server could not be reached, or did not answer in time: that of the store, or the website to index."""
INCOMPLETE: Final = 8
"""Part of the source could not be seen, or most of it is gone: what is stored of that was kept."""
NOTHING: Final = 9
"""The source has nothing that can be indexed."""
ALARMED: Final = 10
"""A checkup found something that needs attention."""
HUNG_UP: Final = 129
"""Stopped by SIGHUP, as when its terminal was closed."""
INTERRUPTED: Final = 130
"""Stopped by Ctrl-C."""
UNREAD: Final = 141
"""The reader of the output closed it, as ``head`` does."""
TERMINATED: Final = 143
"""Stopped by SIGTERM."""


class UsageError(LinkStoreError, ValueError):
    """The command line was used in a wrong way."""


class UnavailableError(LinkStoreError):
    """A website could not be reached."""


_CODES: Final[tuple[tuple[type[LinkStoreError], int], ...]] = (
    (StoreNotFoundError, NOT_FOUND),
    (StoreBusyError, BUSY),
    (StoreFormatError, DAMAGED),
    (StoreUnavailableError, UNAVAILABLE),
    (EmbeddingError, EMBEDDING),
    (MissingExtraError, EMBEDDING),
    (SourceConflictError, USAGE),
    (FilterError, USAGE),
    (UnknownNameError, USAGE),
    (StrategyError, USAGE),
    (EvaluationError, USAGE),
    (BudgetError, USAGE),
    (UsageError, USAGE),
    (UnavailableError, UNAVAILABLE),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code that an error or interrupt ends the command with."""
    if isinstance(error, Terminated):
        return TERMINATED if error.number == signal.SIGTERM else HUNG_UP
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return next((code for kind, code in _CODES if isinstance(error, kind)), OTHER)

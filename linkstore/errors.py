"""Everything linkstore raises on purpose.

::

    LinkStoreError
    ├── LinkError               a link that cannot be stored
    ├── FilterError             a metadata filter that cannot be understood
    ├── StrategyError           a strategy with settings that cannot work
    ├── DocumentError           a document, id or vector that cannot be stored
    ├── SourceConflictError     two sources with a page of the same name
    ├── EmbeddingError          an embedding that is missing, unknown, or not the recorded one
    ├── ExtractionError         an extractor that is missing or failed
    ├── EvaluationError         a corpus or questions that nothing can be measured with
    ├── MissingExtraError       an optional dependency that is not installed
    └── BackendError            the engine below could not do its work
        ├── StoreNotFoundError  no store at this path
        ├── StoreFormatError    a store of another version, or damaged
        ├── StoreClosedError    used after ``close()``
        ├── StoreMovedError     the folder of an open store was deleted, renamed or replaced
        ├── StorePermissionError  the system does not let us open the store's files
        ├── StoreReadOnlyError  a write to a store that can only be read
        ├── StoreBusyError      another writer held the store for too long
        ├── StoreFullError      no space left; what was stored before is intact
        ├── StoreLimitError     the store would hold more than its format can number
        ├── ClockSkewError      this machine's clock and the server's differ too much
        ├── CapabilityError     the engine cannot do this at all, such as search by words
        └── StoreUnavailableError  a server that cannot be reached or does not answer in time
"""

from __future__ import annotations


class LinkStoreError(Exception):
    """Root of every error linkstore raises on purpose.

    Args:
        message: What was wrong and what to do about it, in one or two sentences.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class LinkError(LinkStoreError, ValueError):
    """A link cannot be stored: an empty kind or tag, an unknown direction, a tag too long."""


class FilterError(LinkStoreError, ValueError):
    """A metadata filter names an unknown operator or compares with an impossible value."""


class StrategyError(LinkStoreError, ValueError):
    """A strategy's settings contradict each other or are out of range."""


class DocumentError(LinkStoreError, ValueError):
    """A document cannot be stored: its id, metadata or vector is not acceptable."""


class SourceConflictError(LinkStoreError, ValueError):
    """A page has the name of one that another source has stored; one would replace the other."""


class EmbeddingError(LinkStoreError, ValueError):
    """The embedding is missing, unknown, or not the one the store was built with."""


class ExtractionError(LinkStoreError):
    """A link extractor is not installed, not well made, or failed on its source."""


class EvaluationError(LinkStoreError, ValueError):
    """A corpus, or questions with gold answers, cannot be used; the message names the file and line."""


class MissingExtraError(LinkStoreError, ImportError):
    """An optional dependency is needed.

    Args:
        feature: What was asked for, as the user knows it.
        extra: The extra of ``langchain-linkstore`` that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}': pip install 'langchain-linkstore[{extra}]'")
        self.feature = feature
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.feature, self.extra)


class BackendError(LinkStoreError):
    """The storage engine failed; the message names the place, the operation and what to do."""


class StoreNotFoundError(BackendError, FileNotFoundError):
    """There is no linkstore at the given path."""


class StoreFormatError(BackendError):
    """The store was written by another version, or its files are damaged."""


class StoreClosedError(BackendError):
    """The store was used after ``close()``."""


class StoreMovedError(BackendError):
    """The folder of an open store was deleted, renamed or replaced by another; open the store again."""


class StorePermissionError(BackendError, PermissionError):
    """The system does not let this process open the store's files."""


class StoreReadOnlyError(BackendError):
    """The store lies in a folder or on a device that can only be read, and a write was asked for."""


class StoreBusyError(BackendError, TimeoutError):
    """Another process or thread held the store's write lock for too long."""


class StoreFullError(BackendError):
    """The disk is full; nothing was written and what was stored before is intact."""


class StoreLimitError(BackendError):
    """The store would hold more than its format can number; nothing of the change was written."""


class ClockSkewError(BackendError):
    """This machine's clock and that of the server differ by more than is allowed; the message says both."""


class CapabilityError(BackendError):
    """The storage engine cannot do what was asked, whatever the data: choose a strategy without it."""


class StoreUnavailableError(BackendError, ConnectionError):
    """The server below could not be reached, or did not answer within the deadline; try again later."""

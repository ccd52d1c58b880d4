"""The exceptions that linkstore raises, and the class of its warnings.

::

    LinkStoreError
    ├── ArgumentError           an argument of the wrong type, such as a path instead of a store
    ├── LinkError               a link that cannot be stored
    ├── FilterError             an invalid metadata filter
    ├── UnknownNameError        a link kind, metadata field or field of link data that no document has
    ├── StrategyError           a strategy with invalid settings
    ├── QueryError              a query about links that is malformed, or that nothing can answer
    ├── SchemaError             an invalid schema, or documents that the store's schema does not allow
    ├── DocumentError           a document, id or vector that cannot be stored
    ├── SourceNotFoundError     no folder, file or website to index at this place
    ├── SourceConflictError     two sources have a page of the same name
    ├── EmbeddingError          an embedding that is missing, unknown, or not the recorded one
    ├── ExtractionError         an extractor that is missing or failed
    ├── EvaluationError         a corpus or a question set that cannot be used
    ├── BudgetError             a token budget too small for what must be in a context
    ├── AgentError              the model of an agent failed, or did not answer as it was asked to
    ├── MissingExtraError       an optional dependency that is not installed
    ├── FetchError              a URL that could not be fetched
    │   └── ForbiddenUrlError   a URL that is not requested, such as a private address
    ├── UnavailableError        a server that cannot be reached or does not answer in time
    │   ├── RobotsError         a robots.txt that cannot be read, also a FetchError
    │   └── SiteUnavailableError  a site that does not answer
    └── BackendError            the storage engine failed
        ├── StoreNotFoundError  no store at this path
        ├── StoreFormatError    a store of another version, or damaged
        ├── StoreClosedError    used after ``close()``
        ├── StoreMovedError     the folder of an open store was deleted, renamed or replaced
        ├── StorePermissionError  the process may not open the store's files
        ├── StoreReadOnlyError  a write to a read-only store
        ├── StoreBusyError      another writer held the store for too long
        ├── StoreFullError      the disk is full; stored content is intact
        ├── StoreLimitError     a limit of the file format is exceeded
        ├── ClockSkewError      this machine's clock and the server's differ too much
        ├── CapabilityError     the engine lacks a feature, such as lexical search
        └── StoreUnavailableError  a server that cannot be reached or does not answer in time
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Final

_MAX_LISTED_NAMES: Final = 8
"""How many names an error lists."""
_MAX_QUOTED_NAME: Final = 80
"""Characters of a name that an error quotes."""


class LinkStoreError(Exception):
    """Base class of all linkstore errors.

    Args:
        message: The cause and the remedy, in one or two sentences.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ArgumentError(LinkStoreError, TypeError):
    """An argument has the wrong type, such as the path of a store instead of the store."""


class LinkError(LinkStoreError, ValueError):
    """A link cannot be stored: an empty kind or tag, an unknown direction, a tag too long."""


class FilterError(LinkStoreError, ValueError):
    """A metadata filter names an unknown operator or compares with an impossible value."""


class StrategyError(LinkStoreError, ValueError):
    """A setting of a strategy is out of range, or two settings contradict each other."""


class QueryError(LinkStoreError, ValueError):
    """A query about links is malformed, or its start is not there; the message says what to do."""


class UnknownNameError(LinkStoreError, ValueError):
    """A search names a link kind, a metadata field or a field of link data that no document in the store has.

    Args:
        sort: What was named: ``"link kind"``, ``"metadata field"``, ``"field of link data"`` or ``"type"``.
        name: The name.
        nearest: The names in the store most like it, best first.
        known: All names of this sort in the store, sorted.
        relation: The link kind that was taken for a metadata field; empty if none was.
    """

    def __init__(
        self, sort: str, name: str, nearest: Sequence[str], known: Sequence[str], relation: str = ""
    ) -> None:
        if relation:
            written = relation if relation.isidentifier() else f"`{relation.replace('`', '')}`"
            remedy = f"{relation} is a relation, no field: write (x)-[:{written}]->({{name: '<name>'}})"
        elif nearest:
            remedy = f"did you mean {' or '.join(map(_quote_name, nearest))}?"
        elif known:
            more = f" and {len(known) - _MAX_LISTED_NAMES} more" if len(known) > _MAX_LISTED_NAMES else ""
            remedy = f"the store has {', '.join(map(_quote_name, known[:_MAX_LISTED_NAMES]))}{more}"
        else:
            remedy = "check its spelling"
        super().__init__(f"no document has the {sort} {_quote_name(name)}; {remedy}")
        self.sort, self.name = sort, name
        self.nearest, self.known, self.relation = tuple(nearest), tuple(known), relation

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[object, ...]]:
        return type(self), (self.sort, self.name, self.nearest, self.known, self.relation)


class LinkStoreWarning(UserWarning):
    """Probably a mistake, such as documents without a link; the message says what to do."""


def warn(message: str) -> None:
    """Warn of something, and show the line that called linkstore."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("linkstore."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, LinkStoreWarning, stacklevel=level)


def _quote_name(name: str) -> str:
    """Return a name as errors quote it."""
    return repr(name if len(name) <= _MAX_QUOTED_NAME else f"{name[:_MAX_QUOTED_NAME]}…")


class SchemaError(LinkStoreError, ValueError):
    """A schema is invalid, or documents were refused because the schema of the store does not allow them.

    Args:
        message: The cause and the remedy.
        problems: For documents that were refused, the id of each and what is wrong with it.
    """

    def __init__(self, message: str, problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[SchemaError], tuple[str, tuple[tuple[str, str], ...]]]:
        return type(self), (self.message, self.problems)


class DocumentError(LinkStoreError, ValueError):
    """A document cannot be stored: its id, metadata or vector is invalid."""


class SourceConflictError(LinkStoreError, ValueError):
    """Another source has already stored a page of the same name."""


class EmbeddingError(LinkStoreError, ValueError):
    """The embedding is missing, unknown, or not the one the store was built with, or a text has no embedding.

    Args:
        message: The cause and the remedy.
        position: For a text without an embedding, its position among the texts to embed.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class ExtractionError(LinkStoreError):
    """A link extractor is not installed, is invalid, or failed on its source."""


class EvaluationError(LinkStoreError, ValueError):
    """A corpus, or questions with gold answers, cannot be used; the message names the file and line."""


class BudgetError(LinkStoreError, ValueError):
    """A token budget is smaller than what must be in a context; the message says by how much."""


class AgentError(LinkStoreError):
    """The model of an agent failed, or its answer was malformed twice; the message says how to go on."""


class MissingExtraError(LinkStoreError, ImportError):
    """A feature needs an optional dependency that is not installed.

    Args:
        feature: The feature, as named in the message.
        extra: The extra of ``langchain-linkstore`` that installs the dependency.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}': pip install 'langchain-linkstore[{extra}]'")
        self.feature = feature
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.feature, self.extra)


class UnavailableError(LinkStoreError, ConnectionError):
    """A server cannot be reached, or did not answer in time; try again later."""


class SourceNotFoundError(LinkStoreError, FileNotFoundError):
    """There is no folder of pages at the given path."""


class FetchError(LinkStoreError):
    """A URL could not be fetched.

    Args:
        message: Why.
        again: Whether it may go better later: a lost connection rather than a body that is too large.
    """

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class ForbiddenUrlError(FetchError):
    """A URL is not requested: another scheme than http(s), a private address, a user name, an odd port."""


class RobotsError(FetchError, UnavailableError):
    """The robots.txt of a host cannot be read or followed, so nothing is requested from the host."""


class SiteUnavailableError(UnavailableError):
    """A site does not answer, or stopped answering in a run; what was stored of it stays."""


class BackendError(LinkStoreError):
    """The storage engine failed; the message names the store, the operation and the remedy."""


class StoreNotFoundError(BackendError, FileNotFoundError):
    """No store exists at the given path."""


class StoreFormatError(BackendError):
    """The store was written by another version, or its files are damaged."""


class StoreClosedError(BackendError):
    """The store was used after ``close()``."""


class StoreMovedError(BackendError):
    """The folder of an open store was deleted, renamed or replaced; open the store again."""


class StorePermissionError(BackendError, PermissionError):
    """The process lacks permission to open the store's files."""


class StoreReadOnlyError(BackendError):
    """A write was attempted on a store in a read-only folder or on a read-only device."""


class StoreBusyError(BackendError, TimeoutError):
    """Another process or thread held the store's write lock for too long."""


class StoreFullError(BackendError):
    """The disk is full; nothing was written, and the stored content is intact."""


class StoreLimitError(BackendError):
    """The change would exceed a limit of the file format; nothing was written."""


class ClockSkewError(BackendError):
    """The clocks of this machine and the server differ too much; the message gives both times."""


class CapabilityError(BackendError):
    """The storage engine lacks a feature that the strategy needs; choose another strategy."""


class StoreUnavailableError(BackendError, UnavailableError):
    """The server cannot be reached, or did not answer within the deadline; try again later."""

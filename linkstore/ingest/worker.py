"""The process that reads pages for another one, and the messages between them.

The messages between a run and the processes that read its pages, through pipes that only they have.

A message is its length in 8 bytes, then a pickle. The first of a run is its :class:`ReadingTask`; the others
are pages, in which the reader that all pages share is replaced by a reference to that of the task.

Reads one page, in this process or in another.

The process that reads pages for another one: see :mod:`linkstore.ingest.workers`.
"""

from __future__ import annotations

import faulthandler
import logging
import pickle
import signal
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import IO, Any, Final

from langchain_core.documents import Document

from linkstore.core.processes import run_without_collector, take_pipes
from linkstore.core.urls import Site
from linkstore.errors import LinkError, LinkStoreError
from linkstore.extract.protocol import Chunk
from linkstore.ingest.documents import Linkers, make_page_documents
from linkstore.ingest.html.pages import UnreadablePageError

SECONDS_A_PAGE: Final = 10.0
"""A page that takes longer to read is given up."""
_LENGTH: Final = struct.Struct("!Q")
_READER: Final = "reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTask:
    """The task of a process: everything that it needs to read the pages of a run.

    Args:
        links: Names of link extractors.
        site: How the source names its pages.
        reader: What the methods that read pages belong to; None if those are functions.
    """

    links: tuple[str, ...]
    site: Site
    reader: object


def write_message(pipe: IO[bytes], content: bytes) -> None:
    """Send a message.

    Raises:
        OSError: If the other side is gone.
    """
    pipe.write(_LENGTH.pack(len(content)) + content)  # in one call: each releases the lock
    pipe.flush()


def read_message(pipe: IO[bytes]) -> bytes:
    """Receive a message.

    Raises:
        EOFError: If the other side is gone.
    """
    (length,) = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))
    return _read_exactly(pipe, length)


def pack_value(value: object, reader: object = None) -> bytes:
    """Return a value as bytes, with a reference in the place of ``reader``.

    Raises:
        Exception: Whatever pickling it raises, for a function without a name, say.
    """
    if reader is None:  # without a Python call for each object in it
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    buffer = BytesIO()
    _Packer(buffer, reader).dump(value)
    return buffer.getvalue()


def unpack_value(content: bytes, reader: object = None) -> Any:
    """Return the value that was packed."""
    if reader is None:
        return pickle.loads(content)  # noqa: S301 - from a process of this run, through a pipe of its own
    return _Unpacker(BytesIO(content), reader).load()


class _Packer(pickle.Pickler):
    def __init__(self, buffer: BytesIO, reader: object) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._reader = reader

    def persistent_id(self, obj: object) -> str | None:
        return _READER if obj is self._reader else None


class _Unpacker(pickle.Unpickler):
    def __init__(self, buffer: BytesIO, reader: object) -> None:
        super().__init__(buffer)
        self._reader = reader

    def persistent_load(self, pid: str) -> object:
        return self._reader


def _read_exactly(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError(f"the pipe ended after {len(content):,} of {length:,} bytes")
    return content


_LOG = logging.getLogger("linkstore.ingest")
PageReader = Callable[[], Sequence[Chunk] | Sequence[Document]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """The result of reading a page.

    Args:
        documents: In order; none if there is a problem.
        left_out: See :class:`~linkstore.extract.Page`.
        plain: See :class:`~linkstore.extract.Page`.
        disbelieved: See :class:`~linkstore.extract.Page`.
        replaced: See :class:`~linkstore.extract.Page`.
        guessed: See :class:`~linkstore.extract.Page`.
        problem: Why the page was not read.
        unseen: Whether the page may still be there, as after an error of the disk.
    """

    documents: tuple[Document, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    plain: int = 0
    disbelieved: tuple[str, ...] = ()
    replaced: int = 0
    guessed: bool = False
    problem: str | None = None
    unseen: bool = False


def read_page(url: str, read: PageReader, linkers: Linkers) -> ReadPage:
    """Read a page. One page ends no run: a fault of a reader or extractor, whoever wrote it, is a problem.

    Args:
        url: Names the page in the log.
        read: See :class:`~linkstore.ingest.SourcePage`.
        linkers: Find the links.

    Raises:
        LinkStoreError: If the run cannot go on, such as for want of an extra.
    """
    try:
        found, documents = run_without_collector(lambda: _read_documents(read, linkers))
    except (UnreadablePageError, LinkError) as error:
        return ReadPage(problem=str(error))
    except LinkStoreError:
        raise
    except OSError as error:
        return ReadPage(problem=str(error), unseen=True)
    except Exception as error:  # noqa: BLE001 (see above)
        _LOG.info("reading %s failed", url, exc_info=True)
        return ReadPage(problem=f"reading it failed: {type(error).__name__}: {error}")
    page = found[0].page if found and isinstance(found[0], Chunk) else None
    return ReadPage(
        documents=documents,
        left_out=page.left_out if page else {},
        plain=page.plain if page else 0,
        disbelieved=page.disbelieved if page else (),
        replaced=page.replaced if page else 0,
        guessed=page is not None and page.guessed,
        problem=None if documents else "it has no text",
    )


def _read_documents(
    read: PageReader, linkers: Linkers
) -> tuple[Sequence[Chunk] | Sequence[Document], tuple[Document, ...]]:
    found = read()
    return found, make_page_documents(found, linkers)


_STDERR: Final = 2
"""The stream's number. Python has no object for it if the other process has none."""
Reply = tuple[ReadPage, list[tuple[str | None, str, dict[str, object]]]]
"""The result of reading; documents are separate, because theirs take long to pickle."""


def main() -> None:
    """Read pages until there are no more: one message in, one out, which is empty if it cannot be read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one is told, and ends it
    messages, replies = take_pipes()
    try:
        job = _make_job(read_message(messages))
        write_message(replies, b"ready")
        while True:
            content = read_message(messages)
            faulthandler.dump_traceback_later(2 * SECONDS_A_PAGE, exit=True, file=_STDERR)
            reply = b"" if job is None else _make_reply(content, *job)
            faulthandler.cancel_dump_traceback_later()
            write_message(replies, reply)
    except EOFError:
        return


def _make_job(content: bytes) -> tuple[object, Linkers] | None:
    """Return reader and extractors, or None if they cannot be made here, as those of a script cannot."""
    try:
        task: ReadingTask = unpack_value(content)
        return task.reader, Linkers(task.links, task.site)
    except Exception:  # noqa: BLE001 - whatever the constructors of others raise
        return None


def _make_reply(content: bytes, reader: object, linkers: Linkers) -> bytes:
    try:
        url, read = unpack_value(content, reader)
        found = read_page(url, read, linkers)
        return pack_value(_detach_documents(found))
    except Exception:  # noqa: BLE001 - the page is read again where the run is, which raises it there
        return b""


def _detach_documents(found: ReadPage) -> Reply:
    fields = [(one.id, one.page_content, one.metadata) for one in found.documents]
    return replace(found, documents=()), fields


def join_documents(reply: Reply) -> ReadPage:
    """Return the result of reading, with its documents."""
    found, fields = reply
    documents = (Document(id=id, page_content=text, metadata=metadata) for id, text, metadata in fields)
    return replace(found, documents=tuple(documents))

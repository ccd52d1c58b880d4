"""The messages between a run and the processes that read its pages, through pipes that only they have.

A message is its length in 8 bytes, then a pickle. The first message of a run is its :class:`Task`; the others
are pages, in which the reader that all pages share is replaced by a reference to that of the task.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any, Final

from linkstore.urls import Site

SECONDS_A_PAGE: Final = 10.0
"""A page that takes longer to read is given up."""
_LENGTH: Final = struct.Struct("!Q")
_READER: Final = "reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
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
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return _exactly(pipe, length)


def packed(value: object, reader: object = None) -> bytes:
    """Return a value as bytes, with a reference in the place of ``reader``.

    Raises:
        Exception: Whatever pickling it raises, for a function without a name, say.
    """
    if reader is None:  # without a Python call for each object in it
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    buffer = BytesIO()
    _Packer(buffer, reader).dump(value)
    return buffer.getvalue()


def unpacked(content: bytes, reader: object = None) -> Any:
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


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError(f"the pipe ended after {len(content):,} of {length:,} bytes")
    return content

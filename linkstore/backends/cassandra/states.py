"""The content of a row of members or words: the states of a document that it records, as a set of blobs.

A write adds its own state to a row and, once the document is written, takes the others out. So the state that
is stored is in the row at every moment, and a row of one state, which is nearly every row, can be relied on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

_SIZE: Final = struct.Struct(">i")
ONE: Final = _SIZE.pack(1)
BEFORE: Final = 2 * _SIZE.size
"""Bytes before the state in a set that holds one: the number of elements, and the size of this one."""


def packed(*states: bytes) -> bytes:
    """A set of states, as the native protocol has it."""
    return _SIZE.pack(len(states)) + b"".join(_SIZE.pack(len(one)) + one for one in states)


def unpacked(states: bytes | None) -> list[bytes]:
    """The states of a set, as the native protocol has it."""
    if not states:
        return []
    (count,), at = _SIZE.unpack_from(states), _SIZE.size
    found = []
    for _ in range(count):
        (size,) = _SIZE.unpack_from(states, at)
        at += _SIZE.size
        found.append(states[at : at + size])
        at += size
    return found


def packed_list(texts: Sequence[str]) -> bytes:
    """A list of texts, as the native protocol has it."""
    each = [text.encode() for text in texts]
    return _SIZE.pack(len(each)) + b"".join(_SIZE.pack(len(one)) + one for one in each)

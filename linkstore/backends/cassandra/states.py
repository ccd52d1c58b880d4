"""The content of a row of members or words: a set of blobs, one for each recorded state of the document.

A write adds its state to a row, then writes the document, then removes the other states. So a row always has
the current state of its document. Nearly all rows have exactly one state, which is then the current one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_SIZE: Final = struct.Struct(">i")
ONE: Final = _SIZE.pack(1)
BEFORE: Final = 2 * _SIZE.size
"""Bytes before the state in a set of one: the number of elements, and the size of the element."""


def packed(*states: bytes) -> bytes:
    """Pack a set of states in the format of the native protocol."""
    return _SIZE.pack(len(states)) + sized(states)


def unpacked(states: bytes | None) -> list[bytes]:
    """Return the states in a set in the format of the native protocol."""
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
    """Pack a list of texts in the format of the native protocol."""
    return packed(*map(str.encode, texts))


def packed_map(entries: Mapping[str, str]) -> bytes:
    """Pack a map of texts in the format of the native protocol."""
    return _SIZE.pack(len(entries)) + sized([part.encode() for entry in entries.items() for part in entry])


def sized(values: Iterable[bytes]) -> bytes:
    """Join values, each after its size."""
    return b"".join([_SIZE.pack(len(one)) + one for one in values])
